//! The writes of a transaction that nobody else sees yet: an ordered map per space with an undo
//! log, merged over a snapshot's gets and pages.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use bytes::Bytes;

use crate::contract::{Direction, Page, ScanRequest, Snapshot, Space};
use crate::error::Result;

/// A buffered write.
#[derive(Debug, Clone)]
pub(crate) struct Buffered {
    /// `None` deletes the key.
    pub value: Option<Bytes>,
    /// Whether the commit must fail if somebody else changed the key.
    pub tracked: bool,
}

/// What the buffer held for a key before a write.
#[derive(Debug)]
struct Undo {
    space: Space,
    key: Bytes,
    before: Option<Buffered>,
}

/// The write buffer.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    maps: [BTreeMap<Bytes, Buffered>; 4],
    undo: Vec<Undo>,
    bytes: usize,
}

fn weight(key: &Bytes, entry: &Buffered) -> usize {
    key.len() + entry.value.as_ref().map_or(0, Bytes::len) + 16
}

impl Overlay {
    /// Bytes buffered, with a small charge a key.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keys buffered.
    pub fn len(&self) -> usize {
        self.maps.iter().map(BTreeMap::len).sum()
    }

    /// The buffered write of a key, if there is one.
    pub fn get(&self, space: Space, key: &[u8]) -> Option<&Buffered> {
        let map = &self.maps[space.index()];
        if map.is_empty() { None } else { map.get(key) }
    }

    /// Whether nothing is buffered in a space.
    pub fn is_empty_in(&self, space: Space) -> bool {
        self.maps[space.index()].is_empty()
    }

    /// Buffers a write. A key once tracked stays tracked.
    pub fn set(&mut self, space: Space, key: Bytes, mut entry: Buffered) {
        self.bytes += weight(&key, &entry);
        let before = match self.maps[space.index()].entry(key.clone()) {
            Entry::Vacant(place) => {
                place.insert(entry);
                None
            }
            Entry::Occupied(mut place) => {
                entry.tracked |= place.get().tracked;
                let before = place.insert(entry);
                self.bytes -= weight(&key, &before);
                Some(before)
            }
        };
        self.undo.push(Undo { space, key, before });
    }

    /// A mark to roll back to.
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// The tracked keys written since the mark; a key written twice comes twice.
    pub fn written_since(&self, mark: usize) -> impl Iterator<Item = (Space, &Bytes)> {
        self.undo.iter().skip(mark).filter_map(|undo| {
            let entry = self.get(undo.space, &undo.key)?;
            entry.tracked.then_some((undo.space, &undo.key))
        })
    }

    /// Undoes every write after the mark.
    pub fn roll_back(&mut self, mark: usize) {
        while self.undo.len() > mark {
            let Some(Undo { space, key, before }) = self.undo.pop() else { break };
            let map = &mut self.maps[space.index()];
            let now = match before {
                Some(before) => {
                    self.bytes += weight(&key, &before);
                    map.insert(key.clone(), before)
                }
                None => map.remove(&key),
            };
            if let Some(now) = now {
                self.bytes -= weight(&key, &now);
            }
        }
    }

    /// Takes the buffered writes of all spaces, in key order within each.
    pub fn drain(&mut self) -> impl Iterator<Item = (Space, Bytes, Buffered)> {
        let maps = std::mem::take(&mut self.maps);
        self.undo.clear();
        self.bytes = 0;
        Space::ALL
            .into_iter()
            .zip(maps)
            .flat_map(|(space, map)| map.into_iter().map(move |(key, entry)| (space, key, entry)))
    }

    /// Reads the snapshot's page and merges the buffered writes into it.
    pub fn scan(
        &self,
        base: &dyn Snapshot,
        request: &ScanRequest<'_>,
        page: &mut Page,
    ) -> Result<()> {
        let map = &self.maps[request.space.index()];
        if map.is_empty() {
            return base.scan(request, page);
        }
        page.clear();
        let mut below = Page::default();
        let mut position: Option<Bytes> = None;
        loop {
            let step = match &position {
                Some(resume) => request.resumed(resume),
                None => *request,
            };
            if step.is_empty() {
                return Ok(());
            }
            base.scan(&step, &mut below)?;
            merge(map, &step, &mut below, page);
            if !page.rows.is_empty() || page.resume.is_none() {
                return Ok(());
            }
            position = page.resume.take();
        }
    }
}

/// Merges the part of the buffer that `below` covers into `page`, which is empty.
fn merge(
    map: &BTreeMap<Bytes, Buffered>,
    request: &ScanRequest<'_>,
    below: &mut Page,
    page: &mut Page,
) {
    let covered = match &below.resume {
        Some(resume) => match request.direction {
            Direction::Forward => ScanRequest { end: resume, ..*request },
            Direction::Reverse => ScanRequest { start: resume, ..*request },
        },
        None => *request,
    };
    if covered.is_empty() {
        return;
    }
    let upper =
        if covered.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(covered.end) };
    let range = map.range::<[u8], _>((Bound::Included(covered.start), upper));
    let rows = below.rows.drain(..);
    let full = match request.direction {
        Direction::Forward => merge_rows(rows, range, |a, b| a < b, request, page),
        Direction::Reverse => merge_rows(rows, range.rev(), |a, b| a > b, request, page),
    };
    if full {
        page.resume_after_last(request.direction);
    } else {
        page.resume = below.resume.take();
    }
}

/// Merges two ordered streams; true if the page filled up before both were exhausted.
fn merge_rows<'m>(
    rows: impl Iterator<Item = (Bytes, Bytes)>,
    buffered: impl Iterator<Item = (&'m Bytes, &'m Buffered)>,
    before: impl Fn(&[u8], &[u8]) -> bool,
    request: &ScanRequest<'_>,
    page: &mut Page,
) -> bool {
    let (mut rows, mut buffered) = (rows.peekable(), buffered.peekable());
    let mut bytes = 0;
    loop {
        let own_first = match (rows.peek(), buffered.peek()) {
            (None, None) => return false,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (Some((theirs, _)), Some((own, _))) => !before(theirs, own),
        };
        let row = if own_first {
            let Some((key, entry)) = buffered.next() else { return false };
            if rows.peek().is_some_and(|(theirs, _)| theirs == key) {
                rows.next();
            }
            let Some(value) = &entry.value else { continue };
            let value = if request.keys_only { Bytes::new() } else { value.clone() };
            (key.clone(), value)
        } else {
            let Some(row) = rows.next() else { return false };
            row
        };
        bytes += row.0.len() + row.1.len();
        page.rows.push(row);
        if page.rows.len() >= request.rows_max.max(1) || bytes >= request.bytes_max {
            return rows.peek().is_some() || buffered.peek().is_some();
        }
    }
}
