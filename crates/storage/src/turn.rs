//! The turn of a single write that lost a key against another.

use std::sync::Arc;

use crate::contract::{Engine, Place};
use crate::error::{Conflict, Result};
use crate::interrupt::Interrupt;

/// The first place in the line for a key, left when dropped. A commit that succeeds in it
/// ([`Txn::set_turn`](crate::Txn::set_turn)) leaves it at once, before its writes are on stable
/// storage.
pub struct KeyTurn {
    engine: Arc<dyn Engine>,
    place: Place,
}

impl KeyTurn {
    /// After a conflict: waits until the key may be written again and nobody waits before. The
    /// turn that the writer had, if any, is kept if it lost the very same key, which is reserved
    /// for it now; otherwise it is left first, for whoever waits holds nothing.
    pub fn wait(
        engine: &Arc<dyn Engine>,
        conflict: &Conflict,
        before: Option<Self>,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Self> {
        let turn = match before.filter(|turn| turn.place.hash == conflict.hash) {
            Some(turn) => {
                engine.reserve(turn.place);
                turn
            }
            None => {
                let place = engine.join_line(conflict.hash, interrupt);
                Self { engine: Arc::clone(engine), place }
            }
        };
        engine.wait_in_line(turn.place, interrupt)?;
        Ok(turn)
    }

    /// Returns the place in line.
    pub fn place(&self) -> Place {
        self.place
    }
}

impl Drop for KeyTurn {
    fn drop(&mut self) {
        self.engine.leave_line(self.place);
    }
}
