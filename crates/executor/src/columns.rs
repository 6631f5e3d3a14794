//! The values that a `$group` needs of each document. The thread that reads a document computes
//! them, and the groups get them in order.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use bumpalo::Bump;
use foldhash::fast::RandomState;
use quire_document::{Collator, Doc, Value, hash};
use quire_error::{Error, Result};
use quire_mql::EvalContext;
use quire_mql::column::{Column, OwnedColumn};
use quire_mql::expression::Batch;
use quire_mql::stage::Group;

use crate::env::Scope;
use crate::operators::chain::{Chain, StepCounts};
use crate::operators::filtering::{renew, reset};
use crate::taking::{Documents, FieldColumns, Scratch, Taken, Taker};

/// The fewest documents that the runs of keys have on average if documents are grouped run by run.
const RUN_ROWS_MIN: usize = 4;
/// The largest size in bytes of the columns of documents that a chain has changed.
const COLUMNS_BYTES_MAX: usize = 4 << 20;

/// A `$group` as the threads that read for it use it.
pub(crate) struct Grouping {
    /// The stages between the scan and the `$group`.
    pub chain: Chain,
    pub group: Arc<Group>,
    /// True if keys and arguments depend on nothing in the documents.
    pub only_counts: bool,
    /// The top-level fields that suffice in place of documents.
    fields: Option<Arc<[String]>>,
    hasher: RandomState,
}

/// Documents after one another with the same group key: they share it.
pub(crate) struct KeyRuns {
    /// The hash of the key of each run.
    pub hashes: Vec<u64>,
    /// The number of documents of each run; empty if each run is one document.
    pub rows: Vec<u32>,
}

/// The group keys of documents, and the arguments of each accumulator.
pub(crate) struct Columns {
    /// The key of each run.
    pub keys: OwnedColumn,
    pub runs: KeyRuns,
    pub arguments: Vec<OwnedColumn>,
    /// How many documents each step of the chain let through.
    pub passed: StepCounts,
}

impl Grouping {
    pub fn new(chain: Chain, group: Arc<Group>) -> Self {
        let only_counts = chain.is_empty() && !group.reads_documents();
        let is_alone = chain.is_empty() && !chain.reads_metadata;
        let fields = group.fields_read().filter(|_| is_alone).cloned();
        Grouping { chain, group, only_counts, fields, hasher: RandomState::default() }
    }

    /// Returns the hash of a key.
    pub fn hash(&self, key: Value<'_>, collator: Option<&dyn Collator>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hash(key, collator, &mut hasher);
        hasher.finish()
    }

    /// Returns the runs of documents with the same key, and the key of each run; a missing key counts as null.
    pub fn runs<'c, 'a>(
        &self,
        keys: Cow<'c, Column<'a>>,
        collator: Option<&dyn Collator>,
    ) -> (Cow<'c, Column<'a>>, KeyRuns) {
        let rows = keys.runs();
        // Runs that are short cost more than they save.
        let (keys, rows) = match rows.len() * RUN_ROWS_MIN <= keys.len() {
            true => (Cow::Owned(keys.heads(&rows)), rows),
            false => (keys, Vec::new()),
        };
        let key = |run| keys.get(run).unwrap_or(Value::Null);
        let hashes = (0..keys.len()).map(|run| self.hash(key(run), collator)).collect();
        (keys, KeyRuns { hashes, rows })
    }

    /// Returns the columns of some documents; `None` if one of them fails or they need too much
    /// memory together. The chain must not read metadata.
    fn columns(&self, docs: &[Doc<'_>], arena: &mut Bump, scope: Scope<'_>) -> Option<Columns> {
        let Scope { env, variables } = scope;
        if self.chain.is_empty() {
            reset(arena);
            let context = EvalContext::new(arena, Doc::empty(), &env.shared);
            return self.batch(docs, &context.with_variables(variables)).ok();
        }
        let mut columns = Columns {
            keys: OwnedColumn::new(),
            runs: KeyRuns { hashes: Vec::new(), rows: Vec::new() },
            arguments: vec![OwnedColumn::new(); self.group.fields().len()],
            passed: StepCounts::default(),
        };
        let mut passed = self.chain.none_passed();
        let mut bytes = 0;
        for doc in docs {
            renew(arena, env).ok()?;
            let context = EvalContext::new(arena, *doc, &env.shared).with_variables(variables);
            let mut take = |context: &EvalContext<'_>| {
                bytes += columns.add(self, context)?;
                let fit = bytes <= COLUMNS_BYTES_MAX;
                fit.then_some(()).ok_or_else(|| Error::internal("too much for columns"))
            };
            self.chain.run_on(&context, &mut passed, &mut take).ok()?;
        }
        columns.passed = passed;
        Some(columns)
    }

    fn batch(&self, docs: &[Doc<'_>], context: &EvalContext<'_>) -> Result<Columns> {
        self.columns_of(&self.group.batch(docs, context)?, context)
    }

    fn columns_of<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        context: &EvalContext<'a>,
    ) -> Result<Columns> {
        let (keys, arguments) = self.group.columns(batch, context)?;
        let (keys, runs) = self.runs(keys, context.collator());
        Ok(Columns {
            keys: keys.owned(),
            runs,
            arguments: arguments.iter().map(|column| column.owned()).collect(),
            passed: StepCounts::default(),
        })
    }
}

impl Taker for Grouping {
    fn take(&self, docs: &Documents<'_>, scratch: &mut Scratch, scope: Scope<'_>) -> Option<Taken> {
        self.columns(docs.docs, &mut scratch.arena, scope).map(Taken::Columns)
    }

    fn fields(&self) -> Option<&[String]> {
        self.fields.as_deref()
    }

    fn take_columns(
        &self,
        FieldColumns { rows, columns }: FieldColumns<'_>,
        scratch: &mut Scratch,
        scope: Scope<'_>,
    ) -> Option<Taken> {
        let Scope { env, variables } = scope;
        reset(&mut scratch.arena);
        let context = EvalContext::new(&scratch.arena, Doc::empty(), &env.shared);
        let batch = self.group.batch_of_columns(rows, columns);
        let columns = self.columns_of(&batch, &context.with_variables(variables));
        columns.ok().map(Taken::Columns)
    }
}

impl Columns {
    /// Adds the values of `cx.root`. Returns an estimate of the bytes that they take.
    fn add(&mut self, grouping: &Grouping, cx: &EvalContext<'_>) -> Result<usize> {
        let group = &grouping.group;
        let cx = &group.extract(cx)?;
        let key = group.key().eval(cx)?;
        self.runs.hashes.push(grouping.hash(key, cx.collator()));
        let mut bytes = 8 + self.keys.push(Some(key));
        for ((_, spec), column) in group.fields().iter().zip(&mut self.arguments) {
            bytes += column.push(spec.value(cx)?);
        }
        Ok(bytes)
    }

    /// Returns an estimate of the bytes that they take.
    pub fn size(&self) -> usize {
        let arguments: usize = self.arguments.iter().map(OwnedColumn::size).sum();
        let KeyRuns { hashes, rows } = &self.runs;
        8 * hashes.len() + 4 * rows.len() + self.keys.size() + arguments
    }
}
