//! References between collections: a path refers to a collection if the values that it has are
//! values of a unique field there. Values are compared, not names; only numbers, which are equal by
//! chance, need a name that agrees.

use crate::profile::{CollectionProfile, PathProfile, is_queryable};
use crate::source::{Extent, Lookup, SourceCollection};
use quire_document::{Type, ValueBuf};

/// The smallest share of values that must be found: the rest are orphans.
const CONTAINED_MIN: f64 = 0.8;
/// The smallest share of a path's scalar values that have its main type.
const TYPE_SHARE_MIN: f64 = 0.9;
/// Fewer distinct values say little: two values of a flag may be ids somewhere.
const DISTINCT_MIN: u64 = 3;

/// A reference from the documents of one collection to those of another, or of the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The collection whose documents refer.
    pub from: String,
    /// The path that has the values, in the form of queries.
    pub path: String,
    /// True if the path leads through an array, so that a document can refer to several.
    pub in_array: bool,
    /// The collection that is referred to.
    pub to: String,
    /// Its field that has the values.
    pub field: String,
    /// The number of distinct values that were looked up.
    pub looked_up: u64,
    /// How many of them exist.
    pub found: u64,
    /// The number of referring values for one referred document, at the ranks 0.5, 0.9, 0.99 and 1,
    /// over a uniform sample of the referred values. Too small if only a sample of the referring
    /// documents was read.
    pub fan_out: [u64; 4],
    /// True if only a sample of the referring documents was read.
    pub sampled: bool,
}

impl Reference {
    /// Returns true if documents refer to another of their own collection, one each: a tree.
    pub fn is_tree(&self) -> bool {
        self.from == self.to && !self.in_array
    }

    /// Returns the share of values that do not exist.
    pub fn orphans(&self) -> f64 {
        1.0 - self.found as f64 / self.looked_up.max(1) as f64
    }
}

/// A path and a field whose values may be the same. It holds no values, because there are as many
/// candidates as pairs of paths and unique fields.
pub(crate) struct Candidate<'p> {
    /// The collection in which the values are looked up.
    pub(crate) to: String,
    kind: Kind,
    values: &'p PathProfile,
    reference: Reference,
}

impl Candidate<'_> {
    /// Returns true unless the target, whose documents were read, has no value of this sort.
    pub(crate) fn fits(&self, target: &CollectionProfile) -> bool {
        let mut field = Some(target.root());
        for name in self.reference.field.split('.') {
            field = field.and_then(|field| {
                let of_elements = field.items().into_iter().flat_map(PathProfile::fields);
                let mut inner = field.fields().chain(of_elements);
                inner.find(|(known, _)| *known == name).map(|(_, inner)| inner)
            });
        }
        target.left_out() > 0 || field.is_some_and(|field| has_kind(field, self.kind))
    }

    /// Returns the question for at most `most` of the values, drawn uniformly.
    pub(crate) fn lookup(&self, most: usize) -> Lookup {
        let values = sample(self.values).take(most).map(|(value, _)| value.as_value()).collect();
        Lookup { field: self.reference.field.clone(), values }
    }

    /// Returns true if so many of the values that were looked up exist that it may be a reference.
    pub(crate) fn is_likely(&self, found: u64, probed: usize) -> bool {
        let probed = self.reference.looked_up.min(probed as u64);
        found * 3 >= probed
    }

    /// Returns the reference if enough of its values exist.
    pub(crate) fn confirm(&self, found: u64, extent: Extent) -> Option<Reference> {
        let sampled = extent != Extent::All;
        let reference = Reference { found, sampled, ..self.reference.clone() };
        let contained = found as f64 / reference.looked_up.max(1) as f64;
        (contained >= CONTAINED_MIN).then_some(reference)
    }
}

/// Returns sampled values with their counts. A null says that there is no reference.
fn sample(values: &PathProfile) -> impl Iterator<Item = (&ValueBuf, u64)> {
    values.sample().filter(|(value, _)| value.kind() != Type::Null)
}

/// Returns what the paths of a collection may refer to.
pub(crate) fn candidates<'p>(
    from: &SourceCollection,
    profile: &'p CollectionProfile,
    all: &[SourceCollection],
) -> Vec<Candidate<'p>> {
    let mut found = Vec::new();
    profile.for_each_path(&mut |path, values, _| {
        // Names that are data, or that no path can have, cannot be looked up.
        let is_queried = is_queryable(path) && !path.split('.').any(|name| name.starts_with('*'));
        if values.distinct() < DISTINCT_MIN || !is_queried {
            return;
        }
        let Some(kind) = main_type(values) else { return };
        let queried = path.replace("[]", "");
        for to in all {
            for field in to.unique_fields() {
                let is_itself = to.name == from.name && field == queried;
                let agrees = names_agree(&queried, &to.name, &field);
                if is_itself || (kind == Kind::Number && !agrees) {
                    continue;
                }
                // An `_id` that is a number or a text is its own document's first.
                if queried == "_id" && kind != Kind::Identifier {
                    continue;
                }
                let reference =
                    reference(from, (&queried, path.contains("[]")), values, (to, field));
                found.push(Candidate { to: to.name.clone(), kind, values, reference });
            }
        }
    });
    found
}

fn reference(
    from: &SourceCollection,
    (path, in_array): (&str, bool),
    values: &PathProfile,
    (to, field): (&SourceCollection, String),
) -> Reference {
    let mut counts: Vec<u64> = sample(values).map(|(_, count)| count).collect();
    counts.sort_unstable();
    let at = |rank: f64| {
        let place = ((counts.len() as f64 * rank).ceil() as usize).clamp(1, counts.len().max(1));
        counts.get(place - 1).copied().unwrap_or(0)
    };
    Reference {
        from: from.name.clone(),
        path: path.to_owned(),
        in_array,
        to: to.name.clone(),
        field,
        looked_up: counts.len() as u64,
        found: 0,
        fan_out: [at(0.5), at(0.9), at(0.99), at(1.0)],
        sampled: false,
    }
}

/// The sorts of values that identify documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// ObjectIds and UUIDs, which are equal only on purpose.
    Identifier,
    Text,
    Number,
}

/// Returns the sort of values of a type.
fn kind_of(alias: &str) -> Option<Kind> {
    match alias {
        "objectId" | "binData" => Some(Kind::Identifier),
        "string" => Some(Kind::Text),
        "int" | "long" | "double" | "decimal" => Some(Kind::Number),
        _ => None,
    }
}

/// Returns true if a path has values of this sort.
fn has_kind(values: &PathProfile, kind: Kind) -> bool {
    values.types().any(|(name, _)| kind_of(name) == Some(kind))
}

/// Returns the sort of nearly all scalar values of a path; `None` if there is none, or one that
/// identifies nothing.
fn main_type(values: &PathProfile) -> Option<Kind> {
    let scalars = values.types().filter(|(name, _)| {
        ![Type::Document, Type::Array, Type::Null].map(Type::alias).contains(name)
    });
    let (mut total, mut kinds) =
        (0_u64, [(Kind::Identifier, 0_u64), (Kind::Text, 0), (Kind::Number, 0)]);
    for (name, count) in scalars {
        total += count;
        let kind = kind_of(name);
        for (known, sum) in &mut kinds {
            *sum += if Some(*known) == kind { count } else { 0 };
        }
    }
    let (kind, count) = kinds.into_iter().max_by_key(|(_, count)| *count)?;
    (total > 0 && count as f64 >= total as f64 * TYPE_SHARE_MIN).then_some(kind)
}

/// Returns true if a path's last name speaks of the collection (`customerId` of `customers`), or is
/// the name of the field.
fn names_agree(path: &str, collection: &str, field: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    if last == field && field != "_id" {
        return true;
    }
    let (mut stem, whole) = (plain(last), plain(collection));
    for ending in ["ids", "id", "refs", "ref", "keys", "key", "nos", "no", "numbers", "number"] {
        if let Some(rest) = stem.strip_suffix(ending).filter(|rest| rest.len() > 1) {
            stem = rest.to_owned();
            break;
        }
    }
    !stem.is_empty() && singular(&stem) == singular(&whole)
}

/// Returns the letters and digits of a name in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns an English noun without its usual plural.
fn singular(name: &str) -> String {
    match name {
        _ if name.ends_with("ies") => format!("{}y", &name[..name.len() - 3]),
        _ if name.ends_with("ses") || name.ends_with("xes") || name.ends_with("ches") => {
            name[..name.len() - 2].to_owned()
        }
        _ => name.strip_suffix('s').unwrap_or(name).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_speak_of_collections() {
        assert!(names_agree("customerId", "customers", "_id"));
        assert!(names_agree("order.customer_id", "Customer", "_id"));
        assert!(names_agree("lines.category", "categories", "_id"));
        assert!(names_agree("sku", "products", "sku"));
        assert!(!names_agree("quantity", "customers", "_id"));
        assert!(!names_agree("id", "customers", "_id"));
    }
}
