//! `connPoolStats` and `dropConnections`: connections from this server to others. A replica set
//! with one member has none.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};

/// Runs `connPoolStats`. Like mongod it accepts any field.
pub fn pool_stats(_cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    for name in [
        "numClientConnections",
        "numAScopedConnections",
        "totalInUse",
        "totalAvailable",
        "totalLeased",
        "totalCreated",
        "totalRefreshing",
        "totalRefreshed",
    ] {
        reply.append(name, 0);
    }
    reply.append("replicaSetMatchingStrategy", "matchPrimaryNode");
    for name in ["pools", "hosts", "replicaSets"] {
        reply.document(name).finish();
    }
    Ok(())
}

/// Runs `dropConnections`: checks the addresses; there is no connection to any of them.
pub fn drop(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let mut hosts = None;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "hostAndPort" if arg.is_null() => {}
            "hostAndPort" => hosts = Some((arg, arg.array()?)),
            _ => return Err(arg.unknown()),
        }
    }
    let (arg, hosts) = hosts.ok_or_else(|| missing(cx.command.name, "hostAndPort"))?;
    hosts.iter().enumerate().try_for_each(|(at, host)| check_host(&arg, at, host))
}

fn check_host(arg: &Arg<'_>, at: usize, host: Value<'_>) -> Result<()> {
    let host = match host {
        Value::String(host) => host,
        Value::Null => return Ok(()),
        other => {
            let (name, found) = (arg.name(), other.type_name());
            let text = format!(
                "BSON field 'dropConnections.{name}.{at}' is the wrong type '{found}', expected type 'string'"
            );
            return Err(Error::type_mismatch(text));
        }
    };
    let bad = |what: &str| Err(Error::failed_to_parse(format!("{what} in '{host}'")));
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, "")) => (name, None),
            Some((name, port)) => (name, port.strip_prefix(':').or(Some(""))),
            None => return bad("a bracket without its other"),
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    if name.is_empty() {
        return bad("an empty host name");
    }
    match port.map(|port| port.parse::<u16>()) {
        None | Some(Ok(1..)) => Ok(()),
        Some(_) => bad("a port that is none"),
    }
}
