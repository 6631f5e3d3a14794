//! Readers that wait for the next commit. A commit pays one load of a counter for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::interrupt::Interrupt;

/// The interrupts of the readers that wait.
#[derive(Default)]
pub(crate) struct Arrivals {
    waiting: AtomicUsize,
    readers: Mutex<Vec<Arc<Interrupt>>>,
}

/// A reader that waits, until this is dropped.
pub(crate) struct Waiting<'a> {
    arrivals: &'a Arrivals,
    interrupt: &'a Arc<Interrupt>,
}

impl Arrivals {
    /// From now on each commit wakes this reader.
    pub fn join<'a>(&'a self, interrupt: &'a Arc<Interrupt>) -> Waiting<'a> {
        self.readers.lock().push(Arc::clone(interrupt));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting { arrivals: self, interrupt }
    }

    /// Wakes every reader that waits. Called when a commit has become visible, and when no other will.
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
