//! `analyzeSchema` and the stage `$schemaStats`: what the documents of a collection, of a view or of
//! a whole database look like. docs/profile.md describes the result.

mod source;

pub use source::ServerCollections;

use crate::frame::args::{Arg, arguments, fields};
use crate::frame::context::Context;
use quire_advisor::report::{report, report_collection};
use quire_advisor::{
    DatabaseProfile, Extent, Limits, Progress, SourceCollection, profile_database,
};
use quire_catalog::Namespace;
use quire_document::limits::USER_DOCUMENT_BYTES_MAX;
use quire_document::memory::{self, Charge};
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_planner::AggregateRequest;

/// The documents that are read of a collection unless the client says otherwise.
const SAMPLE: u64 = 10_000;

/// The memory that is taken from the server's pool for a profile: what 1,000 paths need.
const PROFILE_BYTES: usize = 32 << 20;

/// What is read of the data.
#[derive(Clone, Copy)]
pub struct Reading {
    sample: Option<u64>,
    full: bool,
}

impl Reading {
    /// Returns a reading of a sample of the usual size.
    pub fn new() -> Reading {
        Reading { sample: None, full: false }
    }

    /// Takes an option; false if it is another one.
    ///
    /// # Errors
    /// 14 TypeMismatch and 2 BadValue.
    pub fn take(&mut self, arg: &Arg<'_>) -> Result<bool> {
        match arg.name() {
            "sample" => self.sample = Some(arg.integer_from(1)?.unsigned_abs()),
            "full" => self.full = arg.bool()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the part of a collection that is read.
    ///
    /// # Errors
    /// 72 InvalidOptions if all documents and a sample were requested.
    pub fn extent(self) -> Result<Extent> {
        match (self.sample, self.full) {
            (Some(_), true) => {
                let text = "'sample' and 'full: true' exclude each other";
                Err(Error::new(ErrorCode::InvalidOptions, text))
            }
            (_, true) => Ok(Extent::All),
            (size, false) => Ok(Extent::Sample(size.unwrap_or(SAMPLE))),
        }
    }
}

/// Runs `analyzeSchema` for the collection or view that the first field names, or for each
/// collection of the database if it is 1.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut reading = Reading::new();
    for arg in arguments(cx.command.name, body) {
        if !reading.take(&arg)? {
            return Err(arg.unknown());
        }
    }
    let extent = reading.extent()?;
    let namespace = match body.first().map(|first| first.value()) {
        Some(Value::String(_)) => Some(cx.target(body)?),
        Some(number) if number.exact_i64() == Some(1) => {
            existing_database(cx)?;
            None
        }
        _ => {
            let text = "the 'analyzeSchema' field must name a collection or be 1";
            return Err(Error::new(ErrorCode::InvalidNamespace, text));
        }
    };
    let db = cx.db;
    let profile = profile(cx, db, namespace.as_ref(), extent)?;
    let found = report(db, &profile);
    if found.as_bytes().len() > USER_DOCUMENT_BYTES_MAX {
        let text = "the profile of the database is larger than a reply: request one collection";
        return Err(Error::new(ErrorCode::BSONObjectTooLarge, text));
    }
    reply.append_all(found.as_doc());
    Ok(())
}

/// Fails if the database of a command does not exist, so that a misspelt name is no empty answer. The
/// databases of the server itself always exist.
///
/// # Errors
/// 26 NamespaceNotFound.
pub fn existing_database(cx: &Context<'_>) -> Result<()> {
    let is_own = ["admin", "config", "local"].contains(&cx.db);
    if is_own || cx.service.store.catalog().database(cx.db).is_some() {
        return Ok(());
    }
    let text = format!("Database {} does not exist", cx.db);
    Err(Error::new(ErrorCode::NamespaceNotFound, text))
}

/// Returns the document of `$schemaStats` at the beginning of an `aggregate`.
pub fn stage(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    let Value::Document(options) = operand else {
        let text = format!("$schemaStats takes a document, not {}", operand.type_name());
        return Err(Error::failed_to_parse(text));
    };
    let mut reading = Reading::new();
    for arg in fields("$schemaStats", options) {
        if !reading.take(&arg)? {
            return Err(arg.unknown());
        }
    }
    let namespace = Namespace::parse(&request.namespace)?;
    let profile = profile(cx, namespace.db(), Some(&namespace), reading.extent()?)?;
    Ok(report_collection(&profile).into_iter().collect())
}

/// Profiles one collection or view, or each collection of a database. References are looked for in
/// the collections that the client may read.
///
/// # Errors
/// 26 NamespaceNotFound; 146 ExceededMemoryLimit; that of an interrupt.
pub fn profile(
    cx: &Context<'_>,
    db: &str,
    only: Option<&Namespace>,
    extent: Extent,
) -> Result<DatabaseProfile> {
    let _charge = Charge::take(PROFILE_BYTES)
        .map_err(|_| Error::new(ErrorCode::ExceededMemoryLimit, memory::exhausted()))?;
    let catalog = cx.service.store.catalog();
    let mut source = ServerCollections { cx, db, named: None };
    let mut names = Vec::new();
    if let Some(namespace) = only {
        namespace.check_readable()?;
        let is_view = catalog.resolve(namespace.as_str())?.is_some();
        if !is_view && catalog.lookup(namespace).is_none() {
            let text = format!("{namespace} does not exist");
            return Err(Error::new(ErrorCode::NamespaceNotFound, text));
        }
        if is_view || namespace.is_system() {
            source.named = Some(namespace.collection().to_owned());
        }
        names.push(namespace.collection().to_owned());
    }
    profile_database(&mut source, &names, extent, Limits::default(), &mut Unseen)
}

/// Shows no progress: a client sees the operation in `currentOp`.
struct Unseen;

impl Progress for Unseen {
    fn begins(&mut self, _: &SourceCollection, _: Extent) {}
    fn read(&mut self) {}
}
