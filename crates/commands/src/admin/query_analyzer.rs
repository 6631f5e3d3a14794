//! `configureQueryAnalyzer` and the rows of `$listSampledQueries`: samples of whole queries of a
//! collection. (Manual: "configureQueryAnalyzer".)

use crate::frame::args::{arguments, fields, missing};
use crate::frame::context::Context;
use crate::frame::service::Topology;
use quire_catalog::Namespace;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_planner::AggregateRequest;

/// The greatest number of samples a second.
const PER_SECOND_MAX: f64 = 50.0;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if cx.service.options.topology == Topology::Standalone {
        let text = "configureQueryAnalyzer command is not supported on a standalone mongod";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let (mut mode, mut per_second) = (None, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "mode" => mode = Some(arg.string()?),
            "samplesPerSecond" if !arg.is_null() => {
                let number = arg.value().as_number().map(|number| number.to_f64());
                per_second = Some(number.ok_or_else(|| arg.wrong_type("double"))?);
            }
            "samplesPerSecond" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let mode = mode.ok_or_else(|| missing(cx.command.name, "mode"))?;
    let rate = rate(mode, per_second)?;
    let namespace = target(body)?;
    let catalog = cx.service.store.catalog();
    if catalog.view(&namespace).is_some() {
        let text = "Cannot sample the queries of a view";
        return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
    }
    let Some(collection) = catalog.lookup(&namespace) else {
        let text = format!("Cannot sample queries of '{namespace}', which does not exist");
        return Err(Error::new(ErrorCode::NamespaceNotFound, text));
    };
    let before = cx.service.recorder.samples().configure(&namespace, collection.uuid, rate);
    if let Some(before) = before {
        let mut old = reply.document("oldConfiguration");
        old.append("mode", "full").append("samplesPerSecond", before);
    }
    let mut new = reply.document("newConfiguration");
    new.append("mode", mode);
    if let Some(rate) = rate {
        new.append("samplesPerSecond", rate);
    }
    Ok(())
}

/// Returns the samples a second; `None` for the mode `off`.
fn rate(mode: &str, per_second: Option<f64>) -> Result<Option<f64>> {
    let invalid = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
    match (mode, per_second) {
        ("off", _) => Ok(None),
        ("full", Some(rate)) if rate > 0.0 && rate <= PER_SECOND_MAX => Ok(Some(rate)),
        ("full", None) => invalid("'samplesPerSecond' must be given with the mode 'full'".into()),
        ("full", Some(_)) => invalid(format!(
            "'samplesPerSecond' must be greater than 0 and at most {PER_SECOND_MAX}"
        )),
        (other, _) => {
            let text = format!(
                "Enumeration value '{other}' for field 'configureQueryAnalyzer.mode' is not a valid value."
            );
            Err(Error::bad_value(text))
        }
    }
}

fn target(body: Doc<'_>) -> Result<Namespace> {
    match body.first().map(|first| first.value()) {
        Some(Value::String(name)) => {
            let namespace = Namespace::parse(name)?;
            match namespace.db() {
                "admin" | "config" | "local" => {
                    let text =
                        format!("Cannot sample queries of the database '{}'", namespace.db());
                    Err(Error::new(ErrorCode::IllegalOperation, text))
                }
                _ => Ok(namespace),
            }
        }
        other => {
            let found = other.map_or("missing", |value| value.type_name());
            let text = format!(
                "BSON field 'configureQueryAnalyzer.configureQueryAnalyzer' is the wrong type '{found}', expected type 'string'"
            );
            Err(Error::type_mismatch(text))
        }
    }
}

/// Returns the rows of `$listSampledQueries`.
///
/// # Errors
/// The errors of the operand.
pub fn sampled(cx: &Context<'_>, _: &AggregateRequest, operand: Value<'_>) -> Result<Vec<DocBuf>> {
    let Value::Document(options) = operand else {
        let found = operand.type_name();
        let text = format!("$listSampledQueries must take a nested object but found: {found}");
        return Err(Error::location(6876001, text));
    };
    let mut namespace = None;
    for arg in fields("$listSampledQueries", options) {
        match arg.name() {
            "namespace" => namespace = Some(Namespace::parse(arg.string()?)?),
            _ => return Err(arg.unknown()),
        }
    }
    Ok(cx.service.recorder.samples().list(namespace.as_ref().map(Namespace::as_str)))
}
