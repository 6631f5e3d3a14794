//! The way to read and write: a transaction has a snapshot and a write buffer merged with it.
//! Nothing leaves the buffer before `commit`, so dropping a transaction undoes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::contract::{
    Check, ClusterTime, CommitBatch, Committed, CountDelta, DropRange, Durability, Engine, KeyHash,
    LinePlace, LockOwner, Page, ScanRequest, Snapshot, Space, Version, Visitor, key_hash,
    visit_page,
};
use crate::error::{Result, StorageError};
use crate::interrupt::Interrupt;
use crate::overlay::{Buffered, Overlay};
use crate::publish::OnPublish;
use crate::turn::KeyTurn;

/// The number of recent guards that are searched for a duplicate. Beyond it a repeated guard is
/// stored twice, which is harmless.
const GUARDS_COMPARED: usize = 64;

/// The number of operations that the committer adds to most groups: the counters of one collection.
/// The operations of a commit reserve room for them.
const RECORDS_OF_GROUP: usize = 1;

/// The purpose of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Reads only; a write fails with `Unsupported`.
    Read,
    /// One statement, or a chunk of it: conflicts occur at `commit`.
    Write,
    /// A client's transaction: conflicts occur at [`Txn::push`], which takes locks.
    Transaction,
}

/// The options of a commit.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// The durability that the commit must reach before it returns.
    pub durability: Durability,
    /// Ends the wait for backpressure, before the commit is queued.
    pub interrupt: Option<Arc<Interrupt>>,
    /// True if the caller has already waited for backpressure, before it took a lock.
    pub admitted: bool,
}

impl CommitOptions {
    /// Returns options for a commit that is on stable storage when it returns.
    pub fn synced() -> Self {
        Self::default()
    }

    /// Returns options for a commit that survives a crash of the process at once, and a power
    /// failure after 100 ms.
    pub fn buffered() -> Self {
        Self { durability: Durability::Buffered, ..Self::default() }
    }

    /// Returns the same options, with `interrupt` for the waits unless an interrupt is set already.
    #[must_use]
    pub fn ended_by(mut self, interrupt: &Arc<Interrupt>) -> Self {
        self.interrupt.get_or_insert_with(|| Arc::clone(interrupt));
        self
    }
}

/// A position in a transaction to roll back to. Valid only for its transaction, until that rolls
/// back to an earlier savepoint.
#[derive(Debug, Clone, Copy)]
pub struct Savepoint {
    writes: usize,
    guards: usize,
    marks: usize,
    counts: usize,
    drops: usize,
    log: usize,
    log_bytes: usize,
}

/// Begins a transaction on a snapshot of everything committed so far.
pub fn begin(engine: &Arc<dyn Engine>, mode: Mode) -> Result<Txn> {
    Ok(begin_on(engine, engine.snapshot()?, mode))
}

/// Begins a transaction on a snapshot of this engine.
pub fn begin_on(engine: &Arc<dyn Engine>, snapshot: Box<dyn Snapshot>, mode: Mode) -> Txn {
    Txn {
        snapshot,
        engine: Arc::clone(engine),
        mode,
        overlay: Overlay::default(),
        guards: Vec::new(),
        marks: Vec::new(),
        counts: Vec::new(),
        drops: Vec::new(),
        log: Vec::new(),
        log_bytes: 0,
        owner: None,
        turn: None,
        on_publish: None,
        pushed: 0,
        guards_checked: 0,
    }
}

/// A snapshot, the writes on top of it, and the keys that they depend on.
pub struct Txn {
    snapshot: Box<dyn Snapshot>,
    engine: Arc<dyn Engine>,
    mode: Mode,
    overlay: Overlay,
    guards: Vec<Check>,
    marks: Vec<KeyHash>,
    counts: Vec<CountDelta>,
    drops: Vec<DropRange>,
    log: Vec<Bytes>,
    log_bytes: usize,
    owner: Option<LockOwner>,
    turn: Option<LinePlace>,
    on_publish: Option<OnPublish>,
    /// The length of the overlay's undo log at the last push.
    pushed: usize,
    /// The number of guards that the last push checked.
    guards_checked: usize,
}

static NEXT_OWNER: AtomicU64 = AtomicU64::new(1);

impl Txn {
    /// Returns the engine of the transaction.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Returns the purpose of the transaction.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the snapshot without this transaction's writes.
    pub fn base(&self) -> &dyn Snapshot {
        &*self.snapshot
    }

    /// Returns the size of the write buffer in bytes.
    pub fn buffered_bytes(&self) -> usize {
        self.overlay.bytes() + self.log_bytes
    }

    /// Returns the greatest key with this prefix in the write buffer.
    pub fn greatest_written(&self, space: Space, prefix: [u8; 4]) -> Option<&Bytes> {
        self.overlay.greatest(space, prefix)
    }

    /// Returns true if a commit would write nothing.
    pub fn is_empty(&self) -> bool {
        self.overlay.is_empty()
            && self.counts.is_empty()
            && self.drops.is_empty()
            && self.log.is_empty()
    }

    /// Writes a key that must not exist. Fails with `Duplicate(tag)` if it exists now; in a client's
    /// transaction with `Conflict`, if another transaction has changed or locked it since. The commit
    /// fails with `Conflict` if another transaction writes the key meanwhile.
    pub fn insert(&mut self, space: Space, key: Bytes, value: Bytes, tag: u64) -> Result<()> {
        if let Err(error) = self.check_write(space, &key, Some(&value)) {
            let is_there = error == StorageError::TooLarge && self.get(space, &key)?.is_some();
            return Err(if is_there { self.duplicate(space, key, tag) } else { error });
        }
        let before = self.overlay.mark();
        // Written first: most keys are new, and so the buffer is searched once.
        let entry = Buffered { value: Some(value), tracked: true };
        let is_new = match self.overlay.set(space, key.clone(), entry) {
            Some(buffered) => Ok(buffered.value.is_none()),
            None => self.snapshot.get(space, &key).map(|found| found.is_none()),
        };
        if !matches!(is_new, Ok(true)) {
            self.overlay.roll_back(before);
        }
        if is_new? { Ok(()) } else { Err(self.duplicate(space, key, tag)) }
    }

    /// Returns the error of a key that the snapshot or this transaction has: `Duplicate(tag)`. In a
    /// client's transaction it is `Conflict` if another transaction has locked the key or a newer
    /// commit has changed it, because a retry may then find no duplicate.
    #[cold]
    fn duplicate(&mut self, space: Space, key: Bytes, tag: u64) -> StorageError {
        let locked = match self.mode {
            Mode::Transaction => {
                let hash = key_hash(space, &key);
                self.lock(&[Check { hash, space, key, write: true }])
            }
            Mode::Read | Mode::Write => Ok(()),
        };
        locked.err().unwrap_or(StorageError::Duplicate(tag))
    }

    /// Takes locks that are held until the transaction ends.
    fn lock(&mut self, checks: &[Check]) -> Result<()> {
        let owner = *self.owner.get_or_insert_with(|| NEXT_OWNER.fetch_add(1, Ordering::Relaxed));
        self.engine.lock(owner, self.snapshot.version(), checks)
    }

    /// Writes a key like [`insert`](Self::insert), for a caller that knows that the snapshot does
    /// not have it. Searches only the writes of this transaction.
    pub fn insert_new(&mut self, space: Space, key: Bytes, value: Bytes, tag: u64) -> Result<()> {
        debug_assert!(
            self.overlay.get(space, &key).is_some()
                || !matches!(self.snapshot.get(space, &key), Ok(Some(_))),
            "the key is there"
        );
        if let Err(error) = self.check_write(space, &key, Some(&value)) {
            let buffered = self.overlay.get(space, &key);
            let is_there = buffered.is_some_and(|buffered| buffered.value.is_some());
            let is_duplicate = error == StorageError::TooLarge && is_there;
            return Err(if is_duplicate { StorageError::Duplicate(tag) } else { error });
        }
        let before = self.overlay.mark();
        let entry = Buffered { value: Some(value), tracked: true };
        let buffered = self.overlay.set(space, key, entry);
        if buffered.is_some_and(|buffered| buffered.value.is_some()) {
            self.overlay.roll_back(before);
            return Err(StorageError::Duplicate(tag));
        }
        Ok(())
    }

    /// Writes a key. The commit fails with `Conflict` if another transaction writes it meanwhile.
    pub fn put(&mut self, space: Space, key: Bytes, value: Bytes) -> Result<()> {
        self.write(space, key, Some(value), true)
    }

    /// Deletes a key. The commit fails with `Conflict` if another transaction writes it meanwhile.
    pub fn delete(&mut self, space: Space, key: Bytes) -> Result<()> {
        self.write(space, key, None, true)
    }

    /// Writes a key that can conflict only if its document conflicts: an ordinary index entry, or a
    /// document under a new record id. The key is not tracked.
    pub fn put_entry(&mut self, space: Space, key: Bytes, value: Bytes) -> Result<()> {
        self.write(space, key, Some(value), false)
    }

    /// Deletes a key that can conflict only if its document conflicts. The key is not tracked.
    pub fn delete_entry(&mut self, space: Space, key: Bytes) -> Result<()> {
        self.write(space, key, None, false)
    }

    /// Makes the commit fail with `Conflict` if another transaction changes this key meanwhile.
    pub fn guard(&mut self, space: Space, key: &[u8]) {
        let hash = key_hash(space, key);
        let mut latest = self.guards.iter().rev().take(GUARDS_COMPARED);
        if !latest.any(|guard| guard.hash == hash) {
            let key = Bytes::copy_from_slice(key);
            self.guards.push(Check { hash, space, key, write: false });
        }
    }

    /// Makes commits that guard this key conflict with this one, as a write of the key would. Stores
    /// nothing. Two commits that mark the same key do not conflict.
    pub fn mark(&mut self, space: Space, key: &[u8]) {
        let hash = key_hash(space, key);
        if !self.marks.iter().rev().take(GUARDS_COMPARED).any(|mark| *mark == hash) {
            self.marks.push(hash);
        }
    }

    /// Changes the counters of a collection with this commit.
    pub fn add_counts(&mut self, collection: u32, documents: i64, bytes: i64) {
        self.counts.push(CountDelta { collection, documents, bytes, forget: false });
    }

    /// Removes the counters of a collection with this commit.
    pub fn forget_counts(&mut self, collection: u32) {
        self.counts.push(CountDelta { collection, documents: 0, bytes: 0, forget: true });
    }

    /// Drops `[start, end)` with this commit; see [`CommitBatch::drops`].
    pub fn drop_range(&mut self, space: Space, start: Bytes, end: Bytes) {
        self.drops.push(DropRange { space, start, end });
    }

    /// Appends a change record. The engine makes its key from the commit's version and the record's
    /// position in the commit, and puts the cluster time before its bytes.
    pub fn append_log(&mut self, record: Bytes) {
        self.log_bytes += record.len();
        self.log.push(record);
    }

    /// Returns true if no change record was appended.
    pub fn log_is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Takes locks on every tracked key written since the last push. Fails with `Conflict` at once
    /// if another transaction has locked one or a newer commit has changed one, or a key that was
    /// guarded since. The locks are held until the transaction ends.
    pub fn push(&mut self) -> Result<()> {
        let guards = self.guards.get(self.guards_checked..).unwrap_or(&[]);
        let written = self.overlay.written_since(self.pushed).map(|(space, key)| Check {
            hash: key_hash(space, key),
            space,
            key: key.clone(),
            write: true,
        });
        let checks: Vec<Check> = guards.iter().cloned().chain(written).collect();
        self.lock(&checks)?;
        self.guards_checked = self.guards.len();
        self.pushed = self.overlay.mark();
        Ok(())
    }

    /// Makes the commit use a turn. The turn must have begun before this transaction did.
    pub fn set_turn(&mut self, turn: &KeyTurn) {
        self.turn = Some(turn.place());
    }

    /// Calls `hook` when the commit becomes visible; see [`OnPublish`]. A transaction that wrote
    /// nothing does not call it.
    pub fn on_publish(&mut self, hook: OnPublish) {
        self.on_publish = Some(hook);
    }

    /// Returns the current position, to roll back to.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            writes: self.overlay.mark(),
            guards: self.guards.len(),
            marks: self.marks.len(),
            counts: self.counts.len(),
            drops: self.drops.len(),
            log: self.log.len(),
            log_bytes: self.log_bytes,
        }
    }

    /// Undoes every write, guard, count and change record since the savepoint. Keeps the locks.
    pub fn rollback_to(&mut self, to: Savepoint) {
        self.overlay.roll_back(to.writes);
        self.pushed = self.pushed.min(to.writes);
        self.guards.truncate(to.guards);
        self.marks.truncate(to.marks);
        self.guards_checked = self.guards_checked.min(to.guards);
        self.counts.truncate(to.counts);
        self.drops.truncate(to.drops);
        self.log.truncate(to.log);
        self.log_bytes = to.log_bytes;
    }

    /// Commits. A transaction that wrote nothing has no version of its own: it returns that of its
    /// snapshot, and with `Synced` waits until that version is on stable storage.
    pub fn commit(mut self, options: CommitOptions) -> Result<Committed> {
        let base = self.snapshot.version();
        if self.is_empty() {
            let committed = Committed { version: base, cluster_time: self.snapshot.cluster_time() };
            if self.mode != Mode::Read && options.durability == Durability::Synced {
                self.engine.barrier(base)?;
            }
            return Ok(committed);
        }
        let mut checks = std::mem::take(&mut self.guards);
        let mut ops = Vec::with_capacity(self.overlay.len() + RECORDS_OF_GROUP);
        self.overlay.drain(|space, key, entry| {
            if entry.tracked {
                let hash = key_hash(space, &key);
                checks.push(Check { hash, space, key: key.clone(), write: true });
            }
            ops.push(crate::contract::Op { space, key, value: entry.value });
        });
        self.engine.commit(CommitBatch {
            base,
            ops,
            checks,
            marks: std::mem::take(&mut self.marks),
            counts: std::mem::take(&mut self.counts),
            drops: std::mem::take(&mut self.drops),
            log: std::mem::take(&mut self.log),
            durability: options.durability,
            owner: self.owner,
            turn: self.turn,
            interrupt: options.interrupt,
            admitted: options.admitted,
            on_publish: self.on_publish.take(),
        })
    }

    /// Buffers a write.
    fn write(
        &mut self,
        space: Space,
        key: Bytes,
        value: Option<Bytes>,
        tracked: bool,
    ) -> Result<()> {
        self.check_write(space, &key, value.as_ref())?;
        self.overlay.set(space, key, Buffered { value, tracked });
        Ok(())
    }

    /// Fails if a key and a value are not to be written, or are too large.
    fn check_write(&self, space: Space, key: &Bytes, value: Option<&Bytes>) -> Result<()> {
        if self.mode == Mode::Read {
            return Err(StorageError::Unsupported("writes in a read transaction"));
        }
        if space == Space::Meta && key.first() == Some(&0) {
            return Err(StorageError::Unsupported("writes to its own keys"));
        }
        let caps = self.engine.caps();
        let value_bytes = value.map_or(0, Bytes::len);
        let total = self.buffered_bytes() + key.len() + value_bytes;
        if key.len() > caps.key_bytes_max
            || value_bytes > caps.value_bytes_max
            || total > caps.txn_bytes_max
        {
            return Err(StorageError::TooLarge);
        }
        Ok(())
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        if let Some(owner) = self.owner {
            self.engine.unlock(owner);
        }
    }
}

impl Snapshot for Txn {
    fn version(&self) -> Version {
        self.snapshot.version()
    }

    fn cluster_time(&self) -> ClusterTime {
        self.snapshot.cluster_time()
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        match self.overlay.get(space, key) {
            Some(entry) => Ok(entry.value.clone()),
            None => self.snapshot.get(space, key),
        }
    }

    fn get_many(&self, space: Space, keys: &[&[u8]], out: &mut Vec<Option<Bytes>>) -> Result<()> {
        if self.overlay.is_empty_in(space) {
            return self.snapshot.get_many(space, keys, out);
        }
        for key in keys {
            out.push(self.get(space, key)?);
        }
        Ok(())
    }

    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()> {
        self.overlay.scan(&*self.snapshot, request, page)
    }

    fn pass(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<usize> {
        if self.overlay.is_empty_in(request.space) {
            return self.snapshot.pass(request, page);
        }
        self.scan(request, page)?;
        Ok(page.keep_last())
    }

    fn visit(&self, request: &ScanRequest<'_>, visitor: &mut Visitor<'_>) -> Result<Option<Bytes>> {
        if self.overlay.is_empty_in(request.space) {
            return self.snapshot.visit(request, visitor);
        }
        visit_page(request, visitor, |page| self.scan(request, page))
    }
}
