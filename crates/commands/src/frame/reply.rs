//! The common parts of replies: one function writes an error reply, one a write error, one a write
//! concern error. No other code writes these.

use quire_document::{Doc, DocWriter};
use quire_error::{Error, Label};
use quire_storage::StorageError;

/// Appends `ok: 0` with code, message, details and labels.
pub fn write_error_reply(reply: &mut DocWriter<'_>, error: &Error) {
    reply.append("ok", 0.0);
    write_error_fields(reply, error);
    // Details that contain labels contain all of them.
    let details = error.details().map(Doc::from_valid_bytes);
    let labelled = details.is_some_and(|details| details.contains("errorLabels"));
    if !error.labels().is_empty() && !labelled {
        let mut labels = reply.array("errorLabels");
        error.labels().iter().for_each(|label: &Label| {
            labels.push(label.as_str());
        });
    }
}

fn write_error_fields(reply: &mut DocWriter<'_>, error: &Error) {
    reply.append("errmsg", error.message());
    reply.append("code", error.code().number());
    reply.append("codeName", &*error.code().name());
    if let Some(details) = error.details() {
        reply.append_all(Doc::from_valid_bytes(details));
    }
}

/// Appends one element of `writeErrors`.
pub fn write_write_error(entry: &mut DocWriter<'_>, index: i32, error: &Error) {
    entry.append("index", index);
    entry.append("code", error.code().number());
    if let Some(details) = error.details() {
        entry.append_all(Doc::from_valid_bytes(details));
    }
    entry.append("errmsg", error.message());
}

/// Appends `writeConcernError` to a reply.
pub fn write_write_concern_error(reply: &mut DocWriter<'_>, error: &Error) {
    let mut entry = reply.document("writeConcernError");
    entry.append("code", error.code().number());
    entry.append("codeName", &*error.code().name());
    entry.append("errmsg", error.message());
    if let Some(details) = error.details() {
        entry.append("errInfo", Doc::from_valid_bytes(details));
    }
}

/// Returns an error of running a pipeline over `namespace`.
pub fn of_aggregate(namespace: &str, error: Error) -> Error {
    error.context(&format!("Executor error during aggregate command on namespace: {namespace}"))
}

/// Returns the client's error for a storage error, never with the text of a backend.
pub fn from_storage(error: StorageError) -> Error {
    quire_collections::from_storage(error)
}

/// Appends a number as an int if it fits, else as a long.
pub fn number(writer: &mut DocWriter<'_>, name: &str, number: i64) {
    match i32::try_from(number) {
        Ok(small) => writer.append(name, small),
        Err(_) => writer.append(name, number),
    };
}

pub use quire_collections::from_interruption;
