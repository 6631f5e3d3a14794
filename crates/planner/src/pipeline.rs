//! Plans pipelines: filters and limits move to the front, the first stages become a query of the
//! collection, and the other stages are put above it. (MongoDB manual, "Aggregation Pipeline
//! Optimization".)
//!
//! Read in this order: this file, `rewrite` (moves stages forward; `pushing` translates a filter
//! that moves before a stage, with `group_keys`, `joins` and `windows` for these stages), `barrier`
//! (stages that must not move), `needed` (the fields that are read), `inner` (the plans inside of
//! stages, with `joined_fields`), `resolve` and `target` (the collections that stages read and
//! write).

mod barrier;
mod group_keys;
mod inner;
mod joined_fields;
mod joins;
mod needed;
mod pushing;
pub(crate) mod resolve;
mod rewrite;
pub(crate) mod target;
mod windows;

use crate::count::keys_suffice;
use crate::find::{FindQuery, lookups_of_keys, plan_find};
use crate::first_of_each::below_group;
use crate::indexes::choose::Statistics;
use crate::indexes::keys::{of_present_keys, tests_ids, tests_keys, types_in, without_keys};
use crate::pipeline::barrier::hold_back;
use crate::pipeline::needed::{narrowing, needed_paths};
use crate::pipeline::rewrite::optimise;
use crate::pipeline::target::{check_fused, check_target};
use crate::plan::{Inner, MetadataRead, Node, Plan, Reshape, Source};
use crate::request::{AggregateRequest, FindRequest};
use inner::{Around, plan_inner};
use quire_document::limits::DEPTH_MAX;
use quire_document::limits::NAMESPACE_BYTES_MAX;
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::ParseContext;
use quire_mql::collation::AskedCollation;
use quire_mql::filter::{KeyTypes, Node as Condition};
use quire_mql::projection::Kind;
use quire_mql::sort::SortPattern;
use quire_mql::stage::{
    Limit, Match, Modified, Place, Skip, Sort, Stage, StageBody, Transform, first_only,
    parse_pipeline,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Plans a pipeline.
///
/// # Errors
/// The errors of `mql` about the stages; `BadValue` for a hint that names no index.
pub(crate) fn plan_pipeline(
    request: &AggregateRequest,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Plan> {
    let behind_source = request.fed_by.is_some();
    let view = request.view.clone();
    let view_ends = view.as_ref().map(|view| view.ends.clone()).unwrap_or_default();
    let place = Place { behind_source, view, view_ends, ..Place::of(&request.namespace) };
    let context = &context.at(place);
    let stages = request.pipeline.iter().map(|stage| Value::from(stage.as_doc()));
    let stages = parse_pipeline(stages, context)?;
    check_target(stages.last(), request, stats)?;
    check_fused(&stages, request, stats)?;
    let source = Source {
        namespace: request.namespace.clone(),
        hint: request.hint.clone(),
        collation: request.collation.clone(),
        fed_by: request.fed_by,
        of_view: request.view.is_some(),
        gives_metadata: false,
    };
    plan_stages(&source, stages, context, stats)
}

/// Plans parsed stages.
///
/// # Errors
/// Those of [`plan_pipeline`].
pub(crate) fn plan_stages(
    source: &Source,
    stages: Vec<Stage>,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Plan> {
    let stages = if source.of_view { hold_back(stages) } else { stages };
    let (rest, keys) = take_keys(optimise(stages, context)?, context)?;
    plan_rewritten(source, rest, keys, context, stats)
}

/// Plans parsed stages as [`plan_stages`] does, with `keys`, the condition on the keys of a join, behind them.
///
/// # Errors
/// Those of [`plan_pipeline`].
pub(crate) fn plan_with_keys(
    source: &Source,
    stages: &[Stage],
    keys: Condition,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Plan> {
    if stages.is_empty() {
        return plan_rewritten(source, VecDeque::new(), Some(keys), context, stats);
    }
    let filter = Stage::Match(Arc::new(Match::all_of(vec![keys])));
    plan_stages(source, stages.iter().cloned().chain([filter]).collect(), context, stats)
}

/// Plans stages that were rewritten, and, for the `keys` of a join, the same stages for its documents.
fn plan_rewritten(
    source: &Source,
    stages: VecDeque<Stage>,
    keys: Option<Condition>,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Plan> {
    let Head { mut plan, rest, collation } = plan_head(source, stages, keys, context, stats)?;
    let rest = with_inner(rest, Around { context, stats, collation: &collation })?;
    let reads_keys = |inner: &Inner| match inner {
        Inner::Union(plans) => plans.iter().any(|plan| plan.by_keys.is_some()),
        _ => false,
    };
    if plan.by_keys.is_some() || rest.iter().any(|(_, inner)| reads_keys(inner)) {
        let head = plan.by_keys.map_or_else(|| plan.root.clone(), |head| *head);
        plan.by_keys = Some(Box::new(stacked(head, rest.clone())));
    }
    plan.root = stacked(plan.root, rest);
    Ok(plan)
}

/// The planned beginning of a pipeline.
struct Head {
    /// The plan of the query, or of another leaf.
    plan: Plan,
    /// The stages above it.
    rest: VecDeque<Stage>,
    /// The collation of these stages.
    collation: AskedCollation,
}

/// Plans the first stages of a pipeline as a query, and no stage above it.
///
/// # Errors
/// Those of [`plan_pipeline`].
fn plan_head(
    source: &Source,
    stages: VecDeque<Stage>,
    keys: Option<Condition>,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Head> {
    let mut rest = stages;
    let leaf = match (source.fed_by, rest.front()) {
        (Some(name), _) => Some(Node::Feed { name }),
        (None, Some(Stage::OneDocument(_))) => {
            rest.pop_front();
            Some(Node::OneDocument)
        }
        (None, Some(Stage::Served(stage))) => {
            let leaf = Node::Served(Arc::clone(stage));
            rest.pop_front();
            Some(leaf)
        }
        // No collection has such a long name.
        _ if source.namespace.len() > NAMESPACE_BYTES_MAX => Some(Node::Eof),
        _ => None,
    };
    // After the stages of a view.
    if let Some(Stage::Served(stage)) = rest.iter().find(|stage| matches!(stage, Stage::Served(_)))
    {
        return Err(first_only(stage.name));
    }
    if let Some(leaf) = leaf {
        let plan = Plan { root: leaf, ..Plan::of_feed(&source.namespace) };
        return Ok(Head { plan, rest, collation: source.collation.clone() });
    }
    let mut query = Query::take(source, &mut rest, context)?;
    let condition = query.take_condition();
    let of_keys = keys.map(|keys| {
        let mut parts = condition.conjuncts().to_vec();
        parts.push(keys);
        Condition::all(parts)
    });
    let mut plan = query.plan(condition, &rest, context, stats)?;
    if let Some(condition) = of_keys.filter(|_| !plan.missing) {
        let root = match query.lookups_of_keys(&condition, &plan, &rest, stats)? {
            Some(root) => root,
            None => plan_by_keys(&query, condition, &rest, context, stats)?,
        };
        // Keys are not bound in a scan of buckets.
        plan.by_keys = (!root.reads_buckets()).then(|| Box::new(root));
    }
    let collation = AskedCollation::Own(plan.collation.clone());
    Ok(Head { plan, rest, collation })
}

/// Removes the placeholder for the keys of a join from the stages. Returns the stages, and the
/// condition if it is one of the first filter, so that an index may serve it. Elsewhere it would only
/// drop rows that the join drops.
fn take_keys(
    stages: Vec<Stage>,
    context: &ParseContext,
) -> Result<(VecDeque<Stage>, Option<Condition>)> {
    if !stages.iter().any(|stage| keys_in(stage).is_some()) {
        return Ok((stages.into(), None));
    }
    let keys = stages.first().and_then(keys_in).cloned();
    let without = |stage: Stage| match &stage {
        Stage::Match(filter) if keys_in(&stage).is_some() => {
            let left = without_keys(filter.filter().root())?;
            Some(Stage::Match(Arc::new(Match::all_of(vec![left]))))
        }
        _ => Some(stage),
    };
    let stages = stages.into_iter().filter_map(without).collect();
    Ok((optimise(stages, context)?.into(), keys))
}

/// Returns the placeholder for the keys of a join in a filter.
fn keys_in(stage: &Stage) -> Option<&Condition> {
    match stage {
        Stage::Match(filter) => {
            filter.filter().root().conjuncts().iter().find(|part| tests_keys(part))
        }
        _ => None,
    }
}

/// Plans the query for the keys of a join. If no index has the documents of all keys, one may have
/// those of all but null.
fn plan_by_keys(
    query: &Query,
    condition: Condition,
    rest: &VecDeque<Stage>,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Node> {
    let mut root = query.plan(condition.clone(), rest, context, stats)?.root;
    if root.keyed_scan().is_none() && types_in(&condition) != Some(KeyTypes::Present) {
        let present = query.plan(of_present_keys(&condition), rest, context, stats)?.root;
        if present.keyed_scan().is_some() {
            root = present;
        }
    }
    Ok(match query.reads_index_keys(rest) {
        true => root,
        false => root.with_id_lookups(without_keys),
    })
}

/// The first stages of a pipeline as a query of the collection.
struct Query {
    find: FindRequest,
    filter: Option<Arc<Match>>,
    sort: Option<Arc<SortPattern>>,
    projection: Option<Arc<Reshape>>,
    /// True if the other stages read no field at all.
    counts_only: bool,
    /// True if stages outside of the pipeline read the metadata of the search.
    gives_metadata: bool,
}

impl Query {
    /// Removes the stages that a query of the collection can answer from the front of `stages`.
    fn take(source: &Source, stages: &mut VecDeque<Stage>, context: &ParseContext) -> Result<Self> {
        let find = FindRequest {
            namespace: source.namespace.clone(),
            hint: source.hint.clone(),
            collation: source.collation.clone(),
            of_pipeline: true,
            ..FindRequest::default()
        };
        let mut query = Query {
            find,
            filter: None,
            sort: None,
            projection: None,
            counts_only: false,
            gives_metadata: source.gives_metadata,
        };
        if let Some(Stage::Match(filter)) = stages.front() {
            query.filter = Some(Arc::clone(filter));
            stages.pop_front();
        }
        query.take_sort(stages);
        query.take_limits(stages);
        query.take_projection(stages, context)?;
        if let Some(Stage::Sample(sample)) = stages.front()
            && query.reads_everything()
        {
            query.find.sample = Some(sample.0);
        }
        Ok(query)
    }

    /// Returns true for metadata of the search in the filter.
    fn gives(&self, metadata: &str) -> bool {
        let filter = self.filter.as_ref().map(|filter| filter.filter().root());
        let search = filter.and_then(Condition::search);
        search.is_some_and(|search| search.metadata().contains(&metadata))
    }

    /// Returns true if the query, or a stage of `rest` above it, reads the index keys of rows.
    fn reads_index_keys(&self, rest: &VecDeque<Stage>) -> bool {
        let projection = self.projection.as_deref().and_then(|spec| spec.projection.as_ref());
        projection.is_some_and(|projection| projection.metadata().contains("indexKey"))
            || reads_metadata(rest, "indexKey")
    }

    fn take_sort(&mut self, stages: &mut VecDeque<Stage>) {
        if let Some(Stage::Sort(sort)) = stages.front()
            && sort.pattern.metadata().all(|kind| self.gives(kind.name()))
        {
            self.sort = Some(Arc::clone(&sort.pattern));
            stages.pop_front();
        }
    }

    fn take_limits(&mut self, stages: &mut VecDeque<Stage>) {
        if let Some(Stage::Skip(Skip(count))) = stages.front() {
            self.find.skip = *count;
            stages.pop_front();
        }
        if let Some(Stage::Limit(Limit(count))) = stages.front() {
            self.find.limit = *count;
            stages.pop_front();
        }
    }

    /// Takes an including `$project`, or determines which fields the stages read, so that an index
    /// alone may be enough.
    fn take_projection(
        &mut self,
        stages: &mut VecDeque<Stage>,
        context: &ParseContext,
    ) -> Result<()> {
        let reshape = match stages.front() {
            None => return Ok(()),
            Some(Stage::Transform(Transform::Projection("$project", projection)))
                if projection.kind() == Kind::Inclusion =>
            {
                let projection = Arc::clone(projection);
                stages.pop_front();
                let shown = projection.print();
                check_depth(shown.as_doc())?;
                Reshape {
                    shown,
                    projection: Some(projection),
                    show_record_id: false,
                    empty_sort_key: false,
                    narrows: false,
                    values_only: false,
                }
            }
            Some(_) => {
                let Some(paths) = needed_paths(stages.iter()) else { return Ok(()) };
                if paths.is_empty() {
                    self.counts_only = true;
                    return Ok(());
                }
                let sorts_all = self.sort.is_some() && self.find.limit == 0;
                let reshape = narrowing(&paths, sorts_all || copies(stages), context)?;
                Reshape { values_only: ends_in_group(stages), ..reshape }
            }
        };
        self.find.projection = reshape.shown.clone();
        self.projection = Some(Arc::new(reshape));
        Ok(())
    }

    /// Returns true if the stages that were taken return every document unchanged.
    fn reads_everything(&self) -> bool {
        let FindRequest { skip: 0, limit: 0, .. } = self.find else { return false };
        let projects = self.projection.as_ref().is_some_and(|projection| !projection.narrows);
        let all = self.filter.as_ref().is_none_or(|filter| filter.filter().is_always_true());
        all && self.sort.is_none() && !projects
    }

    /// Removes the condition of the filter, so that it is not copied.
    fn take_condition(&mut self) -> Condition {
        match self.filter.take() {
            Some(filter) => Arc::unwrap_or_clone(filter).into_filter().into_node(),
            None => Condition::And(Vec::new()),
        }
    }

    /// Returns the look-ups of keys that are `_id`s, below the stages of `rest`, if the keys are the whole condition;
    /// else `None`. `whole` is the plan without the keys.
    fn lookups_of_keys(
        &self,
        condition: &Condition,
        whole: &Plan,
        rest: &VecDeque<Stage>,
        stats: &dyn Statistics,
    ) -> Result<Option<Node>> {
        let groups = matches!(rest.front(), Some(Stage::Group(_)));
        let Some(collection) = whole.cursor().collection().filter(|_| tests_ids(condition)) else {
            return Ok(None);
        };
        if self.counts_only || groups || self.reads_index_keys(rest) {
            return Ok(None);
        }
        let find = self.find_query(condition.clone());
        let found = lookups_of_keys(&find, collection, whole.collation.as_ref(), stats)?;
        Ok(found.map(|root| if copies(rest) { root } else { without_copies(root) }))
    }

    /// Plans the query with a condition, below the stages of `rest`.
    fn plan(
        &self,
        condition: Condition,
        rest: &VecDeque<Stage>,
        context: &ParseContext,
        stats: &dyn Statistics,
    ) -> Result<Plan> {
        let mut find = self.find_query(condition);
        find.reads_metadata = find.search().is_some_and(|search| {
            let mut kinds = search.metadata().iter();
            self.gives_metadata || kinds.any(|kind| reads_metadata(rest, kind))
        });
        let mut plan = plan_find(&find, stats)?;
        if let Some(Stage::Group(group)) = rest.front().filter(|_| !context.as_written)
            && let Some(root) = below_group(group, &find, &plan, stats)?
        {
            plan.root = root;
            plan.rejected.clear();
        }
        let mut root = plan.root;
        if self.counts_only {
            root = without_fetch(keys_suffice(root));
        }
        if !root.blocks() && !copies(rest) {
            root = without_copies(root);
        }
        if let Some(pattern) =
            self.sort.as_ref().filter(|_| reads_metadata(rest, "sortKey") && root.lacks_sort_keys())
        {
            root = Node::SortKeys { pattern: Arc::clone(pattern), input: Box::new(root) };
        }
        plan.root = root;
        Ok(plan)
    }

    /// Returns the query with a condition.
    fn find_query(&self, condition: Condition) -> FindQuery<'_> {
        FindQuery {
            sort: self.sort.clone(),
            projection: self.projection.clone(),
            ..FindQuery::of_condition(&self.find, Some(condition))
        }
    }
}

/// Fails with 15 Overflow for a `$project` that nests too deeply in the long form in which mongod
/// writes it.
fn check_depth(shown: Doc<'_>) -> Result<()> {
    if shown.nests_within(DEPTH_MAX) {
        return Ok(());
    }
    let text = format!(
        "Invalid $project :: caused by :: cannot convert document to BSON because it exceeds the limit of {DEPTH_MAX} levels of nesting"
    );
    Err(Error::new(ErrorCode::Overflow, text))
}

/// Returns true if a `$group` comes before any stage that copies fields of the documents: expressions,
/// filters and sorts read only the values at their paths.
fn ends_in_group(stages: &VecDeque<Stage>) -> bool {
    let reads_values = |stage: &&Stage| {
        matches!(stage, Stage::Match(_) | Stage::Sort(_) | Stage::Skip(_) | Stage::Limit(_))
    };
    matches!(stages.iter().find(|stage| !reads_values(stage)), Some(Stage::Group(_)))
}

/// Returns true if a stage before the first `$group` copies a document's fields or holds documents
/// in memory. Then it pays to keep only the fields that are read.
fn copies(stages: &VecDeque<Stage>) -> bool {
    let mut before = stages.iter().take_while(|stage| !matches!(stage, Stage::Group(_)));
    before.any(|stage| match stage {
        Stage::Sort(sort) => sort.limit == 0,
        Stage::Facet(_)
        | Stage::BucketAuto(_)
        | Stage::WindowFields(_)
        | Stage::Lookup(_)
        | Stage::GraphLookup(_) => true,
        other => other.streams() && matches!(other.modified(), Modified::Paths(_)),
    })
}

/// Removes the fetch of documents of which nothing is read.
fn without_fetch(node: Node) -> Node {
    match node {
        Node::Fetch { filter: None, input } => *input,
        mut other => {
            if !other.blocks()
                && let Some(input) = other.input_mut()
            {
                let inner = std::mem::replace(input, Node::Eof);
                *input = without_fetch(inner);
            }
            other
        }
    }
}

/// Removes a projection that only drops unused fields, if no stage holds or copies rows: the
/// readers of the rows then pick the fields that they need.
fn without_copies(node: Node) -> Node {
    match node {
        Node::Projection { kind, spec, input } if spec.narrows && spec.projection.is_some() => {
            let spec = Arc::new(Reshape { projection: None, ..Reshape::clone(&spec) });
            Node::Projection { kind, spec, input }
        }
        other => other,
    }
}

/// Puts stages above a node, the first stage lowest.
pub(crate) fn above(node: Node, stages: VecDeque<Stage>, around: Around<'_>) -> Result<Node> {
    Ok(stacked(node, with_inner(stages, around)?))
}

/// Puts planned stages above a node.
fn stacked(node: Node, stages: Vec<(Stage, Inner)>) -> Node {
    let over = |input, (stage, inner): (Stage, Inner)| {
        let reads = MetadataRead::of(&stage);
        Node::Stage { stage, input: Box::new(input), inner, reads }
    };
    stages.into_iter().fold(node, over)
}

/// Plans the pipelines inside of stages.
fn with_inner(stages: VecDeque<Stage>, around: Around<'_>) -> Result<Vec<(Stage, Inner)>> {
    let stages = match around.context.as_written {
        true => stages.into(),
        false => limit_sorts(stages),
    };
    let mut inners = Vec::with_capacity(stages.len());
    for (at, stage) in stages.iter().enumerate() {
        inners.push(plan_inner(stage, stages.get(at + 1..).unwrap_or_default(), around)?);
    }
    Ok(stages.into_iter().zip(inners).collect())
}

/// Moves the `$limit` that follows a `$sort`, also after a `$skip`, into the sort. The sort then
/// returns no more rows than the limit allows, so the limit itself is removed.
fn limit_sorts(mut stages: VecDeque<Stage>) -> Vec<Stage> {
    let mut out: Vec<Stage> = Vec::with_capacity(stages.len());
    while let Some(stage) = stages.pop_front() {
        let Stage::Sort(sort) = stage else {
            out.push(stage);
            continue;
        };
        let (skip, at) = match stages.front() {
            Some(Stage::Skip(Skip(count))) => (*count, 1),
            _ => (0, 0),
        };
        let limit = match stages.get(at) {
            Some(Stage::Limit(Limit(count))) => count.saturating_add(skip),
            _ => 0,
        };
        if limit > 0 {
            stages.remove(at);
        }
        out.push(Stage::Sort(Sort { limit, ..sort }));
    }
    out
}

/// Returns true if a stage up to the first `$group` reads this metadata; a `$group` drops metadata.
fn reads_metadata(stages: &VecDeque<Stage>, kind: &str) -> bool {
    for stage in stages {
        if stage.needs().reads.metadata.contains(kind) {
            return true;
        }
        if matches!(stage, Stage::Group(_)) {
            return false;
        }
    }
    false
}
