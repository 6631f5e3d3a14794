//! Commands that change a replica set: `replSetReconfig`, `replSetStepDown`, `replSetFreeze` and
//! others. A set of one member has no other member to hand over to, so most of them fail as they do on the
//! primary of such a set.

use crate::admin::repl_set::{own_config, set_name};
use crate::frame::args::{Arg, arguments, whole};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter, Value, equal};
use quire_error::{Error, ErrorCode, Result};

/// Runs the command `replSetReconfig`. The version can be raised; everything else stays as it is.
pub fn reconfig(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    set_name(cx.service)?;
    let mut force = false;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "force" => force = arg.safe_bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    let Some(Value::Document(config)) = body.first().map(|first| first.value()) else {
        return Err(Error::bad_value("no configuration specified"));
    };
    let own = own_config(cx)?;
    check_same(config, own.as_doc())?;
    let version = config.get("version").and_then(whole).unwrap_or(0);
    let current = i64::from(cx.service.config_version.get());
    let next = if force { version.max(current + 1) } else { version };
    match i32::try_from(next) {
        Ok(next) if i64::from(next) > current => cx.service.config_version.set(cx.service, next),
        _ => Err(incompatible(format!(
            "New replica set configuration version must be greater than {current}, but it is {version}"
        ))),
    }
}

/// Refuses a configuration that differs from that of the server in more than the version.
fn check_same(given: Doc<'_>, own: Doc<'_>) -> Result<()> {
    for (name, value) in given.fields() {
        match (name, value, own.get(name)) {
            ("version" | "term", ..) => {}
            ("members", Value::Array(given), Some(Value::Array(own))) => {
                let (given, own) = (given.iter().collect::<Vec<_>>(), own.iter().next());
                let [Value::Document(member)] = given[..] else {
                    let text = format!(
                        "{} members; this server is a replica set of one member",
                        given.len()
                    );
                    return Err(incompatible(text));
                };
                check_fields("members.0", member, own.and_then(|own| own.as_document()))?;
            }
            ("settings", Value::Document(settings), Some(Value::Document(own))) => {
                check_fields("settings", settings, Some(own))?;
            }
            (_, value, own) => check_field(name, value, own)?,
        }
    }
    match given.contains("_id") && given.contains("members") {
        true => Ok(()),
        false => Err(incompatible("a configuration has the fields _id and members".to_owned())),
    }
}

fn check_fields(owner: &str, given: Doc<'_>, own: Option<Doc<'_>>) -> Result<()> {
    given.fields().try_for_each(|(name, value)| {
        check_field(&format!("{owner}.{name}"), value, own.and_then(|own| own.get(name)))
    })
}

fn check_field(name: &str, given: Value<'_>, own: Option<Value<'_>>) -> Result<()> {
    match own.is_some_and(|own| equal(given, own, None)) {
        true => Ok(()),
        false => Err(incompatible(format!(
            "{name} cannot be changed: the server is a replica set of one member"
        ))),
    }
}

fn incompatible(text: String) -> Error {
    Error::new(ErrorCode::NewReplicaSetConfigurationIncompatible, text)
}

/// Runs the command `replSetStepDown`: there is no other member that could be elected.
pub fn step_down(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    set_name(cx.service)?;
    let (mut force, mut catch_up) = (false, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "force" => force = arg.safe_bool()?,
            "secondaryCatchUpPeriodSecs" => catch_up = Some(arg.integer()?),
            _ => return Err(arg.unknown()),
        }
    }
    let seconds = first_number(cx, body)?.filter(|seconds| *seconds != 0).unwrap_or(60);
    if seconds < 0 {
        return Err(Error::bad_value("stepdown period must be a positive integer"));
    }
    match catch_up {
        Some(..0) => {
            let text = "secondaryCatchUpPeriodSecs period must be a positive or absent";
            return Err(Error::bad_value(text));
        }
        Some(catch_up) if catch_up > seconds => {
            let text = "stepdown period must be longer than secondaryCatchUpPeriodSecs";
            return Err(Error::bad_value(text));
        }
        _ => {}
    }
    if force {
        let text = "replSetStepDown with force is not supported: the only member is always primary";
        return Err(Error::new(ErrorCode::CommandNotSupported, text));
    }
    let text = "No electable secondaries caught up: the replica set has one member. Please use the replSetStepDown command with the argument {force: true} to force node to step down.";
    Err(Error::new(ErrorCode::ExceededTimeLimit, text))
}

/// Runs the command `replSetFreeze`: a primary cannot be kept from an election.
pub fn freeze(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    set_name(cx.service)?;
    first_number(cx, body)?;
    let text = "cannot freeze node when primary or running for election. state: Primary";
    Err(Error::new(ErrorCode::NotSecondary, text))
}

/// Runs the command `replSetGetRBID`. No write was ever rolled back, so the number stays the first.
pub fn rollback_id(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    set_name(cx.service)?;
    reply.append("rbid", 1);
    Ok(())
}

/// Runs the command `replSetSyncFrom`: a primary copies from no other member.
pub fn sync_from(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    set_name(cx.service)?;
    if let Some(first) = body.first() {
        Arg::new(cx.command.name, first).string()?;
    }
    Err(Error::new(ErrorCode::NotSecondary, "primaries don't sync"))
}

/// Runs the command `replSetMaintenance`: a primary cannot become a member under maintenance.
pub fn maintenance(cx: &mut Context<'_>, _: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    set_name(cx.service)?;
    Err(Error::new(ErrorCode::NotSecondary, "primaries can't modify maintenance mode"))
}

/// Runs the command `replSetAbortPrimaryCatchUp`: the only member has nothing to catch up with.
pub fn abort_catch_up(cx: &mut Context<'_>, _: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    set_name(cx.service)?;
    Err(Error::new(ErrorCode::IllegalOperation, "The node is not in catch-up mode."))
}

/// Runs the command `shardingState`.
pub fn sharding_state(_: &mut Context<'_>, _: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("enabled", false);
    Ok(())
}

/// Returns the number that the command's first field has; `None` for null.
fn first_number(cx: &Context<'_>, body: Doc<'_>) -> Result<Option<i64>> {
    let first = body.first().map(|first| Arg::new(cx.command.name, first));
    match first.filter(|first| !first.is_null()) {
        None => Ok(None),
        Some(first) => first.integer().map(Some),
    }
}
