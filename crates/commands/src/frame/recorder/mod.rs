//! The recorder: counts every statement by its shape (docs/recorder.md, docs/adr/0037-recorder.md).
//!
//! A statement has a fingerprint that is made when it is planned (`frame/fingerprint.rs`). Where it ends, a
//! cell of its connection counts it (`cells`); only the first statement of a fingerprint computes
//! the shape (`known`). Every minute, and when somebody asks, the cells are added to the book of the
//! server (`book`), which has a bounded number of shapes, and the window of the hour is stored
//! (`windows`). A client can have the statements one by one, too (`trace`).

mod book;
mod cells;
mod known;
mod samples;
pub mod trace;
mod values;
mod windows;

pub use cells::ConnectionCells;
pub use known::Known;

use crate::frame::account::Ended;
use crate::frame::service::{Connection, now_ms};
use book::Book;
use cells::Cells;
use known::of_ended;
use quire_advisor::workload::{Cause, Forgotten, Kind, Measures, ShapeUse, Workload};
use quire_collections::Store;
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The recorder of a server.
pub struct Recorder {
    /// False with `--recorder off`: nothing is counted.
    is_on: bool,
    /// The date of the last look of the upkeep, in milliseconds since 1970. Statements take the date
    /// from here, because a reading of the clock costs as much as the rest of a count.
    clock_ms: AtomicI64,
    /// The cells of all connections. Those of closed ones leave with their connection.
    connections: Mutex<Vec<Arc<ConnectionCells>>>,
    book: Mutex<Book>,
    /// Held while windows are stored or deleted.
    storing: Mutex<()>,
    /// The hour in which old windows were deleted last.
    expired: AtomicU32,
    /// The statements one by one, while somebody asks for them.
    tracing: trace::Tracing,
    /// Whole queries of the collections that are sampled.
    samples: samples::Samples,
}

/// What `$queryStats` shows of a shape.
pub struct Recorded {
    /// The shape with what belongs to it.
    pub known: Arc<Known>,
    /// What was counted since the start or the last reset.
    pub measures: Measures,
}

impl Recorder {
    /// Returns a recorder that continues the stored window of the present hour.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn open(is_on: bool, store: &Arc<Store>) -> Result<Recorder> {
        let now = now_ms();
        let mut book = Book::new(now);
        if is_on {
            book.continue_window(store)?;
        }
        Ok(Recorder {
            is_on,
            clock_ms: AtomicI64::new(now),
            connections: Mutex::default(),
            book: Mutex::new(book),
            storing: Mutex::default(),
            expired: AtomicU32::new(0),
            tracing: trace::Tracing::default(),
            samples: samples::Samples::default(),
        })
    }

    /// Returns true if statements are counted.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Notes the date for the statements that follow.
    pub fn set_clock(&self, now_ms: i64) {
        self.clock_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Returns the cells of a new connection; `None` if the recorder is off.
    pub fn connect(&self) -> Option<Arc<ConnectionCells>> {
        if !self.is_on {
            return None;
        }
        let cells = Arc::new(ConnectionCells::default());
        lock(&self.connections).push(Arc::clone(&cells));
        Some(cells)
    }

    /// Adds the cells of a connection that is closed to the book.
    pub fn disconnect(&self, cells: &Arc<ConnectionCells>) {
        lock(&self.connections).retain(|known| !Arc::ptr_eq(known, cells));
        self.merge(&mut cells.lock());
    }

    /// Counts a statement that has ended. Does nothing for one without a fingerprint: it is of no
    /// kind that has a shape, or failed before it was planned.
    #[inline]
    pub fn note(&self, connection: &Connection, ended: &Ended<'_>) {
        let (Some(cells), Some(print)) = (&connection.cells, ended.tally.fingerprint) else {
            return;
        };
        let mut cells = cells.lock();
        if !cells.contains(print.hash) {
            let Some(known) = of_ended(connection, ended) else { return };
            if cells.is_full() {
                self.merge(&mut cells);
            }
            cells.add(print.hash, known);
        }
        cells.note(&print, ended, self.clock_ms.load(Ordering::Relaxed));
    }

    /// Returns the sampled queries of the server.
    pub fn samples(&self) -> &samples::Samples {
        &self.samples
    }

    /// Counts work of the server itself on a collection: `done` documents in one step.
    pub fn note_own(&self, known: Known, done: u64, micros: u64) {
        if !self.is_on {
            return;
        }
        let now = now_ms();
        let mut measures = own_measures(known.kind, done, now);
        measures.latency.note(micros);
        measures.micros.note(micros);
        measures.last_micros = micros;
        measures.total_micros.note(micros);
        lock(&self.book).add(&Arc::new(known), &measures, now);
    }

    /// Charges what rules wrote in the commits of clients and jobs to its cause.
    fn charge_derived(&self, store: &Arc<Store>) {
        let (catalog, now) = (store.catalog(), now_ms());
        for (collection, documents) in store.take_derived() {
            let Some(collection) = catalog.by_id(collection).filter(|_| self.is_on) else {
                continue;
            };
            let name = collection.namespace.as_str();
            let known = Known::own(Kind::Update, Cause::Derived, name, Doc::empty());
            let measures = own_measures(Kind::Update, documents, now);
            lock(&self.book).add(&Arc::new(known), &measures, now);
        }
    }

    /// Adds the cells of all connections to the book.
    fn gather(&self) -> MutexGuard<'_, Book> {
        let connections = lock(&self.connections).clone();
        connections.iter().for_each(|cells| self.merge(&mut cells.lock()));
        lock(&self.book)
    }

    fn merge(&self, cells: &mut Cells) {
        if cells.is_clean() {
            return;
        }
        let now = now_ms();
        let mut book = lock(&self.book);
        cells.drain(|known, measures| book.add(known, measures, now));
    }

    /// Returns what was counted since the start or the last reset, and what has left.
    pub fn recorded(&self) -> (Vec<Recorded>, Forgotten) {
        self.gather().recorded()
    }

    /// Returns what was counted since the start or the last reset, over all clients.
    pub fn workload(&self, store: &Arc<Store>) -> Workload {
        self.charge_derived(store);
        let book = self.gather();
        let since = book.since_ms();
        let (recorded, forgotten) = book.recorded();
        drop(book);
        let mut workload = Workload { begins_ms: since, ends_ms: now_ms(), ..Workload::default() };
        let shapes = recorded.into_iter().map(|one| one.known.shape_use(one.measures)).collect();
        workload.merge(Workload { shapes, forgotten, ..workload.clone() });
        workload
    }

    /// Returns what was counted in the hours from `from_ms` to `until_ms`: the stored windows, and
    /// the present one.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn windows(&self, store: &Arc<Store>, from_ms: i64, until_ms: i64) -> Result<Workload> {
        self.store_window(store)?;
        windows::read(store, from_ms, until_ms)
    }

    /// Stores what was counted in this hour and was not stored yet, and deletes windows that are
    /// too old.
    ///
    /// # Errors
    /// The errors of a write. What was not stored is stored by the next call.
    pub fn store_window(&self, store: &Arc<Store>) -> Result<()> {
        if !self.is_on {
            return Ok(());
        }
        let _alone = lock(&self.storing);
        let now = now_ms();
        self.charge_derived(store);
        // The book is not locked while a commit waits.
        let news = {
            let mut book = self.gather();
            book.turn_to(now);
            book.take_news(now)
        };
        let mut ended = Ok(());
        for news in news {
            if let Err(error) = windows::write(store, &news) {
                lock(&self.book).give_back(news);
                ended = Err(error);
            }
        }
        let hour = windows::hour_of(now);
        if ended.is_ok() && self.expired.swap(hour, Ordering::Relaxed) != hour {
            windows::expire(store, now)?;
        }
        ended
    }

    /// Forgets what was counted since the start.
    pub fn reset(&self) {
        self.gather().reset(now_ms());
    }

    /// Forgets everything, also the stored windows.
    ///
    /// # Errors
    /// The errors of a write.
    pub fn purge(&self, store: &Arc<Store>) -> Result<()> {
        let _alone = lock(&self.storing);
        *self.gather() = Book::new(now_ms());
        windows::purge(store)
    }
}

impl Known {
    /// Returns the use of the shape, without the client.
    fn shape_use(&self, measures: Measures) -> ShapeUse {
        ShapeUse {
            namespace: self.namespace.clone(),
            kind: self.kind,
            cause: self.cause,
            shape: DocBuf::clone(&self.shape),
            samples: Vec::new(),
            measures,
        }
    }
}

/// Returns the measures of one piece of the server's own work.
fn own_measures(kind: Kind, documents: u64, now_ms: i64) -> Measures {
    let mut measures =
        Measures { count: 1, first_ms: now_ms, last_ms: now_ms, ..Measures::default() };
    match kind {
        Kind::Delete => measures.deleted.note(documents),
        _ => measures.modified.note(documents),
    }
    measures
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
