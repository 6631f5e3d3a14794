//! The thread that wakes jobs on changes: it watches the durable commits of what each of them follows.
//! Without such a job it waits for the bell, and commits cost nothing more.

use crate::frame::job_kind::Awaited;
use crate::frame::service::Service;
use crate::job_commands::KIND;
use quire_collections::JobId;
use quire_storage::{Interrupt, Reach, Watch, Watched};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a commit can be visible and not durable before the thread makes it so.
const LOOK: Duration = Duration::from_secs(1);

/// The watches of jobs that rest, or have rested: a commit during a step is news, too.
type Watches = BTreeMap<JobId, (Watched, Watch)>;

/// Wakes resting jobs until `stop`.
pub(super) fn wake(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let bell = service.store.job_bell();
    bell.listen(stop);
    let (mut watches, mut rung) = (Watches::new(), bell.rung());
    while stop.check().is_ok() {
        let mut seen = (bell.rung(), bell.nudged());
        if rung != seen.0 {
            rung = seen.0;
            watches.retain(|id, _| service.jobs.has(id));
        }
        if end_rests(service, stop, &mut watches) {
            bell.nudge();
            seen.1 += 1;
        }
        let is_woken = || (bell.rung(), bell.nudged()) != seen || has_news(service, &watches);
        let pause = (!watches.is_empty()).then_some(LOOK);
        if let Ok(false) = stop.wait(pause, is_woken) {
            make_durable(service);
        }
    }
    bell.leave(stop);
}

/// Makes all visible commits durable, because triggers see only durable ones. An engine on disk also syncs
/// its log every 100 ms; an engine that syncs only for those who wait would leave triggers behind.
fn make_durable(service: &Service) {
    let visible = service.engine.version();
    if service.engine.durable_version() < visible {
        // An engine that fails ends the server, too.
        let _ = service.engine.barrier(visible);
    }
}

/// Makes the resting jobs ready that have news. Returns true if there are some.
fn end_rests(service: &Arc<Service>, stop: &Arc<Interrupt>, watches: &mut Watches) -> bool {
    let mut resting: Vec<(JobId, Awaited)> = Vec::new();
    service.jobs.each_awaiting(KIND, |id, awaited| resting.push((id.clone(), awaited)));
    let mut any = false;
    for (id, Awaited { past, watched }) in resting {
        let is_news = match watches.get(&id) {
            Some((known, watch)) if *known == watched => watch.has_news(past),
            _ => {
                let watch = service.engine.watch(watched, Reach::Durable, stop);
                watches.insert(id.clone(), (watched, watch));
                // No watch has seen the commits up to now, also those that are not durable yet.
                service.engine.version() > past
            }
        };
        if is_news {
            service.jobs.end_rest_of(&id);
            any = true;
        }
    }
    any
}

fn has_news(service: &Service, watches: &Watches) -> bool {
    let mut any = false;
    service.jobs.each_awaiting(KIND, |id, Awaited { past, watched }| {
        let known = watches.get(id).filter(|(known, _)| *known == watched);
        any |= known.is_some_and(|(_, watch)| watch.has_news(past));
    });
    any
}
