//! The write buffer of a transaction, with an undo log, and its merge with the reads of a snapshot.
//! Keys with the same prefix form a group, because the layers above begin each key with the id of a
//! collection or an index. Record ids and most `_id`s ascend from one document to the next, so a
//! group appends ascending keys to a sorted run and keeps only the other keys in a tree.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::contract::{Direction, Page, ScanRequest, Snapshot, Space};
use crate::error::Result;

/// A buffered write.
#[derive(Debug, Clone)]
pub(crate) struct Buffered {
    /// `None` deletes the key.
    pub value: Option<Bytes>,
    /// True if the commit must fail if another commit changed the key.
    pub tracked: bool,
}

/// The first bytes of a key as a big-endian number, padded with zeros. Ascending keys have
/// ascending prefixes.
type Prefix = u32;

fn prefix_of(key: &[u8]) -> Prefix {
    let mut prefix = [0; size_of::<Prefix>()];
    for (to, from) in prefix.iter_mut().zip(key) {
        *to = *from;
    }
    Prefix::from_be_bytes(prefix)
}

/// The number of keys for which a run has room from its second key on: most batches have many.
const RUN_KEYS: usize = 63;
/// The number of writes for which the undo log gets room after the first few.
const UNDO_WRITES: usize = 14;

/// How to undo one write.
#[derive(Debug)]
enum Undo {
    /// Removes the last key of its group's run, which then has `len` keys.
    Appended { space: Space, prefix: Prefix, len: usize },
    /// Restores the earlier buffered write of the key, if there was one.
    Written { space: Space, key: Bytes, before: Option<Box<Buffered>> },
}

/// The buffered writes of keys with one prefix.
#[derive(Debug)]
struct Group {
    prefix: Prefix,
    /// In ascending order of the keys. A statement on one document writes one key of each group.
    run: SmallVec<[(Bytes, Buffered); 1]>,
    /// Keys that were not greater than the last key of the run when they were written. That stays
    /// so while they are here, because writes are undone in reverse order.
    rest: BTreeMap<Bytes, Buffered>,
}

impl Group {
    fn new(prefix: Prefix) -> Self {
        Group { prefix, run: SmallVec::new(), rest: BTreeMap::new() }
    }

    fn len(&self) -> usize {
        self.run.len() + self.rest.len()
    }

    /// Returns the position of the key in the run, or the position at which to insert it.
    fn find_in_run(&self, key: &[u8]) -> std::result::Result<usize, usize> {
        match self.run.last() {
            Some((last, _)) if key <= &last[..] => {
                self.run.binary_search_by(|(other, _)| other[..].cmp(key))
            }
            _ => Err(self.run.len()),
        }
    }

    fn get(&self, key: &[u8]) -> Option<&Buffered> {
        match self.find_in_run(key) {
            Ok(at) => self.run.get(at).map(|(_, entry)| entry),
            Err(at) if at == self.run.len() || self.rest.is_empty() => None,
            Err(_) => self.rest.get(key),
        }
    }

    fn get_mut(&mut self, key: &[u8]) -> Option<&mut Buffered> {
        match self.find_in_run(key) {
            Ok(at) => self.run.get_mut(at).map(|(_, entry)| entry),
            Err(_) => self.rest.get_mut(key),
        }
    }

    /// Sets the buffered write of a key that is not appended to the run. Returns the earlier one.
    fn replace(&mut self, key: &Bytes, entry: Buffered) -> Option<Buffered> {
        if let Ok(at) = self.find_in_run(key)
            && let Some((_, place)) = self.run.get_mut(at)
        {
            return Some(std::mem::replace(place, entry));
        }
        match self.rest.entry(key.clone()) {
            Entry::Vacant(place) => {
                place.insert(entry);
                None
            }
            Entry::Occupied(mut place) => Some(place.insert(entry)),
        }
    }

    /// Returns the writes in `[start, end)`, in the order of the request; an empty `end` is open.
    fn range<'g>(&'g self, request: &ScanRequest<'_>) -> Rows<'g> {
        let (start, end) = (request.start, request.end);
        let from = self.run.partition_point(|(key, _)| &key[..] < start);
        let to = match end.is_empty() {
            true => self.run.len(),
            false => self.run.partition_point(|(key, _)| &key[..] < end),
        };
        let run = self.run.get(from..to).unwrap_or_default();
        let run = run.iter().map(|(key, entry)| (key, entry));
        let upper = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end) };
        let rest = self.rest.range::<[u8], _>((Bound::Included(start), upper));
        match request.direction {
            Direction::Forward => Box::new(merged(run, rest, |a, b| a < b)),
            Direction::Reverse => Box::new(merged(run.rev(), rest.rev(), |a, b| a > b)),
        }
    }

    /// Passes each write to `take`, in ascending order of the keys.
    fn drain(self, mut take: impl FnMut(Bytes, Buffered)) {
        let run = self.run.into_iter();
        match self.rest.is_empty() {
            true => run.for_each(|(key, entry)| take(key, entry)),
            false => merged(run, self.rest.into_iter(), |a, b| a < b)
                .for_each(|(key, entry)| take(key, entry)),
        }
    }
}

/// Buffered writes in the order of a scan.
type Rows<'g> = Box<dyn Iterator<Item = (&'g Bytes, &'g Buffered)> + 'g>;

/// Merges two ordered streams that have no key in common.
fn merged<K: AsRef<[u8]>, V>(
    a: impl Iterator<Item = (K, V)>,
    b: impl Iterator<Item = (K, V)>,
    before: impl Fn(&[u8], &[u8]) -> bool,
) -> impl Iterator<Item = (K, V)> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (_, None) => a.next(),
        (None, Some(_)) => b.next(),
        (Some((x, _)), Some((y, _))) if before(x.as_ref(), y.as_ref()) => a.next(),
        (Some(_), Some(_)) => b.next(),
    })
}

/// The write buffer.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// In ascending order of the prefixes.
    groups: [SmallVec<[Group; 1]>; 4],
    undo: SmallVec<[Undo; 2]>,
    bytes: usize,
}

fn weight(key: &Bytes, entry: &Buffered) -> usize {
    key.len() + entry.value.as_ref().map_or(0, Bytes::len) + 16
}

impl Overlay {
    /// Returns the size of the buffer in bytes, with a small overhead for each key.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of keys in the buffer.
    pub fn len(&self) -> usize {
        self.groups.iter().flatten().map(Group::len).sum()
    }

    /// Returns true if the buffer is empty.
    pub fn is_empty(&self) -> bool {
        Space::ALL.into_iter().all(|space| self.is_empty_in(space))
    }

    /// Returns true if nothing is buffered in a space.
    pub fn is_empty_in(&self, space: Space) -> bool {
        self.groups[space.index()].iter().all(|group| group.len() == 0)
    }

    fn group(&self, space: Space, prefix: Prefix) -> Option<&Group> {
        let groups = &self.groups[space.index()];
        groups.get(groups.binary_search_by_key(&prefix, |group| group.prefix).ok()?)
    }

    fn group_mut(&mut self, space: Space, prefix: Prefix) -> Option<&mut Group> {
        let groups = &mut self.groups[space.index()];
        let at = groups.binary_search_by_key(&prefix, |group| group.prefix).ok()?;
        groups.get_mut(at)
    }

    /// Returns the buffered write of a key, if there is one.
    pub fn get(&self, space: Space, key: &[u8]) -> Option<&Buffered> {
        self.group(space, prefix_of(key))?.get(key)
    }

    /// Returns the greatest buffered key with this prefix.
    pub fn greatest(&self, space: Space, prefix: [u8; size_of::<Prefix>()]) -> Option<&Bytes> {
        let group = self.group(space, Prefix::from_be_bytes(prefix))?;
        group.run.last().map(|(key, _)| key)
    }

    /// Buffers a write. A key that was tracked once stays tracked. Returns what was buffered for the
    /// key.
    pub fn set(&mut self, space: Space, key: Bytes, entry: Buffered) -> Option<&Buffered> {
        if self.undo.len() == self.undo.inline_size() {
            self.undo.reserve(UNDO_WRITES);
        }
        self.bytes += weight(&key, &entry);
        let prefix = prefix_of(&key);
        let groups = &mut self.groups[space.index()];
        let at = match groups.binary_search_by_key(&prefix, |group| group.prefix) {
            Ok(at) => at,
            Err(at) => {
                groups.insert(at, Group::new(prefix));
                at
            }
        };
        let group = &mut groups[at];
        let len = group.run.len();
        if group.run.last().is_none_or(|(last, _)| *last < key) {
            if len == 1 {
                group.run.reserve(RUN_KEYS);
            }
            group.run.push((key, entry));
            self.undo.push(Undo::Appended { space, prefix, len });
            return None;
        }
        let before = group.replace(&key, entry);
        if let Some(before) = &before {
            self.bytes -= weight(&key, before);
            if before.tracked
                && let Some(now) = group.get_mut(&key)
            {
                now.tracked = true;
            }
        }
        self.undo.push(Undo::Written { space, key, before: before.map(Box::new) });
        match self.undo.last() {
            Some(Undo::Written { before, .. }) => before.as_deref(),
            _ => None,
        }
    }

    /// Returns a mark for [`roll_back`](Self::roll_back).
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Returns the tracked keys written since the mark. A key that was written twice occurs twice.
    pub fn written_since(&self, mark: usize) -> impl Iterator<Item = (Space, &Bytes)> {
        self.undo.iter().skip(mark).filter_map(|undo| {
            let (space, key, entry) = match undo {
                Undo::Appended { space, prefix, len } => {
                    let (key, entry) = self.group(*space, *prefix)?.run.get(*len)?;
                    (*space, key, entry)
                }
                Undo::Written { space, key, .. } => (*space, key, self.get(*space, key)?),
            };
            entry.tracked.then_some((space, key))
        })
    }

    /// Undoes all writes after the mark.
    pub fn roll_back(&mut self, mark: usize) {
        while self.undo.len() > mark {
            let Some(undo) = self.undo.pop() else { break };
            match undo {
                Undo::Appended { space, prefix, len } => {
                    let Some(group) = self.group_mut(space, prefix) else { continue };
                    let Some((key, entry)) = group.run.pop() else { continue };
                    debug_assert_eq!(group.run.len(), len);
                    self.bytes -= weight(&key, &entry);
                }
                Undo::Written { space, key, before } => {
                    self.put_back(space, &key, before.map(|before| *before));
                }
            }
        }
    }

    fn put_back(&mut self, space: Space, key: &Bytes, before: Option<Buffered>) {
        self.bytes += before.as_ref().map_or(0, |before| weight(key, before));
        let Some(group) = self.group_mut(space, prefix_of(key)) else { return };
        let now = match before {
            Some(before) => group.replace(key, before),
            None => group.rest.remove(key),
        };
        if let Some(now) = now {
            self.bytes -= weight(key, &now);
        }
    }

    /// Passes the buffered writes of all spaces to `take`, in key order within each space, and
    /// clears the buffer.
    pub fn drain(&mut self, mut take: impl FnMut(Space, Bytes, Buffered)) {
        let groups = std::mem::take(&mut self.groups);
        self.undo.clear();
        self.bytes = 0;
        for (space, groups) in Space::ALL.into_iter().zip(groups) {
            for group in groups {
                group.drain(|key, entry| take(space, key, entry));
            }
        }
    }

    /// Returns the writes in the range of a request, in its order.
    fn rows<'a>(&'a self, request: &ScanRequest<'a>) -> Rows<'a> {
        let groups = &self.groups[request.space.index()];
        let (first, last) = (prefix_of(request.start), prefix_of(request.end));
        let from = groups.partition_point(|group| group.prefix < first);
        let to = match request.end.is_empty() {
            true => groups.len(),
            false => groups.partition_point(|group| group.prefix <= last),
        };
        let groups = groups.get(from..to).unwrap_or_default().iter();
        let request = *request;
        let of_group = move |group: &'a Group| group.range(&request);
        match request.direction {
            Direction::Forward => Box::new(groups.flat_map(of_group)),
            Direction::Reverse => Box::new(groups.rev().flat_map(of_group)),
        }
    }

    /// Reads a page of the snapshot and merges the buffered writes into it.
    pub fn scan(
        &self,
        base: &dyn Snapshot,
        request: &ScanRequest<'_>,
        page: &mut Page,
    ) -> Result<()> {
        if self.is_empty_in(request.space) {
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
            self.merge(&step, &mut below, page);
            if !page.rows.is_empty() || page.resume.is_none() {
                return Ok(());
            }
            position = page.resume.take();
        }
    }

    /// Merges the buffered writes in the range of `below` into `page`, which is empty.
    fn merge(&self, request: &ScanRequest<'_>, below: &mut Page, page: &mut Page) {
        let resume = below.resume.take();
        let covered = match &resume {
            Some(resume) => match request.direction {
                Direction::Forward => ScanRequest { end: resume, ..*request },
                Direction::Reverse => ScanRequest { start: resume, ..*request },
            },
            None => *request,
        };
        if covered.is_empty() {
            return;
        }
        let buffered = self.rows(&covered);
        let rows = below.rows.drain(..);
        let full = match request.direction {
            Direction::Forward => merge_rows(rows, buffered, |a, b| a < b, request, page),
            Direction::Reverse => merge_rows(rows, buffered, |a, b| a > b, request, page),
        };
        if full {
            page.resume_after_last(request.direction);
        } else {
            page.resume = resume;
        }
    }
}

/// Merges two ordered streams. Returns true if the page is full before both are exhausted.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{ClusterTime, Version};
    use crate::rng::Rng;

    /// A snapshot without keys.
    struct EmptySnapshot;

    impl Snapshot for EmptySnapshot {
        fn version(&self) -> Version {
            Version::from_u64(0)
        }

        fn cluster_time(&self) -> ClusterTime {
            ClusterTime(0)
        }

        fn get(&self, _: Space, _: &[u8]) -> Result<Option<Bytes>> {
            Ok(None)
        }

        fn get_many(&self, _: Space, _: &[&[u8]], _: &mut Vec<Option<Bytes>>) -> Result<()> {
            Ok(())
        }

        fn scan(&self, _: &ScanRequest<'_>, page: &mut Page) -> Result<()> {
            page.clear();
            Ok(())
        }
    }

    type Model = BTreeMap<Bytes, Buffered>;

    /// Returns a key with one of three prefixes, or one shorter than a prefix; most keys ascend.
    fn key(rng: &mut Rng, step: u64) -> Bytes {
        let number = if rng.one_in(3) { rng.below(step + 1) } else { step };
        match rng.below(8) {
            0 => Bytes::from(vec![0, (number % 5) as u8]),
            1..5 => Bytes::from([&[0, 0, 0, 7][..], &number.to_be_bytes()].concat()),
            _ => Bytes::from([&[0, 1, 0, 0][..], &number.to_be_bytes()].concat()),
        }
    }

    fn rows(overlay: &Overlay, request: &ScanRequest<'_>) -> Vec<(Bytes, Bytes)> {
        let (mut rows, mut page) = (Vec::new(), Page::default());
        let mut resume: Option<Bytes> = None;
        loop {
            let step = resume.as_ref().map_or(*request, |resume| request.resumed(resume));
            overlay.scan(&EmptySnapshot, &step, &mut page).unwrap();
            rows.append(&mut page.rows);
            match page.resume.take() {
                Some(next) => resume = Some(next),
                None => return rows,
            }
        }
    }

    fn agree(overlay: &Overlay, model: &Model, rng: &mut Rng, step: u64) {
        let (a, b) = (key(rng, step), key(rng, step));
        let (start, end) = if rng.one_in(4) { (a, Bytes::new()) } else { (a, b) };
        let request = ScanRequest::new(Space::Idx, &start, &end).rows_max(7);
        let expected: Vec<_> = model
            .iter()
            .filter(|(key, _)| **key >= start && (end.is_empty() || **key < end))
            .filter_map(|(key, entry)| Some((key.clone(), entry.value.clone()?)))
            .collect();
        assert_eq!(rows(overlay, &request), expected);
        let mut backwards = rows(overlay, &request.reverse());
        backwards.reverse();
        assert_eq!(backwards, expected);
        let probe = key(rng, step);
        let found = |entry: Option<&Buffered>| entry.map(|it| (it.value.clone(), it.tracked));
        assert_eq!(found(overlay.get(Space::Idx, &probe)), found(model.get(&probe)));
        assert_eq!(overlay.len(), model.len());
        let bytes: usize = model.iter().map(|(key, entry)| weight(key, entry)).sum();
        assert_eq!(overlay.bytes(), bytes);
    }

    #[test]
    fn it_is_an_ordered_map_with_undo() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let (mut overlay, mut model) = (Overlay::default(), Model::new());
            let mut marks = vec![(overlay.mark(), model.clone())];
            for step in 0..120 {
                match rng.below(12) {
                    0 => marks.push((overlay.mark(), model.clone())),
                    1 if rng.one_in(2) => {
                        let at = rng.below(marks.len() as u64) as usize;
                        marks.truncate(at + 1);
                        overlay.roll_back(marks[at].0);
                        model = marks[at].1.clone();
                    }
                    _ => {
                        let key = key(&mut rng, step);
                        let value = (!rng.one_in(4)).then(|| Bytes::from(vec![step as u8]));
                        let tracked = rng.one_in(2);
                        overlay.set(
                            Space::Idx,
                            key.clone(),
                            Buffered { value: value.clone(), tracked },
                        );
                        let tracked = tracked || model.get(&key).is_some_and(|was| was.tracked);
                        model.insert(key, Buffered { value, tracked });
                    }
                }
                agree(&overlay, &model, &mut rng, step);
            }
            let written: Vec<Bytes> =
                overlay.written_since(0).map(|(_, key)| key.clone()).collect();
            for (key, entry) in &model {
                assert_eq!(written.contains(key), entry.tracked);
            }
            let mut drained = Vec::new();
            overlay.drain(|_, key, entry| drained.push((key, entry.value)));
            let expected: Vec<_> =
                model.into_iter().map(|(key, entry)| (key, entry.value)).collect();
            assert_eq!(drained, expected);
            assert!(overlay.is_empty());
        }
    }
}
