//! `getParameter` and `setParameter`.

use crate::frame::args::{Arg, fields, is_generic};
use crate::frame::context::Context;
use crate::frame::parameters::position;
use crate::frame::parameters::table::Settable::{self, Always, Never, Startup};
use crate::frame::parameters::table::{PARAMETERS, Parameter};
use quire_document::{Doc, DocWriter, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};

/// Runs the command `getParameter`.
pub fn get(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let first = body.first().map(|first| first.value());
    let (mut all, mut details) = (matches!(first, Some(Value::String("*"))), false);
    let mut set_at = None;
    if let Some(Value::Document(options)) = first {
        for arg in fields("getParameter", options) {
            match arg.name() {
                "showDetails" | "allParameters" | "setAt" if arg.is_null() => {}
                "showDetails" => details = arg.safe_bool()?,
                "allParameters" => all = arg.safe_bool()?,
                "setAt" => set_at = Some(time_of_setting(&arg)?),
                _ => return Err(arg.unknown()),
            }
        }
    }
    let shown = |row: &Parameter| match set_at {
        None => true,
        Some(Always) => row.settable == Always,
        Some(_) => row.settable != Never,
    };
    let mut found = false;
    for row in PARAMETERS {
        let named = || body.iter().skip(1).any(|element| element.key() == row.name);
        if !(all || named()) || !shown(row) {
            continue;
        }
        let Some(value) = cx.service.parameters.get(row.name) else { continue };
        found = true;
        if row.name == "featureCompatibilityVersion" {
            reply.document(row.name).append("version", &value);
        } else if details {
            let mut entry = reply.document(row.name);
            entry.append("value", &value);
            entry.append("settableAtRuntime", row.settable == Always);
            entry.append("settableAtStartup", row.settable != Never);
        } else {
            reply.append(row.name, &value);
        }
    }
    if found {
        return Ok(());
    }
    Err(Error::new(ErrorCode::InvalidOptions, "no option found to get"))
}

/// Returns which parameters `setAt` selects: those that can be set at that time.
fn time_of_setting(arg: &Arg<'_>) -> Result<Settable> {
    match arg.string()? {
        "runtime" => Ok(Always),
        "startup" => Ok(Startup),
        other => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field 'getParameter.setAt' is not a valid value."
        ))),
    }
}

/// Runs the command `setParameter`.
pub fn set(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let wanted: Vec<_> =
        body.iter().skip(1).filter(|element| !is_generic(element.key_bytes())).collect();
    if wanted.is_empty() {
        let text = "no option found to set, use help:true to see options ";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let mut changes = Vec::new();
    for element in wanted {
        let name = element.key();
        let Some(at) = position(name) else {
            let text = format!(
                "attempted to set unrecognized parameter [{name}], use help:true to see options "
            );
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        };
        if PARAMETERS[at].settable != Always {
            let text = format!("not allowed to change [{name}] at runtime");
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        let was = cx.service.parameters.get(name).unwrap_or_else(|| ValueBuf::new(Value::Null));
        let value = PARAMETERS[at].default.accept(name, was.as_value(), element.value())?;
        changes.push((at, value));
    }
    let was = changes.last().and_then(|(at, _)| cx.service.parameters.get(PARAMETERS[*at].name));
    for (at, value) in changes {
        cx.service.parameters.put(at, value);
    }
    // The times at which the runner of jobs looks can depend on the parameters.
    cx.service.store.job_bell().ring();
    if let Some(was) = was {
        reply.append("was", &was);
    }
    Ok(())
}
