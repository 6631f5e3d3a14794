//! The watcher: detects that a client is gone while its operation runs, and ends the operation. The
//! thread that runs a command does not check its socket, so another thread must. If unread replies
//! take more memory than their budget has, it also closes the connections that read most slowly.

use crate::shared::Shared;
use quire_storage::Interruption;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Younger operations are not checked, because most end soon.
const AGE: Duration = Duration::from_millis(25);
/// The interval of the checks: with `AGE`, an operation ends within 100 ms after its client is
/// lost.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The time that each client has to read a large reply, however little memory there is.
const READ_TIME: Duration = Duration::from_secs(2);

/// Closes connections, those first that have been reading for the longest time, until the others'
/// replies fit in the budget.
fn close_slow_readers(shared: &Shared) {
    let mut excess = shared.replies.excess();
    if excess == 0 {
        return;
    }
    let clients = shared.clients.list();
    let slow = clients.iter().filter_map(|client| {
        let sending = client.sending()?;
        (sending.since.elapsed() >= READ_TIME).then_some((sending, client))
    });
    let mut slow: Vec<_> = slow.collect();
    slow.sort_by_key(|(sending, _)| sending.since);
    for (sending, client) in slow {
        if excess == 0 {
            return;
        }
        client.socket.close();
        excess = excess.saturating_sub(sending.bytes);
    }
}

/// Checks until the server stops.
pub(crate) fn run(shared: &Shared) {
    while !shared.stopping.load(Ordering::Acquire) {
        shared.pause_watcher(LOOK_EVERY);
        close_slow_readers(shared);
        for client in shared.clients.list() {
            if let Some(interrupt) = client.running_for(AGE)
                && client.socket.is_gone()
            {
                interrupt.kill(Interruption::Disconnected);
            }
        }
    }
}
