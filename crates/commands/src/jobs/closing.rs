//! Closing of time-series collections in the background, unless `quireTimeSeriesClosing` turns it off. A pass is as long
//! as the collections have sources, and its place is worth nothing after a restart, so it is no job of the runner.
//!
//! Closing waits for open executions that read the collection, for an hour at most
//! (docs/adr/0048-closing-waits-for-readers.md). A collection in which nothing has changed since a pass found nothing to
//! close is left alone until its points are old enough.

use crate::frame::log::{LogLine, Severity};
use crate::frame::parameters::table::TIME_SERIES_CLOSING;
use crate::frame::service::{Service, now_ms};
use quire_catalog::{Collection, CollectionId};
use quire_collections::{ClosePolicy, Closed, Closing, PointsMark, takes_buckets};
use quire_document::DocBuf;
use quire_error::Result;
use quire_storage::Interrupt;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest interval between two passes.
const PAUSE: Duration = Duration::from_secs(10);
/// A round whose search for points to close took long is followed by a pause this many times as long.
const PAUSE_TIMES: u32 = 10;
/// The longest time for which closing waits for executions that read a collection.
const HELD_UP_MAX: Duration = Duration::from_secs(3600);

/// What earlier passes have found in a collection.
#[derive(Default)]
struct Watched {
    /// When executions began to keep closing waiting.
    held_up_since: Option<Instant>,
    /// The state in which a pass found nothing to close, and the time at which that can change, in milliseconds since 1970.
    idle: Option<(PointsMark, i64)>,
    /// True if the collection was there in the last round.
    is_there: bool,
}

/// Closes points until `stop`.
pub(super) fn close(service: &Arc<Service>, stop: &Arc<Interrupt>) {
    let (mut pause, mut watched) = (PAUSE, HashMap::new());
    while let Ok(false) = stop.wait(Some(pause), || false) {
        let (began, mut useful) = (Instant::now(), Duration::ZERO);
        if service.parameters.flag(TIME_SERIES_CLOSING) && !service.write_block.is_on() {
            useful = round(service, &mut watched, stop);
        }
        let searching = began.elapsed().saturating_sub(useful);
        pause = PAUSE.max(searching * PAUSE_TIMES);
    }
}

/// Makes a pass over each time-series collection. Returns the time of the steps that closed points.
fn round(
    service: &Arc<Service>,
    watched: &mut HashMap<CollectionId, Watched>,
    stop: &Arc<Interrupt>,
) -> Duration {
    let mut useful = Duration::ZERO;
    for collection in service.store.catalog().collections().filter(|found| takes_buckets(found)) {
        let watched = watched.entry(collection.id).or_default();
        watched.is_there = true;
        let passed = pass(service, collection, watched, stop);
        if stop.check().is_err() {
            return useful;
        }
        match passed {
            Ok(took) => useful += took,
            Err(error) => log_failure(service, collection, &error.to_string()),
        }
    }
    watched.retain(|_, watched| std::mem::take(&mut watched.is_there));
    useful
}

/// Closes points of a collection, unless there is nothing to close. Returns the time of the steps that closed some.
fn pass(
    service: &Arc<Service>,
    collection: &Arc<Collection>,
    watched: &mut Watched,
    stop: &Arc<Interrupt>,
) -> Result<Duration> {
    let (now_ms, mark) = (now_ms(), service.store.points_mark(collection));
    if watched.idle.as_ref().is_some_and(|(idle, until)| *idle == mark && now_ms < *until) {
        return Ok(Duration::ZERO);
    }
    let is_forced = watched.held_up_since.is_some_and(|since| since.elapsed() > HELD_UP_MAX);
    let mut closing =
        Closing::new(collection, ClosePolicy { now_ms, everything: false, is_forced });
    let useful = close_points(service, &mut closing, stop)?;
    watched.held_up_since = match closing.is_held_up() {
        true => watched.held_up_since.or(Some(Instant::now())),
        false => None,
    };
    let is_idle = closing.closed() == Closed::default() && !closing.is_held_up();
    watched.idle = is_idle.then(|| (mark, closing.next_due_ms()));
    Ok(useful)
}

/// Makes the rest of a pass, and lets `fsync` block writes between two steps. Returns the time of the steps that closed
/// points.
///
/// # Errors
/// Those of closing.
pub(crate) fn close_points(
    service: &Service,
    closing: &mut Closing,
    interrupt: &Arc<Interrupt>,
) -> Result<Duration> {
    let mut useful = Duration::ZERO;
    loop {
        let _writing = service.write_gate.enter(interrupt)?;
        let (began, before) = (Instant::now(), closing.closed());
        let has_more = closing.step(&service.store, interrupt)?;
        if closing.closed() != before {
            useful += began.elapsed();
        }
        if !has_more {
            return Ok(useful);
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
