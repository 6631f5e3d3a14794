//! `collMod`: changes an index or a view; the options of collections that it can change are not built.

use crate::ddl::view_definition::{check_stages, pipeline, view_on};
use crate::frame::args::{Arg, arguments, fields};
use crate::frame::context::Context;
use quire_catalog::ViewDefinition;
use quire_collections::{IndexChoice, ModifyIndex, ModifyView};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut index, mut view) = (None, ModifyView::default());
    // Options of collections only.
    let (mut given, mut not_built) = (None, None);
    for arg in arguments(cx.command.name, body) {
        if !matches!(arg.name(), "viewOn" | "pipeline") {
            given = given.or(Some(arg.name()));
        }
        match arg.name() {
            "index" if !arg.is_null() => index = Some(arg.document()?),
            "index" => {}
            "viewOn" if !arg.is_null() => view.on = Some(view_on(cx, &arg)?),
            "pipeline" if !arg.is_null() => view.pipeline = Some(pipeline(&arg)?),
            "viewOn" | "pipeline" => {}
            "validator"
            | "validationLevel"
            | "validationAction"
            | "expireAfterSeconds"
            | "timeseries"
            | "cappedSize"
            | "cappedMax"
            | "dryRun"
            | "changeStreamPreAndPostImages"
            | "recordPreImages" => {
                not_built = not_built.or(Some(arg.name()));
            }
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = cx.target(body)?;
    let catalog = cx.service.store.catalog();
    if let Some(before) = catalog.view(&namespace) {
        return match given {
            None => modify_view(cx, before, &view),
            Some(option) => {
                let text = format!("option not supported on a view: {option}");
                Err(Error::new(ErrorCode::InvalidOptions, text))
            }
        };
    }
    if let Some(option) = not_built {
        return Err(Error::not_built(&format!("collMod.{option}")));
    }
    catalog.require(&namespace)?;
    let of_view = [("viewOn", view.on.is_some()), ("pipeline", view.pipeline.is_some())];
    if let Some((option, _)) = of_view.iter().find(|(_, given)| *given) {
        let text = format!("'{option}' option only supported on a view");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let Some(index) = index else { return Ok(()) };
    let change = parse(index)?;
    cx.await_transactions(&|used| used == namespace.as_str())?;
    let before = cx.service.store.modify_index(&namespace, &change, &cx.commit_options())?;
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
    Ok(())
}

fn modify_view(cx: &Context<'_>, before: &ViewDefinition, change: &ModifyView) -> Result<()> {
    check_stages(cx, &change.applied(before))?;
    cx.service.store.modify_view(&before.namespace, change, &cx.commit_options())
}

fn parse(index: Doc<'_>) -> Result<ModifyIndex> {
    let (mut name, mut key, mut hidden, mut seconds) = (None, None, None, None);
    for arg in fields("collMod.index", index) {
        match arg.name() {
            "name" if !arg.is_null() => name = Some(arg.string()?.to_owned()),
            "keyPattern" if !arg.is_null() => key = Some(arg.document()?.to_owned()),
            "hidden" if !arg.is_null() => hidden = Some(arg.safe_bool()?),
            "expireAfterSeconds" if !arg.is_null() => seconds = Some(expiry(&arg)?),
            "name" | "keyPattern" | "hidden" | "expireAfterSeconds" => {}
            "unique" | "prepareUnique" => {
                return Err(Error::not_built(&format!("collMod.index.{}", arg.name())));
            }
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
    if hidden.is_none() && seconds.is_none() {
        return invalid("no expireAfterSeconds or hidden field");
    }
    Ok(ModifyIndex { index, hidden, expire_after_seconds: seconds })
}

/// Seconds of a TTL index, whole, within 32 bits.
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
