//! `collMod`: changes an index, the options of a collection, or a view.

use crate::ddl::patterns::change_patterns;
use crate::ddl::view_definition::{check_stages, pipeline, view_on};
use crate::frame::args::{Arg, arguments, fields};
use crate::frame::context::Context;
use crate::frame::service::now_ms;
use quire_catalog::capped::{CappedChange, parse_max, parse_size};
use quire_catalog::clustered::parse_expiry;
use quire_catalog::patterns::PatternChange;
use quire_catalog::{Collection, Namespace, ValidationOptions, ViewDefinition, parse_images};
use quire_collections::{
    Expiry, IndexBefore, IndexChoice, MakeUnique, ModifyCollection, ModifyIndex, ModifyView,
};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::time_series::TimeSeriesChange;
use quire_session::Changed;

/// The option that lets buckets of a time-series collection have values of different types in a field.
const MIXED_BUCKETS: &str = "timeseriesBucketsMayHaveMixedSchemaData";

/// The parsed arguments.
#[derive(Default)]
struct Arguments<'a> {
    index: Option<Doc<'a>>,
    view: ModifyView,
    dry_run: bool,
    /// The change of a clustered collection's expiry.
    expiry: Option<Expiry>,
    validation: ValidationOptions,
    /// The change of the bounds of a capped collection.
    capped: CappedChange,
    /// Whether the change log keeps the documents before and after each change.
    images: Option<bool>,
    /// The changes of the declared patterns.
    patterns: Option<Vec<PatternChange>>,
    /// The change of the buckets of a time-series collection.
    series: Option<TimeSeriesChange>,
    /// Whether buckets may have values of different types in a field.
    mixed_buckets: Option<bool>,
    /// The first option that applies only to collections.
    of_collection: Option<&'a str>,
    /// The first option that is not built.
    not_built: Option<&'a str>,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let arguments = parse_arguments(cx, body)?;
    let namespace = cx.target(body)?;
    let catalog = cx.service.store.catalog();
    if let Some(before) = catalog.view(&namespace) {
        return match arguments.of_collection {
            None => modify_view(cx, before, &arguments.view),
            Some(option) => {
                let text = format!("option not supported on a view: {option}");
                Err(Error::new(ErrorCode::InvalidOptions, text))
            }
        };
    }
    if let Some(option) = arguments.not_built {
        return Err(Error::not_built(&format!("collMod.{option}")));
    }
    if !arguments.capped.is_empty() && namespace.as_str() == "local.oplog.rs" {
        let text = "Cannot change the size of the oplog with collMod";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let collection = catalog.require(&namespace)?;
    check_mixed_buckets(collection, arguments.mixed_buckets)?;
    let ModifyView { on, pipeline } = &arguments.view;
    let of_view = [("viewOn", on.is_some()), ("pipeline", pipeline.is_some())];
    if let Some((option, _)) = of_view.iter().find(|(_, given)| *given) {
        let text = format!("'{option}' option only supported on a view");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    modify_collection(cx, collection, arguments, reply)
}

/// Checks `timeseriesBucketsMayHaveMixedSchemaData`. Buckets of every time-series collection may have values of different types
/// in a field, because Quire makes them of points and unpacks them into points; so it can be true, and it is always.
///
/// # Errors
/// 72 InvalidOptions for another collection, and for false.
fn check_mixed_buckets(collection: &Collection, given: Option<bool>) -> Result<()> {
    let text = match given {
        None => return Ok(()),
        Some(_) if !collection.is_time_series() => "is only for time-series collections",
        Some(false) => "cannot be set to false",
        Some(true) => return Ok(()),
    };
    Err(Error::new(ErrorCode::InvalidOptions, format!("collMod: '{MIXED_BUCKETS}' {text}")))
}

/// Changes an index and the options of a collection.
fn modify_collection(
    cx: &Context<'_>,
    collection: &Collection,
    arguments: Arguments<'_>,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let namespace = &collection.namespace;
    let Arguments { index, dry_run, expiry, validation, capped, images, patterns, series, .. } =
        arguments;
    if let Some(changes) = patterns {
        let alone = index.is_none()
            && expiry.is_none()
            && validation.is_empty()
            && capped.is_empty()
            && images.is_none()
            && series.is_none();
        return match alone {
            true => change_patterns(cx, namespace, &changes, dry_run, reply),
            false => {
                let text = "collMod: 'patterns' cannot be combined with another change";
                Err(Error::new(ErrorCode::InvalidOptions, text))
            }
        };
    }
    if images.is_some() {
        check_images(namespace)?;
    }
    let (index, unique) = index.map(parse).transpose()?.unzip();
    let unique = unique == Some(true);
    if dry_run && !unique {
        return Err(no_conversion());
    }
    let (converted, index) = if unique { (index, None) } else { (None, index) };
    let change = ModifyCollection { index, expiry, validation, capped, images, series };
    if converted.is_none() && change.is_empty() {
        return Ok(());
    }
    let _change =
        cx.await_transactions(Changed::Collections(vec![namespace.as_str().to_owned()]))?;
    if let Some(ModifyIndex { index, .. }) = converted {
        // The options change after the conversion, which is several commits. What is wrong with them
        // must not leave a converted index behind.
        change.applied(collection)?;
        make_unique(cx, namespace, &MakeUnique { index, dry_run }, reply)?;
    }
    if change.is_empty() {
        return Ok(());
    }
    let before =
        cx.change_catalog(|store, commit| store.modify_collection(namespace, &change, commit))?;
    if let (Some(change), Some(before)) = (&change.index, before) {
        write_index(change, &before, reply);
    }
    Ok(())
}

/// Refuses `changeStreamPreAndPostImages` for a collection of the server, which no stream watches.
///
/// # Errors
/// 72 InvalidOptions.
pub fn check_images(namespace: &Namespace) -> Result<()> {
    if !matches!(namespace.db(), "admin" | "config" | "local") && !namespace.is_system() {
        return Ok(());
    }
    let text = format!("changeStreamPreAndPostImages is not supported on {namespace}");
    Err(Error::new(ErrorCode::InvalidOptions, text))
}

/// Converts an index to a unique one.
fn make_unique(
    cx: &Context<'_>,
    namespace: &Namespace,
    change: &MakeUnique,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    cx.service.bound_builds();
    let made = cx.change_catalog(|store, commit| {
        store.make_unique(namespace, change, &cx.interrupt, commit)
    });
    if made.map_err(|error| cx.without_values(namespace, error))? {
        reply.append("unique_new", true);
    }
    Ok(())
}

fn parse_arguments<'a>(cx: &Context<'_>, body: Doc<'a>) -> Result<Arguments<'a>> {
    let mut parsed = Arguments::default();
    for arg in arguments(cx.command.name, body) {
        if !matches!(arg.name(), "viewOn" | "pipeline") {
            parsed.of_collection = parsed.of_collection.or(Some(arg.name()));
        }
        if parsed.validation.take("collMod", arg.name(), arg.value())? {
            continue;
        }
        match arg.name() {
            "index" if !arg.is_null() => parsed.index = Some(arg.document()?),
            "viewOn" if !arg.is_null() => parsed.view.on = Some(view_on(cx, &arg)?),
            "pipeline" if !arg.is_null() => parsed.view.pipeline = Some(pipeline(&arg)?),
            "dryRun" if !arg.is_null() => parsed.dry_run = arg.safe_bool()?,
            "expireAfterSeconds" => parsed.expiry = Some(of_collection(&arg)?),
            "cappedSize" if !arg.is_null() => {
                parsed.capped.bytes_max = Some(parse_size("collMod.cappedSize", arg.value())?);
            }
            "cappedMax" if !arg.is_null() => {
                parsed.capped.max = Some(parse_max("collMod.cappedMax", arg.value())?);
            }
            "changeStreamPreAndPostImages" if !arg.is_null() => {
                parsed.images = Some(parse_images("collMod", arg.value())?);
            }
            "timeseries" if !arg.is_null() => {
                parsed.series = Some(TimeSeriesChange::parse(arg.document()?)?);
            }
            MIXED_BUCKETS if !arg.is_null() => parsed.mixed_buckets = Some(arg.safe_bool()?),
            "patterns" if !arg.is_null() => {
                parsed.patterns = Some(PatternChange::parse_all("collMod", arg.array()?)?);
            }
            "index"
            | "viewOn"
            | "pipeline"
            | "dryRun"
            | "cappedSize"
            | "cappedMax"
            | "changeStreamPreAndPostImages"
            | "timeseries"
            | MIXED_BUCKETS
            | "patterns" => {}
            "recordPreImages" => {
                let given = Some(arg.name()).filter(|_| !arg.is_null());
                parsed.not_built = parsed.not_built.or(given);
            }
            _ => return Err(arg.unknown()),
        }
    }
    Ok(parsed)
}

/// Writes the options of an index before and after a change.
fn write_index(change: &ModifyIndex, before: &IndexBefore, reply: &mut DocWriter<'_>) {
    if let Some(new) = change.expire_after_seconds {
        if let Some(old) = before.expire_after_seconds {
            reply.append("expireAfterSeconds_old", old);
        }
        reply.append("expireAfterSeconds_new", new);
    }
    if let Some(new) = change.hidden.filter(|new| *new != before.hidden) {
        reply.append("hidden_old", before.hidden);
        reply.append("hidden_new", new);
    }
    if let Some(new) = change.prepare_unique.filter(|new| *new != before.prepare_unique) {
        reply.append("prepareUnique_old", before.prepare_unique);
        reply.append("prepareUnique_new", new);
    }
}

fn of_collection(arg: &Arg<'_>) -> Result<Expiry> {
    match arg.value() {
        Value::String("off") => Ok(Expiry(None)),
        Value::String(text) => {
            let text = format!(
                "Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: '{text}'. Accepted value is 'off'"
            );
            Err(Error::new(ErrorCode::InvalidOptions, text))
        }
        value if value.is_number() => parse_expiry(value, now_ms()).map(|all| Expiry(Some(all))),
        _ => Err(arg.wrong_type("[string, long, int, decimal, double]")),
    }
}

fn modify_view(cx: &Context<'_>, before: &ViewDefinition, change: &ModifyView) -> Result<()> {
    check_stages(cx, &change.applied(before))?;
    cx.change_catalog(|store, commit| store.modify_view(&before.namespace, change, commit))
}

fn no_conversion() -> Error {
    let text = "collMod: 'dryRun' is only for a conversion of an index to unique";
    Error::new(ErrorCode::InvalidOptions, text)
}

/// Returns the change of the options, and true if the index must be converted to a unique one.
fn parse(index: Doc<'_>) -> Result<(ModifyIndex, bool)> {
    let (mut name, mut key, mut hidden, mut seconds) = (None, None, None, None);
    let (mut prepare_unique, mut unique) = (None, None);
    for arg in fields("collMod.index", index) {
        match arg.name() {
            "name" if !arg.is_null() => name = Some(arg.string()?.to_owned()),
            "keyPattern" if !arg.is_null() => key = Some(arg.document()?.to_owned()),
            "hidden" if !arg.is_null() => hidden = Some(arg.safe_bool()?),
            "expireAfterSeconds" if !arg.is_null() => seconds = Some(expiry(&arg)?),
            "prepareUnique" if !arg.is_null() => prepare_unique = Some(arg.safe_bool()?),
            "unique" if !arg.is_null() => unique = Some(arg.safe_bool()?),
            "name" | "keyPattern" | "hidden" | "expireAfterSeconds" | "prepareUnique"
            | "unique" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let invalid = |text: &str| Err(Error::new(ErrorCode::InvalidOptions, text));
    let index = match (name, key) {
        (Some(name), None) => IndexChoice::Name(name),
        (None, Some(key)) => IndexChoice::Key(key),
        (Some(_), Some(_)) => return invalid("Cannot specify both key pattern and name."),
        (None, None) => return invalid("Must specify either index name or key pattern."),
    };
    let others = hidden.is_some() || seconds.is_some() || prepare_unique.is_some();
    match unique {
        Some(false) => return Err(Error::bad_value("collMod does not make an index non-unique")),
        Some(true) if others => {
            return invalid(
                "collMod: 'unique' cannot be combined with another change of the index",
            );
        }
        None if !others => {
            return invalid("no expireAfterSeconds, hidden, prepareUnique or unique field");
        }
        Some(true) | None => {}
    }
    let change = ModifyIndex { index, hidden, prepare_unique, expire_after_seconds: seconds };
    Ok((change, unique == Some(true)))
}

/// Returns the seconds of a TTL index: a whole number of 32 bits.
fn expiry(arg: &Arg<'_>) -> Result<i64> {
    let seconds = match arg.value() {
        Value::Double(number) => number as i64,
        _ => arg.integer()?,
    };
    if seconds < 0 {
        let text = "TTL index 'expireAfterSeconds' option cannot be less than 0";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    Ok(seconds.min(i64::from(i32::MAX)))
}
