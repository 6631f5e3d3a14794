//! `collMod`: changes an index or a view. The collection options that it can change are not built.

use crate::ddl::view_definition::{check_stages, pipeline, view_on};
use crate::frame::args::{Arg, arguments, fields};
use crate::frame::context::Context;
use crate::frame::service::now_ms;
use quire_catalog::clustered::parse_expiry;
use quire_catalog::{Namespace, ViewDefinition};
use quire_collections::{IndexChoice, MakeUnique, ModifyIndex, ModifyView};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_session::Changed;

/// The parsed arguments.
#[derive(Default)]
struct Arguments<'a> {
    index: Option<Doc<'a>>,
    view: ModifyView,
    dry_run: bool,
    /// The change of a clustered collection's expiry.
    expire: Option<Expiry>,
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
    let collection = catalog.require(&namespace)?;
    if arguments.expire.is_some() && collection.clustered_index().is_none() {
        let text = "'expireAfterSeconds' option is only supported on collections clustered by _id";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let ModifyView { on, pipeline } = &arguments.view;
    let of_view = [("viewOn", on.is_some()), ("pipeline", pipeline.is_some())];
    if let Some((option, _)) = of_view.iter().find(|(_, given)| *given) {
        let text = format!("'{option}' option only supported on a view");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    match arguments.index {
        Some(index) => change_index(cx, &namespace, index, arguments.dry_run, reply)?,
        None if arguments.dry_run => return Err(no_conversion()),
        None => {}
    }
    if let Some(Expiry(seconds)) = arguments.expire {
        let changed = Changed::Collections(vec![namespace.as_str().to_owned()]);
        let _change = cx.await_transactions(changed)?;
        cx.change_catalog(|store, commit| store.modify_expiry(&namespace, seconds, commit))?;
    }
    Ok(())
}

/// Changes the options of an index, or converts the index to a unique one.
fn change_index(
    cx: &Context<'_>,
    namespace: &Namespace,
    index: Doc<'_>,
    dry_run: bool,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let (change, unique) = parse(index)?;
    if dry_run && !unique {
        return Err(no_conversion());
    }
    let _change =
        cx.await_transactions(Changed::Collections(vec![namespace.as_str().to_owned()]))?;
    if !unique {
        return modify_index(cx, namespace, &change, reply);
    }
    let change = MakeUnique { index: change.index, dry_run };
    cx.service.bound_builds();
    let made = cx.change_catalog(|store, commit| {
        store.make_unique(namespace, &change, &cx.interrupt, commit)
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
        match arg.name() {
            "index" if !arg.is_null() => parsed.index = Some(arg.document()?),
            "viewOn" if !arg.is_null() => parsed.view.on = Some(view_on(cx, &arg)?),
            "pipeline" if !arg.is_null() => parsed.view.pipeline = Some(pipeline(&arg)?),
            "dryRun" if !arg.is_null() => parsed.dry_run = arg.safe_bool()?,
            "expireAfterSeconds" if !arg.is_null() => parsed.expire = Some(of_collection(&arg)?),
            "index" | "viewOn" | "pipeline" | "dryRun" | "expireAfterSeconds" => {}
            "validator"
            | "validationLevel"
            | "validationAction"
            | "timeseries"
            | "cappedSize"
            | "cappedMax"
            | "changeStreamPreAndPostImages"
            | "recordPreImages" => {
                parsed.not_built = parsed.not_built.or(Some(arg.name()));
            }
            _ => return Err(arg.unknown()),
        }
    }
    Ok(parsed)
}

fn modify_index(
    cx: &Context<'_>,
    namespace: &Namespace,
    change: &ModifyIndex,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let before =
        cx.change_catalog(|store, commit| store.modify_index(namespace, change, commit))?;
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
    Ok(())
}

/// The seconds after which documents expire; `None` for `"off"`.
struct Expiry(Option<i64>);

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
