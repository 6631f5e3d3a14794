//! Copies that an application keeps by hand: a field beside a reference that has the value of a
//! field of the document that is referred to. Where the values differ, the copies have drifted.

use crate::profile::CollectionProfile;
use crate::profile::can_be_named;
use crate::references::Reference;
use crate::source::{Lookup, Source, SourceCollection};
use quire_document::{ArrayBuf, Doc, Type, Value, ValueBuf, ValueKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The smallest share of equal pairs: fewer are other values, or old values on purpose.
const EQUAL_MIN: f64 = 0.95;
/// Fewer pairs say little.
const COMPARED_MIN: u64 = 20;
/// Fewer different values may be equal by chance, as states and flags are.
const DISTINCT_MIN: usize = 3;
/// The number of referred documents that are fetched for a reference.
const FETCHED_MAX: usize = 200;

/// A field that has the value of a field of the referred document.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// The collection with the copy.
    pub from: String,
    /// The path of the copy, in the form of queries.
    pub path: String,
    /// The path of the reference.
    pub through: String,
    /// The collection that is referred to.
    pub to: String,
    /// The field there that has the same values.
    pub field: String,
    /// The number of pairs that were compared.
    pub compared: u64,
    /// How many of them are equal.
    pub equal: u64,
}

/// Looks for copies beside each reference, among the example documents of the profile.
pub(crate) fn find<S: Source>(
    source: &mut S,
    collections: &[(SourceCollection, CollectionProfile)],
    references: &[Reference],
) -> Result<Vec<Copy>, S::Error> {
    let mut copies = Vec::new();
    for reference in references {
        if reference.path == "_id" {
            continue;
        }
        let from = collections.iter().find(|(found, _)| found.name == reference.from);
        let Some((_, from)) = from else { continue };
        let mut pairs = Pairs::default();
        let referring: Vec<Doc<'_>> = from.examples().collect();
        let holders = holders(&referring, &reference.path);
        if (holders.len() as u64) < COMPARED_MIN {
            continue;
        }
        let mut wanted: BTreeMap<ValueKey, ValueBuf> = BTreeMap::new();
        for (value, _) in &holders {
            if wanted.len() < FETCHED_MAX {
                wanted.insert(ValueKey::new(*value), ValueBuf::new(*value));
            }
        }
        let values: ArrayBuf = wanted.values().map(ValueBuf::as_value).collect();
        let lookup = Lookup { field: reference.field.clone(), values };
        source.fetch(&reference.to, &lookup, &mut |target| {
            if let Some(key) = target.get(&reference.field) {
                pairs.targets.insert(ValueKey::new(key), scalars(target));
            }
        })?;
        for (value, holder) in &holders {
            pairs.add(*value, *holder);
        }
        copies.extend(pairs.copies(reference));
    }
    Ok(copies)
}

/// Returns the values of the reference with the documents, or subdocuments, that hold them.
fn holders<'d>(documents: &[Doc<'d>], path: &str) -> Vec<(Value<'d>, Doc<'d>)> {
    let (parents, name) = match path.rsplit_once('.') {
        Some((parents, name)) => (parents.split('.').collect(), name),
        None => (Vec::new(), path),
    };
    let mut level: Vec<Doc<'d>> = documents.to_vec();
    for parent in parents {
        level = level
            .iter()
            .filter_map(|document| document.get(parent))
            .flat_map(|value| match value {
                Value::Document(document) => vec![document],
                Value::Array(array) => {
                    array.iter().filter_map(|value| value.as_document()).collect()
                }
                _ => Vec::new(),
            })
            .collect();
    }
    let value = |document: &Doc<'d>| match document.get(name)? {
        Value::Array(_) | Value::Document(_) | Value::Null => None,
        value => Some((value, *document)),
    };
    level.iter().filter_map(value).collect()
}

/// Returns the scalar fields of a document and of its subdocuments that can be copies: texts,
/// numbers and dates.
fn scalars(document: Doc<'_>) -> Vec<(String, ValueBuf)> {
    let mut found = Vec::new();
    for (name, value) in document.fields().filter(|(name, _)| can_be_named(name)) {
        match value {
            Value::Document(inner) => {
                let inner = inner.fields();
                let inner =
                    inner.filter(|(below, value)| can_be_named(below) && can_be_copy(*value));
                found.extend(
                    inner.map(|(below, value)| (format!("{name}.{below}"), ValueBuf::new(value))),
                );
            }
            value if can_be_copy(value) => found.push((name.to_owned(), ValueBuf::new(value))),
            _ => {}
        }
    }
    found
}

fn can_be_copy(value: Value<'_>) -> bool {
    matches!(value, Value::String(_) | Value::Date(_)) || value.is_number()
}

/// The pairs of fields of one reference.
#[derive(Default)]
struct Pairs {
    targets: HashMap<ValueKey, Vec<(String, ValueBuf)>>,
    /// By the paths of the copy and of the original.
    found: BTreeMap<(String, String), Pair>,
}

#[derive(Default)]
struct Pair {
    compared: u64,
    equal: u64,
    /// Some of the equal values.
    values: BTreeSet<ValueKey>,
    is_text: bool,
}

impl Pairs {
    fn add(&mut self, value: Value<'_>, holder: Doc<'_>) {
        let Some(target) = self.targets.get(&ValueKey::new(value)) else { return };
        for (path, copy) in scalars(holder) {
            if ValueKey::new(copy.as_value()) == ValueKey::new(value) {
                continue;
            }
            for (field, original) in target {
                let pair = self.found.entry((path.clone(), field.clone())).or_default();
                pair.compared += 1;
                let key = ValueKey::new(copy.as_value());
                if key == ValueKey::new(original.as_value()) {
                    pair.equal += 1;
                    pair.is_text = copy.kind() == Type::String;
                    if pair.values.len() < DISTINCT_MIN {
                        pair.values.insert(key);
                    }
                }
            }
        }
    }

    fn copies(self, reference: &Reference) -> Vec<Copy> {
        let place = reference.path.rsplit_once('.').map(|(place, _)| place);
        let is_copy = |((path, field), pair): &((String, String), Pair)| {
            *field != reference.field
                && pair.compared >= COMPARED_MIN
                && pair.equal as f64 >= pair.compared as f64 * EQUAL_MIN
                && pair.values.len() >= DISTINCT_MIN
                && (pair.is_text || names_agree(path, field))
        };
        let copy = |((path, field), pair): ((String, String), Pair)| Copy {
            from: reference.from.clone(),
            path: place.map_or(path.clone(), |place| format!("{place}.{path}")),
            through: reference.path.clone(),
            to: reference.to.clone(),
            field,
            compared: pair.compared,
            equal: pair.equal,
        };
        self.found.into_iter().filter(is_copy).map(copy).collect()
    }
}

/// Returns true if the last name of one path ends with that of the other (`customerName`, `name`).
fn names_agree(path: &str, field: &str) -> bool {
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_lowercase();
    let (path, field) = (last(path), last(field));
    path.ends_with(&field) || field.ends_with(&path)
}
