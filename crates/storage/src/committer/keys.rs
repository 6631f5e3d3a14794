//! Conflict detection: the last committed version of each key that an open snapshot could still
//! conflict with, and the keys that open transactions have locked. A commit pays for its own keys,
//! and for removing at most [`PRUNE_MAX`] entries that no snapshot needs any more.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::committer::lines::Lines;
use crate::contract::{Check, CommitBatch, KeyHash, LinePlace, LockOwner};
use crate::error::{Conflict, Result, StorageError};
use crate::interrupt::Interrupt;

/// The most entries that one group removes from the conflict table, about 10 ms of work. When the
/// oldest snapshot closes after a long time, up to four million entries may be due.
const PRUNE_MAX: usize = 1 << 17;

/// A hasher that returns its input, because the keys are hashes already.
#[derive(Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

pub(crate) type HashMapOfHashes<V> = HashMap<KeyHash, V, BuildHasherDefault<Identity>>;

/// The waiters that are now first in a line.
type Woken = Vec<Arc<Interrupt>>;

/// The conflict table, the lock table, and the lines of writers that wait for keys.
pub(crate) struct KeyTable {
    last: HashMapOfHashes<u64>,
    /// One entry for each key in `last`, with the key's version when the entry was made.
    order: VecDeque<(u64, KeyHash)>,
    /// Conflicts of a commit on an older base are not known any more.
    floor: u64,
    keys_max: usize,
    locks: HashMapOfHashes<LockOwner>,
    held: HashMap<LockOwner, Vec<KeyHash>>,
    pub lines: Lines,
}

fn clash(check: &Check, held: bool) -> StorageError {
    StorageError::Conflict(Box::new(Conflict {
        space: check.space,
        key: check.key.clone(),
        hash: check.hash,
        held,
    }))
}

impl KeyTable {
    pub fn new(keys_max: usize, floor: u64) -> Self {
        Self {
            last: HashMapOfHashes::default(),
            order: VecDeque::new(),
            floor,
            keys_max,
            locks: HashMapOfHashes::default(),
            held: HashMap::new(),
            lines: Lines::default(),
        }
    }

    /// Fails if the batch conflicts with another commit, a lock or a reservation.
    pub fn admit(&self, batch: &CommitBatch) -> Result<()> {
        self.check(batch.base.as_u64(), batch.owner, &batch.checks)?;
        self.check_turn(batch)
    }

    /// Fails with `Conflict` if a key of the batch is reserved for another writer. Transactions
    /// ignore reservations, because they do not wait in lines.
    pub fn check_turn(&self, batch: &CommitBatch) -> Result<()> {
        if self.lines.is_empty() || batch.owner.is_some() {
            return Ok(());
        }
        let reserved =
            |check: &&Check| check.write && self.lines.is_reserved_from(check.hash, batch.turn);
        match batch.checks.iter().find(reserved) {
            Some(check) => Err(clash(check, true)),
            None => Ok(()),
        }
    }

    /// Fails with `Conflict` if another transaction has locked one of the keys, or a commit after
    /// `base` has changed one. Fails with `SnapshotTooOld` if `base` is too old to decide.
    fn check(&self, base: u64, owner: Option<LockOwner>, checks: &[Check]) -> Result<()> {
        if base < self.floor && !checks.is_empty() {
            return Err(StorageError::SnapshotTooOld);
        }
        for check in checks {
            if check.write
                && !self.locks.is_empty()
                && self.locks.get(&check.hash).is_some_and(|holder| Some(*holder) != owner)
            {
                return Err(clash(check, true));
            }
            if self.last.get(&check.hash).is_some_and(|version| *version > base) {
                return Err(clash(check, false));
            }
        }
        Ok(())
    }

    /// Records the keys that a commit writes.
    pub fn record(&mut self, version: u64, checks: &[Check]) {
        for check in checks.iter().filter(|check| check.write) {
            self.record_one(version, check.hash);
        }
    }

    /// Records the keys that a commit marks, which count as written.
    pub fn record_marks(&mut self, version: u64, marks: &[KeyHash]) {
        marks.iter().for_each(|hash| self.record_one(version, *hash));
    }

    fn record_one(&mut self, version: u64, hash: KeyHash) {
        if self.last.insert(hash, version).is_none() {
            self.order.push_back((version, hash));
        }
    }

    /// Takes back that commits after `version` have written keys, because they failed. Their keys
    /// count as written by `version`: what was known of them before is lost.
    pub fn take_back(&mut self, version: u64) {
        let entries = self.order.iter_mut().map(|(written, _)| written);
        for written in self.last.values_mut().chain(entries) {
            *written = version.min(*written);
        }
    }

    /// Removes entries that no snapshot can conflict with and, above the cap, those that only old
    /// snapshots could. If a key was written again after its entry was made, it gets a new entry,
    /// so each write is handled once. Handles [`PRUNE_MAX`] entries and continues with the next
    /// call, so the table can exceed its cap for a few groups. A late removal causes no false
    /// conflict, because the entry's version is not after the floor.
    pub fn prune(&mut self, oldest: u64) {
        self.floor = self.floor.max(oldest);
        for _ in 0..PRUNE_MAX {
            let Some((version, hash)) = self.order.front().copied() else { break };
            if version > self.floor {
                if self.order.len() <= self.keys_max {
                    break;
                }
                self.floor = version;
            }
            self.order.pop_front();
            match self.last.get(&hash) {
                Some(newest) if *newest > self.floor => self.order.push_back((*newest, hash)),
                Some(_) => drop(self.last.remove(&hash)),
                None => {}
            }
        }
        if self.order.is_empty() && self.order.capacity() > 4096 {
            self.order = VecDeque::new();
            self.last = HashMapOfHashes::default();
        }
    }

    /// Takes locks; the first updater wins. Fails like a commit that writes the keys.
    pub fn lock(&mut self, owner: LockOwner, base: u64, keys: &[Check]) -> Result<()> {
        for key in keys {
            self.check(base, Some(owner), std::slice::from_ref(key))?;
            if key.write && self.locks.insert(key.hash, owner).is_none() {
                self.held.entry(owner).or_default().push(key.hash);
            }
        }
        Ok(())
    }

    /// Releases the locks of a transaction and a place in a line. Returns the waiters to wake.
    pub fn release(&mut self, owner: Option<LockOwner>, turn: Option<LinePlace>) -> Woken {
        let mut woken = Woken::new();
        for hash in owner.and_then(|owner| self.held.remove(&owner)).unwrap_or_default() {
            self.locks.remove(&hash);
            woken.extend(self.lines.first(hash));
        }
        woken.extend(turn.and_then(|place| self.lines.leave(place)));
        woken
    }

    /// Returns true if this place is the first in its line and no transaction holds its key.
    pub fn is_turn_of(&self, place: LinePlace) -> bool {
        self.lines.is_first(place) && !self.locks.contains_key(&place.hash)
    }

    /// Returns the number of keys in the conflict table and in the lock table.
    pub fn sizes(&self) -> (u64, u64) {
        (self.last.len() as u64, self.locks.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Space, key_hash};
    use bytes::Bytes;

    fn key(name: &'static str) -> Check {
        let key = Bytes::from_static(name.as_bytes());
        Check { hash: key_hash(Space::Doc, &key), space: Space::Doc, key, write: true }
    }

    #[test]
    fn the_first_commit_wins_and_old_bases_lose() {
        let mut table = KeyTable::new(100, 0);
        table.record(5, &[key("a")]);
        assert!(table.check(5, None, &[key("a")]).is_ok());
        assert!(matches!(table.check(4, None, &[key("a")]), Err(StorageError::Conflict(_))));
        assert!(table.check(4, None, &[key("b")]).is_ok());
        table.prune(5);
        assert_eq!(table.sizes().0, 0);
        assert_eq!(table.check(4, None, &[key("b")]), Err(StorageError::SnapshotTooOld));
    }

    #[test]
    fn over_the_cap_the_floor_rises() {
        let mut table = KeyTable::new(2, 0);
        for (version, name) in [(1, "a"), (2, "b"), (3, "c")] {
            table.record(version, &[key(name)]);
        }
        table.prune(0);
        assert_eq!(table.check(0, None, &[key("z")]), Err(StorageError::SnapshotTooOld));
        assert!(table.check(1, None, &[key("a")]).is_ok());
        assert!(table.check(1, None, &[key("b")]).is_err());
    }

    /// Two orders of one customer do not conflict, but each does with a rename of the customer.
    #[test]
    fn a_mark_conflicts_with_guards_and_not_with_marks() {
        let mut table = KeyTable::new(100, 0);
        let guarded = Check { write: false, ..key("a") };
        table.record_marks(5, &[guarded.hash]);
        assert!(table.check(4, None, std::slice::from_ref(&guarded)).is_err());
        assert!(table.check(5, None, std::slice::from_ref(&guarded)).is_ok());
        table.record_marks(6, &[guarded.hash]);
        table.prune(6);
        assert_eq!(table.sizes().0, 0);
    }

    /// A transaction that ended after a minute of writes by others made one commit remove four
    /// million entries, while all other commits waited.
    #[test]
    fn one_commit_removes_a_bounded_number_of_entries() {
        let many = PRUNE_MAX + 10;
        let mut table = KeyTable::new(2 * many, 0);
        let check = |hash: usize| Check { hash: hash as u64, ..key("a") };
        let checks: Vec<Check> = (0..many).map(check).collect();
        table.record(1, &checks);
        table.record(2, &checks[..1]);
        table.prune(1);
        assert_eq!(table.sizes().0, 11);
        // The remaining entries do not conflict with commits on allowed bases, and commits on older
        // bases fail.
        assert!(table.check(1, None, &checks[many - 1..]).is_ok());
        assert!(table.check(1, None, &checks[..1]).is_err());
        let too_old = table.check(0, None, &checks[many - 1..]);
        assert_eq!(too_old, Err(StorageError::SnapshotTooOld));
        table.prune(1);
        assert_eq!(table.sizes().0, 1);
    }

    #[test]
    fn locks_belong_to_one_transaction() {
        let mut table = KeyTable::new(100, 0);
        table.lock(1, 0, &[key("a"), key("b")]).unwrap();
        table.lock(1, 0, &[key("a")]).unwrap();
        let Err(StorageError::Conflict(conflict)) = table.lock(2, 0, &[key("b")]) else {
            panic!("the lock was given twice")
        };
        assert!(conflict.held);
        assert!(table.check(0, None, &[key("a")]).is_err());
        assert!(table.check(0, Some(1), &[key("a")]).is_ok());
        table.release(Some(1), None);
        assert!(table.lock(2, 0, &[key("b")]).is_ok());
    }
}
