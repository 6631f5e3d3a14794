//! The gate that every writing command passes: `fsync` with `lock` closes it, `fsyncUnlock` opens
//! it. `setUserWriteBlockMode` waits for the writers that are inside. Reads do not pass it.

use crate::frame::reply;
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Interrupt;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Counts the writers inside, and blocks new ones while it is closed.
#[derive(Default)]
pub struct WriteGate {
    /// The number of locks that are not unlocked.
    locks: AtomicI64,
    /// The writers that have passed the gate and not ended, by the parity of the round in which
    /// they entered.
    inside: [AtomicUsize; 2],
    /// The number of the present round. A wait for the writers inside begins the next one, so that
    /// it does not wait for those that enter later.
    round: AtomicUsize,
    /// The waits for the writers of the round before.
    drains: AtomicUsize,
    /// The waiting threads: writers until the gate opens, closers until the last writer leaves.
    waiting: Mutex<Vec<Arc<Interrupt>>>,
}

/// A writer inside the gate. Dropping it leaves.
pub struct Writing<'g> {
    gate: &'g WriteGate,
    /// The index of the counter that contains it.
    parity: usize,
}

impl WriteGate {
    /// Enters after the gate is open.
    ///
    /// # Errors
    /// The error of an interrupted wait.
    pub fn enter(&self, interrupt: &Arc<Interrupt>) -> Result<Writing<'_>> {
        loop {
            if let Some(writing) = self.try_enter() {
                return Ok(writing);
            }
            self.wait(interrupt, None, || !self.is_closed())?;
        }
    }

    /// Enters if the gate is open.
    pub fn try_enter(&self) -> Option<Writing<'_>> {
        let writing = self.count();
        // A closer counts its lock before it checks the writers, so one of the two sees the other.
        (!self.is_closed()).then_some(writing)
    }

    /// Counts a writer into the present round.
    fn count(&self) -> Writing<'_> {
        loop {
            let round = self.round.load(Ordering::SeqCst);
            let parity = round % 2;
            self.inside[parity].fetch_add(1, Ordering::SeqCst);
            let writing = Writing { gate: self, parity };
            if self.round.load(Ordering::SeqCst) == round {
                return writing;
            }
        }
    }

    /// Waits until the writers that are inside now have left. Others may enter meanwhile. One
    /// thread may wait so at a time.
    ///
    /// # Errors
    /// The error of an interrupted wait.
    pub fn drain(&self, interrupt: &Arc<Interrupt>) -> Result<()> {
        self.drains.fetch_add(1, Ordering::SeqCst);
        // Also those that a drain that was interrupted has left behind.
        let ended = [(); 2].iter().try_for_each(|()| {
            let parity = self.round.fetch_add(1, Ordering::SeqCst) % 2;
            let empty = || self.inside[parity].load(Ordering::SeqCst) == 0;
            self.wait(interrupt, None, empty).map(|_| ())
        });
        self.drains.fetch_sub(1, Ordering::SeqCst);
        ended
    }

    /// Returns true if this operation waits here.
    pub fn holds_back(&self, interrupt: &Arc<Interrupt>) -> bool {
        let may_wait = self.is_closed() || self.drains.load(Ordering::SeqCst) > 0;
        may_wait && self.lock().iter().any(|other| Arc::ptr_eq(other, interrupt))
    }

    /// Closes the gate and waits until no writer is inside. Returns the number of locks.
    ///
    /// # Errors
    /// `LockTimeout` if writers are still inside after `patience`; the error of an interrupt. After
    /// an error the gate is as it was.
    pub fn close(&self, interrupt: &Arc<Interrupt>, patience: Duration) -> Result<i64> {
        let locks = self.locks.fetch_add(1, Ordering::SeqCst) + 1;
        let empty = || self.inside.iter().all(|inside| inside.load(Ordering::SeqCst) == 0);
        let ended = self.wait(interrupt, Some(patience), empty).and_then(|emptied| match emptied {
            true => Ok(locks),
            false => {
                let text = "Fsync lock timed out: a write is still running";
                Err(Error::new(ErrorCode::LockTimeout, text))
            }
        });
        if ended.is_err() {
            self.locks.fetch_sub(1, Ordering::SeqCst);
            self.wake();
        }
        ended
    }

    /// Releases one lock. Returns the number of remaining locks.
    ///
    /// # Errors
    /// `IllegalOperation` if the gate is open.
    pub fn open(&self) -> Result<i64> {
        let less = |locks: i64| (locks > 0).then_some(locks - 1);
        let before = self.locks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        let Ok(before) = before else {
            let text = "fsyncUnlock called when not locked";
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        };
        self.wake();
        Ok(before - 1)
    }

    /// Returns true if it is closed.
    pub fn is_closed(&self) -> bool {
        self.locks.load(Ordering::SeqCst) > 0
    }

    /// Returns the number of locks and of waiting writers.
    pub fn state(&self) -> (i64, usize) {
        (self.locks.load(Ordering::SeqCst), self.lock().len())
    }

    /// Waits until `ready` returns true. Returns false if `timeout` ended first.
    fn wait(
        &self,
        interrupt: &Arc<Interrupt>,
        timeout: Option<Duration>,
        ready: impl FnMut() -> bool,
    ) -> Result<bool> {
        self.lock().push(Arc::clone(interrupt));
        let waited = interrupt.wait(timeout, ready);
        let mut waiting = self.lock();
        if let Some(at) = waiting.iter().position(|other| Arc::ptr_eq(other, interrupt)) {
            waiting.swap_remove(at);
        }
        waited.map_err(reply::from_interruption)
    }

    fn wake(&self) {
        self.lock().iter().for_each(|interrupt| interrupt.notify());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Interrupt>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let gate = self.gate;
        let last = gate.inside[self.parity].fetch_sub(1, Ordering::SeqCst) == 1;
        if last && (gate.is_closed() || gate.drains.load(Ordering::SeqCst) > 0) {
            gate.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn writers_wait_while_it_is_closed_and_go_on_after_the_last_unlock() {
        let gate = Arc::new(WriteGate::default());
        let interrupt = Interrupt::new();
        assert_eq!(gate.close(&interrupt, LONG).ok(), Some(1));
        assert_eq!(gate.close(&interrupt, LONG).ok(), Some(2));
        let other = Arc::clone(&gate);
        let writer = thread::spawn(move || other.enter(&Interrupt::new()).is_ok());
        while gate.state().1 == 0 {
            thread::yield_now();
        }
        assert_eq!(gate.open().ok(), Some(1));
        assert_eq!(gate.state().1, 1);
        assert_eq!(gate.open().ok(), Some(0));
        assert!(writer.join().expect("the writer ends"));
        assert_eq!(gate.open().map_err(|e| e.code()), Err(ErrorCode::IllegalOperation));
    }

    #[test]
    fn closing_waits_for_the_writers_inside_or_gives_up() {
        let gate = Arc::new(WriteGate::default());
        let inside = gate.enter(&Interrupt::new()).ok();
        let impatient = gate.close(&Interrupt::new(), Duration::from_millis(5));
        assert_eq!(impatient.map_err(|error| error.code()), Err(ErrorCode::LockTimeout));
        assert!(!gate.is_closed());
        let other = Arc::clone(&gate);
        let closer = thread::spawn(move || other.close(&Interrupt::new(), LONG).is_ok());
        while !gate.is_closed() {
            thread::yield_now();
        }
        drop(inside);
        assert!(closer.join().expect("the closer ends"));
    }

    #[test]
    fn a_drain_waits_for_the_writers_inside_and_for_no_later_ones() {
        let gate = Arc::new(WriteGate::default());
        let inside = gate.enter(&Interrupt::new()).ok();
        let other = Arc::clone(&gate);
        let drain = thread::spawn(move || other.drain(&Interrupt::new()).is_ok());
        while gate.drains.load(Ordering::SeqCst) == 0 || gate.state().1 == 0 {
            thread::yield_now();
        }
        let later = gate.enter(&Interrupt::new()).ok();
        assert!(later.is_some() && !drain.is_finished());
        // The second round of the drain waits for it.
        drop((inside, later));
        assert!(drain.join().expect("the drain ends"));
        // A writer that a drain has given up on is waited for again.
        let left = gate.enter(&Interrupt::new()).ok();
        let killed = Interrupt::new();
        killed.kill(quire_storage::Interruption::Killed);
        assert!(gate.drain(&killed).is_err());
        let other = Arc::clone(&gate);
        let drain = thread::spawn(move || other.drain(&Interrupt::new()).is_ok());
        while gate.state().1 == 0 {
            thread::yield_now();
        }
        assert!(!drain.is_finished());
        drop(left);
        assert!(drain.join().expect("the drain ends"));
    }
}
