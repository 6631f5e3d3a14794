//! A capped collection is a ring: an insert deletes the oldest documents in the same commit, until
//! the others and the new one keep the bounds.
//!
//! Inserts of one collection conflict with each other, because each stores the head of the ring: two
//! that both find room for one document would exceed the bounds together. So record ids become
//! visible in their order, and the head is where the next insert looks for the oldest document,
//! however many were deleted before it.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_catalog::capped::Capped;
use quire_storage::{Counts, Direction};

use super::{Rule, RuleWriter};
use crate::changes::Change;
use crate::failure::Attempt;
use crate::{CollectionCursor, RecordId};

/// The most documents that one insert deletes. More are too many only after `collMod` has made the
/// bounds smaller; the next inserts delete the rest.
pub const EVICTED_MAX: usize = 10_000;

/// The bytes of a page of the oldest documents.
const PAGE_BYTES: usize = 1 << 20;

/// The ring of one collection.
struct Ring(Capped);

/// Returns the ring of a capped collection.
pub(super) fn compile(collection: &Collection) -> Option<Arc<dyn Rule>> {
    let capped = *collection.options.capped()?;
    Some(Arc::new(Ring(capped)))
}

impl Ring {
    /// Returns how many of the documents are certainly too many; 0 if they keep the bounds.
    fn excess(&self, counts: Counts) -> usize {
        let documents = self.0.docs_max().map_or(0, |max| counts.documents.saturating_sub(max));
        let is_large = counts.bytes > self.0.bytes_max;
        usize::try_from(documents).unwrap_or(usize::MAX).max(usize::from(is_large))
    }

    /// Deletes the oldest documents before `new` as long as there are too many. Returns the head of
    /// the ring after that: no document is before it.
    fn evict(
        &self,
        collection: &Collection,
        new: RecordId,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<RecordId> {
        let mut head = writer.view().head(collection)?;
        let (mut evicted, mut rows, mut page) = (0, 1, Vec::new());
        while evicted < EVICTED_MAX {
            let view = writer.view();
            let excess = self.excess(view.counts(collection));
            if excess == 0 {
                break;
            }
            let (from, to) = (Some(head), Some(RecordId(new.0 - 1)));
            let mut cursor = CollectionCursor::between(collection, Direction::Forward, from, to);
            let wanted = excess.max(rows).min(EVICTED_MAX - evicted);
            cursor.next_page(&view, collection, wanted, PAGE_BYTES, &mut page)?;
            if page.is_empty() {
                return Ok(new);
            }
            for record in page.drain(..) {
                if self.excess(writer.view().counts(collection)) == 0 {
                    break;
                }
                writer.delete(collection, record.id, record.doc.as_doc())?;
                head = RecordId(record.id.0 + 1);
                evicted += 1;
            }
            rows *= 2;
        }
        Ok(head)
    }
}

impl Rule for Ring {
    fn name(&self) -> &'static str {
        "capped"
    }

    fn place(&self, change: &Change<'_>, writer: &mut dyn RuleWriter) -> Attempt<()> {
        let Change::Insert { collection, id, .. } = *change else { return Ok(()) };
        let head = self.evict(collection, id, writer)?;
        writer.move_head(collection, head)
    }
}
