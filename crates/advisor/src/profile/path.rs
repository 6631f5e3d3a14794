//! The profile of one path: how many have it, of which types, with which values and lengths.

use super::Limits;
use crate::sketch::{Distinct, Extremes, Line, Quantiles, TopValues, VALUE_BYTES_MAX, ValueSample};
use quire_document::{Array, Doc, Type, Value, ValueBuf, hash_of};
use std::collections::BTreeMap;

/// The name under which the fields of an object with very many names are summarised.
const ANY_NAME: &str = "*";

/// How many more paths a profile may have.
pub(super) struct Room {
    paths: usize,
    names_max: usize,
    depth_max: usize,
    left_out: u64,
}

impl Room {
    pub(super) fn new(limits: &Limits) -> Room {
        let (names_max, depth_max) = (limits.names_max, limits.depth_max);
        Room { paths: limits.paths_max, names_max, depth_max, left_out: 0 }
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns true if a path at this depth may be added, and counts it; otherwise counts what is
    /// left out.
    fn take(&mut self, depth: usize) -> bool {
        if self.paths == 0 || depth > self.depth_max {
            self.left_out += 1;
            return false;
        }
        self.paths -= 1;
        true
    }
}

/// The profile of a path.
pub struct PathProfile {
    present: u64,
    types: BTreeMap<&'static str, u64>,
    bytes: u64,
    values: Option<Box<Values>>,
    lengths: Option<Box<ArrayLengths>>,
    fields: BTreeMap<Box<str>, PathProfile>,
    items: Option<Box<PathProfile>>,
    /// The names that were summarised as the field `*`.
    names: Option<Distinct>,
}

/// The scalar values of a path.
struct Values {
    distinct: Distinct,
    top: TopValues,
    sample: ValueSample,
    extremes: Extremes,
    /// True if a value was too long for the sample.
    has_long: bool,
}

/// The lengths of the arrays of a path.
pub struct ArrayLengths {
    lengths: Quantiles,
    by_birth: Line,
}

/// How the length of an array depends on the age of its document.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// The elements that a document gains in a day, by a straight line through all documents.
    pub per_day: f64,
    /// The correlation of length and age, from -1 to 1.
    pub correlation: f64,
}

impl ArrayLengths {
    /// Returns the length at a rank between 0 and 1.
    pub fn at(&self, rank: f64) -> f64 {
        self.lengths.at(rank)
    }

    /// Returns the mean length.
    pub fn mean(&self) -> f64 {
        self.lengths.sum() / (self.lengths.count().max(1) as f64)
    }

    /// Returns the growth with age; `None` without ObjectIds as `_id`, or if all documents are of
    /// one age.
    pub fn growth(&self) -> Option<Growth> {
        // A document that was born later is younger.
        let (slope, correlation) = self.by_birth.fit()?;
        Some(Growth { per_day: -slope, correlation: -correlation })
    }
}

impl PathProfile {
    pub(super) fn new() -> PathProfile {
        PathProfile {
            present: 0,
            types: BTreeMap::new(),
            bytes: 0,
            values: None,
            lengths: None,
            fields: BTreeMap::new(),
            items: None,
            names: None,
        }
    }

    /// Adds the fields of a document.
    pub(super) fn add_document(
        &mut self,
        document: Doc<'_>,
        born_days: Option<f64>,
        room: &mut Room,
        depth: usize,
    ) {
        self.present += 1;
        *self.types.entry(Type::Document.alias()).or_default() += 1;
        self.bytes += document.as_bytes().len() as u64;
        for element in document.iter() {
            if let Some(field) = self.field(element.key(), room, depth + 1) {
                field.add(element.value(), born_days, room, depth + 1);
            }
        }
    }

    fn add(&mut self, value: Value<'_>, born_days: Option<f64>, room: &mut Room, depth: usize) {
        match value {
            Value::Document(document) => self.add_document(document, born_days, room, depth),
            Value::Array(array) => self.add_array(array, born_days, room, depth),
            scalar => self.add_scalar(scalar),
        }
    }

    fn add_array(
        &mut self,
        array: Array<'_>,
        born_days: Option<f64>,
        room: &mut Room,
        depth: usize,
    ) {
        self.present += 1;
        *self.types.entry(Type::Array.alias()).or_default() += 1;
        self.bytes += array.as_bytes().len() as u64;
        let mut length = 0_u32;
        for value in array.iter() {
            length += 1;
            if self.items.is_none() && room.take(depth + 1) {
                self.items = Some(Box::new(PathProfile::new()));
            }
            if let Some(items) = &mut self.items {
                items.add(value, born_days, room, depth + 1);
            }
        }
        let lengths = self.lengths.get_or_insert_with(|| {
            Box::new(ArrayLengths { lengths: Quantiles::new(), by_birth: Line::default() })
        });
        lengths.lengths.add(f64::from(length));
        if let Some(born) = born_days {
            lengths.by_birth.add(born, f64::from(length));
        }
    }

    fn add_scalar(&mut self, value: Value<'_>) {
        let bytes = ValueBuf::new(value).bson_len();
        self.present += 1;
        *self.types.entry(value.kind().alias()).or_default() += 1;
        self.bytes += bytes as u64;
        let values = self.values.get_or_insert_with(|| {
            Box::new(Values {
                distinct: Distinct::new(),
                top: TopValues::new(),
                sample: ValueSample::new(),
                extremes: Extremes::default(),
                has_long: false,
            })
        });
        let hash = hash_of(value, None);
        values.distinct.add(hash);
        values.has_long |= bytes > VALUE_BYTES_MAX;
        if bytes <= VALUE_BYTES_MAX {
            values.top.add(value);
            values.sample.add(hash, value, 1);
            values.extremes.add(value);
        }
    }

    /// Returns the profile of a field; `None` if there is no room for it.
    fn field(&mut self, name: &str, room: &mut Room, depth: usize) -> Option<&mut PathProfile> {
        if self.names.is_none() && !self.fields.contains_key(name) {
            if self.fields.len() < room.names_max {
                if !room.take(depth) {
                    return None;
                }
                self.fields.insert(name.into(), PathProfile::new());
            } else {
                self.join_fields(room);
            }
        }
        match &mut self.names {
            Some(names) => {
                names.add(hash_of(Value::String(name), None));
                self.fields.get_mut(ANY_NAME)
            }
            None => self.fields.get_mut(name),
        }
    }

    /// Makes one field `*` of all fields, whose names are data.
    fn join_fields(&mut self, room: &mut Room) {
        let mut names = Distinct::new();
        let mut joined = PathProfile::new();
        for (name, profile) in std::mem::take(&mut self.fields) {
            names.add(hash_of(Value::String(&name), None));
            room.paths += profile.paths();
            joined.merge(profile);
        }
        room.paths = room.paths.saturating_sub(joined.paths());
        self.fields.insert(ANY_NAME.into(), joined);
        self.names = Some(names);
    }

    /// Returns the number of paths of this profile, itself included.
    pub(super) fn paths(&self) -> usize {
        let items = self.items.as_ref().map_or(0, |items| items.paths());
        1 + items + self.fields.values().map(PathProfile::paths).sum::<usize>()
    }

    fn merge(&mut self, other: PathProfile) {
        self.present += other.present;
        self.bytes += other.bytes;
        for (name, count) in other.types {
            *self.types.entry(name).or_default() += count;
        }
        match (&mut self.values, other.values) {
            (Some(values), Some(other)) => {
                values.distinct.merge(&other.distinct);
                values.top.merge(&other.top);
                values.sample.merge(&other.sample);
                values.extremes.merge(&other.extremes);
                values.has_long |= other.has_long;
            }
            (None, other) => self.values = other,
            (Some(_), None) => {}
        }
        match (&mut self.lengths, other.lengths) {
            (Some(lengths), Some(other)) => {
                lengths.lengths.merge(&other.lengths);
                lengths.by_birth.merge(&other.by_birth);
            }
            (None, other) => self.lengths = other,
            (Some(_), None) => {}
        }
        match (&mut self.items, other.items) {
            (Some(items), Some(other)) => items.merge(*other),
            (None, other) => self.items = other,
            (Some(_), None) => {}
        }
        for (name, profile) in other.fields {
            self.fields.entry(name).or_insert_with(PathProfile::new).merge(profile);
        }
        match (&mut self.names, other.names) {
            (Some(names), Some(other)) => names.merge(&other),
            (None, other) => self.names = other,
            (Some(_), None) => {}
        }
    }

    /// Returns how many documents, subdocuments or elements have the path.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Returns the bytes of all values of the path, subdocuments included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the types by their `$type` names, with the number of values of each.
    pub fn types(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.types.iter().map(|(name, count)| (*name, *count))
    }

    /// Returns the number of values of a type.
    pub fn of_type(&self, alias: &str) -> u64 {
        self.types.get(alias).copied().unwrap_or(0)
    }

    /// Returns the fields of the path's subdocuments; the single name `*` stands for very many
    /// names.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &PathProfile)> {
        self.fields.iter().map(|(name, profile)| (&**name, profile))
    }

    /// Returns the profile of the elements of the path's arrays.
    pub fn items(&self) -> Option<&PathProfile> {
        self.items.as_deref()
    }

    /// Returns an estimate of the number of field names, if they are summarised as `*`.
    pub fn names(&self) -> Option<u64> {
        self.names.as_ref().map(Distinct::estimate)
    }

    /// Returns the lengths of the path's arrays.
    pub fn lengths(&self) -> Option<&ArrayLengths> {
        self.lengths.as_deref()
    }

    /// Returns the number of distinct scalar values: an estimate with a standard error of 1.6 %, exact
    /// up to 255 values of at most 128 bytes.
    pub fn distinct(&self) -> u64 {
        let Some(values) = &self.values else { return 0 };
        let sampled = values.sample.iter().count() as u64;
        match values.sample.is_whole() && !values.has_long {
            true => sampled,
            false => values.distinct.estimate().clamp(sampled, self.scalars()),
        }
    }

    /// Returns the number of scalar values.
    pub fn scalars(&self) -> u64 {
        self.present - self.of_type(Type::Document.alias()) - self.of_type(Type::Array.alias())
    }

    /// Returns at most `count` frequent values, each with the least and the greatest number of times
    /// that it can have occurred.
    pub fn top(&self, count: usize) -> Vec<(ValueBuf, u64, u64)> {
        self.values.as_ref().map_or_else(Vec::new, |values| values.top.top(count))
    }

    /// Returns the smallest and the greatest scalar value.
    pub fn extremes(&self) -> Option<(&ValueBuf, &ValueBuf)> {
        self.values.as_ref()?.extremes.get()
    }

    /// Returns a uniform sample of the distinct scalar values, each with the number of times that it
    /// occurred.
    pub fn sample(&self) -> impl Iterator<Item = (&ValueBuf, u64)> {
        self.values.iter().flat_map(|values| values.sample.iter())
    }
}
