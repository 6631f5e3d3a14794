//! The thread that wakes jobs on changes: it follows the commits that are durable, while there is such a
//! job. Without one it waits for the bell, and commits cost nothing more.

use crate::frame::job_list::State;
use crate::frame::service::Service;
use crate::job_commands::KIND;
use quire_storage::{Interrupt, Reach, Watched};
use std::sync::Arc;
use std::time::Duration;

/// How long the thread follows commits before it looks whether a job still waits for them.
const LOOK: Duration = Duration::from_secs(10);

/// Wakes resting jobs until `stop`.
pub(super) fn wake(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let bell = service.store.job_bell();
    bell.listen(stop);
    while stop.check().is_ok() {
        let nudged = (bell.rung(), bell.nudged());
        if rests(service) {
            follow(service, stop);
        } else {
            let _ = stop.wait(None, || (bell.rung(), bell.nudged()) != nudged);
        }
    }
    bell.leave(stop);
}

fn rests(service: &Service) -> bool {
    service.jobs.any(KIND, |entry| matches!(entry.state, State::Resting))
}

/// Wakes the resting jobs at each durable commit, until none rests for a while.
fn follow(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let watch = service.engine.watch(Watched::Everything, Reach::Durable, stop);
    loop {
        let past = service.engine.durable_version();
        // What was committed between the last step and this look is news, too.
        service.jobs.end_rest(KIND);
        service.store.job_bell().nudge();
        match watch.wait(past, Some(LOOK)) {
            Ok(true) => {}
            Ok(false) if rests(service) => {}
            Ok(false) | Err(_) => return,
        }
    }
}
