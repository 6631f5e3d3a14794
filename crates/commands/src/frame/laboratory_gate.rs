//! The turn for the laboratory: at most one request at a time copies data into memory and tries
//! indexes there, so that together they use the memory and the share of a core of one.

use crate::frame::reply;
use quire_error::Result;
use quire_storage::Interrupt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lets one request at a time into the laboratory.
#[derive(Default)]
pub struct LaboratoryGate(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    is_taken: bool,
    waiting: Vec<Arc<Interrupt>>,
}

/// The turn of a request. Dropping it ends the turn.
pub struct LaboratoryTurn<'g>(&'g LaboratoryGate);

impl LaboratoryGate {
    /// Waits until no other request has its turn.
    ///
    /// # Errors
    /// The error of an interrupted wait.
    pub fn enter(&self, interrupt: &Arc<Interrupt>) -> Result<LaboratoryTurn<'_>> {
        self.lock().waiting.push(Arc::clone(interrupt));
        let waited = interrupt.wait(None, || self.try_enter());
        self.lock().waiting.retain(|other| !Arc::ptr_eq(other, interrupt));
        waited.map_err(reply::from_interruption)?;
        Ok(LaboratoryTurn(self))
    }

    fn try_enter(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_taken, true)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LaboratoryTurn<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.lock();
            state.is_taken = false;
            state.waiting.clone()
        };
        waiting.iter().for_each(|interrupt| interrupt.notify());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_storage::Interruption;
    use std::thread;

    #[test]
    fn the_second_waits_for_the_first_and_a_killed_one_leaves() {
        let gate = Arc::new(LaboratoryGate::default());
        let first = gate.enter(&Interrupt::new()).ok();
        let killed = Interrupt::new();
        let waiter = |interrupt: &Arc<Interrupt>| {
            let (gate, interrupt) = (Arc::clone(&gate), Arc::clone(interrupt));
            thread::spawn(move || gate.enter(&interrupt).is_ok())
        };
        let (second, third) = (waiter(&killed), waiter(&Interrupt::new()));
        while gate.lock().waiting.len() < 2 {
            thread::yield_now();
        }
        killed.kill(Interruption::Killed);
        assert!(!second.join().expect("the killed one ends"));
        drop(first);
        assert!(third.join().expect("the third ends"));
        assert!(gate.enter(&Interrupt::new()).is_ok());
        assert!(gate.lock().waiting.is_empty());
    }
}
