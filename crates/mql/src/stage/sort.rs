//! `$sort`: sorts all documents, or returns the first ones of the order.

use super::facts::{Facts, InFusion};
use super::limit::printed;
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::expression::Dependencies;
use crate::sort::SortPattern;
use quire_document::DocWriter;
use std::sync::Arc;

pub(super) const SORT: StageRow = StageRow {
    name: "$sort",
    since: "2.2",
    doc: "Orders the documents.",
    facts: Facts { in_fusion: InFusion::Orders, ..Facts::PLAIN },
    parse: |_, value, cx| {
        let pattern = Arc::new(SortPattern::parse_stage(value, cx)?);
        Ok(vec![Stage::Sort(Sort { pattern, limit: 0 })])
    },
};

/// A parsed `$sort`.
#[derive(Clone, Debug)]
pub struct Sort {
    /// The order of the documents.
    pub pattern: Arc<SortPattern>,
    /// The number of documents to keep, from a following `$limit`; 0 for all.
    pub limit: u64,
}

impl StageBody for Sort {
    fn name(&self) -> &'static str {
        SORT.name
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        for path in self.pattern.parts().iter().filter_map(|part| part.path()) {
            reads.paths.insert(path.as_str().to_owned());
        }
        let kinds = self.pattern.metadata().map(|kind| kind.name().to_owned());
        reads.metadata.extend(kinds);
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        Modified::Nothing
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut sort = writer.document(SORT.name);
        sort.append("sortKey", self.pattern.to_bson());
        if self.limit > 0 {
            sort.append("limit", printed(self.limit));
        }
    }
}
