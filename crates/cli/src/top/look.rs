//! A look at the counters of a server. Quire's recorder counts all statements by shape; a MongoDB
//! counts reads by shape where `$queryStats` answers, and else the time by collection (`top`).

use crate::connect::{CallError, Client, batch, integer};
use crate::exit::{FAILED, Failure};
use quire_advisor::Workload;
use quire_advisor::workload::{Cause, Kind, ShapeUse};
use quire_document::extjson::{self, Format};
use quire_document::{Doc, DocBuf, Value, doc};
use std::collections::HashMap;
use std::time::Instant;

/// The shapes that are read of the recorder.
const SHAPES_MAX: i32 = 1_000;
/// The code of a user without the privilege.
const UNAUTHORIZED: i32 = 13;

/// Where the counters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Recorder,
    QueryStats,
    Top,
}

/// What has been counted of the statements of one shape since the server started; without shapes,
/// of one kind of operation on one collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) count: u64,
    pub(super) micros: u64,
    /// Unknown where the server does not count by shape.
    pub(super) examined: Option<u64>,
    pub(super) returned: Option<u64>,
    /// The statements that read a whole collection.
    pub(super) scans: Option<u64>,
}

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Counted {
    /// The command: `find`; `find (ttl)` for work of the server itself.
    pub(super) what: String,
    pub(super) namespace: String,
    /// The shape as JSON; empty where the server does not tell it.
    pub(super) shape: String,
}

/// An operation that runs at the time of the look.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Running {
    pub(super) what: String,
    pub(super) namespace: String,
    pub(super) seconds: f64,
}

/// What a server said at one time.
pub(super) struct Look {
    pub(super) at: Instant,
    pub(super) origin: Origin,
    pub(super) counts: HashMap<Counted, Counts>,
    /// The operations that take longest first; `None` if the user may not see them.
    pub(super) running: Option<Vec<Running>>,
}

impl Origin {
    /// Returns the first of the origins that answers.
    ///
    /// # Errors
    /// A server that shows none of them to this user.
    pub(super) fn find(client: &mut Client) -> Result<Origin, Failure> {
        let show = doc! { "quireRecorder": "show", "limit": 1 };
        match client.call("admin", show, None) {
            Ok(reply) if reply.get("recording").and_then(|on| on.as_bool()) == Some(false) => {
                let text = "the recorder of the server is off (quire serve --recorder off)";
                return Err(Failure::new(FAILED, text));
            }
            Ok(_) => return Ok(Origin::Recorder),
            Err(error) if is_unauthorized(&error) => {
                return Err(error.failure("cannot read the recorder"));
            }
            Err(_) => {}
        }
        if client.call("admin", query_stats(), None).is_ok() {
            return Ok(Origin::QueryStats);
        }
        let reply = client.call("admin", doc! { "top": 1 }, None);
        reply.map_err(|error| error.failure("the server shows no counters"))?;
        Ok(Origin::Top)
    }

    /// Returns what is missing, for people.
    pub(super) fn missing(self) -> Option<&'static str> {
        match self {
            Origin::Recorder => None,
            Origin::QueryStats => Some("$queryStats has reads only; writes are not shown"),
            Origin::Top => Some(
                "$queryStats does not answer here, so these are collections, as 'top' counts them, and not \
                 shapes; documents examined are not known",
            ),
        }
    }

    /// Returns the name of the command or stage.
    pub(super) fn name(self) -> &'static str {
        match self {
            Origin::Recorder => "quireRecorder",
            Origin::QueryStats => "$queryStats",
            Origin::Top => "top",
        }
    }
}

impl Look {
    /// Asks the server.
    ///
    /// # Errors
    /// A server that does not reply any more.
    pub(super) fn take(
        client: &mut Client,
        origin: Origin,
        db: Option<&str>,
    ) -> Result<Look, Failure> {
        let mut counts = match origin {
            Origin::Recorder => of_recorder(client)?,
            Origin::QueryStats => of_query_stats(client)?,
            Origin::Top => of_top(client)?,
        };
        let is_of = |namespace: &str| match (db, namespace.split_once('.')) {
            (Some(db), Some((found, _))) => db == found,
            (Some(db), None) => db == namespace,
            (None, _) => true,
        };
        counts.retain(|counted, _| is_of(&counted.namespace));
        let mut running = running(client);
        running.iter_mut().for_each(|running| running.retain(|one| is_of(&one.namespace)));
        Ok(Look { at: Instant::now(), origin, counts, running })
    }
}

fn is_unauthorized(error: &CallError) -> bool {
    matches!(error, CallError::Refused { code, .. } if *code == UNAUTHORIZED)
}

fn of_recorder(client: &mut Client) -> Result<HashMap<Counted, Counts>, Failure> {
    let show = doc! { "quireRecorder": "show", "limit": SHAPES_MAX };
    let reply = call(client, show)?;
    let workload = reply.get("workload").and_then(|workload| workload.as_document());
    let workload = workload.map(Workload::from_document).and_then(Result::ok);
    let workload = workload
        .ok_or_else(|| Failure::new(FAILED, "the reply of quireRecorder has no workload"))?;
    let mut counts: HashMap<Counted, Counts> = HashMap::new();
    for used in &workload.shapes {
        let measures = &used.measures;
        let known = counts.entry(counted(used)).or_default();
        known.count += measures.count;
        known.micros += measures.total_micros.sum;
        let add = |sum: &mut Option<u64>, more: u64| *sum = Some(sum.unwrap_or(0) + more);
        add(&mut known.examined, measures.docs_examined.sum);
        add(&mut known.returned, measures.returned.sum);
        add(&mut known.scans, measures.collection_scans);
    }
    Ok(counts)
}

fn counted(used: &ShapeUse) -> Counted {
    let what = match used.cause {
        Cause::Client => used.kind.name().to_owned(),
        cause => format!("{} ({})", used.kind.name(), cause.name()),
    };
    Counted { what, namespace: used.namespace.clone(), shape: shape_text(used.shape.as_doc()) }
}

/// Returns a shape without what the other columns show.
fn shape_text(shape: Doc<'_>) -> String {
    let shown = DocBuf::build(|out| {
        let shown = shape.fields().filter(|(name, _)| !["cmdNs", "command"].contains(name));
        shown.for_each(|(name, value)| {
            out.append(name, value);
        });
    });
    match shown.as_doc().is_empty() {
        true => String::new(),
        false => extjson::print(shown.as_doc(), Format::default()),
    }
}

fn query_stats() -> DocBuf {
    doc! { "aggregate": 1, "pipeline": [{ "$queryStats": {} }], "cursor": {} }
}

fn of_query_stats(client: &mut Client) -> Result<HashMap<Counted, Counts>, Failure> {
    let mut counts: HashMap<Counted, Counts> = HashMap::new();
    let (mut reply, mut name) = (call(client, query_stats())?, "firstBatch");
    loop {
        let (id, rows) = batch(&reply, name)?;
        for row in rows.iter().filter_map(|row| row.as_document()) {
            if let Some((counted, more)) = of_row(row) {
                let known = counts.entry(counted).or_default();
                known.count += more.count;
                known.micros += more.micros;
                known.examined = Some(known.examined.unwrap_or(0) + more.examined.unwrap_or(0));
                known.returned = Some(known.returned.unwrap_or(0) + more.returned.unwrap_or(0));
            }
        }
        if id == 0 {
            return Ok(counts);
        }
        reply = call(client, doc! { "getMore": id, "collection": "$cmd.aggregate" })?;
        name = "nextBatch";
    }
}

fn of_row(row: Doc<'_>) -> Option<(Counted, Counts)> {
    let shape = row.get("key")?.as_document()?.get("queryShape")?.as_document()?;
    let namespace = shape.get("cmdNs")?.as_document()?;
    let part = |name: &str| namespace.get(name).and_then(|part| part.as_str());
    let counted = Counted {
        what: Kind::parse(shape.get("command")?.as_str()?)?.name().to_owned(),
        namespace: format!("{}.{}", part("db")?, part("coll")?),
        shape: shape_text(shape),
    };
    let metrics = row.get("metrics")?.as_document()?;
    let sum = |name: &str| metrics.get(name)?.as_document()?.get("sum").and_then(whole);
    Some((
        counted,
        Counts {
            count: metrics.get("execCount").and_then(whole)?,
            micros: sum("totalExecMicros").unwrap_or(0),
            examined: sum("docsExamined"),
            returned: sum("docsReturned"),
            scans: None,
        },
    ))
}

/// The classes of `top` that together are all operations.
const CLASSES: [&str; 6] = ["queries", "getmore", "insert", "update", "remove", "commands"];

fn of_top(client: &mut Client) -> Result<HashMap<Counted, Counts>, Failure> {
    let reply = call(client, doc! { "top": 1 })?;
    let totals = reply.get("totals").and_then(|totals| totals.as_document()).unwrap_or_default();
    Ok(of_totals(totals))
}

/// Returns the counts in a reply of `top`: for each collection one for each class of operations.
fn of_totals(totals: Doc<'_>) -> HashMap<Counted, Counts> {
    let mut counts = HashMap::new();
    for (namespace, entry) in totals.fields() {
        let Some(entry) = entry.as_document() else { continue };
        for class in CLASSES {
            let figures = entry.get(class).and_then(|figures| figures.as_document());
            let figures = figures.unwrap_or_default();
            let figure = |name: &str| figures.get(name).and_then(whole).unwrap_or(0);
            let counted = Counted {
                what: class.to_owned(),
                namespace: namespace.to_owned(),
                shape: String::new(),
            };
            let (count, micros) = (figure("count"), figure("time"));
            counts.insert(counted, Counts { count, micros, ..Counts::default() });
        }
    }
    counts
}

/// Returns the running operations of clients; those of the user alone if it may not see others.
fn running(client: &mut Client) -> Option<Vec<Running>> {
    let all = client.call("admin", doc! { "currentOp": 1, "active": true }, None);
    let own = doc! { "currentOp": 1, "active": true, "$ownOps": true };
    let reply = all.or_else(|_| client.call("admin", own, None)).ok()?;
    let listed = reply.get("inprog").and_then(|listed| listed.as_array())?;
    let mut running: Vec<Running> =
        listed.iter().filter_map(|one| running_of(one.as_document()?)).collect();
    running.sort_by(|left, right| right.seconds.total_cmp(&left.seconds));
    Some(running)
}

/// Returns an operation; `None` for that which asks, and for work of the server itself.
fn running_of(one: Doc<'_>) -> Option<Running> {
    let command = one.get("command").and_then(|command| command.as_document())?;
    let what = command.first().map_or("", |first| first.key());
    let namespace = one.get("ns").and_then(|ns| ns.as_str()).unwrap_or_default();
    // Handshakes that wait for a change of the topology, and this very command.
    if what.is_empty() || ["hello", "isMaster", "ismaster", "currentOp"].contains(&what) {
        return None;
    }
    let micros = one.get("microsecs_running").and_then(whole).unwrap_or(0);
    Some(Running {
        what: what.to_owned(),
        namespace: namespace.to_owned(),
        seconds: micros as f64 / 1e6,
    })
}

fn call(client: &mut Client, body: DocBuf) -> Result<DocBuf, Failure> {
    client.call("admin", body, None).map_err(|error| error.failure("cannot read the counters"))
}

fn whole(value: Value<'_>) -> Option<u64> {
    integer(value).and_then(|number| u64::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_query_stats_is_read() {
        let shape = doc! {
            "cmdNs": { "db": "shop", "coll": "orders" }, "command": "find",
            "filter": { "a": { "$eq": "?number" } },
        };
        let metrics = doc! {
            "execCount": 7_i64, "totalExecMicros": { "sum": 900_i64 },
            "docsReturned": { "sum": 3_i64 }, "docsExamined": { "sum": 70_i64 },
        };
        let row = doc! { "key": { "queryShape": &shape }, "metrics": &metrics };
        let (counted, counts) = of_row(row.as_doc()).unwrap_or_else(|| panic!("no row"));
        assert_eq!((&*counted.what, &*counted.namespace), ("find", "shop.orders"));
        assert_eq!(counted.shape, r#"{"filter":{"a":{"$eq":"?number"}}}"#);
        assert_eq!((counts.count, counts.micros, counts.examined), (7, 900, Some(70)));
    }

    #[test]
    fn the_classes_of_top_are_read() {
        let figures = |count: i32, time: i64| doc! { "time": time, "count": count };
        let (queries, commands) = (figures(4, 900), figures(2, 10));
        let entry = doc! { "total": { "time": 910_i64, "count": 6 }, "queries": &queries, "commands": &commands };
        let totals = doc! { "note": "all times in microseconds", "shop.orders": &entry };
        let counts = of_totals(totals.as_doc());
        let of = |what: &str| {
            let found = counts.iter().find(|(counted, _)| counted.what == what);
            found.map(|(_, counts)| (counts.count, counts.micros, counts.examined))
        };
        assert_eq!((of("queries"), of("commands")), (Some((4, 900, None)), Some((2, 10, None))));
        assert_eq!(of("total"), None, "it would count everything twice");
    }

    #[test]
    fn an_operation_of_the_server_is_not_running_work() {
        let own = doc! { "ns": "admin.$cmd", "command": { "currentOp": 1 } };
        assert_eq!(running_of(own.as_doc()), None);
        let find = doc! {
            "ns": "shop.orders", "command": { "find": "orders" }, "microsecs_running": 1_500_000_i64,
        };
        let found = running_of(find.as_doc()).map(|one| (one.what, one.seconds));
        assert_eq!(found, Some(("find".to_owned(), 1.5)));
    }
}
