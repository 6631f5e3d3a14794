//! The shape of a command that runs or has run, for logs, the profiler and `currentOp`: computed from
//! its document only on request.

use quire_document::{Doc, DocBuf, Value};
use quire_mql::collation::AskedCollation;
use quire_mql::whole;
use quire_planner::{
    AggregateRequest, CountRequest, DistinctRequest, FindRequest, ReadRequest, RequestShape,
};

/// A request that has a shape, read from its command's document without its options.
pub enum Requested {
    /// The request of a `find`.
    Find(FindRequest),
    /// The request of an `aggregate`.
    Aggregate(AggregateRequest),
    /// The request of a `count`.
    Count(CountRequest),
    /// The request of a `distinct`.
    Distinct(DistinctRequest),
}

impl Requested {
    /// Returns the request.
    pub fn as_read(&self) -> ReadRequest<'_> {
        match self {
            Requested::Find(request) => request.into(),
            Requested::Aggregate(request) => request.into(),
            Requested::Count(request) => request.into(),
            Requested::Distinct(request) => request.into(),
        }
    }
}

/// Returns the shape of a command on a database, or of the command that it explains. `None` if
/// [`requested`] returns none.
pub fn command_shape(db: &str, body: Doc<'_>) -> Option<RequestShape> {
    RequestShape::of(&requested(db, body)?.as_read())
}

/// Returns the request of a command on a database, or of the command that it explains. `None` for a
/// command that has no shape, and for one whose arguments are not those of its kind or were
/// shortened.
pub fn requested(db: &str, body: Doc<'_>) -> Option<Requested> {
    let first = body.first()?;
    if body.contains("$truncated") {
        return None;
    }
    let namespace = |name: Value<'_>| match name {
        Value::String(collection) => Some(format!("{db}.{collection}")),
        number if number.is_number() => Some(format!("{db}.$cmd.aggregate")),
        _ => None,
    };
    let (name, target) = (first.key(), first.value());
    let part = |name: &str| object(body, name);
    Some(match name {
        "explain" => return requested(db, target.as_document()?),
        "find" => Requested::Find(FindRequest {
            namespace: namespace(target)?,
            filter: part("filter")?,
            projection: part("projection")?,
            sort: part("sort")?,
            let_vars: part("let")?,
            min: part("min")?,
            max: part("max")?,
            skip: bound(body, "skip"),
            limit: bound(body, "limit"),
            return_key: body.get("returnKey").and_then(|set| set.as_bool()) == Some(true),
            show_record_id: body.get("showRecordId").and_then(|set| set.as_bool()) == Some(true),
            collation: collation(body)?,
            ..FindRequest::default()
        }),
        "aggregate" => {
            let stages = body.get("pipeline")?.as_array()?;
            let stages = stages.iter().map(|stage| stage.as_document().map(Doc::to_owned));
            Requested::Aggregate(AggregateRequest {
                namespace: namespace(target)?,
                pipeline: stages.collect::<Option<_>>()?,
                let_vars: part("let")?,
                collation: collation(body)?,
                ..AggregateRequest::default()
            })
        }
        "count" => Requested::Count(CountRequest {
            namespace: namespace(target)?,
            filter: part("query")?,
            skip: bound(body, "skip"),
            limit: bound(body, "limit"),
            collation: collation(body)?,
            ..CountRequest::default()
        }),
        "distinct" => Requested::Distinct(DistinctRequest {
            namespace: namespace(target)?,
            key: body.get("key")?.as_str()?.to_owned(),
            filter: part("query")?,
            collation: collation(body)?,
            ..DistinctRequest::default()
        }),
        _ => return None,
    })
}

/// Returns an object argument, empty if it is not given.
fn object(body: Doc<'_>, name: &str) -> Option<DocBuf> {
    match body.get(name) {
        None | Some(Value::Null) => Some(DocBuf::new()),
        Some(value) => value.as_document().map(Doc::to_owned),
    }
}

/// Returns a number of documents. The shape depends only on whether it is zero.
fn bound(body: Doc<'_>, name: &str) -> u64 {
    body.get(name).and_then(whole).map_or(0, i64::unsigned_abs)
}

fn collation(body: Doc<'_>) -> Option<AskedCollation> {
    match object(body, "collation")? {
        empty if empty.as_doc().is_empty() => Some(AskedCollation::Default),
        given => AskedCollation::parse(given.as_doc()).ok(),
    }
}
