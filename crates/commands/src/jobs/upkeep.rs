//! The upkeep of what is in memory: idle cursors and sessions, old transactions, past states, the
//! counts of the recorder. A look takes microseconds, and waits for no write except the date of the
//! clock, once a day, and the recorder's window, once a minute.

use crate::frame::service::{Service, now_ms};
use quire_storage::Interrupt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// The interval between two looks at the sessions in memory.
const SESSIONS_LOOK: Duration = Duration::from_secs(10);

/// The interval between two times that the counts of the recorder are stored.
const RECORDER_STORE: Duration = Duration::from_secs(60);

/// Looks until `stop`. Every `clientCursorMonitorFrequencySecs` seconds it closes cursors that were
/// idle for `cursorTimeoutMillis`; it ends idle sessions, and aborts transactions older than
/// `transactionLifetimeLimitSeconds`.
pub(super) fn keep_up(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let (mut cursors_seen, mut sessions_seen) = (Instant::now(), Instant::now());
    let mut recorder_stored = Instant::now();
    let number = |name| u64::try_from(service.parameters.number(name)).unwrap_or(0);
    while let Ok(false) = stop.wait(Some(LOOK), || false) {
        service.recorder.set_clock(now_ms());
        let pause = number("clientCursorMonitorFrequencySecs");
        if cursors_seen.elapsed() >= Duration::from_secs(pause) {
            cursors_seen = Instant::now();
            service.cursors.close_idle(Duration::from_millis(number("cursorTimeoutMillis")));
        }
        service.engine.keep_history(service.parameters.history_window());
        let limit = Duration::from_secs(number("transactionLifetimeLimitSeconds"));
        service.abort_old_transactions(limit);
        if sessions_seen.elapsed() >= SESSIONS_LOOK {
            sessions_seen = Instant::now();
            service.end_idle_sessions(now_ms());
        }
        if let Some(_writing) = service.write_gate.try_enter() {
            // It is stored in the next round if this one fails.
            let _ = service.keep_clock();
            if recorder_stored.elapsed() >= RECORDER_STORE {
                recorder_stored = Instant::now();
                let _ = service.recorder.store_window(&service.store);
            }
        }
    }
}
