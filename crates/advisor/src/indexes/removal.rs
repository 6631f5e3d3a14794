//! The indexes that may be superfluous. Each is to be hidden first, which costs nothing to undo, and
//! dropped when nothing became slower.

use crate::indexes::definition::{ExistingIndex, IndexDefinition};
use crate::indexes::fields::SeenPaths;
use quire_document::DocBuf;

/// Why an index may be superfluous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No document has a field of its key.
    Absent {
        /// The path of the field.
        path: String,
        /// A field that documents have, with nearly the same name.
        near: Option<String>,
    },
    /// Another index begins with its key.
    Prefix {
        /// The other index.
        of: String,
    },
    /// Nothing has used it since the server started.
    Unused,
    /// It is hidden, so that the planner does not use it.
    Hidden,
}

/// An index that may be superfluous.
#[derive(Clone, Debug, PartialEq)]
pub struct DoubtfulIndex {
    /// The name of the index.
    pub name: String,
    /// Its specification, to create it again.
    pub spec: DocBuf,
    /// Why it may be superfluous.
    pub reason: Reason,
    /// True if no request of the workload costs more without it.
    pub is_same_without: bool,
    /// The number of requests that ran without it.
    pub replayed: usize,
}

/// An index that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptIndex {
    /// The name of the index.
    pub name: String,
    /// The positions of the requests that use it.
    pub requests: Vec<usize>,
    /// How often it was used since the server started, if that is known.
    pub uses: Option<u64>,
}

impl ExistingIndex {
    /// Returns the definition; `None` for an index of another kind.
    pub fn definition(&self) -> Option<IndexDefinition> {
        IndexDefinition::of_spec(self.spec.as_doc())
    }

    fn is_set(&self, option: &str) -> bool {
        self.spec.get(option).and_then(|value| value.as_bool()) == Some(true)
    }

    /// Returns true if readers can use it for all documents.
    pub fn is_complete(&self) -> bool {
        !self.is_set("sparse")
            && !self.is_hidden()
            && self.spec.get("partialFilterExpression").is_none()
    }

    /// Returns true if the planner does not use it.
    pub fn is_hidden(&self) -> bool {
        self.is_set("hidden")
    }

    /// Returns true if it is hidden, and would be this index if it were shown.
    pub fn would_be(&self, definition: &IndexDefinition) -> bool {
        self.is_hidden()
            && !self.is_set("sparse")
            && self.definition().is_some_and(|own| own == *definition)
    }

    /// Returns true if it does more than to serve requests: a constraint, or the end of documents.
    pub fn has_another_purpose(&self) -> bool {
        let is_id = self.definition().is_some_and(|index| {
            index.key.len() == 1 && index.key.first().is_some_and(|(path, _)| path == "_id")
        });
        let other = ["unique", "prepareUnique", "clustered"];
        is_id
            || other.iter().any(|option| self.is_set(option))
            || self.spec.get("expireAfterSeconds").is_some()
    }
}

/// Returns the existing indexes that may be superfluous beside each other and the added ones.
pub fn doubts(
    existing: &[ExistingIndex],
    added: &[IndexDefinition],
    seen: &SeenPaths,
) -> Vec<DoubtfulIndex> {
    let mut found: Vec<DoubtfulIndex> = Vec::new();
    for (at, index) in existing.iter().enumerate() {
        let gone = |name: &str| found.iter().any(|doubt| doubt.name == name);
        let others = existing
            .iter()
            .enumerate()
            .filter(|(other, index)| *other != at && index.is_complete() && !gone(&index.name));
        let others = others.map(|(_, other)| other);
        let Some(reason) = reason(index, others, added, seen) else { continue };
        found.push(DoubtfulIndex {
            name: index.name.clone(),
            spec: index.spec.clone(),
            reason,
            is_same_without: false,
            replayed: 0,
        });
    }
    found
}

fn reason<'e>(
    index: &ExistingIndex,
    others: impl Iterator<Item = &'e ExistingIndex>,
    added: &[IndexDefinition],
    seen: &SeenPaths,
) -> Option<Reason> {
    let definition = index.definition();
    let keys = definition.iter().flat_map(|definition| &definition.key);
    if let Some((path, _)) = keys.into_iter().find(|(path, _)| seen.lacks(path)) {
        let near = seen.near(path).map(str::to_owned);
        return Some(Reason::Absent { path: path.clone(), near });
    }
    if index.has_another_purpose() {
        return None;
    }
    if index.is_hidden() {
        let is_shown = added.iter().any(|new| index.would_be(new));
        return (!is_shown).then_some(Reason::Hidden);
    }
    if let Some(definition) = definition.filter(|_| index.is_complete()) {
        let mut covering =
            others.filter_map(|other| Some((other.name.clone(), other.definition()?)));
        let longer = covering.find(|(_, other)| definition.is_prefix_of(other));
        let new = added.iter().find(|new| definition.is_prefix_of(new));
        let of = longer.map(|(name, _)| name).or_else(|| new.map(IndexDefinition::name));
        if let Some(of) = of {
            return Some(Reason::Prefix { of });
        }
    }
    (index.uses == Some(0)).then_some(Reason::Unused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn existing(spec: DocBuf, uses: u64) -> ExistingIndex {
        let name = IndexDefinition::of_spec(spec.as_doc()).unwrap().name();
        ExistingIndex { name, spec, uses: Some(uses) }
    }

    #[test]
    fn each_reason_is_found_and_constraints_stay() {
        let mut seen = SeenPaths::default();
        seen.add(doc! { "_id": 1, "sensor_od": 1, "a": 1, "b": 1, "c": 1, "d": 1 }.as_doc());
        let all = [
            existing(doc! { "key": { "_id": 1 } }, 0),
            existing(doc! { "key": { "sensor_id": 1 } }, 7),
            existing(doc! { "key": { "a": 1 } }, 9),
            existing(doc! { "key": { "a": 1, "b": 1 } }, 9),
            existing(doc! { "key": { "c": 1 } }, 0),
            existing(doc! { "key": { "d": 1 }, "unique": true }, 0),
            existing(doc! { "key": { "b": 1 }, "hidden": true }, 0),
        ];
        let found = doubts(&all, &[], &seen);
        let found: Vec<(&str, &Reason)> =
            found.iter().map(|doubt| (doubt.name.as_str(), &doubt.reason)).collect();
        let absent =
            Reason::Absent { path: "sensor_id".to_owned(), near: Some("sensor_od".to_owned()) };
        let prefix = Reason::Prefix { of: "a_1_b_1".to_owned() };
        let expected = [
            ("sensor_id_1", &absent),
            ("a_1", &prefix),
            ("c_1", &Reason::Unused),
            ("b_1", &Reason::Hidden),
        ];
        assert_eq!(found, expected);
        let added = IndexDefinition::of_spec(doc! { "key": { "c": 1, "x": 1 } }.as_doc()).unwrap();
        let found = doubts(&all[4..5], &[added], &seen);
        assert_eq!(found[0].reason, Reason::Prefix { of: "c_1_x_1".to_owned() });
    }
}
