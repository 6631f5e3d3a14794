//! Readers that wait for the next commit. If there are none, a commit only loads a counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::interrupt::Interrupt;

/// The interrupts of the waiting readers.
#[derive(Default)]
pub(crate) struct Arrivals {
    waiting: AtomicUsize,
    readers: Mutex<Vec<Arc<Interrupt>>>,
}

/// The registration of a waiting reader; it ends when dropped.
pub(crate) struct Waiting<'a> {
    arrivals: &'a Arrivals,
    interrupt: &'a Arc<Interrupt>,
}

impl Arrivals {
    /// Registers a reader, whom each commit wakes from now on.
    pub fn join<'a>(&'a self, interrupt: &'a Arc<Interrupt>) -> Waiting<'a> {
        self.readers.lock().push(Arc::clone(interrupt));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting { arrivals: self, interrupt }
    }

    /// Wakes every waiting reader. Called when a commit becomes visible, and when the engine is
    /// poisoned or closed.
    pub fn announce(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.readers.lock().iter().for_each(|reader| reader.notify());
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.arrivals.waiting.fetch_sub(1, Ordering::SeqCst);
        let mut readers = self.arrivals.readers.lock();
        if let Some(at) = readers.iter().position(|reader| Arc::ptr_eq(reader, self.interrupt)) {
            readers.swap_remove(at);
        }
    }
}
