//! The facts about a stage for planner and explain. The file of each stage implements them.

use super::{Modified, Needs};
use quire_document::DocWriter;

/// The properties of a stage, besides its effect on documents.
pub trait StageBody {
    /// Returns the name with the dollar sign, as explain shows it.
    fn name(&self) -> &'static str;

    /// Returns the fields that the stage needs of its input.
    fn needs(&self) -> Needs;

    /// Returns the paths that the stage changes.
    fn modified(&self) -> Modified;

    /// Returns true if the stage handles each document separately and keeps their order.
    /// Consecutive stages of this kind run in one operator (the executor's chain).
    fn streams(&self) -> bool {
        false
    }

    /// Writes the stage as explain shows it, `{$name: ...}`.
    fn print(&self, writer: &mut DocWriter<'_>);
}
