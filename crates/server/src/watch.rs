//! The watcher: detects that a client is gone while its operation runs, and ends the operation. The
//! thread that runs a command does not check its socket, so another thread must.

use crate::shared::Shared;
use quire_storage::Interruption;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Younger operations are not checked, because most end soon.
const AGE: Duration = Duration::from_millis(25);
/// The interval of the checks: with `AGE`, an operation ends within 100 ms after its client is
/// lost.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Checks until the server stops.
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
