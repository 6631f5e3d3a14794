//! The watcher: notices that a client has gone while its operation runs, and ends the operation.
//! The thread that runs a command does not look at its socket, so another thread has to.

use crate::shared::Shared;
use quire_storage::Interruption;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Operations younger than this end by themselves soon enough.
const AGE: Duration = Duration::from_millis(100);
/// How often the watcher looks while something old runs, and while nothing does.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_EVERY_IDLE: Duration = Duration::from_millis(500);

/// Looks until the server stops.
pub(crate) fn run(shared: &Shared) {
    let mut pause = LOOK_EVERY_IDLE;
    while !shared.stopping.load(Ordering::Acquire) {
        shared.pause_watcher(pause);
        let mut busy = false;
        for client in shared.clients.list() {
            if let Some(interrupt) = client.running_for(AGE) {
                busy = true;
                if client.socket.is_gone() {
                    interrupt.kill(Interruption::Disconnected);
                }
            }
        }
        pause = if busy { LOOK_EVERY } else { LOOK_EVERY_IDLE };
    }
}
