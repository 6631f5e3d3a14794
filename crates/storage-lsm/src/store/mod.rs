//! The store: the log, a memtable and a tree of tables for each space, and the view that readers
//! use. A batch is written to the log and then to the memtables; a full memtable is sealed, becomes
//! a table in the background, and then the log files that only it needed are removed.
//!
//! A view is never changed. Each seal, flush or merge publishes another one, and a snapshot keeps
//! the view of its time, so that it reads without locks and nothing has to know how old it is. Old
//! views are freed by a thread of their own (`retired`).
//!
//! A row is written to the active memtable. The only exception are documents of a writer that was
//! already running when the active memtable began: they go to the memtable before it, so that the key
//! ranges of two tables of new documents do not overlap (`Store::cut`,
//! docs/adr/0022-tables-of-new-documents.md).

mod background;
pub(crate) mod pace;
pub(crate) mod retired;
mod room;
pub(crate) mod view;

use std::collections::HashSet;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lsm_tree::AbstractTree;
use parking_lot::{Condvar, Mutex, RwLock};
use quire_storage::{Op, Result, Space, StorageError};
use smallvec::smallvec;

use self::background::{Need, PAUSE, Work};
use crate::LsmOptions;
use crate::directory::disk_space::SpaceGauge;
use crate::error::storage;
use crate::log::{Appended, Log};
use crate::memory::memtable::Memtable;
use crate::store::pace::Pace;
use crate::store::retired::Retired;
use crate::store::view::{LateKeys, SpaceView, View};
use crate::table::dropped::DroppedRanges;
use crate::table::flush;
use crate::table::trees::{TableList, Trees};
use crate::table::tuning::{LATE_BYTES_MAX, memtable_bytes};

/// The most log files. When one more begins, the memtables that need the oldest are flushed, so
/// that an open has at most this much to replay.
const LOG_FILES_MAX: u64 = 8;

/// The log, memtables and tables of an open database.
pub(crate) struct Store {
    pub trees: Trees,
    pub log: Log,
    pub space: Arc<SpaceGauge>,
    /// Held while a batch is written, and while a memtable is sealed.
    writing: Mutex<()>,
    /// The view of new snapshots.
    view: RwLock<Arc<View>>,
    /// Held while the next view is made, but not while a lock of lsm-tree is waited for.
    changing: Mutex<()>,
    /// Held while the newest tables are published, so that an older list does not replace a newer.
    publishing: Mutex<()>,
    /// The number of the last batch.
    applied: AtomicU64,
    /// The number of the next memtable.
    memtables: AtomicU64,
    /// The number of the first log file that is not replayed completely; `u64::MAX` afterwards.
    unreplayed: AtomicU64,
    retired: Retired,
    pace: Pace,
    work: Mutex<Work>,
    /// Wakes the background threads, and those that wait for them.
    changed: Condvar,
    /// The failure of a background thread, after which the engine accepts no more writes.
    failed: OnceLock<StorageError>,
}

/// Returns the key of a change, and takes its value.
fn change_of(op: &mut Op) -> (&[u8], Option<Bytes>) {
    (&op.key[..], op.value.take())
}

/// Returns an empty memtable of a space. Documents have rising keys, so none needs a look-up before
/// it is written.
fn memtable(space: Space, number: u64) -> Memtable {
    if space == Space::Idx { Memtable::filtered(number) } else { Memtable::new(number) }
}

impl Store {
    /// Opens the trees in `data` and begins a log file. The rows of earlier log files must be
    /// replayed (`replay`).
    pub fn open(
        data: &Path,
        options: &LsmOptions,
        dropped: &Arc<DroppedRanges>,
        log: u64,
    ) -> Result<Self> {
        let trees = Trees::open(data, options.cache_bytes, dropped)?;
        let space = |space: Space| -> Result<SpaceView> {
            let memtables = smallvec![Arc::new(memtable(space, space.index() as u64))];
            Ok(SpaceView {
                memtables,
                late: None,
                tables: Arc::new(TableList::of(trees.of(space))?),
            })
        };
        let view = View {
            spaces: [
                space(Space::Meta)?,
                space(Space::Doc)?,
                space(Space::Idx)?,
                space(Space::Log)?,
            ],
        };
        Ok(Self {
            log: Log::begin(data, log, options)?,
            space: Arc::new(SpaceGauge::new(
                data.to_owned(),
                options.space_probe.clone(),
                options.reserve_bytes,
            )),
            writing: Mutex::new(()),
            view: RwLock::new(Arc::new(view)),
            changing: Mutex::new(()),
            publishing: Mutex::new(()),
            unreplayed: AtomicU64::new(0),
            applied: AtomicU64::new(trees.seqno.get().saturating_sub(1)),
            memtables: AtomicU64::new(4),
            retired: Retired::default(),
            pace: Pace::default(),
            work: Mutex::new(Work::new()),
            changed: Condvar::new(),
            failed: OnceLock::new(),
            trees,
        })
    }

    /// Returns the view of now, and the number of the last batch that is complete in it.
    pub fn snapshot(&self) -> (Arc<View>, u64) {
        loop {
            let view = self.view();
            let seqno = self.applied.load(Ordering::Acquire);
            // Otherwise later batches can be in the tables of the view, or earlier ones can be missing.
            if Arc::ptr_eq(&view, &self.view.read()) {
                return (view, seqno);
            }
        }
    }

    /// Returns the view of now.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read())
    }

    /// Writes a batch to the log and to the memtables. If `sync` is true, then also forces it and
    /// everything before it to stable storage.
    pub fn write(&self, ops: Vec<Op>, sync: bool) -> Result<()> {
        self.check()?;
        let writing = self.writing.lock();
        let seqno = self.trees.seqno.next();
        let Appended { file, bytes, wants_care } = self.log.append(&ops, seqno)?;
        let view = self.view();
        self.fill(&view, ops, seqno, file);
        self.applied.store(seqno, Ordering::Release);
        self.pace.wrote(bytes, view.sealed(), view.fresh_runs());
        drop(writing);
        self.seal_full(&view);
        if wants_care {
            self.care_for_log();
        }
        if sync {
            self.log.count_sync();
            self.log.sync()?;
        }
        Ok(())
    }

    /// Writes a batch of the earlier log file `log` to the memtables again.
    pub fn restore(&self, ops: Vec<Op>, seqno: u64, log: u64) -> Result<()> {
        let writing = self.writing.lock();
        let view = self.view();
        self.fill(&view, ops, seqno, log);
        self.trees.seqno.fetch_max(seqno + 1);
        self.applied.fetch_max(seqno, Ordering::AcqRel);
        drop(writing);
        self.seal_full(&view);
        self.wait_for_background()
    }

    /// Returns the time for which a commit waits before it is queued; `None` if it need not.
    pub fn pause(&self) -> Option<Duration> {
        self.pace.pause()
    }

    /// Notes that all log files before number `log` are replayed.
    pub fn replayed_before(&self, log: u64) {
        self.unreplayed.store(log, Ordering::Release);
    }

    fn fill(&self, view: &View, mut ops: Vec<Op>, seqno: u64, log: u64) {
        for space in Space::ALL {
            let of_space = view.of(space);
            let mut ops = ops.iter_mut().filter(|op| op.space == space).peekable();
            if ops.peek().is_none() {
                continue;
            }
            let Some((before, late)) = of_space.late() else {
                of_space.active().write(ops.map(change_of), seqno, log);
                continue;
            };
            let (late, others): (Vec<_>, Vec<_>) = ops.partition(|op| late.contains(&op.key));
            for (memtable, ops) in [(before, late), (of_space.active(), others)] {
                if !ops.is_empty() {
                    memtable.write(ops.into_iter().map(change_of), seqno, log);
                }
            }
        }
    }

    /// Seals the memtables that are full.
    fn seal_full(&self, view: &View) {
        for space in Space::ALL {
            let of_space = view.of(space);
            let active = of_space.active();
            if active.bytes() >= memtable_bytes(space) {
                self.seal(space, |now| Arc::ptr_eq(now, active));
            } else if let Some((before, _)) = of_space.late()
                && before.bytes() + active.bytes() >= LATE_BYTES_MAX
            {
                self.end_late(space, |now| Arc::ptr_eq(now, before));
            }
        }
    }

    /// Seals the active memtable of a space if it `is_due`. If it has no rows, only ends late rows.
    /// Returns the number of the memtable that is active afterwards.
    pub fn seal(&self, space: Space, is_due: impl Fn(&Arc<Memtable>) -> bool) -> u64 {
        self.begin_memtable(space, is_due, || None)
    }

    /// Begins another memtable of a space if the active one `is_due`. Rows with the keys that
    /// `late` returns are still written to the one before, until [`end_late`](Self::end_late), the
    /// next memtable, or until both have `LATE_BYTES_MAX`. No row is written during the call of
    /// `late`.
    pub fn cut(
        &self,
        space: Space,
        is_due: impl Fn(&Arc<Memtable>) -> bool,
        late: impl FnOnce() -> Vec<Range<Bytes>>,
    ) {
        self.begin_memtable(space, is_due, || LateKeys::new(late()));
    }

    /// Ends the late rows of a space if the active memtable `is_due`. If that has rows, another one
    /// begins, with the late rows of the keys that `late` returns.
    fn begin_memtable(
        &self,
        space: Space,
        is_due: impl Fn(&Arc<Memtable>) -> bool,
        late: impl FnOnce() -> Option<LateKeys>,
    ) -> u64 {
        let writing = self.writing.lock();
        let mut active = 0;
        let is_changed = self.change(|view| {
            let of_space = view.of_mut(space);
            active = of_space.active().number();
            if !is_due(of_space.active()) {
                return false;
            }
            if of_space.active().is_empty() {
                return of_space.late.take().is_some();
            }
            active = self.memtables.fetch_add(1, Ordering::Relaxed);
            of_space.memtables.insert(0, Arc::new(memtable(space, active)));
            of_space.late = late();
            true
        });
        drop(writing);
        if is_changed {
            self.announce(|_| {});
        }
        active
    }

    /// Seals the memtable to which late rows of a space are written, if it `is_due`.
    pub fn end_late(&self, space: Space, is_due: impl Fn(&Arc<Memtable>) -> bool) {
        let _writing = self.writing.lock();
        let is_ended = self.change(|view| {
            let of_space = view.of_mut(space);
            let is_due = of_space.late().is_some_and(|(memtable, _)| is_due(memtable));
            is_due && of_space.late.take().is_some()
        });
        if is_ended {
            self.announce(|_| {});
        }
    }

    /// Publishes a changed copy of the view, unless `change` returns false.
    fn change(&self, change: impl FnOnce(&mut View) -> bool) -> bool {
        let _changing = self.changing.lock();
        let mut next = View::clone(&self.view());
        let is_changed = change(&mut next);
        if is_changed {
            let before = std::mem::replace(&mut *self.view.write(), Arc::new(next));
            self.retired.add(before);
        }
        is_changed
    }

    /// Publishes the newest tables of a space. If they contain the rows of `flushed`, drops it.
    fn publish_tables(&self, space: Space, flushed: Option<Arc<Memtable>>) -> Result<()> {
        let publishing = self.publishing.lock();
        let tables = Arc::new(TableList::of(self.trees.of(space))?);
        self.change(|view| {
            let of_space = view.of_mut(space);
            of_space.tables = tables;
            if let Some(flushed) = flushed {
                of_space.memtables.retain(|memtable| !Arc::ptr_eq(memtable, &flushed));
            }
            true
        });
        drop(publishing);
        self.announce(|work| {
            if let Some(unmerged) = work.unmerged.get_mut(space.index()) {
                *unmerged = true;
            }
            // The next merge may be another one.
            work.no_room_to_merge.take_if(|need| need.not_before <= Instant::now());
        });
        Ok(())
    }

    /// Makes a table of the oldest sealed memtable of a space. Its batches are synced first: the
    /// rows of a batch in one space must not outlive those in the others. If the disk has no room for
    /// the table, the memtable stays until [`look_for_room`](Self::look_for_room) finds some.
    fn flush_oldest(&self, space: Space) -> Result<()> {
        let (oldest, next) = {
            let view = self.view();
            let Some(oldest) = view.of(space).sealed().last() else { return Ok(()) };
            let memtables = &view.of(space).memtables;
            let after = memtables.iter().rev().nth(1).map_or(u64::MAX, |it| it.first_seqno());
            (Arc::clone(oldest), after)
        };
        if !self.is_free(oldest.bytes()) {
            self.wait_for_room(Need::of(oldest.bytes()));
            return Ok(());
        }
        self.log.sync()?;
        let since = Instant::now();
        let tree = self.trees.of(space);
        debug_assert!(
            tree.get_highest_persisted_seqno() < Some(oldest.first_seqno()),
            "a replay would skip rows"
        );
        self.move_flushed(space)?;
        let flush::Flushed { apart, rest } = match flush::write(tree, space, &oldest, next) {
            Ok(flushed) => flushed,
            Err(error) => match storage(error, "flushing") {
                StorageError::Full => {
                    self.wait_for_room(Need::after(oldest.bytes(), PAUSE));
                    return Ok(());
                }
                other => return Err(other),
            },
        };
        // lsm-tree moves flushed tables down only together, and only if nothing lies between them.
        for tables in apart.chunks(1).chain([&rest[..]]).filter(|tables| !tables.is_empty()) {
            if !self.write_with_room(|| self.trees.register(space, tables))? {
                return Ok(());
            }
            self.move_flushed(space)?;
        }
        self.pace.flushed(oldest.bytes(), since.elapsed());
        self.publish_tables(space, Some(oldest))?;
        self.free_log()
    }

    /// Moves the flushed tables of a space to a level below if that needs no merge. On a full disk
    /// they stay where they are.
    fn move_flushed(&self, space: Space) -> Result<()> {
        match self.trees.move_flushed(space) {
            Err(StorageError::Full) => Ok(()),
            moved => moved,
        }
    }

    /// Removes the log files that are replayed and that no memtable needs.
    fn free_log(&self) -> Result<()> {
        // Read before the memtables: a row of a file that is replayed is in one of them.
        let unreplayed = self.unreplayed.load(Ordering::Acquire);
        let first = {
            // While a batch is written, it can be in the log and in no memtable.
            let _writing = self.writing.lock();
            let first = self.view().memtables().map(|memtable| memtable.first_log()).min();
            first.unwrap_or(u64::MAX).min(self.log.current()).min(unreplayed)
        };
        match self.log.remove_before(first) {
            Ok(removed) => self.retired.add_files(removed),
            // The next flush removes them.
            Err(StorageError::Full) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Seals the memtables that need a log file far behind the one in use, and lets a background
    /// thread make the next file ready and sync the full one.
    fn care_for_log(&self) {
        if let Some(oldest) = self.log.current().checked_sub(LOG_FILES_MAX) {
            for space in Space::ALL {
                self.seal(space, |active| active.first_log() <= oldest);
                self.end_late(space, |memtable| memtable.first_log() <= oldest);
            }
        }
        self.announce(|work| work.log_wants_care = true);
    }

    /// Lets a background thread fill the next log file.
    pub fn fill_log(&self) {
        self.announce(|work| work.log_wants_filled = true);
    }

    /// Makes tables of all rows of a space that are in memtables, and returns when they are in
    /// use. Begins another log file, so that the present one can be removed when the other spaces
    /// are flushed too. Fails with `Full` if the disk has no room for the tables.
    pub fn flush(&self, space: Space) -> Result<()> {
        if !self.resume_flush() {
            return Err(StorageError::Full);
        }
        {
            let _writing = self.writing.lock();
            self.log.end_file()?;
        }
        let last = self.seal(space, |_| true);
        self.wait_until(|view| {
            view.of(space).memtables.last().is_some_and(|oldest| oldest.number() >= last)
        })
    }

    /// Merges all tables of a space into new ones.
    pub fn merge_all(&self, space: Space) -> Result<()> {
        self.trees.merge_all(space)?;
        self.publish_tables(space, None)
    }

    /// Merges or moves a few tables of a space to the level below, whatever their size. Returns false if nothing was left to
    /// do, if another merge has the tables, or if the disk has no room.
    pub fn settle_step(&self, space: Space) -> Result<bool> {
        let has_changed = match self.trees.settle(space, &|bytes| self.has_room_for(bytes)) {
            Err(StorageError::Full) => return Ok(false),
            settled => settled?,
        };
        if has_changed {
            self.publish_tables(space, None)?;
        }
        Ok(has_changed)
    }

    /// Drops the tables of a space that lie wholly inside a range.
    pub fn drop_tables(&self, space: Space, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<()> {
        self.trees.drop_tables(space, bounds)?;
        self.publish_tables(space, None)
    }

    /// Fails if the log or a background thread has failed.
    pub fn check(&self) -> Result<()> {
        match self.failed.get() {
            Some(error) => Err(error.clone()),
            None => self.log.check(),
        }
    }

    /// Starts to free what no reader uses any more.
    pub fn free_retired(&self) {
        self.retired.free();
    }

    fn announce(&self, change: impl FnOnce(&mut Work)) {
        change(&mut self.work.lock());
        self.changed.notify_all();
    }

    /// Waits until the view is as wanted.
    fn wait_until(&self, is_reached: impl Fn(&View) -> bool) -> Result<()> {
        let mut work = self.work.lock();
        loop {
            self.check()?;
            if is_reached(&self.view()) {
                return Ok(());
            }
            if work.stop {
                return Err(StorageError::Closed);
            }
            if work.no_room_to_flush.is_some() {
                return Err(StorageError::Full);
            }
            self.changed.wait(&mut work);
        }
    }

    /// Returns the memory of the memtables that something still uses, in bytes.
    pub fn memtable_bytes(&self) -> u64 {
        let mut counted = HashSet::new();
        let views = self.retired.in_use().into_iter().chain([self.view()]);
        let mut bytes = 0;
        for memtable in views.flat_map(|view| view.memtables().cloned().collect::<Vec<_>>()) {
            if counted.insert(Arc::as_ptr(&memtable)) {
                bytes += memtable.bytes();
            }
        }
        bytes
    }

    /// Returns true if every row is in a table.
    pub fn is_flushed(&self) -> bool {
        self.view().memtables().all(|memtable| memtable.is_empty())
    }
}

/// A store and its background threads, which stop when it is dropped.
pub(crate) struct Running {
    store: Arc<Store>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// Starts the threads: one that flushes, and `merges` that merge tables.
    pub fn start(store: Store, merges: usize) -> Result<Self> {
        let mut running = Self { store: Arc::new(store), threads: Vec::new() };
        for number in 0..=merges {
            let store = Arc::clone(&running.store);
            let flushes = number == 0;
            let name = if flushes { "quire-flush" } else { "quire-merge" };
            let thread = std::thread::Builder::new().name(name.into());
            running.threads.push(thread.spawn(move || store.work(flushes))?);
        }
        Ok(running)
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Stops the threads and frees what snapshots no longer use. Returns false if another thread
    /// still reads or changes files after `limit`.
    pub fn stop(mut self, limit: Duration) -> bool {
        self.join();
        let until = Instant::now() + limit;
        let is_used = || Arc::strong_count(&self.store) > 1;
        while is_used() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let left = until.saturating_duration_since(Instant::now());
        self.store.retired.clear(left) && !is_used() && Arc::strong_count(&self.store.view()) <= 2
    }

    fn join(&mut self) {
        self.store.announce(|work| work.stop = true);
        for thread in self.threads.drain(..) {
            // A panic of a thread was noted as its failure.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.join();
    }
}
