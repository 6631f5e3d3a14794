//! The definition of an index, as far as advice compares indexes: key, collation and partial filter.

use quire_document::{Doc, DocBuf, Value};

/// A field of a key: its path, and whether it is descending.
pub type KeyField = (String, bool);

/// The definition of an ordinary index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexDefinition {
    /// The fields, in order.
    pub key: Vec<KeyField>,
    /// The collation, if it is not the collection's.
    pub collation: Option<DocBuf>,
    /// The partial filter.
    pub partial: Option<DocBuf>,
}

/// An index that a collection has.
#[derive(Clone, Debug)]
pub struct ExistingIndex {
    /// The name of the index.
    pub name: String,
    /// The specification, as `listIndexes` shows it.
    pub spec: DocBuf,
    /// How often it was used since the server started, if that is known.
    pub uses: Option<u64>,
}

impl IndexDefinition {
    /// Returns the definition of a specification, as `listIndexes` shows it; `None` for an index of
    /// another kind, such as a hashed one.
    pub fn of_spec(spec: Doc<'_>) -> Option<IndexDefinition> {
        let field = |(path, direction): (&str, Value<'_>)| {
            let descending = match direction {
                Value::Int32(direction) => direction < 0,
                Value::Int64(direction) => direction < 0,
                Value::Double(direction) => direction < 0.0,
                _ => return None,
            };
            (!path.contains("$**")).then(|| (path.to_owned(), descending))
        };
        let key = spec.get("key")?.as_document()?.fields().map(field).collect::<Option<_>>()?;
        let part = |name: &str| Some(spec.get(name)?.as_document()?.to_owned());
        Some(IndexDefinition {
            key,
            collation: part("collation"),
            partial: part("partialFilterExpression"),
        })
    }

    /// Returns the specification, with the name that drivers give it.
    pub fn spec(&self) -> DocBuf {
        DocBuf::build(|out| {
            out.append("key", &self.key_document());
            out.append("name", self.name().as_str());
            if let Some(filter) = &self.partial {
                out.append("partialFilterExpression", filter);
            }
            if let Some(collation) = &self.collation {
                out.append("collation", collation);
            }
        })
    }

    /// Returns the key pattern.
    pub fn key_document(&self) -> DocBuf {
        DocBuf::build(|out| {
            for (path, descending) in &self.key {
                out.append(path, if *descending { -1 } else { 1 });
            }
        })
    }

    /// Returns the name: `a_1_b_-1`, and `_partial` or `_collation` if such an index may stand beside
    /// one with the same key.
    pub fn name(&self) -> String {
        let part =
            |(path, descending): &KeyField| format!("{path}_{}", if *descending { -1 } else { 1 });
        let mut name = self.key.iter().map(part).collect::<Vec<_>>().join("_");
        if self.partial.is_some() {
            name.push_str("_partial");
        }
        if self.collation.is_some() {
            name.push_str("_collation");
        }
        name
    }

    /// Returns true if an index with this definition does nothing that `other` does not do: its key is
    /// a prefix of the other's, in the same or in the opposite direction, and the other one has all
    /// entries.
    pub fn is_prefix_of(&self, other: &IndexDefinition) -> bool {
        let has_same_entries = other.partial.is_none() || other.partial == self.partial;
        let begins = |opposite: bool| {
            self.key.iter().zip(&other.key).all(|((path, descending), (other, direction))| {
                path == other && (*descending != *direction) == opposite
            })
        };
        has_same_entries
            && self.collation == other.collation
            && self.key.len() <= other.key.len()
            && (begins(false) || begins(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn index(key: DocBuf) -> IndexDefinition {
        IndexDefinition::of_spec(doc! { "key": &key }.as_doc()).unwrap()
    }

    #[test]
    fn a_prefix_may_have_the_opposite_direction_but_not_another_collation() {
        let long = index(doc! { "a": 1, "b": -1 });
        assert!(index(doc! { "a": 1 }).is_prefix_of(&long));
        assert!(index(doc! { "a": -1 }).is_prefix_of(&long));
        assert!(index(doc! { "a": -1, "b": 1 }).is_prefix_of(&long));
        assert!(!index(doc! { "a": 1, "b": 1 }).is_prefix_of(&long));
        assert!(!index(doc! { "b": -1 }).is_prefix_of(&long));
        assert!(!long.is_prefix_of(&index(doc! { "a": 1 })));
        let mut collated = index(doc! { "a": 1 });
        collated.collation = Some(doc! { "locale": "en" });
        assert!(!collated.is_prefix_of(&long));
        let mut partial = index(doc! { "a": 1 });
        partial.partial = Some(doc! { "s": 1 });
        assert!(partial.is_prefix_of(&long), "the other one has all documents");
        assert!(!index(doc! { "a": 1 }).is_prefix_of(&partial));
    }

    #[test]
    fn indexes_of_other_kinds_have_no_definition() {
        for key in [doc! { "a": "hashed" }, doc! { "$**": 1 }, doc! { "a": 1, "b": "2dsphere" }] {
            assert_eq!(IndexDefinition::of_spec(doc! { "key": &key }.as_doc()), None);
        }
        assert_eq!(index(doc! { "a": 1, "b": -1 }).name(), "a_1_b_-1");
    }
}
