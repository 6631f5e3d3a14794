//! The generic fields, which every command takes: their types, and MongoDB's errors about them.

use crate::frame::args::{self, Arg, FieldNames};
use crate::frame::command::{Command, InTransaction, ReadConcerns};
use crate::frame::concern::{ReadConcern, ReadLevel, WriteConcern};
use crate::frame::context::Context;
use crate::frame::operation_session::{self, TransactionFields};
use crate::frame::read_preference;
use crate::frame::service::Service;
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::{for_each_row, not_in_api};
use quire_session::SessionId;

/// The generic fields, checked.
#[derive(Default)]
pub struct Generic<'c> {
    /// `maxTimeMS`, 0 for none.
    pub max_time_ms: u64,
    /// `comment`: shown in logs and listings.
    pub comment: Option<Value<'c>>,
    /// `lsid`: the session.
    pub session: Option<SessionId>,
    /// `txnNumber`: the number of the write or the transaction.
    pub txn_number: Option<i64>,
    /// `stmtId`: the id of a write's first statement. Other commands take it, too, and ignore it.
    pub statement_id: Option<i32>,
    /// `autocommit` and `startTransaction`.
    pub transaction: TransactionFields,
    /// `readConcern`: the consistency and durability of reads.
    pub read_concern: ReadConcern,
    /// `writeConcern`; `None` means the default.
    pub write_concern: Option<WriteConcern>,
    /// `$db`: the database.
    pub db: Option<Value<'c>>,
    /// `$clusterTime`: the client's cluster time.
    pub cluster_time: Option<Value<'c>>,
    /// `apiVersion`, `apiStrict`, `apiDeprecationErrors` as given.
    pub api: ApiParameters,
}

/// The Stable API's parameters of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiParameters {
    /// `apiVersion`: the version of the Stable API.
    pub version: Option<String>,
    /// `apiStrict`: refuse what the version lacks.
    pub strict: Option<bool>,
    /// `apiDeprecationErrors`: refuse what is deprecated.
    pub deprecation_errors: Option<bool>,
}

impl ApiParameters {
    /// Returns the parameters as a cursor keeps them.
    pub fn to_doc(&self) -> DocBuf {
        DocBuf::build(|writer| {
            if let Some(version) = &self.version {
                writer.append("apiVersion", version.as_str());
            }
            if let Some(strict) = self.strict {
                writer.append("apiStrict", strict);
            }
            if let Some(errors) = self.deprecation_errors {
                writer.append("apiDeprecationErrors", errors);
            }
        })
    }
}

/// The most fields of a command. None knows as many: `setParameter` and `getParameter` the most.
const FIELDS_MAX: usize = 1000;

/// Reads the generic fields. Refuses duplicate fields.
pub fn generic_fields<'c>(body: Doc<'c>, command: &'static Command) -> Result<Generic<'c>> {
    let mut generic = Generic::default();
    let mut names = FieldNames::default();
    for (at, element) in body.iter().enumerate() {
        let name = element.key_bytes();
        let twice = !names.is_new(name);
        if at == 0 {
            continue;
        }
        if at > FIELDS_MAX {
            let text = format!("a command may have at most {FIELDS_MAX} fields");
            return Err(Error::failed_to_parse(text));
        }
        if twice {
            let (command, name) = (command.name, element.key());
            let text = format!("BSON field '{command}.{name}' is a duplicate field");
            return Err(Error::new(ErrorCode::IDLDuplicateField, text));
        }
        if name == b"$db" {
            generic.db = Some(element.value());
        } else if args::is_generic(name) {
            generic_field(&mut generic, Arg::new(command.name, element), command, body)?;
        }
    }
    Ok(generic)
}

fn generic_field<'c>(
    generic: &mut Generic<'c>,
    arg: Arg<'c>,
    command: &'static Command,
    body: Doc<'_>,
) -> Result<()> {
    let name = arg.name();
    if arg.is_null() {
        return Ok(());
    }
    match name {
        "maxTimeMS" if command.continues_cursor || command.defines_max_time => {}
        "maxTimeMS" => generic.max_time_ms = max_time(&arg)?,
        "maxTimeMSOpOnly" => {
            let text = "Can not specify maxTimeMSOpOnly for non internal clients";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        "comment" => generic.comment = Some(arg.value()),
        "lsid" => generic.session = Some(operation_session::lsid(arg.value())?),
        "txnNumber" => {
            generic.txn_number = Some(operation_session::transaction_number(arg.value())?);
        }
        "stmtId" => generic.statement_id = Some(statement_id(&arg)?),
        "readConcern" => {
            let concern = ReadConcern::parse(arg.document()?)?;
            if command.read_concerns == ReadConcerns::OfCursor {
                let refused = concern.after_cluster_time.is_some().then(|| {
                    let text = "afterClusterTime is not allowed for this command";
                    Error::new(ErrorCode::InvalidOptions, text)
                });
                return refused.map_or(Ok(()), Err);
            }
            let snapshot = concern.level == Some(ReadLevel::Snapshot);
            let unknown = snapshot && command.read_concerns != ReadConcerns::All
                || !concern.is_plain() && !command.takes_read_concern();
            // The first command of a transaction sets the concern of all of them. What is created
            // is not in the snapshot, so that a transaction cannot begin with it.
            let creates = snapshot && matches!(command.name, "create" | "createIndexes");
            let chooses = || {
                command.in_transaction == InTransaction::Anywhere
                    && body.contains("startTransaction")
                    && !creates
            };
            if unknown && !chooses() {
                let text = format!("Command {} does not support this readConcern", command.name);
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
            generic.read_concern = concern;
        }
        "writeConcern" => {
            let concern = WriteConcern::parse(arg.document()?)?;
            if !command.takes_write_concern {
                let text = "Command does not support writeConcern";
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
            generic.write_concern =
                Some(concern).filter(|_| !arg.document().is_ok_and(Doc::is_empty));
        }
        "apiVersion" => generic.api.version = Some(arg.string()?.to_owned()),
        "apiStrict" => generic.api.strict = Some(arg.bool()?),
        "apiDeprecationErrors" => generic.api.deprecation_errors = Some(arg.bool()?),
        "$readPreference" => read_preference::check(&arg)?,
        "$clusterTime" => generic.cluster_time = Some(arg.value()),
        "autocommit" => generic.transaction.autocommit = Some(arg.bool()?),
        "startTransaction" => generic.transaction.start = Some(arg.bool()?),
        _ => {}
    }
    Ok(())
}

fn statement_id(arg: &Arg<'_>) -> Result<i32> {
    match arg.value() {
        Value::Int32(id) => Ok(id),
        _ => Err(arg.wrong_type("int")),
    }
}

/// Reads the field `maxTimeMS`.
pub fn max_time(arg: &Arg<'_>) -> Result<u64> {
    let value = arg.value();
    if !value.is_number() {
        return Err(Error::type_mismatch("maxTimeMS must be a number"));
    }
    let Some(whole) = value.exact_i64() else {
        return Err(Error::failed_to_parse("maxTimeMS has non-integral value"));
    };
    if !(0..=i64::from(i32::MAX)).contains(&whole) {
        let text = format!("{whole} value for maxTimeMS is out of range");
        return Err(Error::bad_value(text));
    }
    Ok(whole as u64)
}

impl Context<'_> {
    /// Checks a pipeline's stages, also those inside of stages, if the client uses the strict
    /// Stable API.
    ///
    /// # Errors
    /// 323 APIStrictError.
    pub fn check_stages_api(&self, pipeline: &[DocBuf]) -> Result<()> {
        if self.generic.api.strict != Some(true) {
            return Ok(());
        }
        for_each_row(pipeline.iter().map(DocBuf::as_doc), &mut |row| {
            if row.facts.in_api { Ok(()) } else { Err(not_in_api(row.name)) }
        })
    }
}

/// Checks the Stable API parameters against the command and its fields.
pub fn check_api(
    api: &ApiParameters,
    command: &Command,
    body: Doc<'_>,
    service: &Service,
) -> Result<()> {
    let Some(version) = &api.version else {
        if api.strict.is_some() || api.deprecation_errors.is_some() {
            let text = "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion";
            return Err(Error::location(4886600, text));
        }
        if service.parameters.cached.require_api_version() && !command.continues_cursor {
            let text = "The apiVersion parameter is required, please configure your MongoClient's API version";
            return Err(Error::location(498870, text));
        }
        return Ok(());
    };
    if version != "1" {
        let text = format!("Cannot accept API version {version}");
        return Err(Error::new(ErrorCode::APIVersionError, text));
    }
    if api.strict != Some(true) {
        return Ok(());
    }
    let spelling = body.first().map_or("", |first| first.key());
    if !command.in_api_v1 || spelling != command.name {
        let text =
            format!("Provided apiStrict:true, but the command {spelling} is not in API Version 1");
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    if let Some(field) = command.outside_api_v1.iter().find(|field| body.contains(field)) {
        let owner = command.request_name;
        let text = format!("BSON field '{owner}.{field}' is not allowed with apiStrict:true.");
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    Ok(())
}
