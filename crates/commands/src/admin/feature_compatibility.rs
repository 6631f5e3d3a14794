//! `setFeatureCompatibilityVersion`: what `getParameter` shows. No data and no feature depends on it:
//! the format on disk has a version of its own, and there is no older member to be compatible with.

use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use crate::frame::parameters::FEATURE_COMPATIBILITY;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = cx.command.name;
    let version = match body.first().map(|first| first.value()) {
        Some(Value::String(version)) => version,
        Some(value) if value.is_nullish() => return Err(missing(name, name)),
        other => {
            let found = other.map_or("missing", |value| value.type_name());
            let text = format!(
                "BSON field '{name}.{name}' is the wrong type '{found}', expected type 'string'"
            );
            return Err(Error::type_mismatch(text));
        }
    };
    let mut confirmed = false;
    for arg in arguments(name, body) {
        match arg.name() {
            "confirm" if arg.is_null() => {}
            "confirm" => confirmed = arg.safe_bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    if !FEATURE_COMPATIBILITY.contains(&version) {
        let shown: String = version.chars().take(40).collect();
        let text = format!(
            "Invalid feature compatibility version value '{shown}'. Expected one of the following versions: '{}'",
            FEATURE_COMPATIBILITY.join("', '")
        );
        return Err(Error::location(4926900, text));
    }
    if !confirmed {
        let text = "Once the feature compatibility version is changed, mongod of another version may not start on the data. Run the command again with 'confirm: true' to go on";
        return Err(Error::location(7369100, text));
    }
    let options = cx.commit_options();
    cx.service.parameters.set_feature_compatibility(&cx.service.store, version, options)?;
    cx.service.keep_version()
}
