//! Compaction in the background, which `autoCompact` turns on. A compaction can take minutes and has
//! no place to stop, so it is no job of the runner.

use crate::frame::auto_compact::CompactOptions;
use crate::frame::log::{LogLine, Severity};
use crate::frame::service::Service;
use quire_collections::{from_storage, reclaimable_bytes};
use quire_document::DocBuf;
use quire_error::Result;
use quire_storage::{Interrupt, Maintenance};
use std::sync::Arc;
use std::time::Duration;

/// The pause between two looks at the collections.
const PAUSE: Duration = Duration::from_secs(10 * 60);

/// Compacts whenever it is worth it, until `stop`.
pub(super) fn compact(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let store = Arc::clone(&service.store);
    let bell = store.job_bell();
    bell.listen(stop);
    let mut seen = None;
    while stop.check().is_ok() {
        let rung = bell.rung();
        let options = service.auto_compact.get();
        if let Some(options) = options.filter(|options| seen != Some(*options)) {
            if let Err(error) = pass(service, options, stop) {
                log_failure(service, &error.to_string());
            }
            service.auto_compact.passed();
        }
        seen = service.auto_compact.get();
        let pause = seen.map(|_| PAUSE);
        if let Ok(false) = stop.wait(pause, || bell.rung() != rung) {
            seen = None;
        }
    }
    bell.leave(stop);
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
