//! The thread that removes the oldest changes from the change log. It is one of its own because a
//! removal can be long, and moves the beginning of the log outside of a job's transaction.

use crate::frame::service::Service;
use quire_storage::Interrupt;
use std::sync::Arc;
use std::time::Duration;

/// The interval at which the size and the age of the log are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// Trims the log until `stop`.
pub(super) fn keep_window(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    while let Ok(false) = stop.wait(Some(LOOK), || false) {
        // While `fsync` blocks writes nothing is removed.
        if let Some(_writing) = service.write_gate.try_enter() {
            service.trim_change_log(stop);
        }
    }
}
