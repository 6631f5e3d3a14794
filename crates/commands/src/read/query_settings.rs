//! `setQuerySettings`, `removeQuerySettings` and the rows of `$querySettings`: decisions of an
//! administrator about requests of one shape. (Manual: "setQuerySettings".)

use crate::frame::args::{Arg, arguments, fields, missing};
use crate::frame::command_shape::{command_shape, requested};
use crate::frame::context::Context;
use crate::frame::query_settings::ShapeSetting;
use crate::read::find_request::parse_find;
use crate::read::on_view;
use quire_catalog::{Namespace, QuerySettings};
use quire_document::{Array, Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{UnitOfWork, explain};
use quire_mql::stage::{Reads, row_of};
use quire_planner::{
    AggregateRequest, ReadRequest, RequestShape, ShapeHash, Verbosity, id_to_look_up,
};
use std::sync::Arc;

/// A shape as a command names it.
struct Named<'b> {
    hash: ShapeHash,
    /// A request of the shape; `None` if it is named by its hash.
    query: Option<Doc<'b>>,
}

/// Runs `setQuerySettings`: adds settings to those of a shape.
pub fn set(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut given = None;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "settings" => given = Some(arg.document()?),
            _ => return Err(arg.unknown()),
        }
    }
    let given = given.ok_or_else(|| missing(cx.command.name, "settings"))?;
    let given = parse_settings(given)?;
    let named = named(cx, body)?;
    if let Some(query) = named.query {
        check_allowed(query)?;
    }
    let Named { hash, query } = named;
    let set = cx.change_query_settings(|settings| {
        let old = settings.remove(&hash);
        let old_settings = old.as_ref().map(|old| &old.settings.shown);
        let shown = merged(given.as_doc(), old_settings.map(DocBuf::as_doc).unwrap_or_default())?;
        let representative = query.map(Doc::to_owned).or(old.and_then(|old| old.representative));
        let setting =
            ShapeSetting { settings: Arc::new(QuerySettings::new(shown)), representative };
        settings.insert(hash, setting.clone());
        Ok(setting)
    })?;
    write(hash, &set, reply);
    Ok(())
}

/// Runs `removeQuerySettings`: removes the settings of a shape, if there are any.
pub fn remove(cx: &mut Context<'_>, body: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let hash = named(cx, body)?.hash;
    if !cx.service.query_settings.all().contains_key(&hash) {
        return Ok(());
    }
    cx.change_query_settings(|settings| {
        settings.remove(&hash);
        Ok(())
    })
}

/// Returns the rows of a `$querySettings`.
///
/// # Errors
/// 73 InvalidNamespace if the pipeline reads a collection; the errors of the operand.
pub fn stage(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    if !request.namespace.ends_with(".$cmd.aggregate") {
        let text = "$querySettings must be run on a database with {aggregate: 1}";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let Value::Document(options) = operand else {
        let text = "$querySettings stage expects a document as argument";
        return Err(Error::location(7746800, text));
    };
    let mut show_shape = false;
    for arg in fields("$querySettings", options) {
        match arg.name() {
            "showDebugQueryShape" => {
                let wrong = || arg.wrong_type("bool");
                show_shape = arg.value().as_bool().ok_or_else(wrong)?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    let all = cx.service.query_settings.all();
    let rows = all.iter().map(|(hash, setting)| {
        DocBuf::build(|row| {
            write(*hash, setting, row);
            let query = setting.representative.as_ref().filter(|_| show_shape);
            let shape =
                query.and_then(|query| command_shape(query.get("$db")?.as_str()?, query.as_doc()));
            if let Some(shape) = shape {
                row.append("debugQueryShape", shape.document());
            }
        })
    });
    Ok(rows.collect())
}

fn write(hash: ShapeHash, setting: &ShapeSetting, out: &mut DocWriter<'_>) {
    out.append("queryShapeHash", hash.to_string().as_str());
    if let Some(query) = &setting.representative {
        out.append("representativeQuery", query);
    }
    out.append("settings", &setting.settings.shown);
}

/// Returns the shape that the command's first field names, by a request or by its hash.
fn named<'b>(cx: &Context<'_>, body: Doc<'b>) -> Result<Named<'b>> {
    let Some(first) = body.first() else { return Err(missing(cx.command.name, cx.command.name)) };
    let arg = Arg::new(cx.command.name, first);
    match arg.value() {
        Value::Document(query) => {
            let hash = hash_of(cx, query)?;
            Ok(Named { hash, query: Some(query) })
        }
        Value::String(digits) => {
            let hash = match ShapeHash::parse(digits) {
                Some(hash) => hash,
                None if digits.chars().all(|digit| digit.is_ascii_hexdigit()) => {
                    let text = format!(
                        "a query shape hash has 64 hexadecimal digits, not {}",
                        digits.len()
                    );
                    return Err(Error::new(ErrorCode::InvalidLength, text));
                }
                None => {
                    let text = "a query shape hash has hexadecimal digits only";
                    return Err(Error::bad_value(text));
                }
            };
            Ok(Named { hash, query: None })
        }
        _ => Err(arg.wrong_type("object")),
    }
}

/// Returns the hash of a request's shape, if the request could run.
fn hash_of(cx: &Context<'_>, query: Doc<'_>) -> Result<ShapeHash> {
    let kind = query.first().map_or("", |first| first.key());
    let options = match kind {
        "find" => &[][..],
        "distinct" => &["key", "query", "collation", "hint", "includeQueryStatsMetrics"],
        "aggregate" => AGGREGATE_ARGUMENTS,
        _ => {
            let text = format!("QueryShape can not be computed for command '{kind}'");
            return Err(Error::location(7746402, text));
        }
    };
    let db = database(query)?;
    quire_catalog::validate_db_name(db)?;
    match kind {
        "find" => drop(parse_find(format!("{db}.{}", collection(query)), query)?),
        _ => {
            let unknown =
                arguments("QueryInstance", query).find(|arg| !options.contains(&arg.name()));
            if let Some(unknown) = unknown {
                return Err(unknown.unknown());
            }
        }
    }
    let request = requested(db, query).ok_or_else(|| {
        Error::failed_to_parse(format!("an argument of the command {kind} has the wrong type"))
    })?;
    let request = request.as_read();
    check_arguments(cx, request)?;
    let shape = RequestShape::of(&request);
    shape.map(|shape| shape.hash()).ok_or_else(|| Error::internal("a request without a shape"))
}

/// The arguments of `aggregate` that a request of a shape may have.
const AGGREGATE_ARGUMENTS: &[&str] = &[
    "pipeline",
    "cursor",
    "let",
    "collation",
    "hint",
    "allowDiskUse",
    "explain",
    "bypassDocumentValidation",
    "includeQueryStatsMetrics",
];

/// Plans a request, without its hint, to find out whether its arguments are right.
fn check_arguments(cx: &Context<'_>, request: ReadRequest<'_>) -> Result<()> {
    if let ReadRequest::Aggregate(aggregate) = request {
        let first = aggregate.pipeline.first().map(|stage| Value::Document(stage.as_doc()));
        let row = first.map(row_of).transpose()?;
        // A change stream has no plan of its own.
        let is_stream = row.as_ref().is_some_and(|(row, _)| row.name == "$changeStream");
        if is_stream || row.is_some_and(|(row, _)| row.facts.reads == Reads::Server) {
            return Ok(());
        }
    }
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    let resolved = on_view::resolved(request, &views)?;
    let request = resolved.as_ref().map_or(request, ReadRequest::Aggregate);
    let mut params = cx.exec_params();
    params.no_table_scan = false;
    explain(request, None, Verbosity::QueryPlanner, &mut views, params).map(drop)
}

/// Returns the collection of a request.
fn collection(query: Doc<'_>) -> &str {
    query.first().and_then(|first| first.value().as_str()).unwrap_or_default()
}

/// Returns the database of a request.
fn database(query: Doc<'_>) -> Result<&str> {
    match query.get("$db") {
        None | Some(Value::Null) => Err(missing("QueryInstance", "$db")),
        Some(Value::String(db)) => Ok(db),
        Some(other) => {
            let text = format!(
                "BSON field 'QueryInstance.$db' is the wrong type '{}', expected type 'string'",
                other.type_name()
            );
            Err(Error::type_mismatch(text))
        }
    }
}

/// Refuses settings for requests of the server's own databases and collections, and for lookups by
/// `_id`, which compute no shape.
fn check_allowed(query: Doc<'_>) -> Result<()> {
    let db = query.get("$db").and_then(|db| db.as_str()).unwrap_or_default();
    let collection = collection(query);
    if matches!(db, "admin" | "local" | "config") || collection.starts_with("system.") {
        let text = format!(
            "setQuerySettings can not be used on the internal collection {db}.{collection}"
        );
        return Err(Error::location(8584900, text));
    }
    if query.contains("find") {
        let (request, _) = parse_find(format!("{db}.{collection}"), query)?;
        if id_to_look_up(&request, None).is_some() {
            let text = "setQuerySettings can not be used for a lookup by _id";
            return Err(Error::location(7746606, text));
        }
    }
    Ok(())
}

/// Checks settings and returns them in MongoDB's order, without index hints that allow no index.
fn parse_settings(given: Doc<'_>) -> Result<DocBuf> {
    if given.is_empty() {
        let text = "settings field in setQuerySettings command cannot be empty";
        return Err(Error::location(8727502, text));
    }
    let mut hints = None;
    for arg in fields("QuerySettings", given) {
        match arg.name() {
            "indexHints" if arg.is_null() => {}
            "indexHints" => hints = Some(parse_hints(&arg)?),
            "queryFramework" if arg.is_null() => {}
            "queryFramework" => {
                let name = arg.string()?;
                if !matches!(name, "classic" | "sbe") {
                    let text = format!(
                        "Enumeration value '{name}' for field 'settings.queryFramework' is not a valid value."
                    );
                    return Err(Error::bad_value(text));
                }
            }
            "reject" => {
                arg.value().as_bool().ok_or_else(|| arg.wrong_type("bool"))?;
            }
            "comment" => {}
            _ => return Err(arg.unknown()),
        }
    }
    Ok(DocBuf::build(|out| {
        if let Some(hints) = hints {
            let mut list = out.array("indexHints");
            hints.into_iter().for_each(|hint| {
                list.push(hint);
            });
        }
        for name in ["queryFramework", "reject", "comment"] {
            out.append_some(name, given.get(name));
        }
    }))
}

/// Returns the index hints that allow an index.
fn parse_hints<'b>(arg: &Arg<'b>) -> Result<Vec<Doc<'b>>> {
    let hints = match arg.value() {
        Value::Document(hint) => vec![hint],
        Value::Array(hints) => {
            let hint = |hint: Value<'b>| hint.as_document().ok_or_else(|| arg.wrong_type("object"));
            hints.iter().map(hint).collect::<Result<_>>()?
        }
        _ => return Err(arg.wrong_type("array")),
    };
    let mut kept = Vec::new();
    let mut seen: Vec<Namespace> = Vec::new();
    for hint in hints {
        let (namespace, allowed) = parse_hint(hint)?;
        if seen.contains(&namespace) {
            let text = format!("Collection '{namespace}' has already index hints specified.");
            return Err(Error::location(7746608, text));
        }
        seen.push(namespace);
        if allowed.count() > 0 {
            kept.push(hint);
        }
    }
    Ok(kept)
}

/// Returns the collection and the indexes of one hint.
fn parse_hint(hint: Doc<'_>) -> Result<(Namespace, Array<'_>)> {
    const OWNER: &str = "IndexHintSpec";
    let (mut namespace, mut allowed) = (None, None);
    for arg in fields(OWNER, hint) {
        match arg.name() {
            "ns" if !arg.is_null() => namespace = Some(parse_namespace(arg.document()?)?),
            "allowedIndexes" if !arg.is_null() => allowed = Some(arg.array()?),
            "ns" | "allowedIndexes" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = namespace.ok_or_else(|| missing(OWNER, "ns"))?;
    let allowed = allowed.ok_or_else(|| missing(OWNER, "allowedIndexes"))?;
    for index in allowed.iter() {
        match index {
            Value::String(_) => {}
            Value::Document(pattern) if !pattern.is_empty() => {}
            _ => {
                let text = "Hint must be a string or an object that is not empty";
                return Err(Error::failed_to_parse(text));
            }
        }
    }
    Ok((namespace, allowed))
}

fn parse_namespace(namespace: Doc<'_>) -> Result<Namespace> {
    let (mut db, mut coll) = (None, None);
    for arg in fields("NamespaceSpec", namespace) {
        match arg.name() {
            "db" if !arg.is_null() => db = Some(arg.string()?),
            "coll" if !arg.is_null() => coll = Some(arg.string()?),
            "db" | "coll" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let missing = |code, what: &str| {
        let text = format!("index hints without a {what} in their namespace");
        Error::location(code, text)
    };
    let db = db.ok_or_else(|| missing(8727500, "database"))?;
    let coll = coll.ok_or_else(|| missing(8727501, "collection"))?;
    Namespace::new(db, coll)
}

/// Returns `old` with the fields of `given` in place of its own.
///
/// # Errors
/// 7746604 if the result decides nothing.
fn merged(given: Doc<'_>, old: Doc<'_>) -> Result<DocBuf> {
    let merged = DocBuf::build(|out| {
        for name in ["indexHints", "queryFramework", "reject", "comment"] {
            out.append_some(name, given.get(name).or_else(|| old.get(name)));
        }
    });
    let hints = merged.get("indexHints").and_then(|hints| hints.as_array());
    let decides = hints.is_some_and(|hints| hints.count() > 0)
        || merged.get("queryFramework").is_some_and(|framework| !framework.is_nullish())
        || merged.get("reject").and_then(|reject| reject.as_bool()) == Some(true);
    match decides {
        true => Ok(merged),
        false => {
            let text = "the resulting settings cannot be empty or contain only default values";
            Err(Error::location(7746604, text))
        }
    }
}
