//! The privileges that a stage needs, as a part of its row. The commands check them if users log
//! in; this crate knows nothing of users. (MongoDB manual, "Required Access" of each stage.)

use crate::expression::is_true;
use quire_document::{Doc, Value};

/// An action that a stage needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// The required action.
    pub action: StageAction,
    /// The resource of the action.
    pub on: On,
    /// The operands for which the action is required.
    pub when: When,
}

/// The actions of MongoDB that stages require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are MongoDB's")]
pub enum StageAction {
    Find,
    Insert,
    Update,
    Remove,
    ChangeStream,
    CollStats,
    IndexStats,
    Inprog,
    ListClusterCatalog,
    ListCollections,
    ListDatabases,
    ListSearchIndexes,
    ListSessions,
    PlanCacheRead,
    QuerySettings,
    QueryStatsRead,
    ServerStatus,
    ShardedDataDistribution,
}

/// The resource of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The collection or database that the pipeline reads.
    Source,
    /// The server, which MongoDB calls the cluster.
    Cluster,
    /// The collection in the operand.
    Named,
}

/// The operands for which an action is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All operands of the stage.
    Always,
    /// Operands with one of these fields, unless its value is false.
    Asks(&'static [&'static str]),
    /// All operands, except those with one of these texts in the field.
    Unless(&'static str, &'static [&'static str]),
}

/// The position of a collection's name in an operand, besides the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// The operand has no other collection.
    Nothing,
    /// The operand itself: a string, or `{db, coll}`.
    Operand,
    /// This field of the operand, or the operand itself if it is a string.
    Field(&'static str),
}

/// The privilege to read the source, which most stages need at the start of a pipeline.
pub const READ: &[Right] = &[on_source(StageAction::Find)];

/// Returns an action on the source, for all operands.
pub const fn on_source(action: StageAction) -> Right {
    Right { action, on: On::Source, when: When::Always }
}

/// Returns an action on the server, for all operands.
pub const fn on_cluster(action: StageAction) -> Right {
    Right { action, on: On::Cluster, when: When::Always }
}

/// Returns an action on the collection in the operand, for all operands.
pub const fn on_named(action: StageAction) -> Right {
    Right { action, on: On::Named, when: When::Always }
}

impl When {
    /// Returns true if an operand with these fields requires the action.
    pub fn holds(self, operand: Doc<'_>) -> bool {
        match self {
            When::Always => true,
            When::Asks(fields) => fields.iter().any(|name| is_true(operand.get(name))),
            When::Unless(field, harmless) => {
                let chosen = operand.get(field).and_then(|choice| choice.as_str());
                !chosen.is_some_and(|chosen| harmless.contains(&chosen))
            }
        }
    }
}

impl Names {
    /// Returns the value with the collection's name.
    pub fn of<'a>(self, operand: Value<'a>, fields: Doc<'a>) -> Option<Value<'a>> {
        match (self, operand) {
            (Names::Nothing, _) => None,
            (Names::Operand, _) | (Names::Field(_), Value::String(_)) => Some(operand),
            (Names::Field(name), _) => fields.get(name),
        }
    }
}
