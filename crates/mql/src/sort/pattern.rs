//! The parts of a sort.

use crate::context::Collator;
use quire_document::key::{TypeBits, append_full};
use quire_document::path::Path;
use quire_document::{DocBuf, Value, compare};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Ascending or descending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Direction {
    Ascending,
    Descending,
}

/// The kinds of metadata that a sort can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MetaKind {
    TextScore,
    RandVal,
    GeoNearDistance,
    SearchScore,
    VectorSearchScore,
    Score,
}

/// The source of the values of one part.
#[derive(Clone, Debug)]
pub enum SortBy {
    /// The values of a field.
    Field(Path),
    /// A document's metadata.
    Meta(MetaKind),
}

/// One part of a sort.
#[derive(Clone, Debug)]
pub struct SortPart {
    /// The source of the values.
    pub by: SortBy,
    /// Ascending or descending.
    pub direction: Direction,
}

/// A compiled sort pattern.
#[derive(Clone, Default)]
pub struct SortPattern {
    parts: Vec<SortPart>,
    /// The paths of the fields in order, without the metadata parts.
    pub(super) paths: Vec<Path>,
    pub(super) collator: Option<Arc<dyn Collator>>,
    source: DocBuf,
}

impl fmt::Debug for SortPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Direction {
    /// Returns 1 or -1.
    pub const fn sign(self) -> i32 {
        match self {
            Direction::Ascending => 1,
            Direction::Descending => -1,
        }
    }

    /// Returns the order in this direction.
    #[inline]
    pub const fn apply(self, order: Ordering) -> Ordering {
        match self {
            Direction::Ascending => order,
            Direction::Descending => order.reverse(),
        }
    }

    /// Returns the other direction.
    pub const fn reverse(self) -> Direction {
        match self {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        }
    }
}

impl MetaKind {
    /// Returns the name for `$meta`, which is also the field in `EvalContext::metadata`.
    pub const fn name(self) -> &'static str {
        match self {
            MetaKind::TextScore => "textScore",
            MetaKind::RandVal => "randVal",
            MetaKind::GeoNearDistance => "geoNearDistance",
            MetaKind::SearchScore => "searchScore",
            MetaKind::VectorSearchScore => "vectorSearchScore",
            MetaKind::Score => "score",
        }
    }
}

impl SortPart {
    /// Returns the field's path, if the part is a field.
    pub fn path(&self) -> Option<&Path> {
        match &self.by {
            SortBy::Field(path) => Some(path),
            SortBy::Meta(_) => None,
        }
    }
}

impl SortPattern {
    pub(super) fn new(
        parts: Vec<SortPart>,
        collator: Option<Arc<dyn Collator>>,
        source: DocBuf,
    ) -> SortPattern {
        let paths = parts.iter().filter_map(SortPart::path).cloned().collect();
        SortPattern { parts, paths, collator, source }
    }

    /// Returns the parts in order.
    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// Returns true if there are no parts.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the sort as the user wrote it.
    pub fn to_bson(&self) -> &DocBuf {
        &self.source
    }

    /// Returns the collation for comparisons of strings.
    pub fn collator(&self) -> Option<&Arc<dyn Collator>> {
        self.collator.as_ref()
    }

    /// Returns the kinds of metadata that the sort reads.
    pub fn metadata(&self) -> impl Iterator<Item = MetaKind> {
        self.parts.iter().filter_map(|part| match part.by {
            SortBy::Meta(kind) => Some(kind),
            SortBy::Field(_) => None,
        })
    }

    /// Returns the name of the metadata if the sort reads nothing else.
    pub fn only_metadata(&self) -> Option<&'static str> {
        match self.parts.as_slice() {
            [SortPart { by: SortBy::Meta(kind), .. }] => Some(kind.name()),
            _ => None,
        }
    }

    /// Returns true if the sort reads metadata.
    pub fn reads_metadata(&self) -> bool {
        self.paths.len() < self.parts.len()
    }

    /// Appends bytes that sort like this pattern's keys.
    pub fn append_bytes(&self, key: &[Value<'_>], bytes: &mut Vec<u8>) {
        let collator = self.collator.as_deref();
        for (part, value) in self.parts.iter().zip(key) {
            let descending = part.direction == Direction::Descending;
            append_full(*value, descending, collator, bytes, &mut TypeBits::new());
        }
    }

    /// Compares two keys of this pattern.
    #[inline]
    pub fn compare(&self, left: &[Value<'_>], right: &[Value<'_>]) -> Ordering {
        let collator = self.collator.as_deref();
        for (part, (left, right)) in self.parts.iter().zip(left.iter().zip(right)) {
            let order = part.direction.apply(compare(*left, *right, collator));
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }
}
