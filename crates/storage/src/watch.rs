//! Readers that wait for commits, such as the cursor of a capped collection.
//!
//! A reader registers before it reads and names what it follows. Each of its waits then ends when
//! a commit after the state that it has read changes that. Commits of other collections do not wake
//! it. If no reader is registered, a commit only loads a counter.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use crate::batch::Op;
use crate::error::{Result, StorageError};
use crate::interrupt::Interrupt;
use crate::space::Space;
use crate::version::Version;

/// The commits that a reader follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// The commits of all collections, and of the catalog.
    Everything,
    /// The commits that write documents of the collection with this number, and those that change
    /// the catalog.
    Collection(u32),
    /// The commits that change the catalog: a collection that is followed does not exist yet.
    Catalog,
}

/// How far a commit must have come before it ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// New snapshots contain it.
    Visible,
    /// It is on stable storage, with everything before it.
    Durable,
}

/// The registration of a reader; it ends when dropped.
pub struct Watch {
    reader: Arc<Reader>,
    watches: Arc<Watches>,
}

/// A registered reader.
struct Reader {
    watched: Watched,
    reach: Reach,
    interrupt: Arc<Interrupt>,
    news: Mutex<News>,
}

/// What happened to the collection of a reader since its last wait.
#[derive(Default)]
struct News {
    /// The versions of the first and the last commit.
    commits: Option<(Version, Version)>,
    /// True after a call of [`Watches::wake`].
    woken: bool,
}

impl Watch {
    /// Waits until a commit after `past` changes what is watched, at most `timeout`. Returns false
    /// if the timeout came first. It may return true once although there is no such commit.
    ///
    /// # Errors
    /// The reason why the reader's interrupt ended the wait; `Closed` or `Unavailable` if the engine
    /// accepts no more commits.
    pub fn wait(&self, past: Version, timeout: Option<Duration>) -> Result<bool> {
        let (reader, watches) = (&*self.reader, &*self.watches);
        let is_ready = || reader.has_news(past, watches) || watches.ended.get().is_some();
        let ready = reader.interrupt.wait(timeout, is_ready)?;
        match watches.ended.get() {
            Some(error) => Err(error.clone()),
            None => Ok(ready),
        }
    }
}

impl Watch {
    /// Returns true if a commit after `past` has changed what is watched, without a wait.
    pub fn has_news(&self, past: Version) -> bool {
        self.reader.has_news(past, &self.watches)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watches.remove(&self.reader);
    }
}

impl Reader {
    /// Returns true if a commit after `past` has come far enough, or if the reader was woken.
    fn has_news(&self, past: Version, watches: &Watches) -> bool {
        let mut news = self.news.lock();
        if std::mem::take(&mut news.woken) {
            return true;
        }
        let Some((first, last)) = news.commits else { return false };
        if last <= past {
            news.commits = None;
            return false;
        }
        match self.reach {
            Reach::Visible => true,
            Reach::Durable => {
                let next = first.as_u64().max(past.as_u64() + 1);
                watches.durable.load(Ordering::Acquire) >= next
            }
        }
    }
}

/// The collections whose documents a group of commits writes.
#[derive(Debug, Default)]
pub(crate) enum Touched {
    /// Not computed, because no reader was registered, or any: the group changes the catalog.
    #[default]
    Unknown,
    /// Exactly these collections, in any order.
    Collections(Vec<u32>),
}

/// All registered readers of an engine.
#[derive(Default)]
pub(crate) struct Watches {
    /// The number of readers.
    count: AtomicUsize,
    /// The number of readers that wait for durable commits.
    durable_count: AtomicUsize,
    /// Everything up to this version is on stable storage.
    durable: AtomicU64,
    /// The reason why no commit will follow.
    ended: OnceLock<StorageError>,
    readers: Mutex<Readers>,
    wakes: AtomicU64,
}

#[derive(Default)]
struct Readers {
    of_everything: Vec<Arc<Reader>>,
    of_collection: HashMap<u32, Vec<Arc<Reader>>>,
    of_catalog: Vec<Arc<Reader>>,
}

impl Readers {
    /// Returns the list that a reader belongs to.
    fn list(&mut self, watched: Watched) -> &mut Vec<Arc<Reader>> {
        match watched {
            Watched::Everything => &mut self.of_everything,
            Watched::Collection(number) => self.of_collection.entry(number).or_default(),
            Watched::Catalog => &mut self.of_catalog,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Reader>> {
        let plain = self.of_everything.iter().chain(&self.of_catalog);
        plain.chain(self.of_collection.values().flatten())
    }
}

impl Watches {
    /// Returns watches of an engine whose commits up to `durable` are on stable storage.
    pub fn new(durable: u64) -> Arc<Self> {
        Arc::new(Watches { durable: AtomicU64::new(durable), ..Watches::default() })
    }

    /// Registers a reader. The waits of the result end for commits that become visible from now on.
    pub fn add(
        self: &Arc<Self>,
        watched: Watched,
        reach: Reach,
        interrupt: &Arc<Interrupt>,
    ) -> Watch {
        let (interrupt, news) = (Arc::clone(interrupt), Mutex::default());
        let reader = Arc::new(Reader { watched, reach, interrupt, news });
        self.readers.lock().list(watched).push(Arc::clone(&reader));
        self.durable_count.fetch_add(usize::from(reach == Reach::Durable), Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
        Watch { reader, watches: Arc::clone(self) }
    }

    fn remove(&self, reader: &Arc<Reader>) {
        let is_durable = reader.reach == Reach::Durable;
        self.count.fetch_sub(1, Ordering::SeqCst);
        self.durable_count.fetch_sub(usize::from(is_durable), Ordering::SeqCst);
        let mut readers = self.readers.lock();
        let list = readers.list(reader.watched);
        if let Some(at) = list.iter().position(|other| Arc::ptr_eq(other, reader)) {
            list.swap_remove(at);
        }
        if let Watched::Collection(number) = reader.watched
            && list.is_empty()
        {
            readers.of_collection.remove(&number);
        }
    }

    /// Returns the collections whose documents `ops` write, for
    /// [`announce`](Self::announce). Computes nothing if no reader is registered.
    pub fn touched(&self, ops: &[Op]) -> Touched {
        if self.count.load(Ordering::SeqCst) == 0 {
            return Touched::Unknown;
        }
        let mut found: Vec<u32> = Vec::new();
        let docs = ops.iter().filter(|op| op.space == Space::Doc);
        for number in docs.filter_map(|op| op.key.first_chunk().map(|id| u32::from_be_bytes(*id))) {
            if found.last() != Some(&number) && !found.contains(&number) {
                found.push(number);
            }
        }
        Touched::Collections(found)
    }

    /// Wakes the readers of these collections, and those of everything. Called when the commits up
    /// to `version` have become visible.
    pub fn announce(&self, version: Version, touched: &Touched) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let readers = self.readers.lock();
        let note = |reader: &Arc<Reader>| self.note(reader, version);
        match touched {
            Touched::Unknown => readers.all().for_each(note),
            Touched::Collections(numbers) => {
                let found = numbers.iter().filter_map(|number| readers.of_collection.get(number));
                readers.of_everything.iter().chain(found.flatten()).for_each(note);
            }
        }
    }

    /// Notes a visible commit for a reader. A reader that has not read the one before is awake.
    fn note(&self, reader: &Reader, version: Version) {
        let is_first = {
            let commits = &mut reader.news.lock().commits;
            let first = commits.map(|(first, _)| first);
            *commits = Some((first.unwrap_or(version), version));
            first.is_none()
        };
        // A group may be synced before it is visible.
        let is_durable = || self.durable.load(Ordering::Acquire) >= version.as_u64();
        if is_first && (reader.reach == Reach::Visible || is_durable()) {
            self.notify(reader);
        }
    }

    /// Wakes the readers whose commits are durable now.
    pub fn announce_durable(&self, version: u64) {
        self.durable.fetch_max(version, Ordering::AcqRel);
        if self.durable_count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let readers = self.readers.lock();
        let durable = readers.all().filter(|reader| reader.reach == Reach::Durable);
        let is_new = |reader: &&Arc<Reader>| {
            let commits = reader.news.lock().commits;
            commits.is_some_and(|(first, _)| first.as_u64() <= version)
        };
        durable.filter(is_new).for_each(|reader| self.notify(reader));
    }

    /// Wakes the readers of a collection without a commit.
    pub fn wake(&self, collection: u32) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let readers = self.readers.lock();
        for reader in readers.of_collection.get(&collection).into_iter().flatten() {
            reader.news.lock().woken = true;
            self.notify(reader);
        }
    }

    /// Ends all waits, because the engine accepts no more commits.
    pub fn end(&self, error: StorageError) {
        let _ = self.ended.set(error);
        self.readers.lock().all().for_each(|reader| reader.interrupt.notify());
    }

    fn notify(&self, reader: &Reader) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        reader.interrupt.notify();
    }

    /// Returns the number of registered readers, and how often one was woken since the start.
    pub fn counts(&self) -> (u64, u64) {
        (self.count.load(Ordering::SeqCst) as u64, self.wakes.load(Ordering::Relaxed))
    }
}
