//! The turn of a single write that lost a key to another write.

use std::sync::Arc;

use crate::contract::{Engine, LinePlace};
use crate::error::{Conflict, Result};
use crate::interrupt::Interrupt;

/// The first place in the line for a key; left when dropped. A successful commit in this turn
/// ([`Txn::set_turn`](crate::Txn::set_turn)) leaves it at once, before its writes are on stable
/// storage.
pub struct KeyTurn {
    engine: Arc<dyn Engine>,
    place: LinePlace,
}

impl KeyTurn {
    /// Waits, after a conflict, until the key may be written again and this writer is the first of
    /// its line. `before` is the writer's current turn. If the writer lost the same key again, it
    /// keeps that turn and the key is now reserved for it. Otherwise it leaves that line first,
    /// because a waiting writer must hold nothing.
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

    /// Returns the place in the line.
    pub fn place(&self) -> LinePlace {
        self.place
    }
}

impl Drop for KeyTurn {
    fn drop(&mut self) {
        self.engine.leave_line(self.place);
    }
}
