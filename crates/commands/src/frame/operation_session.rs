//! The session fields of a command (`lsid`, `txnNumber`, `autocommit`, `startTransaction`): their
//! types, the commands that take them, and the session that they name.

use crate::frame::accounts::Identity;
use crate::frame::args::{self, Arg};
use crate::frame::command::{Command, InTransaction, Kind};
use crate::frame::concern::ReadLevel;
use crate::frame::generic_fields::Generic;
use crate::frame::service::{Service, Topology, now_ms};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_session::{NO_USER, Session, SessionId};
use std::sync::Arc;

const OWNER: &str = "OperationSessionInfo";

/// `autocommit` and `startTransaction`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionFields {
    /// `autocommit`, if given.
    pub autocommit: Option<bool>,
    /// `startTransaction`, if given.
    pub start: Option<bool>,
}

/// Reads the field `lsid`.
pub fn lsid(value: Value<'_>) -> Result<SessionId> {
    match value {
        Value::Document(doc) => session_id("OperationSessionInfo.lsid", doc),
        other => Err(Error::type_mismatch(format!(
            "BSON field '{OWNER}.lsid' is the wrong type '{}', expected type 'object'",
            other.type_name()
        ))),
    }
}

/// Reads a session id: `id`, and `uid` for a session of another user.
pub fn session_id(owner: &'static str, doc: Doc<'_>) -> Result<SessionId> {
    let (mut id, mut user) = (None, NO_USER);
    for arg in args::fields(owner, doc) {
        match (arg.name(), arg.value()) {
            ("id" | "uid", value) if value.is_nullish() => {}
            ("id", _) => id = Some(uuid(&arg, owner)?),
            ("uid", _) => user = digest(&arg)?,
            ("txnNumber" | "txnUUID", _) => return Err(Error::not_built("an internal session")),
            _ => return Err(arg.unknown()),
        }
    }
    let id = id.ok_or_else(|| args::missing(owner, "id"))?;
    Ok(SessionId { id, user })
}

fn uuid(arg: &Arg<'_>, owner: &str) -> Result<[u8; 16]> {
    let Value::Binary(binary) = arg.value() else { return Err(arg.wrong_type("binData")) };
    if binary.subtype != 4 {
        let found = match binary.subtype {
            0 => "general",
            3 => "UUID(deprecated)",
            _ => "other",
        };
        return Err(Error::type_mismatch(format!(
            "BSON field '{owner}.id' is the wrong bindData type '{found}', expected type 'UUID'"
        )));
    }
    binary.bytes.try_into().map_err(|_| {
        let text = "uuid must be a 16-byte binary field with UUID (4) subtype";
        Error::new(ErrorCode::InvalidUUID, text)
    })
}

/// Reads the digest of a user.
pub fn digest(arg: &Arg<'_>) -> Result<[u8; 32]> {
    let Value::Binary(binary) = arg.value() else { return Err(arg.wrong_type("binData")) };
    binary.bytes.try_into().map_err(|_| {
        let text = format!("Unsupported SHA256Block hash length: {}", binary.bytes.len());
        Error::new(ErrorCode::UnsupportedFormat, text)
    })
}

/// Reads the field `txnNumber`.
pub fn transaction_number(value: Value<'_>) -> Result<i64> {
    match value {
        Value::Int64(number) if number >= 0 => Ok(number),
        Value::Int64(_) => {
            Err(Error::new(ErrorCode::InvalidOptions, "Transaction number cannot be negative"))
        }
        other => {
            let found = other.type_name();
            Err(Error::type_mismatch(format!(
                "BSON field '{OWNER}.txnNumber' is the wrong type '{found}', expected type 'long'"
            )))
        }
    }
}

/// Checks the fields against each other, against the command and, if it is given, against the
/// topology.
pub fn check(generic: &Generic<'_>, command: &Command, topology: Option<&Topology>) -> Result<()> {
    let invalid = |text: &str| Err(Error::new(ErrorCode::InvalidOptions, text));
    let TransactionFields { autocommit, start } = generic.transaction;
    if start.is_some() && autocommit.is_none() {
        return invalid(
            "'startTransaction' field requires 'autocommit' field to also be specified",
        );
    }
    if autocommit.is_some() && generic.txn_number.is_none() {
        return invalid("'autocommit' field requires a transaction number to also be specified");
    }
    if generic.txn_number.is_none() {
        return Ok(());
    }
    if generic.session.is_none() {
        return invalid("Transaction number requires a session ID to also be specified");
    }
    if autocommit == Some(true) {
        return invalid("Specifying autocommit=true is not allowed.");
    }
    if start == Some(false) {
        return invalid("Specifying startTransaction=false is not allowed.");
    }
    if command.before_login && autocommit.is_none() {
        let text = "It is illegal to provide a txnNumber for this command";
        return Err(Error::location(50889, text));
    }
    if topology == Some(&Topology::Standalone) {
        let text = "Transaction numbers are only allowed on a replica set member or mongos";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    if autocommit.is_some() {
        check_in_transaction(command, start == Some(true))?;
        return check_concerns(generic, command);
    }
    if !command.retryable {
        let name = command.name;
        let text = format!(
            "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and {name} is not a retryable write command."
        );
        return Err(Error::location(50768, text));
    }
    Ok(())
}

/// Refuses a command that must not run in a transaction of several statements.
///
/// # Errors
/// 263 OperationNotSupportedInTransaction.
fn check_in_transaction(command: &Command, first: bool) -> Result<()> {
    let text = match command.in_transaction {
        InTransaction::Anywhere => return Ok(()),
        InTransaction::AfterFirst | InTransaction::Ends if !first => return Ok(()),
        InTransaction::Ends => format!("Cannot start a transaction with '{}'", command.name),
        InTransaction::AfterFirst => {
            format!("Cannot run '{}' as the first operation of a transaction.", command.name)
        }
        InTransaction::RefusedFor(instead) => {
            format!("Cannot run '{}' in a multi-document transaction. {instead}", command.name)
        }
        InTransaction::Refused => {
            format!("Cannot run '{}' in a multi-document transaction.", command.name)
        }
    };
    Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
}

/// Returns the session id with its owner, the logged-in user. Before a login no session is used.
///
/// # Errors
/// 13 Unauthorized for the session of another user.
pub fn owned(
    id: Option<SessionId>,
    service: &Service,
    identity: Option<&Identity>,
) -> Result<Option<SessionId>> {
    let (Some(id), true) = (id, service.access.enforced) else { return Ok(id) };
    let Some(identity) = identity else { return Ok(None) };
    match id.user == NO_USER || id.user == identity.owner {
        true => Ok(Some(SessionId { user: identity.owner, ..id })),
        false => {
            let text = "the session belongs to another user";
            Err(Error::new(ErrorCode::Unauthorized, text))
        }
    }
}

/// Checks the concerns of a command in a transaction: the first command sets the read concern, the
/// commit the write concern.
fn check_concerns(generic: &Generic<'_>, command: &Command) -> Result<()> {
    let invalid = |text: &str| Err(Error::new(ErrorCode::InvalidOptions, text));
    if generic.write_concern.is_some() && command.in_transaction != InTransaction::Ends {
        return invalid("writeConcern is not allowed within a multi-statement transaction");
    }
    let concern = &generic.read_concern;
    if generic.transaction.start != Some(true) {
        let given = concern.level.is_some()
            || concern.after_cluster_time.is_some()
            || concern.at_cluster_time.is_some();
        return match given && !command.continues_cursor {
            true => invalid("Only the first command in a transaction may specify a readConcern"),
            false => Ok(()),
        };
    }
    if matches!(concern.level, Some(ReadLevel::Available | ReadLevel::Linearizable)) {
        return invalid(
            "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction",
        );
    }
    Ok(())
}

/// Refuses the databases and collections that a transaction must not read or write.
///
/// # Errors
/// 263 OperationNotSupportedInTransaction.
pub fn check_namespace(
    generic: &Generic<'_>,
    command: &Command,
    db: &str,
    body: Doc<'_>,
) -> Result<()> {
    if generic.transaction.autocommit.is_none() {
        return Ok(());
    }
    let reads = command.kind == Kind::Read;
    let collection = body.first().and_then(|first| first.value().as_str()).unwrap_or_default();
    let text = match (db, collection) {
        ("config", _) => {
            "Cannot run command against the config database in a transaction.".to_owned()
        }
        ("local", _) => {
            "Cannot run command against the 'local' database in a transaction.".to_owned()
        }
        (_, "system.views") if !reads => return Ok(()),
        (_, "system.profile" | "system.views") => format!(
            "Cannot run command against the '{db}.{collection}' collection in a transaction."
        ),
        _ => return Ok(()),
    };
    Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
}

/// Returns the session that the command uses. The first use creates the session.
pub fn attach(service: &Service, id: Option<SessionId>) -> Result<Option<Arc<Session>>> {
    id.map(|id| service.touch_session(id, now_ms())).transpose()
}
