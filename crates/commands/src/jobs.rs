//! Background jobs: removing expired documents, closing idle cursors, ending idle sessions. The
//! server and the embedded library start the same jobs.

use crate::frame::log::{LogLine, Severity};
use crate::frame::service::{Service, now_ms};
use crate::sessions::expiry::Expiry;
use quire_collections::ExpireFailure;
use quire_document::DocBuf;
use quire_storage::{Interrupt, Interruption};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interval at which a job checks its parameters.
const LOOK: Duration = Duration::from_millis(500);

/// The running jobs. Dropping it stops them and waits until they have ended.
pub struct Jobs {
    stop: Arc<Interrupt>,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts the background jobs. Stop them before [`Service::close`].
    ///
    /// # Errors
    /// The errors of starting a thread.
    pub fn start_jobs(self: &Arc<Self>) -> std::io::Result<Jobs> {
        let stop = Interrupt::new();
        let (service, until) = (Arc::clone(self), Arc::clone(&stop));
        let upkeep = std::thread::Builder::new()
            .name("upkeep".into())
            .spawn(move || keep_up(&service, &until))?;
        Ok(Jobs { stop, threads: vec![upkeep] })
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop.kill(Interruption::ShuttingDown);
        for thread in self.threads.drain(..) {
            // A job that panicked has ended too.
            let _ = thread.join();
        }
    }
}

/// Runs the periodic work until `stop`. Every `clientCursorMonitorFrequencySecs` seconds it closes
/// cursors that were idle for `cursorTimeoutMillis`, ends idle sessions, and aborts transactions
/// older than `transactionLifetimeLimitSeconds`. Every `ttlMonitorSleepSecs` seconds it removes
/// documents that have expired according to TTL indexes.
fn keep_up(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let (mut last, mut cursors_seen) = (Instant::now(), Instant::now());
    let mut expiry = Expiry::new();
    let number = |name| u64::try_from(service.parameters.number(name)).unwrap_or(0);
    while let Ok(false) = stop.wait(Some(LOOK), || false) {
        let pause = number("clientCursorMonitorFrequencySecs");
        if cursors_seen.elapsed() >= Duration::from_secs(pause) {
            cursors_seen = Instant::now();
            service.cursors.close_idle(Duration::from_millis(number("cursorTimeoutMillis")));
        }
        service.engine.keep_history(service.parameters.history_window());
        let limit = Duration::from_secs(number("transactionLifetimeLimitSeconds"));
        service.abort_old_transactions(limit);
        expiry.run(service, stop);
        if let Some(_writing) = service.write_gate.try_enter() {
            // It is stored in the next round if this one fails.
            let _ = service.keep_clock();
        }
        if last.elapsed() < Duration::from_secs(number("ttlMonitorSleepSecs"))
            || !service.parameters.flag("ttlMonitorEnabled")
        {
            continue;
        }
        last = Instant::now();
        // While `fsync` blocks writes nothing is removed.
        let Some(_writing) = service.write_gate.try_enter() else { continue };
        // An error means that the jobs must stop.
        let Ok(expired) = quire_collections::expire_documents(&service.store, now_ms(), stop)
        else {
            continue;
        };
        service.metrics.ttl_deleted.add(expired.deleted);
        service.metrics.ttl_passes.add(1);
        expired.failures.iter().for_each(|failure| log_failure(service, failure));
    }
}

/// Logs why documents of a TTL index were not removed; the next pass tries again.
fn log_failure(service: &Service, failure: &ExpireFailure) {
    let attributes = DocBuf::build(|writer| {
        writer.append("error", failure.error.to_string().as_str());
        writer.append("namespace", failure.namespace.as_str());
        writer.append("index", failure.index.as_str());
    });
    service.log().write(LogLine {
        severity: Severity::Error,
        component: "INDEX",
        id: 5400703,
        context: "TTLMonitor",
        message: "Error running TTL job on collection",
        attributes,
    });
}
