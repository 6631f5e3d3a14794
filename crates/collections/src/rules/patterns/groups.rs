//! The stored accumulators of roll-ups (docs/format.md, "Groups of roll-ups"). They are hidden state,
//! which the results in the documents do not show: an exact sum has more digits than its result, and
//! a maximum has a successor. A row belongs to a pattern and a value that children refer to, and is
//! written by the commit that changes a child. So two commits that change children of one parent
//! conflict. A row is never needed: without it the accumulators are computed from the children.
//! Its key begins with the number of the children's collection, so that a collection that replaces
//! another one finds no rows of it.

use bytes::Bytes;
use quire_catalog::CollectionId;
use quire_catalog::patterns::Pattern;
use quire_document::{DocBuf, Value};
use quire_error::Result;
use quire_mql::rollup::{ChildGroup, Rollup};
use quire_storage::{Space, prefix_end};
use twox_hash::XxHash3_128;

use crate::View;
use crate::failure::{Attempt, from_storage};
use crate::rules::RuleWriter;

/// The first byte of the rows' keys in `Space::Meta`.
const GROUP: u8 = b'r';

/// The longest encoded value in a key. A longer one is cut there, and its hash follows.
const VALUE_BYTES_MAX: usize = 1024;

/// The rows of one pattern.
pub(super) struct Groups<'g> {
    /// The beginning of the keys of all rows.
    prefix: Vec<u8>,
    rollup: &'g Rollup,
    /// The group without children, as it would be stored.
    empty: &'g DocBuf,
}

impl<'g> Groups<'g> {
    /// Returns the rows of a pattern that the collection `owner` declares, for the children in the
    /// collection `from`. `empty` is the stored form of the group without children.
    pub fn new(
        (from, owner): (CollectionId, CollectionId),
        pattern: &Pattern,
        (rollup, empty): (&'g Rollup, &'g DocBuf),
    ) -> Self {
        Groups { prefix: pattern_prefix(from, owner, pattern), rollup, empty }
    }

    /// Returns the stored group with a key; `None` if there is no row, or a damaged one.
    pub fn read(&self, view: &View<'_>, key: &[u8]) -> Result<Option<ChildGroup>> {
        let row = stored(view, key)?;
        Ok(row.and_then(|row| {
            let doc = crate::meta::meta_doc(&row).ok()?;
            ChildGroup::load(self.rollup, doc)
        }))
    }

    /// Stores a group. One without children has no row.
    pub fn write(
        &self,
        writer: &mut dyn RuleWriter,
        key: &[u8],
        group: &ChildGroup,
    ) -> Attempt<()> {
        let row = Some(group.save()).filter(|row| row != self.empty);
        if row.is_none() && stored(&writer.view(), key)?.is_none() {
            return Ok(());
        }
        writer.put_row(key, row)
    }

    /// Returns the key of the row of a value.
    pub fn key(&self, value: Value<'_>) -> Vec<u8> {
        let mut key = self.prefix.clone();
        let start = key.len();
        quire_document::key::append(value, false, &mut key);
        if key.len() - start > VALUE_BYTES_MAX {
            let hash = XxHash3_128::oneshot(key.get(start..).unwrap_or_default());
            key.truncate(start + VALUE_BYTES_MAX);
            key.extend_from_slice(&hash.to_be_bytes());
        }
        key
    }
}

fn stored(view: &View<'_>, key: &[u8]) -> Result<Option<Bytes>> {
    view.snapshot().get(Space::Meta, key).map_err(from_storage)
}

/// Returns the keys of the rows of a pattern of `owner`.
pub(crate) fn rows_of_pattern(
    from: CollectionId,
    owner: CollectionId,
    pattern: &Pattern,
) -> (Vec<u8>, Vec<u8>) {
    range(pattern_prefix(from, owner, pattern))
}

/// Returns the keys of the rows for the children in a collection.
pub(crate) fn rows_of_children(from: CollectionId) -> (Vec<u8>, Vec<u8>) {
    range(children_prefix(from))
}

/// Returns the keys of all rows.
pub(crate) fn all_rows() -> (Vec<u8>, Vec<u8>) {
    range(vec![GROUP])
}

fn range(prefix: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let end = prefix_end(&prefix);
    (prefix, end)
}

fn children_prefix(from: CollectionId) -> Vec<u8> {
    let mut prefix = vec![GROUP];
    prefix.extend_from_slice(&from.to_bytes());
    prefix
}

fn pattern_prefix(from: CollectionId, owner: CollectionId, pattern: &Pattern) -> Vec<u8> {
    let mut prefix = children_prefix(from);
    prefix.extend_from_slice(&owner.to_bytes());
    prefix.extend_from_slice(pattern.name.as_bytes());
    prefix.push(0);
    prefix.extend_from_slice(&pattern.generation.to_be_bytes());
    prefix
}

/// The pattern that a row belongs to, as its key says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowOwner {
    /// The collection of the children.
    pub from: CollectionId,
    /// The collection that declares the pattern.
    pub owner: CollectionId,
    /// The name of the pattern.
    pub pattern: String,
    /// The generation of the pattern.
    pub generation: u64,
}

/// Returns the pattern that a row belongs to; `None` for a key that is not one of a row.
pub(crate) fn pattern_of_row(key: &[u8]) -> Option<RowOwner> {
    let (&GROUP, rest) = key.split_first()? else { return None };
    let (from, rest) = rest.split_first_chunk::<4>()?;
    let (owner, rest) = rest.split_first_chunk::<4>()?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (name, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
    let (generation, _) = rest.split_first_chunk::<8>()?;
    Some(RowOwner {
        from: CollectionId(u32::from_be_bytes(*from)),
        owner: CollectionId(u32::from_be_bytes(*owner)),
        pattern: std::str::from_utf8(name).ok()?.to_owned(),
        generation: u64::from_be_bytes(*generation),
    })
}

/// Returns true if a row's value can be read as a group of the roll-up.
pub(crate) fn is_readable(rollup: &Rollup, row: &[u8]) -> bool {
    crate::meta::meta_doc(row).is_ok_and(|doc| ChildGroup::load(rollup, doc).is_some())
}
