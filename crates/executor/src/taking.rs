//! What a stage that reads its whole input takes of each document: the threads that read compute it, and the
//! stage gets it in order.

use bumpalo::Bump;
use quire_collections::RecordId;
use quire_document::Doc;
use quire_error::Error;
use quire_mql::column::Column;

use crate::chunks::Chunks;
use crate::columns::Columns;
use crate::distinct_values::DistinctValues;
use crate::env::Scope;
use crate::operators::chain::StepCounts;
use crate::recent_values::RecentValues;
use crate::row::Row;
use crate::sorting::batch::KeyedBatch;

/// A stage as the threads that read for it use it.
pub(crate) trait Taker: Sync {
    /// Returns what the stage takes of documents. `None` if one of them fails or they need too much memory
    /// together; the stage then gets the rows themselves.
    fn take(&self, docs: &Documents<'_>, scratch: &mut Scratch, scope: Scope<'_>) -> Option<Taken>;

    /// Returns the top-level fields that suffice in place of documents; `None` if the stage needs documents.
    fn fields(&self) -> Option<&[String]> {
        None
    }

    /// Returns what the stage takes of rows without documents, of which it gets the columns of
    /// [`fields`](Taker::fields), in that order. `None` as for [`take`](Taker::take).
    fn take_columns(&self, _: FieldColumns<'_>, _: &mut Scratch, _: Scope<'_>) -> Option<Taken> {
        None
    }
}

/// The fields of rows that were read without documents.
pub(crate) struct FieldColumns<'c> {
    pub rows: usize,
    pub columns: Vec<Column<'c>>,
}

/// Documents that were read together.
pub(crate) struct Documents<'d> {
    pub docs: &'d [Doc<'d>],
    /// Returns the record of a document.
    pub record: &'d dyn Fn(usize) -> RecordId,
}

/// Memory that a thread uses again and again.
#[derive(Default)]
pub(crate) struct Scratch {
    pub arena: Bump,
    pub key: Vec<u8>,
    pub chunks: Chunks,
    pub recent: RecentValues,
}

/// What was taken of some documents.
pub(crate) enum Taken {
    /// For a `$group`.
    Columns(Columns),
    /// For a sort.
    Keyed(Keyed),
    /// For a `distinct`.
    Values(DistinctValues),
    /// Documents in memory that they share, and what a chain before the stage let through.
    Rows(Vec<Row>, StepCounts),
    /// For each of several stages, and the number of the documents.
    Each(Vec<Taken>, u64),
}

/// What a sort takes of documents.
pub(crate) struct Keyed {
    /// The rows that may be among those to keep.
    pub batch: KeyedBatch,
    /// The size of all documents.
    pub bytes: u64,
    /// What a chain before the sort let through.
    pub passed: StepCounts,
}

/// What [`Operator::feed`](crate::operators::Operator::feed) passes to the stage above.
pub(crate) enum Given {
    /// Rows that the stage has to read itself.
    Rows(Vec<Row>),
    Taken(Taken),
}

impl Taken {
    /// Returns an estimate of the bytes that it holds.
    pub fn size(&self) -> usize {
        match self {
            Taken::Columns(columns) => columns.size(),
            Taken::Keyed(keyed) => keyed.batch.size(),
            Taken::Values(values) => values.size(),
            Taken::Rows(rows, _) => rows.iter().map(Row::size).sum(),
            Taken::Each(all, _) => all.iter().map(Taken::size).sum(),
        }
    }

    /// Returns the error of a stage that gets what another kind of stage takes.
    pub fn mistaken(stage: &str) -> Error {
        Error::internal(format!("{stage} was given what another stage takes"))
    }
}
