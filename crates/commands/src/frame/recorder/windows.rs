//! The stored windows: for each hour one row for each shape (docs/format.md, "The recorder").

use quire_advisor::workload::{Forgotten, ShapeUse, Workload};
use quire_collections::{RecordedRow, Store};
use quire_document::{Doc, DocBuf, Value};
use quire_error::Result;
use quire_storage::{CommitOptions, Interrupt};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An hour in milliseconds.
pub(super) const HOUR_MS: i64 = 60 * 60 * 1000;
/// How many hours a window is kept: 30 days.
const WINDOWS_KEPT_HOURS: u32 = 30 * 24;

/// Returns the hours since 1970.
pub(super) fn hour_of(ms: i64) -> u32 {
    u32::try_from(ms.div_euclid(HOUR_MS)).unwrap_or(0)
}

/// How long a commit waits when the disk is full or the engine cannot keep up. What could not be
/// stored waits for the next time.
const WAIT: Duration = Duration::from_secs(1);

/// What changed in a window since it was stored.
pub(super) struct News {
    /// The hours since 1970.
    pub hour: u32,
    /// Up to when it was counted.
    pub ends_ms: i64,
    /// The changed shapes by their keys.
    pub rows: Vec<(u64, ShapeUse)>,
    /// The keys of shapes that left.
    pub gone: Vec<u64>,
    /// How much has left.
    pub forgotten: Forgotten,
}

/// Stores the changes of a window in one commit.
pub(super) fn write(store: &Arc<Store>, news: &News) -> Result<()> {
    let (hour, forgotten) = (news.hour, news.forgotten);
    let head = DocBuf::build(|out| {
        out.append("ends", Value::Date(news.ends_ms));
        out.append("shapes", forgotten.shapes as i64);
        out.append("statements", forgotten.statements as i64);
    });
    let mut puts = vec![RecordedRow { hour, shape: None, row: head }];
    puts.extend(news.rows.iter().map(|(key, used)| RecordedRow {
        hour,
        shape: Some(*key),
        row: DocBuf::build(|out| used.write(out)),
    }));
    store.put_recorded(&puts, hour, &news.gone, options())
}

/// Returns the options of a commit of the recorder, which waits for nobody.
fn options() -> CommitOptions {
    let interrupt = Interrupt::new();
    interrupt.set_deadline(Some(Instant::now() + WAIT));
    CommitOptions::buffered().ended_by(&interrupt)
}

/// Returns the rows of an hour by their keys. A row that cannot be read is left out.
pub(super) fn read_hour(
    store: &Arc<Store>,
    hour: u32,
) -> Result<(HashMap<u64, ShapeUse>, Forgotten)> {
    let (mut rows, mut forgotten) = (HashMap::new(), Forgotten::default());
    store.recorded(hour..=hour, &mut |_, key, row| match key {
        Some(key) => drop(ShapeUse::read(row).map(|used| rows.insert(key, used))),
        None => forgotten = left(row),
    })?;
    Ok((rows, forgotten))
}

/// Returns the windows from the hour of `from_ms` to that of `until_ms`, merged. The workload begins with
/// the first statement and ends where the last window ends, so that rates are those of the time in
/// which statements were counted. Without windows it is empty and begins and ends at `from_ms`.
pub(super) fn read(store: &Arc<Store>, from_ms: i64, until_ms: i64) -> Result<Workload> {
    let (from, until) = (hour_of(from_ms), hour_of(until_ms));
    let (mut shapes, mut forgotten) = (Vec::<ShapeUse>::new(), Forgotten::default());
    let mut counted_ms = i64::MIN;
    store.recorded(from..=until, &mut |_, key, row| match key {
        Some(_) => shapes.extend(ShapeUse::read(row).ok()),
        None => {
            let more = left(row);
            forgotten.shapes += more.shapes;
            forgotten.statements += more.statements;
            if let Some(Value::Date(ends_ms)) = row.get("ends") {
                counted_ms = counted_ms.max(ends_ms);
            }
        }
    })?;
    let ends_ms = counted_ms.min(until_ms).max(from_ms);
    let first_ms = shapes.iter().map(|used| used.measures.first_ms).min();
    let begins_ms = first_ms.unwrap_or(from_ms).min(ends_ms);
    let mut workload = Workload::default();
    workload.merge(Workload { shapes, forgotten, begins_ms, ends_ms });
    Ok(workload)
}

/// Deletes the windows that are older than [`WINDOWS_KEPT_HOURS`].
pub(super) fn expire(store: &Arc<Store>, now_ms: i64) -> Result<()> {
    store.delete_recorded(hour_of(now_ms).saturating_sub(WINDOWS_KEPT_HOURS), &options())
}

/// Deletes all windows.
pub(super) fn purge(store: &Arc<Store>) -> Result<()> {
    store.delete_recorded(u32::MAX, &options())
}

fn left(head: Doc<'_>) -> Forgotten {
    let number = |name: &str| {
        let number = head.get(name).and_then(|value| value.exact_i64());
        number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    };
    Forgotten { shapes: number("shapes"), statements: number("statements") }
}
