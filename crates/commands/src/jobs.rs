//! What runs beside the commands: the removal of expired documents. The server and the embedded
//! library start the same jobs.

use crate::service::{Service, now_ms};
use quire_storage::{Interrupt, Interruption};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How soon a job sees that its parameters have changed.
const LOOK: Duration = Duration::from_millis(500);

/// The running jobs. Dropping it stops them and waits for their ends.
pub struct Jobs {
    stop: Arc<Interrupt>,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts the background jobs. Stop them before [`Service::close`].
    ///
    /// # Errors
    /// What the operating system says about a new thread.
    pub fn start_jobs(self: &Arc<Self>) -> std::io::Result<Jobs> {
        let stop = Interrupt::new();
        let (service, until) = (Arc::clone(self), Arc::clone(&stop));
        let ttl = std::thread::Builder::new()
            .name("ttl".into())
            .spawn(move || remove_expired(&service, &until))?;
        Ok(Jobs { stop, threads: vec![ttl] })
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

/// Removes what TTL indexes say has expired, every `ttlMonitorSleepSecs` seconds.
fn remove_expired(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let mut last = Instant::now();
    while let Ok(false) = stop.wait(Some(LOOK), || false) {
        let pause = u64::try_from(service.parameters.number("ttlMonitorSleepSecs")).unwrap_or(60);
        if last.elapsed() < Duration::from_secs(pause) || !service.parameters.flag("ttlMonitorEnabled") {
            continue;
        }
        last = Instant::now();
        // What fails now is tried again at the next pass; a poisoned engine shows elsewhere.
        let _ = quire_collections::expire_documents(&service.store, now_ms(), stop);
    }
}
