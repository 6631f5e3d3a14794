//! Background work: the upkeep of what is in memory, and the runner of jobs. The server and the
//! embedded library start the same threads.
//!
//! `upkeep.rs` looks twice a second at cursors, sessions and transactions, which only take time when
//! one of them ends. `runner.rs` runs steps of jobs, one after the other; `kinds.rs` lists what they
//! do. The two are separate threads because a step can wait for a lock of a transaction that the
//! upkeep must abort. `trimmer.rs` ends the window of the change log. `compaction.rs` sleeps unless `autoCompact` is on.

mod compaction;
mod expiry;
mod kinds;
mod runner;
mod trimmer;
mod upkeep;

use crate::frame::job_kind::JobKind;
use crate::frame::service::Service;
use kinds::KINDS;
use quire_storage::{Interrupt, Interruption};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The running threads. Dropping it stops them and waits until they have ended.
pub struct Jobs {
    service: Arc<Service>,
    stop: Arc<Interrupt>,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts the background jobs. Stop them before [`Service::close`].
    ///
    /// # Errors
    /// The errors of starting a thread.
    pub fn start_jobs(self: &Arc<Self>) -> std::io::Result<Jobs> {
        self.start_jobs_of(&[])
    }

    /// Starts the background jobs, with more kinds than the server's own. Tests use it.
    ///
    /// # Errors
    /// The errors of starting a thread.
    pub fn start_jobs_of(self: &Arc<Self>, more: &'static [JobKind]) -> std::io::Result<Jobs> {
        let stop = Interrupt::new();
        let mut jobs = Jobs { service: Arc::clone(self), stop, threads: Vec::new() };
        let (service, stop) = (Arc::clone(self), Arc::clone(&jobs.stop));
        let upkeep = std::thread::Builder::new().name("upkeep".into());
        jobs.threads.push(upkeep.spawn(move || upkeep::keep_up(&service, &stop))?);
        if self.store.logs_changes() {
            let (service, stop) = (Arc::clone(self), Arc::clone(&jobs.stop));
            let trimmer = std::thread::Builder::new().name("changeLog".into());
            jobs.threads.push(trimmer.spawn(move || trimmer::keep_window(&service, &stop))?);
        }
        let (service, stop) = (Arc::clone(self), Arc::clone(&jobs.stop));
        let compaction = std::thread::Builder::new().name("compaction".into());
        jobs.threads.push(compaction.spawn(move || compaction::compact(&service, &stop))?);
        let (service, stop) = (Arc::clone(self), Arc::clone(&jobs.stop));
        let runner = std::thread::Builder::new().name("jobs".into());
        let kinds = KINDS.iter().chain(more).collect();
        jobs.threads.push(runner.spawn(move || runner::Runner::new(service, kinds, stop).run())?);
        Ok(jobs)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop.kill(Interruption::ShuttingDown);
        self.service.jobs.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}
