//! `hello` and `isMaster`: the handshake. A driver learns that the server is the primary of a
//! replica set with one member. With `topologyVersion` and `maxAwaitTimeMS` the command waits for a
//! change of the topology; if the driver accepts several replies, it streams them.

use crate::frame::MAX_WIRE_VERSION;
use crate::frame::args::{Arg, arguments, fields, missing};
use crate::frame::context::Context;
use crate::frame::parameters::table::DESCRIPTOR;
use crate::frame::reply::from_interruption;
use crate::frame::service::{ConnectionInfo, Service, Topology, now_ms};
use crate::users::{mechanisms, sasl};
use quire_access::{Mechanism, UserName};
use quire_document::{Doc, DocWriter, ObjectId, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Interruption;
use std::sync::Arc;
use std::time::Duration;

/// Runs the command `hello`.
pub fn hello(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    handshake(cx, body, reply, true)
}

/// Runs the command `isMaster`.
pub fn is_master(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    handshake(cx, body, reply, false)
}

#[derive(Default)]
struct Arguments<'a> {
    client: Option<Doc<'a>>,
    topology_version: Option<(ObjectId, i64)>,
    max_await_ms: Option<i64>,
    hello_ok: bool,
    compression: Option<quire_document::Array<'a>>,
    sasl_user: Option<UserName>,
    login: Option<Doc<'a>>,
}

fn handshake(
    cx: &mut Context<'_>,
    body: Doc<'_>,
    reply: &mut DocWriter<'_>,
    modern: bool,
) -> Result<()> {
    let arguments = parse(body)?;
    if let Some(client) = arguments.client {
        check_client(client)?;
        if cx.connection.client.is_some() || cx.connection.seen_hello {
            let text = "The client metadata document may only be sent in the first hello";
            return Err(Error::new(ErrorCode::ClientMetadataCannotBeMutated, text));
        }
        cx.connection.client = Some(Arc::new(client.to_owned()));
        cx.connection.audit_metadata(client);
        cx.connection.leave_recorder_if_advisor();
    }
    cx.connection.seen_hello = true;
    wait_for_change(cx, &arguments)?;
    if cx.exhaust_allowed && arguments.topology_version.is_some() {
        cx.outcome.more_to_come = true;
        cx.connection.exhaust = Some(body.to_owned());
    }
    write_reply(cx, &arguments, reply, modern);
    if let Some(name) = &arguments.sasl_user {
        write_mechanisms(cx, name, reply)?;
    }
    if let Some(login) = arguments.login {
        sasl::speculative(cx, login, reply);
    }
    Ok(())
}

fn parse(body: Doc<'_>) -> Result<Arguments<'_>> {
    let mut found = Arguments::default();
    for arg in arguments("hello", body) {
        match arg.name() {
            // An invalid value counts as null too.
            "saslSupportedMechs" => found.sasl_user = Some(sasl_user(&arg)?),
            _ if arg.is_null() => {}
            "client" => {
                let text = "The client metadata document must be a document";
                let client = arg.value().as_document();
                found.client = Some(client.ok_or_else(|| Error::type_mismatch(text))?);
            }
            "topologyVersion" => found.topology_version = Some(topology_version(&arg)?),
            "maxAwaitTimeMS" => found.max_await_ms = Some(arg.integer_from(0)?),
            "helloOk" => found.hello_ok = arg.safe_bool()?,
            "compression" => found.compression = Some(arg.array()?),
            "speculativeAuthenticate" => found.login = Some(arg.document()?),
            "internalClient" => {
                arg.document()?;
            }
            "hostInfo" | "forShell" | "hangUpOnStepDown" | "loadBalanced" | "logicalTime" => {}
            _ => {}
        }
    }
    match (found.topology_version, found.max_await_ms) {
        (Some(_), None) => {
            let text = "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'";
            Err(Error::location(31368, text))
        }
        (None, Some(_)) => {
            let text = "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'";
            Err(Error::location(31368, text))
        }
        _ => Ok(found),
    }
}

fn topology_version(arg: &Arg<'_>) -> Result<(ObjectId, i64)> {
    let owner = "hello.topologyVersion";
    let (mut process, mut counter) = (None, None);
    for field in fields("hello.topologyVersion", arg.document()?) {
        match (field.name(), field.value()) {
            ("processId", Value::ObjectId(id)) => process = Some(id),
            ("processId", _) => return Err(field.wrong_type("objectId")),
            ("counter", Value::Int64(number)) => counter = Some(number),
            ("counter", _) => return Err(field.wrong_type("long")),
            _ => return Err(field.unknown()),
        }
    }
    let process = process.ok_or_else(|| missing(owner, "processId"))?;
    let counter = counter.ok_or_else(|| missing(owner, "counter"))?;
    if counter < 0 {
        return Err(Error::location(31372, "topologyVersion must have a non-negative counter"));
    }
    Ok((process, counter))
}

/// Returns the user whose mechanisms a driver asks for: `"db.user"` or `{user, db}`.
fn sasl_user(arg: &Arg<'_>) -> Result<UserName> {
    match arg.value() {
        Value::String(name) => match name.split_once('.') {
            Some((db, user)) => Ok(UserName::new(user, db)),
            None => {
                Err(Error::bad_value("username must contain a '.' separated database.user pair"))
            }
        },
        Value::Document(user) => {
            let field = |name: &str| {
                user.get(name).map(|value| value.as_str().unwrap_or_default()).ok_or_else(|| {
                    Error::bad_value(format!("username must contain a field named: {name}"))
                })
            };
            Ok(UserName::new(field("user")?, field("db")?))
        }
        _ => Err(arg.wrong_type("string, object")),
    }
}

/// Checks the metadata of a client. (Specification: "MongoDB Handshake".)
fn check_client(client: Doc<'_>) -> Result<()> {
    const BYTES_MAX: usize = 512;
    let place = "in the client metadata document";
    if client.len() > BYTES_MAX {
        let text =
            format!("The client metadata document must be less then or equal to {BYTES_MAX} bytes");
        return Err(Error::new(ErrorCode::ClientMetadataDocumentTooLarge, text));
    }
    if let Some(application) = client.get("application") {
        let application = part(application, "application", place)?;
        if let Some(Value::String(name)) = application.get("name")
            && name.len() > 128
        {
            let text = format!(
                "The 'application.name' field must be less then or equal to 128 bytes {place}"
            );
            return Err(Error::new(ErrorCode::ClientMetadataAppNameTooLarge, text));
        }
    }
    for (name, needed) in [("driver", &["name", "version"][..]), ("os", &["type"][..])] {
        let Some(value) = client.get(name) else {
            let text = format!("Missing required sub-document '{name}' {place}");
            return Err(Error::new(ErrorCode::ClientMetadataMissingField, text));
        };
        let inner = part(value, name, place)?;
        for field in needed {
            match inner.get(field) {
                Some(Value::String(_)) => {}
                Some(_) => {
                    let text = format!("The '{name}.{field}' field must be a string {place}");
                    return Err(Error::type_mismatch(text));
                }
                None => {
                    let text = format!("Missing required field '{name}.{field}' {place}");
                    return Err(Error::new(ErrorCode::ClientMetadataMissingField, text));
                }
            }
        }
    }
    Ok(())
}

fn part<'a>(value: Value<'a>, name: &str, place: &str) -> Result<Doc<'a>> {
    let text = || format!("The '{name}' field is required to be a BSON document {place}");
    value.as_document().ok_or_else(|| Error::type_mismatch(text()))
}

/// Waits for a change of the topology. With one member it changes only when the process stops or is
/// about to, so the wait ends with its time limit or with the shutdown.
fn wait_for_change(cx: &Context<'_>, arguments: &Arguments<'_>) -> Result<()> {
    let (Some((process, counter)), Some(wait_ms)) =
        (arguments.topology_version, arguments.max_await_ms)
    else {
        return Ok(());
    };
    let now = topology_counter(cx.service.engine.health().is_ok());
    if process != cx.service.process_id || counter < now {
        return Ok(());
    }
    if counter > now {
        let text = "Received a topology version with counter greater than the server's";
        return Err(Error::location(31382, text));
    }
    let wait = Duration::from_millis(wait_ms as u64);
    match cx.interrupt.wait(Some(wait), || false) {
        Ok(_) | Err(Interruption::DeadlineExceeded) => Ok(()),
        Err(reason) => Err(from_interruption(reason)),
    }
}

/// Returns how often the topology has changed: six times until the start is complete, which is the
/// count of a member that becomes primary, and once more when the engine fails.
const fn topology_counter(is_writable: bool) -> i64 {
    if is_writable { 6 } else { 7 }
}

fn write_reply(
    cx: &Context<'_>,
    arguments: &Arguments<'_>,
    reply: &mut DocWriter<'_>,
    modern: bool,
) {
    let service = cx.service;
    // An engine that has failed accepts no writes: the set has no primary then.
    let writable = service.engine.health().is_ok();
    if arguments.hello_ok {
        reply.append("helloOk", true);
    }
    {
        let mut version = reply.document("topologyVersion");
        version
            .append("processId", service.process_id)
            .append("counter", topology_counter(writable));
    }
    let primary = if modern { "isWritablePrimary" } else { "ismaster" };
    if let Topology::ReplicaSet(set) = &service.options.topology {
        let me = address(service, &cx.connection.info);
        reply.array("hosts").push(me.as_str());
        reply.append("setName", set.as_str()).append("setVersion", service.config_version.get());
        reply.append(primary, writable).append("secondary", false);
        reply.append_some("primary", writable.then_some(Value::String(&me)));
        reply.append("me", me.as_str());
        reply.append("electionId", ObjectId([0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1]));
        let time = service.clock.now();
        let mut write = reply.document("lastWrite");
        for name in ["opTime", "majorityOpTime"] {
            let mut optime = write.document(name);
            optime.append("ts", time).append("t", 1i64);
        }
        write.append("lastWriteDate", Value::Date(i64::from(time.seconds) * 1000));
        write.append("majorityWriteDate", Value::Date(i64::from(time.seconds) * 1000));
    } else {
        reply.append(primary, writable);
    }
    reply.append("maxBsonObjectSize", 16 * 1024 * 1024);
    reply.append("maxMessageSizeBytes", 48_000_000);
    reply.append("maxWriteBatchSize", 100_000);
    reply.append("localTime", Value::Date(now_ms()));
    let timeout = service.parameters.number("localLogicalSessionTimeoutMinutes");
    reply.append("logicalSessionTimeoutMinutes", timeout as i32);
    reply.append("connectionId", cx.connection.info.id as i32);
    reply.append("minWireVersion", 0).append("maxWireVersion", MAX_WIRE_VERSION);
    reply.append("readOnly", false);
    let descriptor = service.parameters.get(DESCRIPTOR);
    let descriptor =
        descriptor.filter(|text| text.as_value().as_str().is_some_and(|t| !t.is_empty()));
    if let Some(text) = descriptor {
        reply.append(DESCRIPTOR, &text);
    }
    if let Some(offered) = arguments.compression {
        write_compression(offered, reply);
    }
}

/// Appends the enabled mechanisms of a user. For a user that does not exist, those that new users
/// get.
fn write_mechanisms(cx: &Context<'_>, name: &UserName, reply: &mut DocWriter<'_>) -> Result<()> {
    let stored = cx.service.find_user(name)?;
    let mut names = reply.array("saslSupportedMechs");
    let own = |mechanism: &Mechanism| {
        stored.as_ref().is_none_or(|user| user.credential(*mechanism).is_some())
    };
    mechanisms::enabled(cx).iter().filter(|mechanism| own(mechanism)).for_each(|mechanism| {
        names.push(mechanism.name());
    });
    Ok(())
}

/// Appends the compressors that both sides support, in the client's order.
fn write_compression(offered: quire_document::Array<'_>, reply: &mut DocWriter<'_>) {
    let names = offered.iter().filter_map(|name| name.as_str());
    let known: Vec<&str> =
        names.filter(|name| matches!(*name, "snappy" | "zlib" | "zstd")).collect();
    if known.is_empty() {
        return;
    }
    let mut compression = reply.array("compression");
    known.iter().for_each(|name| {
        compression.push(*name);
    });
}

/// Returns the address under which clients reach this server: that of `--advertise`, else the local
/// address of this connection.
pub fn address(service: &Service, info: &ConnectionInfo) -> String {
    if let Some(address) = &service.options.advertise {
        return address.clone();
    }
    match info.local {
        Some(local) if local.ip().is_loopback() && local.is_ipv4() => {
            format!("127.0.0.1:{}", local.port())
        }
        Some(local) => local.to_string(),
        None => "127.0.0.1:27017".to_owned(),
    }
}
