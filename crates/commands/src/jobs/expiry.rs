//! The passes of expiry. Every `ttlMonitorSleepSecs` seconds a pass makes a job for each expiring
//! index that has an expired entry. Within a pass the indexes get equal shares, the sub-passes of
//! mongod: an index that has had its share waits until the others have had theirs.

use super::kinds::TTL;
use super::runner::Runner;
use crate::frame::job_list::State;
use crate::frame::service::{Service, now_ms};
use quire_collections::{Expiring, JobId};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The names of the parameters.
pub(super) const ENABLED: &str = "ttlMonitorEnabled";
pub(super) const IN_BATCHES: &str = "ttlMonitorBatchDeletes";
const SLEEP_SECS: &str = "ttlMonitorSleepSecs";
const SUB_PASS_SECS: &str = "ttlMonitorSubPassTargetSecs";
const SHARE_DOCS: &str = "ttlIndexDeleteTargetDocs";
const SHARE_MS: &str = "ttlIndexDeleteTargetTimeMS";

/// Begins and ends the passes.
pub(super) struct Passes {
    /// When the last pass began.
    last: Instant,
    current: Option<Pass>,
}

/// A pass that has jobs under way.
struct Pass {
    /// When the sub-pass began.
    began: Instant,
    /// What each job has done in the sub-pass.
    shares: HashMap<JobId, Share>,
}

#[derive(Default)]
struct Share {
    docs: u64,
    time: Duration,
}

impl Passes {
    pub fn new() -> Self {
        Passes { last: Instant::now(), current: None }
    }

    /// Does what is due. Returns the time of the next look; `None` while expiry is disabled
    /// or the writes of users are blocked.
    pub fn look(&mut self, runner: &Runner) -> Option<Instant> {
        let service = &runner.service;
        if !service.parameters.flag(ENABLED) || service.write_block.is_on() {
            return None;
        }
        let due = self.last + Duration::from_secs(number(service, SLEEP_SECS));
        match &mut self.current {
            None if Instant::now() < due => return Some(due),
            None => {
                self.last = Instant::now();
                self.current = Some(Pass { began: self.last, shares: HashMap::new() });
                offer(runner);
            }
            Some(pass) if pass.sub_pass_ends(service) => {
                service.metrics.ttl_sub_passes.add(1);
                (pass.began, pass.shares) = (Instant::now(), HashMap::new());
                service.jobs.end_rest(TTL);
                offer(runner);
            }
            Some(_) => {}
        }
        if has_work(service) {
            return Some(Instant::now() + Duration::from_secs(1));
        }
        self.current = None;
        service.metrics.ttl_sub_passes.add(1);
        service.metrics.ttl_passes.add(1);
        Some(self.last + Duration::from_secs(number(service, SLEEP_SECS)))
    }

    /// Notes the work of a step, after which the job may have to wait for the others.
    pub fn stepped(&mut self, service: &Service, id: &JobId, docs: u64, time: Duration) {
        let Some(pass) = self.current.as_mut().filter(|_| id.kind == TTL) else { return };
        let share = pass.shares.entry(id.clone()).or_default();
        share.docs += docs;
        share.time += time;
        let (docs_max, ms_max) = (number(service, SHARE_DOCS), number(service, SHARE_MS));
        let is_full = docs_max > 0 && share.docs >= docs_max
            || ms_max > 0 && share.time >= Duration::from_millis(ms_max);
        if is_full && service.parameters.flag(IN_BATCHES) {
            service.jobs.rest(id, None);
        }
    }
}

impl Pass {
    /// Returns true if every job of the pass has had its share, or the sub-pass has taken long.
    fn sub_pass_ends(&self, service: &Service) -> bool {
        let limit = Duration::from_secs(number(service, SUB_PASS_SECS));
        let mut has_jobs = false;
        let runs = service.jobs.any(TTL, |entry| {
            has_jobs = true;
            matches!(entry.state, State::Ready | State::Running(_))
        });
        has_jobs && (!runs || self.began.elapsed() >= limit)
    }
}

/// Makes a job for each expiring index that has an expired entry.
fn offer(runner: &Runner) {
    let (service, now_ms) = (&runner.service, now_ms());
    for expiring in Expiring::all(&service.store.catalog()) {
        // What cannot be read now is met again by the next pass; the reads of clients report it.
        if expiring.has_work(&service.store, now_ms).unwrap_or(false) {
            runner.offer(expiring.job(now_ms), false);
        }
    }
}

/// Returns true if a job is under way that has not failed.
fn has_work(service: &Service) -> bool {
    service.jobs.any(TTL, |entry| entry.failures == 0)
}

fn number(service: &Service, name: &str) -> u64 {
    u64::try_from(service.parameters.number(name)).unwrap_or(0)
}
