//! What a stage needs of the user who runs it, as a part of its row. The commands ask for it where
//! users log in; nothing here knows users. (MongoDB manual, "Required Access" of each stage.)

use crate::expression::is_true;
use quire_document::{Doc, Value};

/// One action that a stage needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// What the user must be allowed to do.
    pub action: StageAction,
    /// What the user must be allowed to do it to.
    pub on: On,
    /// The operands that need it.
    pub when: When,
}

/// The actions of MongoDB that stages need.
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
    ShardedDataDistribution,
}

/// Where a user needs an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The collection or the database that the pipeline is over.
    Source,
    /// The server, which MongoDB calls the cluster.
    Cluster,
    /// The collection that the operand names.
    Named,
}

/// For which operands a stage needs an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It needs the action whatever its operand says.
    Always,
    /// Those with one of these fields, unless the field's value counts as false.
    Asks(&'static [&'static str]),
    /// All but those with one of these texts in the field.
    Unless(&'static str, &'static [&'static str]),
}

/// Where an operand names the collection that its stage reads or writes besides the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Its operand names no other collection.
    Nothing,
    /// The operand: a string, or `{db, coll}`.
    Operand,
    /// This field of the operand, or an operand that is a string.
    Field(&'static str),
}

/// The right to read the source: what the first stage of a pipeline needs, mostly.
pub const READ: &[Right] = &[on_source(StageAction::Find)];

/// An action on the source, always.
pub const fn on_source(action: StageAction) -> Right {
    Right { action, on: On::Source, when: When::Always }
}

/// An action on the server, always.
pub const fn on_cluster(action: StageAction) -> Right {
    Right { action, on: On::Cluster, when: When::Always }
}

/// An action on the collection that the operand names, always.
pub const fn on_named(action: StageAction) -> Right {
    Right { action, on: On::Named, when: When::Always }
}

impl When {
    /// Returns whether an operand with these fields needs the action.
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
    /// Returns the value that names the collection.
    pub fn of<'a>(self, operand: Value<'a>, fields: Doc<'a>) -> Option<Value<'a>> {
        match (self, operand) {
            (Names::Nothing, _) => None,
            (Names::Operand, _) | (Names::Field(_), Value::String(_)) => Some(operand),
            (Names::Field(name), _) => fields.get(name),
        }
    }
}
