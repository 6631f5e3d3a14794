//! Background work: the upkeep of what is in memory, and the runner of jobs. The server and the
//! embedded library start the same threads.
//!
//! `upkeep.rs` looks twice a second at cursors, sessions and transactions, which only take time when
//! one of them ends. `runner.rs` runs steps of jobs, one after the other on each of its threads; `kinds.rs` lists what they
//! do. The two are separate threads because a step can wait for a lock of a transaction that the
//! upkeep must abort. `triggers.rs` wakes jobs that wait for changes.
//! `closing.rs` packs points of time-series collections.
//! `trimmer.rs` ends the window of the change log. `compaction.rs` sleeps unless `autoCompact` is on.
//! `history.rs` samples `serverStatus`.

pub(crate) mod closing;
mod compaction;
mod expiry;
mod history;
mod kinds;
mod runner;
mod triggers;
mod trimmer;
mod upkeep;

use crate::frame::job_kind::JobKind;
use crate::frame::service::Service;
use crate::job_commands::drop_left_results;
use kinds::KINDS;
use quire_storage::{Interrupt, Interruption};
use runner::Lane;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The threads that run jobs of users, so that a long one does not stop the others.
const USER_THREADS: usize = 4;

/// The running threads. Dropping it stops them and waits until they have ended.
pub struct Jobs {
    service: Arc<Service>,
    stop: Arc<Interrupt>,
    /// The interrupts of threads that are woken by a bell, one each.
    stops: Vec<Arc<Interrupt>>,
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
        // If the drop fails, the server starts all the same; the next start drops them.
        let _ = drop_left_results(&self.store);
        let stop = Interrupt::new();
        let mut jobs =
            Jobs { service: Arc::clone(self), stop, stops: Vec::new(), threads: Vec::new() };
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
        if let Some(folder) = self.options.status_history.clone() {
            let (service, stop) = (Arc::clone(self), Arc::clone(&jobs.stop));
            let sampler = std::thread::Builder::new().name("history".into());
            jobs.threads.push(sampler.spawn(move || history::sample(&service, folder, &stop))?);
        }
        let (service, stop) = (Arc::clone(self), Arc::clone(&jobs.stop));
        let closing = std::thread::Builder::new().name("closing".into());
        jobs.threads.push(closing.spawn(move || closing::close(&service, &stop))?);
        jobs.run_lane("jobs", Lane::Own, more)?;
        for _ in 0..USER_THREADS {
            jobs.run_lane("userJobs", Lane::Users, more)?;
        }
        if self.store.logs_changes() {
            let service = Arc::clone(self);
            let stop = jobs.stop_of_thread();
            let waker = std::thread::Builder::new().name("triggers".into());
            jobs.threads.push(waker.spawn(move || triggers::wake(&service, &stop))?);
        }
        Ok(jobs)
    }
}

impl Service {
    /// Computes anew when jobs of users are due, because the wall clock was set. The runners do it each
    /// minute.
    pub fn look_at_clock(&self) {
        self.jobs.look_at_clock(self.wall_ms());
        self.store.job_bell().nudge();
    }
}

impl Jobs {
    /// Starts a runner of the jobs of a lane.
    fn run_lane(
        &mut self,
        name: &str,
        lane: Lane,
        more: &'static [JobKind],
    ) -> std::io::Result<()> {
        let (service, stop) = (Arc::clone(&self.service), self.stop_of_thread());
        let kinds = KINDS.iter().chain(more).collect();
        let thread = std::thread::Builder::new().name(name.into());
        let run = move || runner::Runner::new(service, kinds, lane, stop).run();
        self.threads.push(thread.spawn(run)?);
        Ok(())
    }

    /// Returns an interrupt that ends with the others.
    fn stop_of_thread(&mut self) -> Arc<Interrupt> {
        let stop = Interrupt::new();
        self.stops.push(Arc::clone(&stop));
        stop
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop.kill(Interruption::ShuttingDown);
        self.stops.iter().for_each(|stop| stop.kill(Interruption::ShuttingDown));
        self.service.jobs.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
        self.service.jobs.clear();
    }
}
