//! Compaction in the background, which `autoCompact` turns on. A compaction can take minutes and has
//! no place to stop, so it is no job of the runner.

use crate::frame::auto_compact::{Asked, CompactOptions};
use crate::frame::log::{LogLine, Severity};
use crate::frame::service::Service;
use quire_collections::{from_storage, reclaimable_bytes};
use quire_document::DocBuf;
use quire_error::Result;
use quire_storage::{Interrupt, Maintenance};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause between two looks at the collections.
const PAUSE: Duration = Duration::from_secs(10 * 60);

/// Compacts whenever it is worth it, until `stop`.
pub(super) fn compact(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let store = Arc::clone(&service.store);
    let bell = store.job_bell();
    bell.listen(stop);
    let mut looks = Looks::default();
    while stop.check().is_ok() {
        let rung = bell.rung();
        if let Some(asked) = service.auto_compact.get()
            && looks.is_due(asked, Instant::now())
        {
            if let Err(error) = pass(service, asked.options, stop) {
                log_failure(service, &error.to_string());
            }
            service.auto_compact.passed(asked);
            looks.ended(asked, Instant::now());
        }
        let pause = service.auto_compact.get().map(|_| looks.pause(Instant::now()));
        // Jobs ring the bell, too.
        let _ = stop.wait(pause, || bell.rung() != rung);
    }
    bell.leave(stop);
}

/// The last look at the collections: for whom, and when it ended.
#[derive(Default)]
struct Looks(Option<(Asked, Instant)>);

impl Looks {
    /// Returns true after the pause that follows a look, and if compaction was turned on since.
    fn is_due(&self, asked: Asked, now: Instant) -> bool {
        self.0.is_none_or(|(last, ended)| last.number != asked.number || now >= ended + PAUSE)
    }

    fn ended(&mut self, asked: Asked, now: Instant) {
        self.0 = Some((asked, now));
    }

    /// Returns the time up to the next look.
    fn pause(&self, now: Instant) -> Duration {
        self.0.map_or(Duration::ZERO, |(_, ended)| (ended + PAUSE).saturating_duration_since(now))
    }
}

/// Compacts all data if that frees enough of one collection: collections share files.
fn pass(service: &Service, options: CompactOptions, stop: &Interrupt) -> Result<()> {
    service.engine.maintenance(Maintenance::Flush).map_err(from_storage)?;
    for collection in service.store.catalog().collections() {
        if stop.check().is_err() {
            return Ok(());
        }
        if reclaimable_bytes(&service.store, collection)? >= options.target_bytes {
            return service.engine.maintenance(Maintenance::Compact).map_err(from_storage);
        }
    }
    Ok(())
}

fn log_failure(service: &Service, error: &str) {
    service.log().write(LogLine {
        severity: Severity::Error,
        component: "STORAGE",
        id: 8_343_001,
        context: "AutoCompact",
        message: "A compaction in the background failed",
        attributes: DocBuf::build(|writer| {
            writer.append("error", error);
        }),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_goes_on_whatever_rings_meanwhile() {
        let options = CompactOptions { target_bytes: 1, once: false };
        let (first, again) = (Asked { options, number: 1 }, Asked { options, number: 2 });
        let (began, mut looks) = (Instant::now(), Looks::default());
        assert!(looks.is_due(first, began));
        looks.ended(first, began);
        let later = began + PAUSE / 2;
        assert!(!looks.is_due(first, later));
        assert_eq!(looks.pause(later), PAUSE / 2);
        assert!(looks.is_due(again, later), "it was turned off and on");
        assert!(looks.is_due(first, began + PAUSE));
        assert_eq!(looks.pause(began + PAUSE * 2), Duration::ZERO);
    }
}
