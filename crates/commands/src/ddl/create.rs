//! `create`: creates a collection or a view.

use crate::ddl::coll_mod::check_images;
use crate::ddl::patterns::{declare_patterns, write_costs};
use crate::ddl::view_definition::{check_stages, pipeline, view_on};
use crate::frame::args::{arguments, is_generic, missing};
use crate::frame::context::Context;
use crate::frame::service::now_ms;
use quire_catalog::buckets::{OPTIONS_OF_BUCKETS, are_options_of_buckets};
use quire_catalog::capped::Capped;
use quire_catalog::clustered::check_beside;
use quire_catalog::patterns::PatternChange;
use quire_catalog::time_series::BUCKETS;
use quire_catalog::{CollectionOptions, Namespace, ValidationOptions, ViewDefinition};
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use std::sync::Arc;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let namespace = cx.target(body)?;
    if body.is_empty() {
        return Err(missing(cx.command.name, "create"));
    }
    let declares = body.get("patterns").is_some_and(|patterns| !patterns.is_nullish());
    let of_patterns: &[&str] = if declares { &["patterns", "dryRun"] } else { &["patterns"] };
    let is_of_buckets = namespace.collection().starts_with(BUCKETS) && are_options_of_buckets(body);
    let of_buckets = if is_of_buckets { OPTIONS_OF_BUCKETS } else { &[] };
    let left_out = [&["viewOn", "pipeline"], of_patterns, of_buckets].concat();
    let fields = fields_without(body, &left_out);
    if cx.in_transaction() {
        cx.join_transaction()?;
        refuse_system(&namespace)?;
        refuse_kinds(body)?;
    }
    check_beside(body)?;
    Capped::parse(body)?;
    if let Some(view) = view(cx, &namespace, body)? {
        let view = Arc::new(view);
        return cx.change_catalog(|store, commit| store.create_view(&view, commit));
    }
    let options = CollectionOptions::parse(fields.as_doc(), now_ms())?;
    if options.keeps_images() {
        check_images(&namespace)?;
    }
    let namespace = match namespace.collection().strip_prefix(BUCKETS) {
        None => namespace,
        // As in MongoDB, the buckets and their time-series collection exist together.
        Some(name) if options.time_series().is_some() => Namespace::new(cx.db, name)?,
        Some(_) => {
            let text = format!("{namespace} can only be created with a time-series collection");
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
    };
    let patterns = patterns(cx, body)?;
    if declares && is_dry_run(cx, body)? {
        cx.service.store.check_create(&namespace, &options, &patterns)?;
        return write_costs(cx, &namespace, &patterns, reply);
    }
    let is_there = cx.service.store.catalog().lookup(&namespace).is_some();
    cx.server_unit()?.create_collection(&namespace, options, &cx.interrupt)?;
    match (patterns.is_empty(), is_there) {
        (true, _) => Ok(()),
        (false, true) => same_patterns(cx, &namespace, &patterns),
        (false, false) => {
            let declared = declare_patterns(cx, &namespace, &patterns);
            if declared.is_err() {
                cx.change_catalog(|store, commit| store.drop_collection(&namespace, commit))?;
            }
            declared
        }
    }
}

/// Fails with 48 NamespaceExists unless the collection declares these patterns.
fn same_patterns(
    cx: &Context<'_>,
    namespace: &Namespace,
    patterns: &[PatternChange],
) -> Result<()> {
    let catalog = cx.service.store.catalog();
    let collection = catalog.require(namespace)?;
    let is_declared = |change: &PatternChange| match change {
        PatternChange::Remove(_) => false,
        PatternChange::Declare(pattern) => {
            let known = collection.patterns.named(&pattern.name);
            known.is_some_and(|known| {
                known.definition().as_bytes() == pattern.definition().as_bytes()
            })
        }
    };
    if patterns.iter().all(is_declared) {
        return Ok(());
    }
    let text = format!("Collection already exists. NS: {namespace}");
    Err(Error::new(ErrorCode::NamespaceExists, text))
}

/// Returns the patterns that the command declares.
fn patterns(cx: &Context<'_>, body: Doc<'_>) -> Result<Vec<PatternChange>> {
    let mut given = arguments(cx.command.name, body).filter(|arg| !arg.is_null());
    let Some(arg) = given.find(|arg| arg.name() == "patterns") else { return Ok(Vec::new()) };
    let changes = PatternChange::parse_all("create", arg.array()?)?;
    if let Some(PatternChange::Remove(name)) =
        changes.iter().find(|change| matches!(change, PatternChange::Remove(_)))
    {
        let text = format!("'create' cannot remove the pattern '{name}'");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    if cx.in_transaction() {
        let text = "Cannot declare patterns in a multi-document transaction.";
        return Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text));
    }
    Ok(changes)
}

/// Returns the value of `dryRun`, which is an argument only beside `patterns`.
fn is_dry_run(cx: &Context<'_>, body: Doc<'_>) -> Result<bool> {
    let mut given = arguments(cx.command.name, body).filter(|arg| !arg.is_null());
    given.find(|arg| arg.name() == "dryRun").map_or(Ok(false), |arg| arg.safe_bool())
}

/// Returns the fields of the command that are collection options, except those in `left_out`.
fn fields_without(body: Doc<'_>, left_out: &[&str]) -> DocBuf {
    DocBuf::build(|writer| {
        let own = body.iter().skip(1).filter(|element| !is_generic(element.key_bytes()));
        own.filter(|element| !left_out.contains(&element.key())).for_each(|element| {
            writer.append_element(element);
        });
    })
}

/// Returns the view that the command defines; `None` if it creates a collection.
fn view(cx: &Context<'_>, namespace: &Namespace, body: Doc<'_>) -> Result<Option<ViewDefinition>> {
    let (mut on, mut stages) = (None, None);
    for arg in arguments(cx.command.name, body).filter(|arg| !arg.is_null()) {
        match arg.name() {
            "viewOn" => on = Some(view_on(cx, &arg)?),
            "pipeline" => stages = Some(pipeline(&arg)?),
            _ => {}
        }
    }
    let invalid = |text: &str| Err(Error::new(ErrorCode::InvalidOptions, text));
    let Some(on) = on else {
        return match stages {
            None => Ok(None),
            Some(_) => invalid("'pipeline' requires 'viewOn' to also be specified"),
        };
    };
    if body.get("timeseries").is_some_and(|options| !options.is_nullish()) {
        return invalid("'timeseries' is not allowed with 'viewOn'");
    }
    if body.get("idIndex").is_some_and(|index| !index.is_nullish()) {
        return invalid("'idIndex' is not allowed with 'viewOn'");
    }
    if body.get("patterns").is_some_and(|patterns| !patterns.is_nullish()) {
        return invalid("'patterns' is not allowed with 'viewOn'");
    }
    check_ignored(body)?;
    let rest = fields_without(body, &[&["viewOn", "pipeline"], IGNORED].concat());
    let options = CollectionOptions::parse(rest.as_doc(), now_ms())?;
    if options.keeps_images() {
        return invalid("'changeStreamPreAndPostImages' is not allowed with 'viewOn'");
    }
    let collation = options.collation().cloned();
    let pipeline = stages.unwrap_or_default();
    let view = ViewDefinition { namespace: namespace.clone(), on: on.into(), pipeline, collation };
    check_stages(cx, &view)?;
    Ok(Some(view))
}

/// Options that do not apply to a view; MongoDB accepts and drops them.
const IGNORED: &[&str] =
    &["capped", "size", "max", "validator", "validationLevel", "validationAction"];

/// Refuses invalid values of ignored options.
fn check_ignored(body: Doc<'_>) -> Result<()> {
    let mut ignored = ValidationOptions::default();
    body.fields().try_for_each(|(name, value)| ignored.take("create", name, value).map(drop))
}

/// Refuses to create a collection of the server in a transaction.
///
/// # Errors
/// 263 OperationNotSupportedInTransaction.
pub fn refuse_system(namespace: &Namespace) -> Result<()> {
    if namespace.is_system() {
        let text = format!("Cannot create system collection {namespace} within a transaction.");
        return Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text));
    }
    Ok(())
}

/// Refuses the kinds of collections that cannot be created in a transaction.
fn refuse_kinds(body: Doc<'_>) -> Result<()> {
    let kinds = [("viewOn", "view"), ("timeseries", "time-series collection")];
    match kinds.iter().find(|(field, _)| body.contains(field)) {
        None => Ok(()),
        Some((_, kind)) => {
            let text = format!("Cannot create a {kind} in a multi-document transaction.");
            Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
        }
    }
}
