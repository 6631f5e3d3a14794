//! Skips deleted keys at the head of queues. A client that takes records one by one from the head
//! of an index leaves a tombstone for each, and every search for the next head would read all of
//! them (half a microsecond each). So when the first row of a scan takes long, the empty range
//! before it is remembered, and later scans start after it. A write into such a gap splits it; a
//! snapshot older than the gap does not use it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use quire_storage::{Direction, ScanRequest, next_key};

/// The largest number of gaps, and of recent writes, that are remembered.
const GAPS_MAX: usize = 1024;
const RECENT_MAX: usize = 4096;
/// The number of calls of `tick` without a use after which all gaps are removed.
const IDLE_TICKS_MAX: u64 = 600;

/// The gaps of one keyspace.
pub(crate) struct Gaps {
    /// The number of batches begun. A snapshot stores the number at its creation.
    epoch: AtomicU64,
    /// False until the first slow scan, so that databases without queues have no cost.
    armed: AtomicBool,
    idle_ticks: AtomicU64,
    slow: Duration,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The gaps by their start.
    gaps: BTreeMap<Bytes, Gap>,
    /// The keys of recent writes. A gap found on an older snapshot must not contain one of them.
    recent: VecDeque<(u64, Bytes)>,
    /// `recent` has every write after this epoch.
    known_since: u64,
}

/// A range without rows.
#[derive(Clone)]
struct Gap {
    /// The end of the range; empty for the end of the keyspace.
    end: Bytes,
    /// The epoch of the snapshot that found it empty.
    epoch: u64,
    /// True if it begins after a key that was written into a larger gap.
    rest: bool,
}

fn up_to(bound: Bound<&[u8]>) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, bound)
}

fn inside(start: &[u8], end: &[u8], key: &[u8]) -> bool {
    key >= start && (end.is_empty() || key < end)
}

impl Gaps {
    /// Returns an empty set. A scan whose first row takes longer than `slow` adds a gap.
    pub fn new(slow: Duration) -> Self {
        Self {
            epoch: AtomicU64::new(0),
            armed: AtomicBool::new(false),
            idle_ticks: AtomicU64::new(0),
            slow,
            inner: Mutex::default(),
        }
    }

    /// Returns the number of batches begun: the epoch of a snapshot taken while none is under way.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Notes the keys that a batch is about to put.
    pub fn write<'k>(&self, puts: impl Iterator<Item = &'k Bytes>) {
        let epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        if !self.armed.load(Ordering::Acquire) {
            return;
        }
        let mut inner = self.inner.lock();
        inner.note(epoch, puts);
        while inner.recent.len() > RECENT_MAX {
            if let Some((dropped, _)) = inner.recent.pop_front() {
                inner.known_since = dropped;
            }
        }
    }

    /// Returns how much of the range the scan can skip: at its start, or in reverse at its end.
    pub fn skip(&self, epoch: u64, request: &ScanRequest<'_>) -> Skip {
        if !self.armed.load(Ordering::Acquire) {
            return Skip::Nothing;
        }
        let skip = self.inner.lock().skip(epoch, request);
        if !matches!(skip, Skip::Nothing) {
            self.idle_ticks.store(0, Ordering::Relaxed);
        }
        skip
    }

    /// Adds the gap that a scan found on a snapshot of `epoch`, if it waited long for its first
    /// row.
    pub fn learn(
        &self,
        epoch: u64,
        request: &ScanRequest<'_>,
        first: Option<&[u8]>,
        waited: Duration,
    ) {
        if waited < self.slow {
            return;
        }
        let mut inner = self.inner.lock();
        if !self.armed.swap(true, Ordering::AcqRel) {
            // Earlier writes were not recorded, so gaps of older snapshots cannot be trusted.
            inner.known_since = self.epoch();
            self.idle_ticks.store(0, Ordering::Relaxed);
        }
        let (start, end) = match (request.direction, first) {
            (_, None) => {
                (Bytes::copy_from_slice(request.start), Bytes::copy_from_slice(request.end))
            }
            (Direction::Forward, Some(key)) => {
                (Bytes::copy_from_slice(request.start), Bytes::copy_from_slice(key))
            }
            (Direction::Reverse, Some(key)) => (next_key(key), Bytes::copy_from_slice(request.end)),
        };
        if (end.is_empty() || start < end) && epoch >= inner.known_since {
            inner.add(start, end, epoch);
        }
    }

    /// Removes all gaps after a minute in which no scan used one.
    pub fn tick(&self) {
        if !self.armed.load(Ordering::Acquire)
            || self.idle_ticks.fetch_add(1, Ordering::Relaxed) < IDLE_TICKS_MAX
        {
            return;
        }
        let mut inner = self.inner.lock();
        self.armed.store(false, Ordering::Release);
        *inner = Inner::default();
    }
}

/// The part of a range that a scan can skip.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// Nothing: no gap is known there.
    Nothing,
    /// Everything up to this key: the scan begins there.
    To(Bytes),
    /// The whole range is empty.
    All,
}

impl Inner {
    /// Notes the keys of a batch and splits the gaps that contain them. Rising keys inside one gap,
    /// as those of new records are, split it once.
    fn note<'k>(&mut self, epoch: u64, puts: impl Iterator<Item = &'k Bytes>) {
        let mut puts = puts.peekable();
        while let Some(first) = puts.next() {
            self.recent.push_back((epoch, first.clone()));
            let Some((start, gap)) = self.take_around(first) else { continue };
            let mut last = first;
            while let Some(next) =
                puts.next_if(|next| *next > last && inside(&start, &gap.end, next))
            {
                self.recent.push_back((epoch, next.clone()));
                last = next;
            }
            // The part between two keys written one after the other is not kept: rising keys would
            // leave one gap each.
            if start < *first && !gap.rest {
                self.gaps.insert(start, Gap { end: first.clone(), ..gap });
            }
            let rest = next_key(last);
            if gap.end.is_empty() || rest < gap.end {
                self.gaps.insert(rest, Gap { rest: true, ..gap });
            }
        }
    }

    /// Removes and returns the gap that contains the key.
    fn take_around(&mut self, key: &[u8]) -> Option<(Bytes, Gap)> {
        let before = self.gaps.range::<[u8], _>(up_to(Bound::Included(key))).next_back();
        let (start, gap) = before?;
        if !inside(start, &gap.end, key) {
            return None;
        }
        let start = start.clone();
        self.gaps.remove_entry(&start)
    }

    fn skip(&self, epoch: u64, request: &ScanRequest<'_>) -> Skip {
        let found = match request.direction {
            Direction::Forward => {
                self.gaps.range::<[u8], _>(up_to(Bound::Included(request.start))).next_back()
            }
            Direction::Reverse if request.end.is_empty() => self.gaps.iter().next_back(),
            Direction::Reverse => {
                self.gaps.range::<[u8], _>(up_to(Bound::Excluded(request.end))).next_back()
            }
        };
        let Some((start, Gap { end, epoch: found_at, .. })) = found else { return Skip::Nothing };
        if *found_at > epoch {
            return Skip::Nothing;
        }
        let to_end = end.is_empty() || (!request.end.is_empty() && request.end <= &end[..]);
        match request.direction {
            Direction::Forward if !inside(start, end, request.start) => Skip::Nothing,
            Direction::Forward if to_end => Skip::All,
            Direction::Forward => Skip::To(end.clone()),
            Direction::Reverse if !to_end => Skip::Nothing,
            Direction::Reverse if start[..] <= *request.start => Skip::All,
            Direction::Reverse => Skip::To(start.clone()),
        }
    }

    fn add(&mut self, mut start: Bytes, mut end: Bytes, epoch: u64) {
        let written = |(at, key): &(u64, Bytes)| *at > epoch && inside(&start, &end, key);
        if self.recent.iter().any(written) {
            return;
        }
        let mut epoch = epoch;
        // The gaps that it touches are merged with it; the union gets the newest epoch of its
        // parts.
        let touching: Vec<Bytes> = self
            .gaps
            .iter()
            .filter(|(other, gap)| {
                (end.is_empty() || **other <= end) && (gap.end.is_empty() || gap.end >= start)
            })
            .map(|(other, _)| other.clone())
            .collect();
        for other in touching {
            let Some(gap) = self.gaps.remove(&other) else { continue };
            start = start.min(other);
            if end.is_empty() || gap.end.is_empty() {
                end = Bytes::new();
            } else {
                end = end.max(gap.end);
            }
            epoch = epoch.max(gap.epoch);
        }
        if self.gaps.len() >= GAPS_MAX {
            self.gaps.clear();
        }
        self.gaps.insert(start, Gap { end, epoch, rest: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_storage::Space;

    fn request<'a>(start: &'a str, end: &'a str) -> ScanRequest<'a> {
        ScanRequest::new(Space::Idx, start.as_bytes(), end.as_bytes())
    }

    fn to(key: &'static str) -> Skip {
        Skip::To(Bytes::from_static(key.as_bytes()))
    }

    fn gaps() -> Gaps {
        let gaps = Gaps::new(Duration::ZERO);
        gaps.learn(0, &request("a", ""), Some(b"m"), Duration::ZERO);
        gaps
    }

    #[test]
    fn scans_begin_behind_a_gap() {
        let gaps = gaps();
        assert_eq!(gaps.skip(0, &request("a", "")), to("m"));
        assert_eq!(gaps.skip(0, &request("c", "z")), to("m"));
        assert_eq!(gaps.skip(0, &request("c", "m")), Skip::All);
        assert_eq!(gaps.skip(0, &request("A", "z")), Skip::Nothing);
        assert_eq!(gaps.skip(0, &request("m", "z")), Skip::Nothing);
        assert_eq!(gaps.skip(0, &request("A", "k").reverse()), to("a"));
        assert_eq!(gaps.skip(0, &request("b", "k").reverse()), Skip::All);
        assert_eq!(gaps.skip(0, &request("b", "n").reverse()), Skip::Nothing);
        assert_eq!(gaps.skip(0, &request("b", "").reverse()), Skip::Nothing);
    }

    #[test]
    fn a_write_splits_a_gap() {
        let gaps = gaps();
        gaps.write([Bytes::from_static(b"f")].iter());
        assert_eq!(gaps.skip(1, &request("a", "")), to("f"));
        assert_eq!(gaps.skip(1, &request("f", "")), Skip::Nothing);
        assert_eq!(gaps.skip(1, &request("f\0", "")), to("m"));
    }

    #[test]
    fn rising_keys_do_not_leave_a_gap_each() {
        let gaps = gaps();
        let keys: Vec<Bytes> = (0..100).map(|n| Bytes::from(format!("f{n:03}"))).collect();
        for key in &keys {
            gaps.write([key.clone()].iter());
        }
        assert!(gaps.inner.lock().gaps.len() <= 2);
        let epoch = gaps.epoch();
        assert_eq!(gaps.skip(epoch, &request("a", "")), to("f000"));
        assert_eq!(gaps.skip(epoch, &request("f099\0", "")), to("m"));
        for key in &keys {
            let end = [key, &b"\0"[..]].concat();
            let scan = ScanRequest::new(Space::Idx, key, &end);
            assert_eq!(gaps.skip(epoch, &scan), Skip::Nothing);
        }
    }

    #[test]
    fn a_batch_leaves_the_same_gaps_as_its_single_keys() {
        let mut rng = quire_storage::rng::Rng::new(7);
        for rises in [true, false] {
            for _ in 0..200 {
                let (together, alone) = (gaps(), gaps());
                for round in ["c", "h"] {
                    let key = |_| Bytes::from(format!("{round}{:02}", rng.below(40)));
                    let mut keys: Vec<Bytes> = (0..6).map(key).collect();
                    keys.push(Bytes::from_static(b"x"));
                    if rises {
                        keys.sort();
                    }
                    together.write(keys.iter());
                    keys.iter().for_each(|key| alone.write([key].into_iter()));
                }
                let left = |gaps: &Gaps| -> Vec<(Bytes, Bytes, bool)> {
                    let inner = gaps.inner.lock();
                    let gap =
                        |(start, gap): (&Bytes, &Gap)| (start.clone(), gap.end.clone(), gap.rest);
                    inner.gaps.iter().map(gap).collect()
                };
                assert_eq!(left(&together), left(&alone));
                assert_eq!(together.inner.lock().recent.len(), alone.inner.lock().recent.len());
            }
        }
    }

    #[test]
    fn older_snapshots_and_older_findings_do_not_count() {
        let gaps = gaps();
        gaps.write([Bytes::from_static(b"x")].iter());
        gaps.learn(1, &request("n", "p"), None, Duration::ZERO);
        assert_eq!(gaps.skip(0, &request("n", "p")), Skip::Nothing);
        assert_eq!(gaps.skip(1, &request("n", "p")), Skip::All);
        gaps.write([Bytes::from_static(b"r")].iter());
        gaps.learn(1, &request("q", "s"), None, Duration::ZERO);
        assert_eq!(gaps.skip(2, &request("q", "s")), Skip::Nothing, "r was written since");
    }

    #[test]
    fn gaps_that_touch_become_one() {
        let gaps = gaps();
        gaps.learn(0, &request("m", ""), Some(b"p"), Duration::ZERO);
        assert_eq!(gaps.skip(0, &request("b", "")), to("p"));
        gaps.learn(0, &request("k", ""), None, Duration::ZERO);
        assert_eq!(gaps.skip(0, &request("b", "")), Skip::All);
        assert_eq!(gaps.skip(0, &request("A", "").reverse()), to("a"));
    }
}
