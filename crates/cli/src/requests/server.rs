//! The workload of a server: of Quire's recorder, of `$queryStats`, or of the profiler's collection,
//! whichever answers first. Only commands that read.

use super::{Gathered, add_profiled};
use crate::connect::{Client, batch, integer};
use quire_advisor::Workload;
use quire_advisor::workload::{Cause, Figure, Kind, Measures, ShapeUse};
use quire_commands::ADVISOR_DRIVER;
use quire_document::{Doc, DocBuf, Value, doc};

/// The origin of a workload that the recorder of Quire has counted.
pub(crate) const RECORDER: &str = "quireRecorder";
/// The shapes that are read.
const SHAPES_MAX: i32 = 1_000;
/// The documents of the profiler that are read.
const PROFILED_MAX: i32 = 50_000;

/// Returns what was asked of a database, and where that stands; `None` if the server does not say.
pub(crate) fn of_server(client: &mut Client, db: &str) -> Option<(Workload, &'static str)> {
    if let Some(workload) = of_recorder(client, db) {
        return Some((workload, RECORDER));
    }
    if let Some(workload) = of_query_stats(client, db) {
        return Some((workload, "$queryStats"));
    }
    let workload = of_profiler(client, db)?;
    Some((workload, "system.profile"))
}

fn of_recorder(client: &mut Client, db: &str) -> Option<Workload> {
    let show = doc! { "quireRecorder": "show", "ns": db, "limit": SHAPES_MAX };
    let reply = client.call("admin", show, None).ok()?;
    let workload = reply.get("workload")?.as_document()?;
    Workload::from_document(workload).ok().filter(|workload| !workload.shapes.is_empty())
}

/// Calls `each` with the documents of a cursor. Returns false if the server refuses.
fn follow(
    client: &mut Client,
    (db, collection): (&str, &str),
    first: DocBuf,
    each: &mut dyn FnMut(Doc<'_>),
) -> bool {
    let Ok(mut reply) = client.call(db, first, None) else { return false };
    let mut name = "firstBatch";
    loop {
        let Ok((id, documents)) = batch(&reply, name) else { return false };
        documents.iter().filter_map(|value| value.as_document()).for_each(&mut *each);
        if id == 0 {
            return true;
        }
        let more = doc! { "getMore": id, "collection": collection };
        match client.call(db, more, None) {
            Ok(next) => reply = next,
            Err(_) => return false,
        }
        name = "nextBatch";
    }
}

fn of_query_stats(client: &mut Client, db: &str) -> Option<Workload> {
    let mut workload = Workload { begins_ms: i64::MAX, ..Workload::default() };
    let command = doc! { "aggregate": 1, "pipeline": [{ "$queryStats": {} }], "cursor": {} };
    let answers = follow(client, ("admin", "$cmd.aggregate"), command, &mut |row| {
        if let Some(used) = of_row(row, db) {
            workload.begins_ms = workload.begins_ms.min(used.measures.first_ms);
            workload.ends_ms = workload.ends_ms.max(used.measures.last_ms);
            workload.shapes.push(used);
        }
    });
    (answers && !workload.shapes.is_empty()).then_some(workload)
}

fn of_row(row: Doc<'_>, db: &str) -> Option<ShapeUse> {
    let key = row.get("key")?.as_document()?;
    let client = key.get("client").and_then(|client| client.as_document()).unwrap_or_default();
    let driver =
        client.get("driver").and_then(|driver| driver.as_document()?.get("name")?.as_str());
    if driver == Some(ADVISOR_DRIVER) {
        return None;
    }
    let shape = key.get("queryShape")?.as_document()?;
    let namespace = shape.get("cmdNs")?.as_document()?;
    let name = |field: &str| namespace.get(field).and_then(|name| name.as_str());
    if name("db")? != db {
        return None;
    }
    let metrics = row.get("metrics")?.as_document()?;
    let number = |value: Option<Value<'_>>| {
        value.and_then(integer).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    };
    let figure = |field: &str| {
        let found = metrics.get(field).and_then(|found| found.as_document()).unwrap_or_default();
        let (sum, min, max) =
            (number(found.get("sum")), number(found.get("min")), number(found.get("max")));
        Figure { sum, min, max, ..Figure::default() }
    };
    let date = |field: &str| match metrics.get(field) {
        Some(Value::Date(ms)) => Some(ms),
        _ => None,
    };
    let measures = Measures {
        count: number(metrics.get("execCount")),
        first_ms: date("firstSeenTimestamp")?,
        last_ms: date("latestSeenTimestamp")?,
        total_micros: figure("totalExecMicros"),
        micros: figure("firstResponseExecMicros"),
        returned: figure("docsReturned"),
        docs_examined: figure("docsExamined"),
        keys_examined: figure("keysExamined"),
        ..Measures::default()
    };
    Some(ShapeUse {
        namespace: format!("{db}.{}", name("coll")?),
        kind: Kind::parse(shape.get("command")?.as_str()?)?,
        cause: Cause::Client,
        shape: shape.to_owned(),
        samples: Vec::new(),
        measures,
    })
}

fn of_profiler(client: &mut Client, db: &str) -> Option<Workload> {
    let mut gathered = Gathered::default();
    let command = doc! {
        "find": "system.profile", "sort": { "$natural": -1 }, "limit": PROFILED_MAX,
    };
    let answers = follow(client, (db, "system.profile"), command, &mut |document| {
        add_profiled(&mut gathered, document);
    });
    if answers { gathered.workload() } else { None }
}
