//! `$merge`: each document changes the document of the target that it matches by a unique index, or
//! is inserted.

use std::sync::Arc;

use bumpalo::Bump;
use quire_catalog::{Collection, Index, Namespace};
use quire_collections::{Attempt, ChunkSize, Record, Writer, prepare_insert};
use quire_document::{Doc, DocBuf, Value, ValueBuf, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::{Merge, WhenMatched, WhenNotMatched};
use quire_mql::update::{Update, UpdateSpec};
use quire_mql::{EvalContext, Expression, ParseContext, UserVariable};
use quire_planner::running_merge_index;
use quire_storage::{Committed, Interrupt};

use crate::env::Env;
use crate::execution::Execution;
use crate::modify::chunk::{CHUNK_BYTES, CHUNK_DOCS};
use crate::modify::is_conflict;
use crate::unit::UnitOfWork;

/// A running `$merge`.
pub(crate) struct Merging {
    spec: Arc<Merge>,
    target: Namespace,
    env: Arc<Env>,
    /// The collation of the pipeline, which must be that of the unique index.
    collation: Option<Arc<quire_mql::Collation>>,
    /// The context of updates. Its variables are those of a `whenMatched` pipeline.
    parse: ParseContext,
    /// The `whenMatched` pipeline, compiled at the first document.
    pipeline: Option<Update>,
    size: ChunkSize,
}

/// The outcome for some documents.
struct Chunk {
    done: usize,
    /// The first error. The documents after it were tried nevertheless.
    error: Option<Error>,
}

impl Merging {
    /// Compiles the updates that the mode needs.
    pub fn new(spec: &Arc<Merge>, execution: &Execution) -> Result<Self> {
        let env = Arc::clone(&execution.env);
        let mut parse = env.parse.clone();
        parse.place = None;
        if let WhenMatched::Pipeline { variables, .. } = &spec.when_matched {
            let own = variables.iter().map(|(name, _)| &**name);
            parse.variables = declared(&env.parse, own);
        }
        let target = Namespace::new(&spec.db, &spec.collection)?;
        target.check_creatable()?;
        Ok(Merging {
            spec: Arc::clone(spec),
            target,
            env,
            collation: execution.plan.collation.clone(),
            parse,
            pipeline: None,
            size: ChunkSize::new(CHUNK_DOCS),
        })
    }

    /// Returns the collection to write to, as `database.collection`.
    pub fn namespace(&self) -> &str {
        self.target.as_str()
    }

    /// Writes a batch. After an error of one document it tries the other documents, then returns
    /// the first error.
    pub fn write(
        &mut self,
        unit: &mut dyn UnitOfWork,
        docs: &[Doc<'_>],
        interrupt: &Arc<Interrupt>,
    ) -> Result<Option<Committed>> {
        let (mut rest, mut last, mut failure) = (docs, None, None);
        // A view is refused even if nothing is written.
        unit.collection(&self.target)?;
        if self.pipeline.is_none()
            && !docs.is_empty()
            && let WhenMatched::Pipeline { stages, .. } = &self.spec.when_matched
        {
            self.pipeline = Some(update(Value::Array(stages.as_array()), &self.parse)?);
        }
        while !rest.is_empty() {
            if self.spec.when_not_matched == WhenNotMatched::Insert {
                unit.ensure_collection(&self.target, interrupt, &|_| true)?;
            }
            let mut is_again = false;
            let (chunk, committed) = unit.write_with(interrupt, |writer| {
                if std::mem::replace(&mut is_again, true) {
                    self.size.lost();
                }
                let part = rest.get(..self.size.rows()).unwrap_or(rest);
                self.write_chunk(writer, part)
            })?;
            self.size.won();
            last = committed.or(last);
            let Some(chunk) = chunk else { continue };
            failure = failure.or(chunk.error);
            rest = rest.get(chunk.done..).unwrap_or(&[]);
        }
        match failure {
            None => Ok(last),
            Some(error) => Err(error),
        }
    }

    /// Returns `None` if the collection was dropped since it was created.
    fn write_chunk(&self, writer: &mut Writer, docs: &[Doc<'_>]) -> Attempt<Option<Chunk>> {
        let target = writer.catalog().writable(&self.target)?;
        if target.is_none() && self.spec.when_not_matched == WhenNotMatched::Insert {
            return Ok(None);
        }
        let index = match &target {
            None => None,
            Some(target) => {
                match running_merge_index(&self.spec, target, self.collation.as_ref()) {
                    Some(index) => Some((Arc::clone(target), Arc::clone(index))),
                    None => return Err(Merge::no_index().into()),
                }
            }
        };
        let found = index.as_ref().map(|(target, index)| (&**target, &**index));
        let chunk = match found {
            Some((target, _)) => {
                writer.gathered(target, |writer| self.write_docs(writer, found, docs))
            }
            None => self.write_docs(writer, found, docs),
        };
        chunk.map(Some)
    }

    fn write_docs(
        &self,
        writer: &mut Writer,
        target: Option<(&Collection, &Index)>,
        docs: &[Doc<'_>],
    ) -> Attempt<Chunk> {
        let mut chunk = Chunk { done: 0, error: None };
        let bytes_before = writer.buffered_bytes();
        let mut arena = Bump::new();
        for doc in docs {
            chunk.done += 1;
            arena.reset();
            match self.write_one(writer, target, *doc, &arena) {
                Ok(()) => {}
                Err(failure) if is_conflict(&failure) => return Err(failure),
                Err(failure) => {
                    let error = Error::from(failure);
                    chunk.error.get_or_insert(error);
                }
            }
            let is_full = writer.buffered_bytes().saturating_sub(bytes_before) >= CHUNK_BYTES;
            if is_full || writer.is_budget_low() {
                break;
            }
        }
        Ok(chunk)
    }

    fn write_one(
        &self,
        writer: &mut Writer,
        target: Option<(&Collection, &Index)>,
        doc: Doc<'_>,
        arena: &Bump,
    ) -> Attempt<()> {
        self.env.check_interrupt()?;
        let mut buffer = Vec::new();
        let store = Arc::clone(writer.store());
        check_on(&self.spec, target.map(|(_, index)| index), doc)?;
        // If the incoming document has no `_id`, the matching document keeps its own.
        let by_id = self.spec.on.is_empty() || self.spec.on.contains("_id");
        let incoming = match by_id || doc.find("_id").is_some() {
            true => prepare_insert(&store, doc, &mut buffer)?,
            false => doc,
        };
        let Some((collection, index)) = target else { return self.unmatched() };
        if matches!(self.spec.when_matched, WhenMatched::Fail) {
            return self.insert(writer, collection, incoming);
        }
        match writer.view().get_by_key_of(collection, index, incoming)? {
            Some(record) => self.change(writer, collection, &record, incoming, arena),
            None if self.spec.when_not_matched == WhenNotMatched::Insert => {
                let inserted = self.inserted(index, incoming, writer, arena)?;
                self.insert(writer, collection, inserted.as_doc())
            }
            None => self.unmatched(),
        }
    }

    fn unmatched(&self) -> Attempt<()> {
        if self.spec.when_not_matched == WhenNotMatched::Discard {
            return Ok(());
        }
        let text = "$merge could not find a matching document in the target collection for at least one document in the source collection";
        Err(Error::new(ErrorCode::MergeStageNoMatchingDocument, text).into())
    }

    fn insert(&self, writer: &mut Writer, collection: &Collection, doc: Doc<'_>) -> Attempt<()> {
        let mut buffer = Vec::new();
        let store = Arc::clone(writer.store());
        let prepared = prepare_insert(&store, doc, &mut buffer)?;
        writer.insert(collection, prepared).map(|_| ())
    }

    /// Changes the matching document.
    fn change(
        &self,
        writer: &mut Writer,
        collection: &Collection,
        record: &Record,
        incoming: Doc<'_>,
        arena: &Bump,
    ) -> Attempt<()> {
        let Some((update, values)) = self.update_of(incoming, arena)? else { return Ok(()) };
        let (update, old) = (update.get(), record.doc.as_doc());
        let changed = self.changed(update, &values, old, arena).map_err(|error| {
            let is_id = error.code() == ErrorCode::ImmutableField;
            let text = "$merge failed to update the matching document, did you attempt to modify the _id or the shard key?";
            if is_id { error.context(text) } else { error }
        })?;
        match changed {
            Some(new) => writer.update(collection, record.id, old, new.as_doc(), update).map(drop),
            None => Ok(()),
        }
    }

    /// Returns the update of the document that matches `incoming`, with the values of its own
    /// variables; `None` if the document stays as it is.
    fn update_of(
        &self,
        incoming: Doc<'_>,
        arena: &Bump,
    ) -> Result<Option<(Compiled<'_>, Vec<ValueBuf>)>> {
        let compiled = match &self.spec.when_matched {
            WhenMatched::KeepExisting | WhenMatched::Fail => return Ok(None),
            WhenMatched::Replace => update(Value::Document(incoming), &self.parse)?,
            WhenMatched::Merge => {
                let set = doc! { "$set": incoming };
                update(Value::Document(set.as_doc()), &self.parse)?
            }
            WhenMatched::Pipeline { stages, variables } => {
                let (present, values) = self.values(variables, incoming, arena)?;
                if let Some(pipeline) = &self.pipeline
                    && present.len() == variables.len()
                {
                    return Ok(Some((Compiled::Once(pipeline), values)));
                }
                // A variable without a value is not declared.
                let mut parse = self.parse.clone();
                parse.variables = declared(&self.env.parse, present.into_iter());
                let own = update(Value::Array(stages.as_array()), &parse)?;
                return Ok(Some((Compiled::ForOne(Box::new(own)), values)));
            }
        };
        Ok(Some((Compiled::ForOne(Box::new(compiled)), Vec::new())))
    }

    /// Returns the document after an update; `None` if nothing changes.
    fn changed(
        &self,
        update: &Update,
        values: &[ValueBuf],
        old: Doc<'_>,
        arena: &Bump,
    ) -> Result<Option<DocBuf>> {
        let mut known = match self.spec.when_matched {
            WhenMatched::Pipeline { .. } => self.env.variable_values(),
            _ => Vec::new(),
        };
        known.extend(values.iter().map(|value| Some(value.as_value())));
        let context = EvalContext::new(arena, old, &self.env.shared).with_variables(&known);
        let mut out = Vec::with_capacity(old.len() + 64);
        let outcome = update.apply(old, None, &context, &mut out)?;
        Ok(outcome.changed.then(|| DocBuf::from_valid_bytes(out)))
    }

    /// Returns the variables that have values for an incoming document, and these values.
    fn values<'s>(
        &self,
        variables: &'s [(Box<str>, Expression)],
        incoming: Doc<'_>,
        arena: &Bump,
    ) -> Result<(Vec<&'s str>, Vec<ValueBuf>)> {
        let outer = self.env.variable_values();
        let context = EvalContext::new(arena, incoming, &self.env.shared).with_variables(&outer);
        let (mut present, mut values) = (Vec::new(), Vec::new());
        for (name, expression) in variables {
            if let Some(value) = expression.eval(&context)? {
                present.push(&**name);
                values.push(ValueBuf::new(value));
            }
        }
        Ok((present, values))
    }

    /// Returns the document to insert if none matches: the result of an upsert of the incoming
    /// document by the fields of `on`.
    fn inserted(
        &self,
        index: &Index,
        incoming: Doc<'_>,
        writer: &Writer,
        arena: &Bump,
    ) -> Result<DocBuf> {
        let operator = match self.spec.when_matched {
            WhenMatched::Merge => "$set",
            WhenMatched::KeepExisting => "$setOnInsert",
            _ => return Ok(incoming.to_owned()),
        };
        let filter = DocBuf::build(|filter| {
            for field in index.keys.fields() {
                let value = value_at(incoming, &field.path);
                filter.document(&field.path).append("$eq", value.unwrap_or(Value::Null));
            }
        });
        let upsert = doc! { (operator): incoming };
        let upsert = update(Value::Document(upsert.as_doc()), &self.parse)?;
        let context = EvalContext::new(arena, Doc::empty(), &self.env.shared);
        let new_id = || writer.store().new_object_id();
        upsert.upsert_document(filter.as_doc(), &context, new_id)
    }
}

/// A compiled update.
enum Compiled<'m> {
    /// Compiled once for all documents.
    Once(&'m Update),
    /// Compiled for one incoming document.
    ForOne(Box<Update>),
}

impl Compiled<'_> {
    fn get(&self) -> &Update {
        match self {
            Compiled::Once(update) => update,
            Compiled::ForOne(update) => update,
        }
    }
}

/// Compiles an update as a statement of its own: a `$merge` compiles one for each document, and the
/// limits of a request hold for each of them.
fn update(update: Value<'_>, parse: &ParseContext) -> Result<Update> {
    Update::parse(UpdateSpec { update, array_filters: &[], multi: false }, &parse.restarted())
}

/// Returns the names of the variables of a `whenMatched` pipeline: those of the request's `let`,
/// then its own.
fn declared<'n>(
    request: &ParseContext,
    own: impl Iterator<Item = &'n str>,
) -> Arc<Vec<UserVariable>> {
    let own = own.map(|name| UserVariable { name: name.into(), known: None });
    Arc::new(request.variables.iter().cloned().chain(own).collect())
}

/// Returns the value at a dotted path that leads only through documents.
fn value_at<'d>(doc: Doc<'d>, path: &str) -> Option<Value<'d>> {
    match path.split_once('.') {
        None => doc.get(path),
        Some((first, rest)) => match doc.get(first)? {
            Value::Document(inner) => value_at(inner, rest),
            _ => None,
        },
    }
}

/// Fails for a value that cannot identify a document.
fn check_on(spec: &Merge, index: Option<&Index>, doc: Doc<'_>) -> Result<()> {
    let id = std::iter::once("_id").filter(|_| spec.on.is_empty());
    for path in spec.on.iter().map(String::as_str).chain(id) {
        let mut at = Some(Value::Document(doc));
        for component in path.split('.') {
            at = match at {
                Some(Value::Document(inner)) => inner.get(component),
                _ => None,
            };
            if matches!(at, Some(Value::Array(_))) {
                let text = format!("$merge write error: 'on' field '{path}' is an array");
                return Err(Error::location(51185, text));
            }
        }
        let is_sparse = index.is_some_and(|index| index.keys.is_sparse());
        if is_sparse && at.is_none_or(|value| value.is_nullish()) {
            let text = format!(
                "$merge write error: 'on' field '{path}' cannot be missing, null or undefined if supporting index is sparse"
            );
            return Err(Error::location(51132, text));
        }
    }
    Ok(())
}
