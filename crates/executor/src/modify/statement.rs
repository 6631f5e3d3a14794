//! A compiled statement: its filter, its update, and their evaluation.

use std::sync::Arc;

use bumpalo::Bump;
use quire_catalog::key::Part;
use quire_catalog::{Collection, CollectionId, Namespace, bind_searches};
use quire_collections::{Attempt, Effect, Image, Keep, LineId, RecordId, View, Writer};
use quire_document::{Doc, DocBuf, Value, ValueBuf, equal};
use quire_error::{Error, Result};
use quire_mql::collation::AskedCollation;
use quire_mql::context::stoppable;
use quire_mql::filter::Filter;
use quire_mql::update::{Update, UpdateSpec};
use quire_mql::{Collation, EvalContext};
use quire_planner::{
    FindQuery, FindRequest, Hint, Plan, collation_of, compares_ids, id_of_write, id_to_look_up,
};

use crate::UnitOfWork;
use crate::env::Env;
use crate::examined::{Counters, Examined};
use crate::execution::{Execution, FoundRecords};
use crate::holding::reserve_built;
use crate::opening::open::open_query;
use crate::operators::filtering::reset;
use crate::params::ExecParams;
use crate::views::Views;

/// The query part of a write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub request: FindRequest,
}

impl Query {
    /// Returns the query; `one` if only the first document is wanted.
    pub fn new(
        namespace: &str,
        filter: Doc<'_>,
        sort: Doc<'_>,
        hint: Option<Hint>,
        collation: &AskedCollation,
        one: bool,
    ) -> Self {
        Query {
            request: FindRequest {
                namespace: namespace.to_owned(),
                filter: filter.to_owned(),
                sort: sort.to_owned(),
                hint,
                collation: collation.clone(),
                limit: u64::from(one),
                ..FindRequest::default()
            },
        }
    }

    pub fn filter(&self) -> Doc<'_> {
        self.request.filter.as_doc()
    }
}

/// Filter and update, ready to run.
pub(crate) struct Statement {
    pub env: Arc<Env>,
    /// The collation; `None` is the simple one.
    pub collation: Option<Arc<Collation>>,
    /// True if the collection has an `_id` index, and it compares strings as the statement does.
    compares_ids: bool,
    pub query: Query,
    /// The filter; `None` if the statement asks only for an `_id`.
    filter: Option<Filter>,
    /// The `_id`, if the statement asks only for that.
    by_id: Option<ValueBuf>,
    pub update: Option<Update>,
    /// The line of the next attempt, if it shares its commit with others.
    pub line: Option<LineId>,
    /// True after its query was planned: from then on its errors are those of running it.
    pub is_planned: bool,
    /// How many times an upsert met an existing key that its filter contains among other
    /// conditions.
    pub clashes: u32,
    /// The statement id, if a session stores its result.
    pub id: Option<i32>,
    /// The document that the session stores, for the reply of findAndModify.
    pub image: Option<Image>,
    /// The keys and documents that its search examined.
    pub examined: Examined,
    arena: Bump,
}

/// The running query of a statement. The writer checks each found document again.
pub(crate) struct Search {
    /// The collection to read.
    pub collection: CollectionId,
    /// True if it scans an index that the update may change, so that it can find a record twice.
    pub meets_again: bool,
    execution: Execution,
}

impl Search {
    /// Returns the next records, at most `max`, read on a new view (in a transaction on its own
    /// view). Empty only at the end.
    ///
    /// # Errors
    /// Those of the query, if it found nothing before it failed.
    pub fn next(
        &mut self,
        unit: &dyn UnitOfWork,
        statement: &Statement,
        max: usize,
    ) -> Result<FoundRecords> {
        let interrupt = &statement.env.params.interrupt;
        self.execution.next_records(&mut unit.views()?, interrupt, max)
    }

    /// Returns true if there are no more records.
    pub fn is_done(&self) -> bool {
        self.execution.is_done()
    }

    /// Adds the keys and documents examined so far to `examined`.
    pub fn note_examined(&self, examined: &mut Examined) {
        let found = self.execution.examined();
        examined.counters.add(&Counters { returned: 0, ..found.counters });
        examined.plan = found.plan;
    }
}

/// Returns the filter with its search bound to the index that answers it, so that it can test documents.
fn bound(filter: Filter, collection: Option<&Collection>) -> Result<Filter> {
    if filter.root().search().is_none() {
        return Ok(filter);
    }
    let mut condition = filter.into_node();
    bind_searches(&mut condition, collection)?;
    Ok(Filter::from_node(condition))
}

/// Returns true if a search can find a record again after its update. A scan in the order of
/// records cannot; a scan of an index can, if the update changes the record's keys.
fn may_meet_again(plan: &Plan, update: Option<&Update>) -> bool {
    let Some(update) = update else { return false };
    let mut again = false;
    plan.root.for_each_scan(&mut |scan| {
        again |= scan
            .keys
            .fields()
            .iter()
            .any(|field| field.part == Part::Computed || update.may_change(&field.path));
    });
    again
}

/// The result of applying an update to a document.
pub(crate) enum Applied {
    /// The document does not match the filter (any more).
    NoMatch,
    /// The document matches, and nothing changes.
    Same,
    /// The new document.
    Changed(DocBuf),
}

impl Statement {
    pub fn new(
        query: Query,
        update: Option<UpdateSpec<'_>>,
        let_vars: Doc<'_>,
        collection: Option<&Collection>,
        params: &ExecParams,
    ) -> Result<Self> {
        let collation = collation_of(&query.request.collation, collection).cloned();
        let env = Env::new(params.clone(), collation.as_ref(), let_vars, true)?;
        let by_id = id_to_look_up(&query.request, collection).map(ValueBuf::new);
        // A write to one `_id` sorts nothing, so its sort is not checked.
        let filter = if by_id.is_none() {
            let filter = bound(Filter::parse(query.filter(), &env.parse)?, collection)?;
            FindQuery::of_filter(&query.request, Some(&filter)).compile_sort(&env.parse)?;
            Some(filter)
        } else {
            None
        };
        let mut update = update.map(|spec| Update::parse(spec, &env.parse)).transpose()?;
        if let Some(update) = update.as_mut().filter(|_| params.keeps_empty_timestamps) {
            update.keep_empty_timestamps();
        }
        Ok(Statement {
            env: Arc::new(env),
            compares_ids: by_id.is_some() || compares_ids(&query.request, collection),
            collation,
            query,
            filter,
            by_id,
            update,
            line: None,
            is_planned: false,
            clashes: 0,
            id: None,
            image: None,
            examined: Examined::default(),
            arena: Bump::new(),
        })
    }

    /// Returns the filter; `None` if the statement asks only for an `_id`.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Plans and opens the statement's query; `None` if the collection does not exist.
    pub fn search(&mut self, unit: &dyn UnitOfWork) -> Result<Option<Search>> {
        let views = unit.views()?;
        let namespace = Namespace::parse(&self.query.request.namespace)?;
        let Some(found) = views.view().catalog().lookup(&namespace).cloned() else {
            return Ok(None);
        };
        let collection = found.id;
        // For a statement that writes many points, those that it writes are records (`points.rs`).
        let records_only = found.is_time_series() && self.query.request.limit != 1;
        let execution = self.open(views.view(), records_only)?;
        let meets_again = may_meet_again(&execution.plan, self.update.as_ref());
        self.is_planned = true;
        Ok(Some(Search { collection, meets_again, execution }))
    }

    /// Plans the statement's query on a view. `records_only` leaves out the buckets of a time-series collection.
    ///
    /// # Errors
    /// The errors of the planner about the sort and the hint.
    pub fn open(&self, view: View<'_>, records_only: bool) -> Result<Execution> {
        let mut query = FindQuery::of_filter(&self.query.request, self.filter.as_ref());
        query.compile_sort(&self.env.parse)?;
        open_query(&query, &self.env, (view, records_only))
    }

    /// Stores the result of the statement for the session: the document before and after.
    pub fn remember(
        &self,
        writer: &mut Writer,
        effect: Effect,
        before: Option<Doc<'_>>,
        after: Option<Doc<'_>>,
    ) {
        let Some(id) = self.id else { return };
        let keep = match (effect, self.image, before, after) {
            (_, Some(Image::Before), Some(before), _) => Keep::Before(before),
            (_, Some(Image::After), _, Some(after)) => Keep::After(after),
            (Effect::Insert, _, _, Some(after)) if self.image.is_some() => Keep::After(after),
            (Effect::Insert, _, _, Some(after)) => after.get("_id").map_or(Keep::Nothing, Keep::Id),
            _ => Keep::Nothing,
        };
        writer.remember(id, effect, keep);
    }

    /// Returns true if the document matches the filter.
    pub fn matches(&mut self, doc: Doc<'_>) -> Result<bool> {
        reset(&mut self.arena);
        let variables = self.env.variable_values();
        let context =
            EvalContext::new(&self.arena, doc, &self.env.shared).with_variables(&variables);
        stoppable(|| self.passes(doc, &context))
    }

    fn passes(&self, doc: Doc<'_>, context: &EvalContext<'_>) -> Result<bool> {
        match (&self.filter, &self.by_id) {
            (Some(filter), _) => filter.matches(doc, context),
            (None, Some(id)) => Ok(doc.get("_id").is_some_and(|found| {
                equal(found, id.as_value(), context.shared.collator.as_deref())
            })),
            (None, None) => Ok(true),
        }
    }

    /// Tests the document and applies the update to it.
    pub fn apply(&mut self, doc: Doc<'_>) -> Result<Applied> {
        reset(&mut self.arena);
        let variables = self.env.variable_values();
        let context =
            EvalContext::new(&self.arena, doc, &self.env.shared).with_variables(&variables);
        stoppable(|| self.apply_in(doc, &context))
    }

    fn apply_in(&self, doc: Doc<'_>, context: &EvalContext<'_>) -> Result<Applied> {
        let Some(update) = &self.update else {
            let matches = self.passes(doc, context)?;
            return Ok(if matches { Applied::Same } else { Applied::NoMatch });
        };
        let position = match &self.filter {
            Some(filter) if update.needs_position() => filter.find_position(doc, context)?,
            _ => self.passes(doc, context)?.then_some(None),
        };
        let Some(position) = position else { return Ok(Applied::NoMatch) };
        reserve_built(doc.len())?;
        let mut out = Vec::with_capacity(doc.len() + 64);
        let outcome = update.apply(doc, position, context, &mut out)?;
        Ok(if outcome.changed {
            Applied::Changed(DocBuf::from_valid_bytes(out))
        } else {
            Applied::Same
        })
    }

    /// Writes the document `after` of an update over the document `before`. Returns false if the
    /// patterns of the collection have kept all that would change.
    pub fn write(
        &self,
        writer: &mut Writer,
        collection: &Collection,
        id: RecordId,
        (before, after): (Doc<'_>, Doc<'_>),
    ) -> Attempt<bool> {
        let Some(update) = &self.update else {
            return Err(Error::internal("a document that no update has changed").into());
        };
        writer.update(collection, id, before, after, update)
    }

    /// Returns the document that an upsert inserts.
    pub fn upsert_document(&mut self, new_id: quire_document::ObjectId) -> Result<DocBuf> {
        reset(&mut self.arena);
        let variables = self.env.variable_values();
        let context = EvalContext::new(&self.arena, Doc::empty(), &self.env.shared)
            .with_variables(&variables);
        match &self.update {
            Some(update) => {
                stoppable(|| update.upsert_document(self.query.filter(), &context, || new_id))
            }
            None => Err(Error::internal("an upsert without an update")),
        }
    }

    /// Finds the line of the statement: it asks for one `_id`, and changes only counters that merge.
    pub fn line_up(&mut self, collection: Option<&Collection>) {
        let Some(collection) = collection.filter(|found| !found.patterns.declared.is_empty())
        else {
            return;
        };
        let merges = |path: &str| {
            let mut declared = collection.patterns.declared.iter();
            declared.any(|pattern| pattern.merges(path))
        };
        let is_counting =
            self.update.as_ref().is_some_and(|update| update.is_only_relative(merges));
        self.line =
            self.id_point().filter(|_| is_counting).map(|id| LineId::new(collection.id, id));
    }

    /// Returns the `_id` whose look-up is the plan of a write of one document; `None` if it searches.
    pub fn id_point(&self) -> Option<Value<'_>> {
        if let Some(id) = &self.by_id {
            return Some(id.as_value());
        }
        id_of_write(&self.query.request, self.compares_ids)
    }
}
