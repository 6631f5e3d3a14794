//! The boundary between the stages of a view and those of its reader, if the reader reads metadata.
//! The index key, the record id, the sort key and the score of a row are computed from fields that
//! the view may leave out, so the reader's `$meta` finds none of them. Clients cannot write this
//! stage.

use super::{Modified, Needs, Stage, StageBody};
use crate::expression::Dependencies;
use quire_document::DocWriter;

/// Passes documents on without their metadata.
#[derive(Clone, Copy, Debug)]
pub struct HideMetadata;

impl HideMetadata {
    /// Returns true if one of these stages reads metadata.
    pub fn is_needed_before(stages: &[Stage]) -> bool {
        stages.iter().any(|stage| !stage.needs().reads.metadata.is_empty())
    }

    /// Adds the stage at each of the positions `ends`, which ascend, at which the stages of a view
    /// end and stages that read metadata follow. A view without stages leaves nothing out.
    pub(super) fn insert(stages: &mut Vec<Stage>, ends: &[usize]) {
        for end in ends.iter().rev().filter(|end| **end > 0) {
            if stages.get(*end..).is_some_and(Self::is_needed_before) {
                stages.insert(*end, Stage::HideMetadata(HideMetadata));
            }
        }
    }
}

impl StageBody for HideMetadata {
    fn name(&self) -> &'static str {
        "$_internalHideMetadata"
    }

    fn needs(&self) -> Needs {
        Needs::reading(Dependencies::default())
    }

    /// No stage moves before this one: it could read metadata or set the sort key.
    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        writer.document(self.name());
    }
}
