//! A store in memory whose size and whose share of a core are bounded.

use crate::frame::context::Context;
use crate::frame::parameters::table::{LABORATORY_MEGABYTES, LABORATORY_PERCENT};
use crate::frame::reply;
use quire_collections::{Store, StoreOptions};
use quire_document::memory::Charge;
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitterOptions, Interrupt, open_memory_with};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest pause at a time, unless the work before it was longer.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// The memory for the entries of an index build; more entries are sorted on disk.
const BUILD_BYTES: usize = 16 << 20;

/// A store in memory that a request fills.
pub struct BoundedStore<'c> {
    cx: &'c Context<'c>,
    store: Arc<Store>,
    charge: Charge,
    limit: usize,
    pace: Pace,
}

impl<'c> BoundedStore<'c> {
    /// Returns an empty store with the bounds of the server's parameters.
    ///
    /// # Errors
    /// The errors of opening an engine in memory.
    pub fn new(cx: &'c Context<'c>) -> Result<Self> {
        let megabytes = cx.service.parameters.number(LABORATORY_MEGABYTES);
        let bytes = usize::try_from(megabytes).unwrap_or(1).saturating_mul(1 << 20);
        Ok(BoundedStore {
            cx,
            store: empty_store()?,
            charge: Charge::default(),
            limit: bytes.min(cx.service.memory().max() / 4),
            pace: Pace::new(cx.service.parameters.number(LABORATORY_PERCENT)),
        })
    }

    /// Returns the request that fills the store.
    pub fn cx(&self) -> &'c Context<'c> {
        self.cx
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the interrupt of the request.
    pub fn interrupt(&self) -> &Arc<Interrupt> {
        &self.cx.interrupt
    }

    /// Returns the bytes that the store holds, and the most that it may hold.
    pub fn memory(&self) -> (u64, u64) {
        (self.store.engine().stats().memtable_bytes, self.limit as u64)
    }

    /// Charges the memory that the store holds. Returns false if it holds more than `most` or more
    /// than the server has left.
    pub fn charge(&mut self, most: u64) -> bool {
        let (held, _) = self.memory();
        let bytes = usize::try_from(held).unwrap_or(usize::MAX);
        held <= most && self.charge.cover(bytes).is_ok()
    }

    /// Ends with an error if the request must stop; pauses if it has taken more than its share of a
    /// core.
    ///
    /// # Errors
    /// The error of an interrupt.
    pub fn pause(&mut self) -> Result<()> {
        self.cx.check_interrupt()?;
        let pause = self.pace.pause();
        if !pause.is_zero() {
            let waited = self.cx.interrupt.wait(Some(pause), || false);
            waited.map_err(reply::from_interruption)?;
            self.pace.paused();
        }
        Ok(())
    }

    /// Removes everything.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn clear(&mut self) -> Result<()> {
        let old = std::mem::replace(&mut self.store, empty_store()?);
        old.engine().close().map_err(reply::from_storage)?;
        self.charge = Charge::default();
        Ok(())
    }

    /// Returns the error of a request for which the store is too small.
    pub fn too_small(&self) -> Error {
        let text = format!(
            "the laboratory needs more than its {} bytes of memory ({LABORATORY_MEGABYTES})",
            self.limit
        );
        Error::new(ErrorCode::ExceededMemoryLimit, text)
    }
}

impl Drop for BoundedStore<'_> {
    fn drop(&mut self) {
        // An engine in memory has nothing to lose.
        let _ = self.store.engine().close();
    }
}

fn empty_store() -> Result<Arc<Store>> {
    let options = CommitterOptions {
        snapshot_retained_bytes_max: u64::MAX,
        history_window: Duration::ZERO,
        tick: None,
        ..CommitterOptions::default()
    };
    let engine = open_memory_with(options).map_err(reply::from_storage)?;
    let store = Store::open(engine, StoreOptions::default())?;
    store.set_build_memory(BUILD_BYTES);
    Ok(store)
}

/// The share of a core that the laboratory takes.
struct Pace {
    percent: u32,
    since: Instant,
}

impl Pace {
    fn new(percent: i64) -> Pace {
        Pace { percent: u32::try_from(percent).unwrap_or(100).clamp(1, 100), since: Instant::now() }
    }

    /// Returns how long to pause for the work since the last pause; nothing while that is little.
    fn pause(&self) -> Duration {
        let worked = self.since.elapsed();
        let pause = worked * (100 - self.percent) / self.percent;
        match pause < Duration::from_millis(1) {
            true => Duration::ZERO,
            false => pause.min(PAUSE_MAX.max(worked)),
        }
    }

    fn paused(&mut self) {
        self.since = Instant::now();
    }
}
