//! Closing of time-series collections in the background, which `quireTimeSeriesClosing` turns on. A pass is as long as the
//! collections have sources, and its place is worth nothing after a restart, so it is no job of the runner.

use crate::frame::log::{LogLine, Severity};
use crate::frame::parameters::table::TIME_SERIES_CLOSING;
use crate::frame::service::{Service, now_ms};
use quire_catalog::Collection;
use quire_collections::{ClosePolicy, Closed, Closing, takes_buckets};
use quire_document::DocBuf;
use quire_error::Result;
use quire_storage::Interrupt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest interval between two passes.
const PAUSE: Duration = Duration::from_secs(10);
/// A pass that took long is followed by a pause this many times as long.
const PAUSE_TIMES: u32 = 10;

/// Closes points until `stop`.
pub(super) fn close(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let mut pause = PAUSE;
    while let Ok(false) = stop.wait(Some(pause), || false) {
        let began = Instant::now();
        if service.parameters.flag(TIME_SERIES_CLOSING) && !service.write_block.is_on() {
            pass(service, stop);
        }
        pause = PAUSE.max(began.elapsed() * PAUSE_TIMES);
    }
}

fn pass(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let policy = ClosePolicy { now_ms: now_ms(), everything: false };
    for collection in service.store.catalog().collections().filter(|found| takes_buckets(found)) {
        let closed = close_points(service, collection, policy, stop);
        if stop.check().is_err() {
            return;
        }
        if let Err(error) = closed {
            log_failure(service, collection, &error.to_string());
        }
    }
}

/// Closes points of a collection, and lets `fsync` block writes between two buckets.
///
/// # Errors
/// Those of closing.
pub(crate) fn close_points(
    service: &Service,
    collection: &Arc<Collection>,
    policy: ClosePolicy,
    interrupt: &Arc<Interrupt>,
) -> Result<Closed> {
    let mut closing = Closing::new(collection, policy);
    loop {
        let _writing = service.write_gate.enter(interrupt)?;
        if !closing.step(&service.store, interrupt)? {
            return Ok(closing.closed());
        }
    }
}

fn log_failure(service: &Service, collection: &Collection, error: &str) {
    service.log().write(LogLine {
        severity: Severity::Error,
        component: "STORAGE",
        id: 8_343_002,
        context: "TimeSeriesClosing",
        message: "Points of a time-series collection could not be closed",
        attributes: DocBuf::build(|writer| {
            writer.append("namespace", collection.namespace.as_str());
            writer.append("error", error);
        }),
    });
}
