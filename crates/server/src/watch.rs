//! The watcher: notices that a client has gone while its operation runs, and ends the operation.
//! The thread that runs a command does not look at its socket, so another thread has to.

use crate::shared::Shared;
use quire_storage::Interruption;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Operations younger than this end by themselves soon enough.
const AGE: Duration = Duration::from_millis(25);
/// How often the watcher looks: with `AGE`, an operation ends within 100 ms of the loss of its client.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks until the server stops.
pub(crate) fn run(shared: &Shared) {
    while !shared.stopping.load(Ordering::Acquire) {
        shared.pause_watcher(LOOK_EVERY);
        for client in shared.clients.list() {
            if let Some(interrupt) = client.running_for(AGE)
                && client.socket.is_gone()
            {
                interrupt.kill(Interruption::Disconnected);
            }
        }
    }
}
