//! The part of the context that all evaluations of a command share: clock, random source,
//! collation, limits, interrupt.

use quire_document::{Collator, Timestamp, ValueBuf};
use quire_error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// The most bytes that one evaluation may use (146 ExceededMemoryLimit beyond it).
pub const MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Tells whether an operation may continue.
pub trait InterruptCheck: Send + Sync {
    /// Fails if the operation was killed or its deadline has passed.
    fn check(&self) -> Result<()>;
}

impl<F: Fn() -> Result<()> + Send + Sync> InterruptCheck for F {
    fn check(&self) -> Result<()> {
        self()
    }
}

/// The context that all evaluations of one command share.
#[derive(Clone)]
pub struct Shared {
    /// `$$NOW` in milliseconds since the epoch. It is read once for the whole command.
    pub now_ms: i64,
    /// The value of `$$CLUSTER_TIME`; `None` on a standalone server.
    pub cluster_time: Option<Timestamp>,
    /// `$$USER_ROLES`: an array of role documents.
    pub user_roles: Option<ValueBuf>,
    /// The collator for strings; `None` for byte order.
    pub collator: Option<Arc<dyn Collator>>,
    /// The most bytes that one evaluation may use in its arena.
    pub memory_bytes_max: usize,
    random: Option<fn() -> u64>,
    interrupt: Option<Arc<dyn InterruptCheck>>,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            now_ms: 0,
            cluster_time: None,
            user_roles: None,
            collator: None,
            memory_bytes_max: MEMORY_BYTES_MAX,
            random: None,
            interrupt: None,
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("now_ms", &self.now_ms).finish_non_exhaustive()
    }
}

impl Shared {
    /// Returns a shared context whose `$$NOW` is `now_ms`.
    pub fn new(now_ms: i64) -> Self {
        Shared { now_ms, ..Shared::default() }
    }

    /// Returns the context with a random source (for `$rand` and `$sampleRate`).
    pub fn with_random(mut self, random: fn() -> u64) -> Self {
        self.random = Some(random);
        self
    }

    /// Returns the context with an interrupt check, which loops over long input call.
    pub fn with_interrupt(mut self, interrupt: Arc<dyn InterruptCheck>) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// Returns the context with a collation.
    pub fn with_collator(mut self, collator: Option<Arc<dyn Collator>>) -> Self {
        self.collator = collator;
        self
    }

    /// Returns a random number. Fails if there is no random source.
    pub fn random(&self) -> Result<u64> {
        match &self.random {
            Some(random) => Ok(random()),
            None => Err(Error::internal("no random source in this context")),
        }
    }

    /// A random number from 0 to below 1, of 53 bits; an error where no source was given.
    pub fn random_fraction(&self) -> Result<f64> {
        Ok((self.random()? >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// Fails if the operation was killed or its deadline has passed.
    pub fn check_interrupt(&self) -> Result<()> {
        self.interrupt.as_ref().map_or(Ok(()), |interrupt| interrupt.check())
    }
}
