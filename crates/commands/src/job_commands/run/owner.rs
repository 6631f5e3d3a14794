//! The connection through which a job runs commands, with the rights that its owner has now.

use super::Run;
use crate::frame::in_process::Call;
use crate::frame::service::{Connection, ConnectionInfo};
use quire_access::{Action, Target};
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Label, Result};
use std::sync::Arc;

/// A connection of a job.
pub(super) struct Owned(Connection);

impl Run<'_> {
    /// Returns a connection with the rights of the job's owner.
    ///
    /// # Errors
    /// 11 UserNotFound if access control is on and the owner does not exist.
    pub fn connect(&self) -> Result<Owned> {
        let service = self.cx.service;
        let none = ConnectionInfo { id: 0, peer: None, local: None, certificate_subject: None };
        let mut connection = service.connect(none);
        connection.name = format!("job {}", self.definition.key()).into();
        connection.runs_job = true;
        if service.access.enforced {
            let Some(owner) = &self.definition.owner else {
                return Err(Error::new(ErrorCode::UserNotFound, "the job has no owner"));
            };
            let Some((_, identity)) = service.identify(owner)? else {
                let text = format!("the owner {owner} of the job does not exist");
                return Err(Error::new(ErrorCode::UserNotFound, text));
            };
            connection.identity = Some(Arc::new(identity));
        }
        Ok(Owned(connection))
    }

    /// Runs a command in the job's database, and returns its reply.
    ///
    /// # Errors
    /// The error of the command, or the first of its statements.
    pub fn call(&self, owned: &mut Owned, mut command: DocBuf) -> Result<DocBuf> {
        command.append("$db", self.definition.db.as_str());
        let bytes = command.into_bytes();
        let interrupt = Arc::clone(self.cx.interrupt);
        // The command before can have had a time limit of its own.
        interrupt.set_deadline(Some(self.until));
        let (reply, _) = owned.0.call(&Call::new(&bytes)?, interrupt);
        match failure(reply.as_doc()) {
            Some(error) => Err(error),
            None => Ok(reply),
        }
    }
}

impl Owned {
    /// Returns the number of the owner to which sessions belong; `None` without access control.
    pub fn number(&self) -> Option<[u8; 32]> {
        self.0.identity.as_ref().map(|identity| identity.owner)
    }

    /// Fails unless the owner may do this to a collection.
    ///
    /// # Errors
    /// 13 Unauthorized.
    pub fn require(&self, (db, collection): (&str, &str), action: Action) -> Result<()> {
        let Some(identity) = &self.0.identity else { return Ok(()) };
        if identity.privileges().allow(Target::Collection(db, collection), action) {
            return Ok(());
        }
        let text =
            format!("the job's owner is not allowed to {} in {db}.{collection}", action.name());
        Err(Error::new(ErrorCode::Unauthorized, text))
    }
}

/// Returns true if a reply says that its transaction can succeed if it runs again.
fn is_transient(reply: Doc<'_>) -> bool {
    let labels = reply.get("errorLabels").and_then(|labels| labels.as_array());
    let label = Label::TransientTransactionError.as_str();
    labels.into_iter().flat_map(|labels| labels.iter()).any(|found| found.as_str() == Some(label))
}

/// Returns the error that a reply reports, of the command or of its first failed statement.
fn failure(reply: Doc<'_>) -> Option<Error> {
    let error = |doc: Doc<'_>| {
        let code = doc.get("code").and_then(|code| code.exact_i64()).unwrap_or(1);
        let text = doc.get("errmsg").and_then(|text| text.as_str()).unwrap_or("a command failed");
        let error = Error::location(i32::try_from(code).unwrap_or(1), text);
        match is_transient(doc) {
            true => error.with_label(Label::TransientTransactionError),
            false => error,
        }
    };
    if reply.get("ok").and_then(|ok| ok.to_f64()) != Some(1.0) {
        return Some(error(reply));
    }
    match reply.get("writeErrors") {
        Some(Value::Array(errors)) => errors.iter().next()?.as_document().map(error),
        _ => None,
    }
}
