//! The shape of a command that a log shows, as the recorder gives it to a statement.

use quire_advisor::workload::Kind;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_mql::shape::{Detail, of_filter, of_pipeline, of_projection, of_sort};

/// A shape, and the kind of its statements.
pub(super) struct Shaped {
    pub(super) kind: Kind,
    pub(super) shape: DocBuf,
}

/// Returns the shape of a command. `kind` is the word of the log, such as `update`; the command of
/// an update or delete is then its statement. `None` for a command without a shape.
pub(super) fn of(namespace: &str, kind: &str, command: Doc<'_>) -> Option<Shaped> {
    let (db, collection) = namespace.split_once('.')?;
    if db.is_empty() || collection.is_empty() || collection.starts_with("system.") {
        return None;
    }
    let kind = match kind {
        "update" => Kind::Update,
        "remove" | "delete" => Kind::Delete,
        "insert" => Kind::Insert,
        _ => kind_of(command.first()?.key())?,
    };
    let shape = DocBuf::build(|out| {
        out.document("cmdNs").append("db", db).append("coll", collection);
        out.append("command", kind.name());
        if let Some(collation) = command.get("collation") {
            out.append("collation", collation);
        }
        write(kind, command, out);
    });
    Some(Shaped { kind, shape })
}

fn kind_of(name: &str) -> Option<Kind> {
    match name {
        "findandmodify" => Some(Kind::FindAndModify),
        other => Kind::parse(other),
    }
}

fn write(kind: Kind, command: Doc<'_>, out: &mut DocWriter<'_>) {
    let document = |names: &[&str]| {
        let found = names.iter().find_map(|name| command.get(name));
        found.and_then(|value| value.as_document())
    };
    let filter = |out: &mut DocWriter<'_>, name: &str, names: &[&str]| {
        let filter = document(names).unwrap_or_default();
        out.append(name, &of_filter(filter, Detail::Request));
    };
    match kind {
        Kind::Aggregate => {
            let stages = command.get("pipeline").and_then(|stages| stages.as_array());
            let stages = stages.map(|stages| stages.to_vec()).unwrap_or_default();
            let stages = stages.into_iter().filter_map(|stage| stage.as_document());
            out.append("pipeline", &of_pipeline(stages));
        }
        Kind::Count => filter(out, "query", &["query"]),
        Kind::Distinct => {
            if let Some(key) = command.get("key") {
                out.append("key", key);
            }
            filter(out, "query", &["query"]);
        }
        Kind::Insert => {}
        Kind::Find => filter(out, "filter", &["filter"]),
        Kind::Update | Kind::Delete | Kind::FindAndModify => filter(out, "filter", &["q", "query"]),
    }
    if let Some(sort) = document(&["sort"]).filter(|sort| !sort.is_empty()) {
        out.append("sort", &of_sort(sort));
    }
    if let Some(fields) = document(&["projection", "fields"]).filter(|fields| !fields.is_empty()) {
        out.append("projection", &of_projection(fields));
    }
    match command.get("u").or_else(|| command.get("update")) {
        Some(Value::Document(update))
            if update.first().is_some_and(|one| one.key().starts_with('$')) =>
        {
            out.append("update", &operators(update));
        }
        Some(Value::Document(_)) => {
            out.append("update", "?object");
        }
        Some(Value::Array(stages)) => {
            let stages = stages.to_vec().into_iter().filter_map(|stage| stage.as_document());
            out.append("update", &of_pipeline(stages));
        }
        _ => {}
    }
    for name in ["skip", "limit"] {
        if command.contains(name) {
            out.append(name, "?number");
        }
    }
}

/// Returns update operators with a type in place of each value.
fn operators(update: Doc<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for (operator, fields) in update.fields() {
            let mut written = out.document(operator);
            for (path, value) in fields.as_document().into_iter().flat_map(Doc::fields) {
                written.append(path, format!("?{}", value.type_name()).as_str());
            }
        }
    })
}
