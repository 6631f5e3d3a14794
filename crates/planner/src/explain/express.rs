//! Plans that explain shows without stages: a lookup by `_id`, and an update of the document.

use super::number;
use crate::node_stats::NodeStats;
use crate::plan::Node;
use quire_catalog::Collection;
use quire_document::DocWriter;

/// A lookup by `_id` alone, or an update of the document that it finds. An explained delete is not
/// such a plan, as in MongoDB.
pub(super) struct Express<'n> {
    collection: &'n Collection,
    updates: bool,
}

impl<'n> Express<'n> {
    pub fn of(root: &'n Node) -> Option<Self> {
        match root {
            Node::IdHack { collection, .. } => Some(Express { collection, updates: false }),
            Node::Write { kind, input } if !kind.removes() && !kind.upserts() => match &**input {
                Node::IdHack { collection, .. } => Some(Express { collection, updates: true }),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn print(&self, stats: Option<&NodeStats>, out: &mut DocWriter<'_>) {
        let clustered = self.collection.clustered_index().is_some();
        let stage = match (self.updates, clustered) {
            (true, _) => "EXPRESS_UPDATE",
            (false, true) => "EXPRESS_CLUSTERED_IXSCAN",
            (false, false) => "EXPRESS_IXSCAN",
        };
        out.append("stage", stage);
        if !clustered {
            out.append("keyPattern", "{ _id: 1 }").append("indexName", "_id_");
        }
        let Some(stats) = stats else { return };
        number("keysExamined", stats.total_keys(), out);
        number("docsExamined", stats.total_docs(), out);
        number("nReturned", stats.returned, out);
        if self.updates {
            number("nWouldModify", stats.counted, out);
            out.append("nWouldUpsert", 0).append("nWouldDelete", 0);
        }
    }
}
