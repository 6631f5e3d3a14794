//! `convertToCapped`: makes a collection capped. It keeps its newest documents, and loses its secondary
//! indexes.

use crate::frame::context::Context;
use crate::frame::log::{LogLine, Severity};
use quire_catalog::Namespace;
use quire_catalog::capped::parse_size;
use quire_document::{Doc, DocWriter, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_session::Changed;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let namespace = cx.target(body)?;
    check_kind(&namespace)?;
    let bytes_max = capped_size(cx.command.name, body)?;
    let changed = Changed::Collections(vec![namespace.as_str().to_owned()]);
    let _change = cx.await_transactions(changed)?;
    let before = cx.service.store.catalog().lookup(&namespace).cloned();
    cx.change_catalog(|store, commit| {
        store.convert_to_capped(&namespace, bytes_max, &cx.interrupt, commit)
    })?;
    if before.is_some_and(|before| before.clustered_index().is_some()) {
        log_lost_order(cx, &namespace);
    }
    Ok(())
}

/// Logs that a collection is no longer clustered: MongoDB answers nothing but success.
fn log_lost_order(cx: &Context<'_>, namespace: &Namespace) {
    let message = "convertToCapped has made an ordinary capped collection of a clustered one; its documents no longer expire by clusteredIndex and expireAfterSeconds";
    cx.service.log().write(LogLine {
        severity: Severity::Warning,
        component: "COMMAND",
        id: 5_400_704,
        context: "convertToCapped",
        message,
        attributes: doc! { "namespace": namespace.as_str() },
    });
}

/// Returns the `size` of the copy. Unlike `create`, the commands refuse a value that is no size with
/// `InvalidOptions`.
pub(super) fn capped_size(command: &str, body: Doc<'_>) -> Result<u64> {
    let value = body.get("size").unwrap_or(Value::Null);
    let size = parse_size(&format!("{command}.size"), value);
    size.map_err(|error| match value.is_number() && is_positive(value) {
        true => error,
        false => {
            let text = format!("{command} requires a positive 'size'");
            Error::new(ErrorCode::InvalidOptions, text)
        }
    })
}

/// Returns true for a number that is at least 1 after it is rounded to a long.
fn is_positive(value: Value<'_>) -> bool {
    quire_catalog::capped::whole(value) >= 1
}

/// Refuses the collections that hold views, users, roles and the buckets of time series.
fn check_kind(namespace: &Namespace) -> Result<()> {
    let collection = namespace.collection();
    let is_of_server = namespace.db() == "admin" && collection.starts_with("system.");
    if collection == "system.views" || is_of_server {
        return Err(Error::bad_value(format!("{namespace} cannot be capped")));
    }
    if collection.starts_with("system.buckets.") {
        let text = format!("{namespace} cannot be capped");
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    Ok(())
}
