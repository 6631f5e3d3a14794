//! A shape as the recorder knows it: computed once for a fingerprint on a connection, when its first
//! statement ends.

use crate::frame::account::Ended;
use crate::frame::command_shape::command_shape;
use crate::frame::service::Connection;
use crate::frame::usage::Class;
use foldhash::fast::FixedState;
use quire_advisor::workload::{Cause, Kind};
use quire_document::{Array, Doc, DocBuf, Value};
use quire_mql::collation::AskedCollation;
use quire_planner::{RequestShape, ShapeHash, WriteParts};
use std::hash::BuildHasher;

/// A shape with its cause and the client that asked.
pub struct Known {
    /// What its statements do.
    pub kind: Kind,
    /// Whose work they are.
    pub cause: Cause,
    /// The collection, `database.collection`.
    pub namespace: String,
    /// The normal form.
    pub shape: DocBuf,
    /// The hash of the normal form.
    pub hash: ShapeHash,
    /// The metadata of the client; `None` for work of the server.
    pub client: Option<DocBuf>,
    /// The key of shape and cause.
    pub key: u64,
    /// The key of shape, cause and client.
    pub client_key: u64,
}

impl Known {
    /// Returns a shape that the server's own work has.
    pub fn own(kind: Kind, cause: Cause, namespace: &str, filter: Doc<'_>) -> Known {
        let parts = WriteParts {
            command: kind.name(),
            filter: Some(filter),
            multi: true,
            ..WriteParts::default()
        };
        let shape = RequestShape::of_write(namespace, &AskedCollation::Default, &parts);
        Known::of(kind, cause, namespace, shape, None)
    }

    fn of(
        kind: Kind,
        cause: Cause,
        namespace: &str,
        shape: RequestShape,
        client: Option<DocBuf>,
    ) -> Known {
        let hash = shape.hash();
        let mut first = [0; 8];
        first.copy_from_slice(&hash.0[..8]);
        let key = u64::from_be_bytes(first) ^ cause as u64;
        let state = FixedState::with_seed(key);
        let client_key = client.as_ref().map_or(key, |client| state.hash_one(client.as_bytes()));
        let (namespace, shape) = (namespace.to_owned(), shape.document().clone());
        Known { kind, cause, namespace, shape, hash, client, key, client_key }
    }
}

/// Returns the shape of a statement that has ended; `None` for one that has none.
pub(super) fn of_ended(connection: &Connection, ended: &Ended<'_>) -> Option<Known> {
    let command = ended.tally.originating.as_ref().map_or(ended.command, DocBuf::as_doc);
    let (kind, shape) = match ended.op {
        Class::Insert => (Kind::Insert, of_write(ended.namespace, "insert", None)),
        Class::Update => (Kind::Update, of_write(ended.namespace, "update", Some(command))),
        Class::Remove => (Kind::Delete, of_write(ended.namespace, "delete", Some(command))),
        Class::Query | Class::GetMore | Class::Command => match command.first()?.key() {
            "findAndModify" | "findandmodify" => {
                let shape = of_write(ended.namespace, "findAndModify", Some(command));
                (Kind::FindAndModify, shape)
            }
            name => (Kind::parse(name)?, command_shape(ended.db(), command)?),
        },
    };
    let namespace = match ended.op {
        // A getMore names the collection of the cursor.
        Class::GetMore => namespace_of(&shape)?,
        _ => ended.namespace.to_owned(),
    };
    let client = connection.client_metadata().map(Doc::to_owned);
    let cause = if connection.runs_job { Cause::Job } else { Cause::Client };
    Some(Known::of(kind, cause, &namespace, shape, client))
}

fn namespace_of(shape: &RequestShape) -> Option<String> {
    let namespace = shape.document().get("cmdNs")?.as_document()?;
    let part = |name: &str| namespace.get(name)?.as_str();
    Some(format!("{}.{}", part("db")?, part("coll")?))
}

/// Returns the shape of a statement that writes, read from its document: an element of `updates`,
/// `deletes` or `ops`, or a `findAndModify`.
pub(super) fn of_write(namespace: &str, command: &str, statement: Option<Doc<'_>>) -> RequestShape {
    let Some(statement) = statement else {
        let parts = WriteParts { command, ..WriteParts::default() };
        return RequestShape::of_write(namespace, &AskedCollation::Default, &parts);
    };
    let document = |name: &str| statement.get(name).and_then(|value| value.as_document());
    let update = |name: &str| {
        let value = statement.get(name)?;
        matches!(value, Value::Document(_) | Value::Array(_)).then_some(value)
    };
    let is_true = |name: &str| match statement.get(name) {
        Some(Value::Bool(flag)) => flag,
        Some(number) => number.exact_i64().is_some_and(|number| number != 0),
        None => false,
    };
    // `limit` of a delete: 1 for one document, 0 for all.
    let is_all = statement.contains("limit") && !is_true("limit");
    let array_filters: Option<Array<'_>> =
        statement.get("arrayFilters").and_then(|filters| filters.as_array());
    let parts = WriteParts {
        command,
        filter: Some(
            ["q", "filter", "query"].into_iter().find_map(document).unwrap_or(Doc::empty()),
        ),
        update: ["u", "updateMods", "update"].into_iter().find_map(update),
        array_filters,
        sort: document("sort").unwrap_or(Doc::empty()),
        fields: document("fields").unwrap_or(Doc::empty()),
        multi: is_true("multi") || is_all,
        upsert: is_true("upsert"),
        remove: is_true("remove"),
    };
    let collation = document("collation").map(AskedCollation::parse);
    let collation = collation.and_then(Result::ok).unwrap_or_default();
    RequestShape::of_write(namespace, &collation, &parts)
}

/// Returns what a statement of `update`, `delete` or `bulkWrite` does; for the last also its
/// collection, which `place` finds.
pub(super) fn of_statement(
    command: &str,
    statement: Doc<'_>,
    place: impl FnOnce() -> Option<String>,
) -> (Kind, Option<String>) {
    match (command, statement.first().map_or("", |first| first.key())) {
        ("update", _) => (Kind::Update, None),
        ("delete", _) => (Kind::Delete, None),
        (_, "update") => (Kind::Update, place()),
        (_, "delete") => (Kind::Delete, place()),
        _ => (Kind::Insert, place()),
    }
}
