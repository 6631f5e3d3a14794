//! `getClusterParameter` and `setClusterParameter`.

use crate::frame::args::missing;
use crate::frame::cluster_parameters::CLUSTER_PARAMETERS;
use crate::frame::context::Context;
use crate::frame::service::Topology;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

/// Runs the command `getClusterParameter`. Like mongod it accepts any other field.
pub fn get(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let names: Vec<&str> = match body.first().map(|first| first.value()) {
        Some(Value::String("*")) => CLUSTER_PARAMETERS.iter().map(|row| row.name).collect(),
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) if names.count() == 0 => {
            return Err(Error::bad_value("Must supply at least one cluster server parameter name"));
        }
        Some(Value::Array(names)) => {
            let wrong = |name: Value<'_>| wrong_type(name.type_name());
            let text = names.iter().map(|name| name.as_str().ok_or_else(|| wrong(name)));
            text.collect::<Result<_>>()?
        }
        other => return Err(wrong_type(other.map_or("missing", |value| value.type_name()))),
    };
    let parameters = &cx.service.cluster_parameters;
    let mut rows = reply.array("clusterParameters");
    names.iter().try_for_each(|name| parameters.write(name, &mut rows.document()))
}

/// Runs the command `setClusterParameter`. Like mongod it accepts any other field.
pub fn set(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = cx.command.name;
    let change = match body.first().map(|first| first.value()) {
        Some(Value::Document(change)) => change,
        Some(value) if value.is_nullish() => return Err(missing(name, name)),
        other => {
            let found = other.map_or("missing", |value| value.type_name());
            let text = format!(
                "BSON field '{name}.{name}' is the wrong type '{found}', expected type 'object'"
            );
            return Err(Error::type_mismatch(text));
        }
    };
    if cx.service.options.topology == Topology::Standalone {
        let text = "setClusterParameter can only run on a replica set or a sharded cluster";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let mut parameters = change.fields();
    let (first, second) = (parameters.next(), parameters.next());
    let Some((parameter, value)) = first else {
        return Err(Error::new(ErrorCode::NoSuchKey, "no cluster parameter is named"));
    };
    if second.is_some() {
        let text = "setClusterParameter only supports setting exactly one parameter";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    cx.service.cluster_parameters.set(cx.service, parameter, value)
}

fn wrong_type(found: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field 'getClusterParameter.getClusterParameter' is the wrong type '{found}', expected types '[string, array]'"
    ))
}
