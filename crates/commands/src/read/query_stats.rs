//! The rows of `$queryStats`: what the recorder has counted for the shapes of reads. (Manual:
//! "$queryStats".)

use crate::frame::args::{Arg, fields, missing};
use crate::frame::context::Context;
use crate::frame::recorder::Recorded;
use crate::read::transformed_shape::{Hasher, transformed};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quire_access::{Action, Target};
use quire_advisor::workload::{Cause, Figure, Kind, Measures};
use quire_catalog::Namespace;
use quire_document::{Binary, Doc, DocBuf, DocWriter, Timestamp, Value};
use quire_error::{Error, Result};
use quire_planner::AggregateRequest;

/// The subtype of binary data that is sensitive.
const SENSITIVE: u8 = 8;

/// Returns the rows.
///
/// # Errors
/// The errors of the operand; 13 Unauthorized for `transformIdentifiers` without the privilege.
pub fn stage(cx: &Context<'_>, _: &AggregateRequest, operand: Value<'_>) -> Result<Vec<DocBuf>> {
    let Value::Document(options) = operand else {
        let found = operand.type_name();
        let text = format!("$queryStats value must be an object. Found: {found}");
        return Err(Error::failed_to_parse(text));
    };
    let mut hasher = None;
    for arg in fields("$queryStats", options) {
        match arg.name() {
            "transformIdentifiers" => hasher = Some(parse_transform(arg.document()?)?),
            _ => return Err(arg.unknown()),
        }
    }
    if hasher.is_some() {
        cx.require(Target::Cluster, Action::QueryStatsReadTransformed)?;
    }
    let (recorded, _) = cx.service.recorder.recorded();
    let as_of = cx.service.clock.now();
    let reads = recorded.iter().filter(|one| {
        let is_read =
            matches!(one.known.kind, Kind::Find | Kind::Aggregate | Kind::Distinct | Kind::Count);
        is_read && one.known.cause == Cause::Client && one.measures.count > 0
    });
    Ok(reads.map(|one| row(cx, one, hasher.as_ref(), as_of)).collect())
}

/// Reads `{algorithm: "hmac-sha-256", hmacKey: <binary data>}`.
fn parse_transform(options: Doc<'_>) -> Result<Hasher> {
    const OWNER: &str = "$queryStats.transformIdentifiers";
    let (mut algorithm, mut key) = (None, None);
    for arg in fields(OWNER, options) {
        match arg.name() {
            "algorithm" => algorithm = Some(arg.string()?),
            "hmacKey" => key = Some(hmac_key(&arg)?),
            _ => return Err(arg.unknown()),
        }
    }
    match algorithm.ok_or_else(|| missing(OWNER, "algorithm"))? {
        "hmac-sha-256" => {}
        other => {
            let text = format!(
                "Enumeration value '{other}' for field '{OWNER}.algorithm' is not a valid value."
            );
            return Err(Error::bad_value(text));
        }
    }
    Ok(Hasher { key: key.ok_or_else(|| missing(OWNER, "hmacKey"))? })
}

fn hmac_key(arg: &Arg<'_>) -> Result<Vec<u8>> {
    match arg.value() {
        Value::Binary(Binary { subtype: 0 | SENSITIVE, bytes }) => Ok(bytes.to_vec()),
        _ => Err(arg.wrong_type("binData")),
    }
}

fn row(cx: &Context<'_>, one: &Recorded, hasher: Option<&Hasher>, as_of: Timestamp) -> DocBuf {
    let known = &one.known;
    let key = DocBuf::build(|key| {
        match hasher {
            Some(hasher) => key.append("queryShape", &transformed(known.shape.as_doc(), hasher)),
            None => key.append("queryShape", &known.shape),
        };
        if let Some(client) = &known.client {
            key.append("client", client);
        }
        key.append("collectionType", collection_type(cx, &known.namespace));
    });
    DocBuf::build(|row| {
        row.append("key", &key);
        row.append("keyHash", STANDARD.encode(known.client_key.to_be_bytes()).as_str());
        row.append("queryShapeHash", known.hash.to_string().as_str());
        write_metrics(&one.measures, &mut row.document("metrics"));
        row.append("asOf", as_of);
    })
}

/// Returns what the collection is now: `collection`, `view`, `virtual` without a collection, or
/// `nonExistent`.
fn collection_type(cx: &Context<'_>, namespace: &str) -> &'static str {
    let Ok(namespace) = Namespace::parse(namespace) else { return "virtual" };
    let catalog = cx.service.store.catalog();
    if namespace.collection().starts_with("$cmd") {
        "virtual"
    } else if catalog.view(&namespace).is_some() {
        "view"
    } else if catalog.lookup(&namespace).is_some() {
        "collection"
    } else {
        "nonExistent"
    }
}

fn write_metrics(measures: &Measures, out: &mut DocWriter<'_>) {
    long(out, "lastExecutionMicros", measures.last_micros);
    long(out, "execCount", measures.count);
    figure(out, "totalExecMicros", &measures.total_micros);
    figure(out, "firstResponseExecMicros", &measures.micros);
    figure(out, "docsReturned", &measures.returned);
    figure(out, "keysExamined", &measures.keys_examined);
    figure(out, "docsExamined", &measures.docs_examined);
    figure(out, "bytesRead", &measures.bytes_read);
    flag(out, "hasSortStage", measures.sorts, measures.count);
    flag(out, "usedDisk", measures.spills, measures.count);
    flag(out, "fromPlanCache", measures.cached_plans, measures.count);
    out.append("firstSeenTimestamp", Value::Date(measures.first_ms));
    out.append("latestSeenTimestamp", Value::Date(measures.last_ms));
}

fn figure(out: &mut DocWriter<'_>, name: &str, figure: &Figure) {
    let mut inner = out.document(name);
    long(&mut inner, "sum", figure.sum);
    long(&mut inner, "max", figure.max);
    long(&mut inner, "min", figure.min);
    inner.append("sumOfSquares", figure.squares_decimal());
}

/// Appends how many statements had a property and how many had not.
fn flag(out: &mut DocWriter<'_>, name: &str, with: u64, all: u64) {
    let mut inner = out.document(name);
    long(&mut inner, "true", with);
    long(&mut inner, "false", all.saturating_sub(with));
}

fn long(out: &mut DocWriter<'_>, name: &str, number: u64) {
    out.append(name, i64::try_from(number).unwrap_or(i64::MAX));
}
