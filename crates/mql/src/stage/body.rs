//! What planner and explain ask of a stage. Each stage's file answers for its own type.

use super::{Modified, Needs};
use quire_document::DocWriter;

/// What a stage is besides what it does to documents.
pub trait StageBody {
    /// Returns the name with the dollar sign, as explain shows it.
    fn name(&self) -> &'static str;

    /// Returns what the stage needs of its input.
    fn needs(&self) -> Needs;

    /// Returns the paths that the stage changes.
    fn modified(&self) -> Modified;

    /// True if the stage handles each document by itself and gives its results in the order of its
    /// input. Such stages run in one operator ([`super::Stage`]s in a row: the executor's chain).
    fn streams(&self) -> bool {
        false
    }

    /// Writes the stage, `{$name: ...}`, as explain shows it.
    fn print(&self, writer: &mut DocWriter<'_>);
}
