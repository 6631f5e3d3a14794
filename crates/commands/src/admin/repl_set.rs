//! `replSetInitiate`, `replSetGetStatus`, `replSetGetConfig`: the replica set with one member. The
//! set exists from the first start. Initiating it is accepted once, so that scripts that do so run.

use crate::frame::context::Context;
use crate::frame::service::{Service, Topology, now_ms};
use quire_catalog::Namespace;
use quire_document::{Doc, DocBuf, DocWriter, Timestamp, Value, doc};
use quire_error::{Error, ErrorCode, Result};

/// Runs the command `replSetInitiate`.
pub fn initiate(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let set = set_name(cx.service)?;
    if let Some(Value::Document(config)) = body.get("replSetInitiate")
        && !config.is_empty()
    {
        check_config(config, &set)?;
    }
    if !note_initiated(cx)? {
        let text = "already initialized";
        return Err(Error::new(ErrorCode::AlreadyInitialized, text));
    }
    let _ = reply;
    Ok(())
}

/// Notes in `local.system.replset` that the set was initiated. Returns false if that was noted before.
fn note_initiated(cx: &Context<'_>) -> Result<bool> {
    let mut unit = cx.server_unit()?;
    let namespace = Namespace::new("local", "system.replset")?;
    let collection = unit.own_collection(&namespace, &cx.interrupt)?;
    let set = set_name(cx.service)?;
    let entry = doc! { "_id": set.as_str(), "version": 1i64 };
    let inserted = unit.write_durably(&cx.interrupt, |writer| {
        writer.insert(&collection, entry.as_doc()).map(|_| ())
    });
    match inserted {
        Ok(()) => Ok(true),
        Err(error) if error.code() == ErrorCode::DuplicateKey => Ok(false),
        Err(error) => Err(error),
    }
}

/// Runs the command `replSetGetStatus`.
pub fn status(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let set = set_name(cx.service)?;
    let service = cx.service;
    let time = service.clock.now();
    let now = now_ms();
    let member = super::hello::address(service, &cx.connection.info);
    reply.append("set", set.as_str()).append("date", Value::Date(now)).append("myState", 1);
    reply.append("term", 1i64).append("syncSourceHost", "").append("syncSourceId", -1);
    reply.append("heartbeatIntervalMillis", 2000i64);
    reply.append("majorityVoteCount", 1).append("writeMajorityCount", 1);
    reply.append("votingMembersCount", 1).append("writableVotingMembersCount", 1);
    {
        let mut optimes = reply.document("optimes");
        for name in
            ["lastCommittedOpTime", "readConcernMajorityOpTime", "appliedOpTime", "durableOpTime"]
        {
            optime(&mut optimes, name, time);
        }
        optimes.append("lastAppliedWallTime", Value::Date(now));
        optimes.append("lastDurableWallTime", Value::Date(now));
    }
    let mut members = reply.array("members");
    let mut row = members.document();
    row.append("_id", 0).append("name", member.as_str()).append("health", 1.0);
    row.append("state", 1).append("stateStr", "PRIMARY");
    row.append("uptime", service.started.elapsed().as_secs() as i32);
    optime(&mut row, "optime", time);
    row.append("optimeDate", Value::Date(i64::from(time.seconds) * 1000));
    row.append("lastAppliedWallTime", Value::Date(now))
        .append("lastDurableWallTime", Value::Date(now));
    row.append("syncSourceHost", "").append("syncSourceId", -1).append("infoMessage", "");
    row.append(
        "electionTime",
        Timestamp { seconds: (service.started_ms / 1000) as u32, increment: 1 },
    );
    row.append("electionDate", Value::Date(service.started_ms));
    row.append("configVersion", service.config_version.get())
        .append("configTerm", 1)
        .append("self", true);
    row.append("lastHeartbeatMessage", "");
    Ok(())
}

/// Runs the command `replSetGetConfig`.
pub fn config(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("config", &own_config(cx)?);
    Ok(())
}

/// Returns the configuration of the set.
pub fn own_config(cx: &Context<'_>) -> Result<DocBuf> {
    let set = set_name(cx.service)?;
    let member = super::hello::address(cx.service, &cx.connection.info);
    Ok(DocBuf::build(|config| write_config(cx, &set, &member, config)))
}

fn write_config(cx: &Context<'_>, set: &str, member: &str, config: &mut DocWriter<'_>) {
    config.append("_id", set).append("version", cx.service.config_version.get()).append("term", 1);
    {
        let mut members = config.array("members");
        let mut row = members.document();
        row.append("_id", 0).append("host", member).append("arbiterOnly", false);
        row.append("buildIndexes", true).append("hidden", false).append("priority", 1);
        row.document("tags").finish();
        row.append("secondaryDelaySecs", 0i64).append("votes", 1);
    }
    config.append("protocolVersion", 1i64).append("writeConcernMajorityJournalDefault", true);
    let mut settings = config.document("settings");
    settings.append("chainingAllowed", true).append("heartbeatIntervalMillis", 2000);
    settings.append("heartbeatTimeoutSecs", 10).append("electionTimeoutMillis", 10000);
    settings.append("catchUpTimeoutMillis", -1).append("catchUpTakeoverDelayMillis", 30000);
    settings.document("getLastErrorModes").finish();
    {
        let mut defaults = settings.document("getLastErrorDefaults");
        defaults.append("w", 1).append("wtimeout", 0);
    }
    settings.append("replicaSetId", cx.service.process_id);
}

/// Returns the name of the set.
///
/// # Errors
/// `NoReplicationEnabled` on a standalone.
pub fn set_name(service: &Service) -> Result<String> {
    match &service.options.topology {
        Topology::ReplicaSet(name) => Ok(name.clone()),
        Topology::Standalone => {
            Err(Error::new(ErrorCode::NoReplicationEnabled, "not running with --replSet"))
        }
    }
}

/// Refuses a configuration that is not one of a replica set with one member.
fn check_config(config: Doc<'_>, set: &str) -> Result<()> {
    if let Some(Value::String(name)) = config.get("_id")
        && name != set
    {
        let text = format!(
            "Attempting to initiate a replica set with name {name}, but command line reports {set}; rejecting"
        );
        return Err(Error::new(ErrorCode::InvalidReplicaSetConfig, text));
    }
    match config.get("members") {
        None => Ok(()),
        Some(Value::Array(members)) if members.count() == 1 => Ok(()),
        Some(Value::Array(members)) => {
            let text =
                format!("{} members; this server is a replica set of one member", members.count());
            Err(Error::new(ErrorCode::InvalidReplicaSetConfig, text))
        }
        Some(other) => {
            let text = format!("members must be an array, not {}", other.type_name());
            Err(Error::new(ErrorCode::InvalidReplicaSetConfig, text))
        }
    }
}

fn optime(writer: &mut DocWriter<'_>, name: &str, time: Timestamp) {
    let mut optime = writer.document(name);
    optime.append("ts", time).append("t", 1i64);
}
