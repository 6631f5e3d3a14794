//! What stages read and change: the planner moves them around each other and fetches no more
//! than they need.

use super::Stage;
use crate::expression::Dependencies;
use std::collections::BTreeSet;

/// What a stage needs of its input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// What its expressions read.
    pub reads: Dependencies,
    /// Nothing of the input but what `reads` names gets into its output.
    pub exhaustive: bool,
}

/// Which paths a stage changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Modified {
    /// None.
    Nothing,
    /// These and what is below them.
    Paths(BTreeSet<String>),
    /// All but these, which are kept as they are.
    AllExcept(BTreeSet<String>),
    /// Any.
    All,
}

impl Stage {
    /// What it needs of its input.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        match self {
            Stage::Match(stage) => stage.add_dependencies(&mut needs.reads),
            Stage::Transform(stage) => needs.exhaustive = stage.add_dependencies(&mut needs.reads),
            Stage::Unwind(stage) => {
                needs.reads.paths.insert(stage.path().to_string());
            }
            Stage::Redact(stage) => {
                stage.add_dependencies(&mut needs.reads);
                needs.reads.whole_document = true;
            }
            Stage::Limit(_) | Stage::Skip(_) | Stage::Sample(_) => {}
            Stage::Sort(pattern) => {
                for path in pattern.parts().iter().filter_map(|part| part.path()) {
                    needs.reads.paths.insert(path.as_str().to_owned());
                }
                let kinds = pattern.metadata().map(|kind| kind.name().to_owned());
                needs.reads.metadata.extend(kinds);
            }
            Stage::Group(stage) => {
                stage.add_dependencies(&mut needs.reads);
                needs.exhaustive = true;
            }
        }
        needs
    }

    /// Which paths it changes.
    pub fn modified(&self) -> Modified {
        match self {
            Stage::Match(_)
            | Stage::Limit(_)
            | Stage::Skip(_)
            | Stage::Sample(_)
            | Stage::Sort(_) => Modified::Nothing,
            Stage::Transform(stage) => stage.modified(),
            Stage::Unwind(stage) => Modified::Paths(stage.modified_paths()),
            Stage::Redact(_) | Stage::Group(_) => Modified::All,
        }
    }
}
