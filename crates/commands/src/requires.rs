//! The privileges that each command requires: one row for each command, beside its row in the
//! registry. A test compares both tables. (MongoDB manual, "Required Access" of each command and
//! stage.)

mod pipeline;

use crate::frame::args::{arguments, flag, unambiguous, whole};
use crate::frame::authorize::Requires::Nothing;
use crate::frame::authorize::Requires::{self, Arguments, Cluster, Collection, Database, Login};
use crate::frame::context::Context;
use pipeline::pipeline;
use quire_access::Action::{self, *};
use quire_access::{Privileges, RoleName, Target, UserName};
use quire_catalog::split_namespace;
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// The rows, in the order of the registry.
pub static REQUIRES: &[(&str, Requires)] = &[
    // Handshake and diagnostics.
    ("hello", Nothing),
    ("isMaster", Nothing),
    ("ping", Nothing),
    ("buildInfo", Nothing),
    ("hostInfo", Cluster(&[HostInfo])),
    ("whatsmyuri", Nothing),
    ("logRotate", Cluster(&[LogRotate])),
    ("logApplicationMessage", Cluster(&[ApplicationMessage])),
    ("rotateCertificates", Cluster(&[RotateCertificates])),
    ("shutdown", Cluster(&[Shutdown])),
    ("getParameter", Cluster(&[GetParameter])),
    ("setParameter", Cluster(&[SetParameter])),
    ("getCmdLineOpts", Cluster(&[GetCmdLineOpts])),
    ("serverStatus", Cluster(&[ServerStatus])),
    ("getLog", Cluster(&[GetLog])),
    ("connectionStatus", Nothing),
    ("listCommands", Nothing),
    ("currentOp", Arguments(current_op)),
    ("killOp", Login),
    ("configureFailPoint", Cluster(&[SetParameter])),
    ("testVersion2", Nothing),
    ("features", Nothing),
    ("top", Cluster(&[Top])),
    ("lockInfo", Cluster(&[ServerStatus])),
    ("connPoolStats", Cluster(&[ConnPoolStats])),
    ("dropConnections", Cluster(&[DropConnections])),
    ("fsync", Cluster(&[Fsync])),
    ("fsyncUnlock", Cluster(&[Unlock])),
    ("profile", Arguments(profile)),
    ("quireBackup", Arguments(backup)),
    ("quireRecorder", Arguments(recorder)),
    // Reading and writing.
    ("insert", Arguments(insert)),
    ("find", Collection(&[Find])),
    ("update", Arguments(update)),
    ("delete", Collection(&[Remove])),
    ("findAndModify", Arguments(find_and_modify)),
    ("bulkWrite", Arguments(bulk_write)),
    ("count", Collection(&[Find])),
    ("distinct", Collection(&[Find])),
    ("aggregate", Arguments(aggregate)),
    ("explain", Arguments(explain)),
    ("adviseIndexes", Arguments(advise_indexes)),
    // The cursor's owner is checked when the cursor is found.
    ("getMore", Arguments(get_more)),
    ("killCursors", Login),
    // Sessions.
    ("startSession", Login),
    ("refreshSessions", Login),
    ("endSessions", Nothing),
    ("killSessions", Login),
    ("killAllSessions", Cluster(&[KillAnySession])),
    ("killAllSessionsByPattern", Cluster(&[KillAnySession])),
    ("commitTransaction", Login),
    ("abortTransaction", Login),
    // Collections and indexes.
    ("create", Arguments(create)),
    ("drop", Collection(&[DropCollection])),
    ("dropDatabase", Database(&[DropDatabase])),
    ("renameCollection", Arguments(rename)),
    ("listCollections", Arguments(list_collections)),
    ("listDatabases", Login),
    ("createIndexes", Collection(&[CreateIndex])),
    ("dropIndexes", Collection(&[DropIndex])),
    ("listIndexes", Collection(&[ListIndexes])),
    ("collMod", Arguments(coll_mod)),
    ("reIndex", Collection(&[ReIndex])),
    ("compact", Collection(&[Compact])),
    ("convertToCapped", Collection(&[ConvertToCapped])),
    ("cloneCollectionAsCapped", Arguments(clone_as_capped)),
    ("collStats", Collection(&[CollStats])),
    ("adviseSchema", Arguments(analyze_schema)),
    ("analyzeSchema", Arguments(analyze_schema)),
    ("dbStats", Database(&[DbStats])),
    ("dbHash", Database(&[DbHash])),
    ("dataSize", Arguments(data_size)),
    ("validate", Collection(&[Validate])),
    ("validateDBMetadata", Arguments(validate_metadata)),
    ("setQuerySettings", Cluster(&[QuerySettings])),
    ("removeQuerySettings", Cluster(&[QuerySettings])),
    ("planCacheClear", Collection(&[PlanCacheWrite])),
    ("planCacheClearFilters", Collection(&[PlanCacheIndexFilter])),
    ("planCacheListFilters", Collection(&[PlanCacheIndexFilter])),
    ("planCacheSetFilter", Collection(&[PlanCacheIndexFilter])),
    ("createSearchIndexes", Collection(&[CreateSearchIndexes])),
    ("dropSearchIndex", Collection(&[DropSearchIndex])),
    ("listSearchIndexes", Collection(&[ListSearchIndexes])),
    ("updateSearchIndex", Collection(&[UpdateSearchIndex])),
    ("mapReduce", Collection(&[Find])),
    // Concerns, the set, parameters of the cluster.
    ("getDefaultRWConcern", Cluster(&[GetDefaultRWConcern])),
    ("setDefaultRWConcern", Cluster(&[SetDefaultRWConcern])),
    ("replSetGetStatus", Cluster(&[ReplSetGetStatus])),
    ("replSetGetConfig", Cluster(&[ReplSetGetConfig])),
    ("replSetInitiate", Cluster(&[ReplSetConfigure])),
    ("getClusterParameter", Cluster(&[GetClusterParameter])),
    ("setClusterParameter", Cluster(&[SetClusterParameter])),
    ("setFeatureCompatibilityVersion", Cluster(&[SetFeatureCompatibilityVersion])),
    ("setUserWriteBlockMode", Cluster(&[SetUserWriteBlockMode])),
    ("autoCompact", Cluster(&[Compact])),
    ("applyOps", Arguments(apply_ops)),
    ("filemd5", Arguments(file_md5)),
    ("getDiagnosticData", Cluster(&[ServerStatus, ReplSetGetStatus])),
    ("getAuditConfig", Cluster(&[AuditConfigure])),
    ("shardingState", Cluster(&[ShardingState])),
    ("replSetReconfig", Cluster(&[ReplSetConfigure])),
    ("replSetStepDown", Cluster(&[ReplSetStateChange])),
    ("replSetFreeze", Cluster(&[ReplSetStateChange])),
    ("replSetGetRBID", Cluster(&[ReplSetGetStatus])),
    ("replSetSyncFrom", Cluster(&[ReplSetStateChange])),
    ("replSetMaintenance", Cluster(&[ReplSetStateChange])),
    ("replSetAbortPrimaryCatchUp", Cluster(&[ReplSetStateChange])),
    ("setIndexCommitQuorum", Collection(&[CreateIndex])),
    // Jobs.
    ("createJob", Database(&[CreateJob])),
    ("updateJob", Database(&[CreateJob])),
    ("listJobs", Database(&[ListJobs])),
    ("runJob", Database(&[RunJob])),
    ("pauseJob", Database(&[RunJob])),
    ("resumeJob", Database(&[CreateJob])),
    ("dropJob", Database(&[DropJob])),
    ("configureQueryAnalyzer", Arguments(query_analyzer)),
    ("analyzeShardKey", Arguments(shard_key)),
    // Commands that are refused whatever the rights.
    ("replSetResizeOplog", Cluster(&[ReplSetResizeOplog])),
    ("appendOplogNote", Login),
    ("compactStructuredEncryptionData", Login),
    ("cleanupStructuredEncryptionData", Login),
    ("setAuditConfig", Login),
    ("abortMoveCollection", Login),
    ("abortUnshardCollection", Login),
    ("checkShardingIndex", Login),
    ("isdbgrid", Login),
    ("medianKey", Login),
    ("abortReshardCollection", Login),
    ("addShard", Login),
    ("addShardToZone", Login),
    ("balancerCollectionStatus", Login),
    ("balancerStart", Login),
    ("balancerStatus", Login),
    ("balancerStop", Login),
    ("checkMetadataConsistency", Login),
    ("cleanupOrphaned", Login),
    ("cleanupReshardCollection", Login),
    ("clearJumboFlag", Login),
    ("commitReshardCollection", Login),
    ("configureCollectionBalancing", Login),
    ("enableSharding", Login),
    ("flushRouterConfig", Login),
    ("getShardMap", Login),
    ("getShardVersion", Login),
    ("listShards", Login),
    ("mergeAllChunksOnShard", Login),
    ("mergeChunks", Login),
    ("moveChunk", Login),
    ("moveCollection", Login),
    ("movePrimary", Login),
    ("moveRange", Login),
    ("refineCollectionShardKey", Login),
    ("removeShard", Login),
    ("removeShardFromZone", Login),
    ("reshardCollection", Login),
    ("setAllowMigrations", Login),
    ("shardCollection", Login),
    ("split", Login),
    ("splitVector", Login),
    ("transitionFromDedicatedConfigServer", Login),
    ("transitionToDedicatedConfigServer", Login),
    ("unshardCollection", Login),
    ("updateZoneKeyRange", Login),
    // Users and roles.
    ("saslStart", Nothing),
    ("saslContinue", Nothing),
    ("authenticate", Nothing),
    ("logout", Nothing),
    ("createUser", Arguments(create_user)),
    ("updateUser", Arguments(update_user)),
    ("dropUser", Database(&[DropUser])),
    ("dropAllUsersFromDatabase", Database(&[DropUser])),
    ("grantRolesToUser", Arguments(grant_roles)),
    ("revokeRolesFromUser", Arguments(revoke_roles)),
    ("usersInfo", Arguments(users_info)),
    ("createRole", Arguments(create_role)),
    ("updateRole", Arguments(update_role)),
    ("dropRole", Database(&[DropRole])),
    ("dropAllRolesFromDatabase", Database(&[DropRole])),
    ("grantPrivilegesToRole", Arguments(grant_privileges)),
    ("revokePrivilegesFromRole", Arguments(revoke_privileges)),
    ("grantRolesToRole", Arguments(grant_roles)),
    ("revokeRolesFromRole", Arguments(revoke_roles)),
    ("rolesInfo", Arguments(roles_info)),
    ("_mergeAuthzCollections", Arguments(merge_accounts)),
    ("invalidateUserCache", Cluster(&[InvalidateUserCache])),
];

fn current_op(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    match body.get("$ownOps").and_then(|own| own.as_bool()) {
        Some(true) => Ok(()),
        _ => cx.require(Target::Cluster, Inprog),
    }
}

/// Reading the level requires less than changing it.
fn profile(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let level = body.first().and_then(|first| whole(first.value()));
    let reads = level == Some(-1) && body.get("filter").is_none() && body.get("slowms").is_none();
    match reads && cx.may(Target::Collection(cx.db, "system.profile"), Find) {
        true => Ok(()),
        false => cx.require(Target::Database(cx.db), EnableProfiler),
    }
}

/// Requires the right to read each collection that the backup copies: all of them, also those that
/// hold users, roles, views, scripts and profiles.
fn backup(cx: &Context<'_>, _body: Doc<'_>) -> Result<()> {
    // The first is of the role `hostManager`, the second of `backup`.
    if !cx.may(Target::Cluster, Fsync) {
        cx.require(Target::Cluster, AppendOplogNote)?;
    }
    // Collections may be created after this check.
    cx.require(Target::Collection("", ""), Find)?;
    for collection in ["system.users", "system.roles"] {
        cx.require(Target::Collection("admin", collection), Find)?;
    }
    let catalog = cx.service.store.catalog();
    for collection in catalog.collections() {
        let namespace = &collection.namespace;
        cx.require(Target::Collection(namespace.db(), namespace.collection()), Find)?;
    }
    Ok(())
}

/// Requires the right to read the collection. A whole database requires it on at least one of its
/// collections; those that the client may not read are left out.
fn analyze_schema(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let target = cx.named_target(body);
    if let Target::Database(db) = target {
        let catalog = cx.service.store.catalog();
        let readable = catalog.database(db).is_some_and(|database| {
            let mut names = database.collections().map(|found| found.namespace.collection());
            names.any(|name| cx.may(Target::Collection(db, name), Find))
        });
        if readable {
            return Ok(());
        }
    }
    cx.require(target, Find)
}

fn query_analyzer(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    on_namespace(cx, body, ConfigureQueryAnalyzer)
}

fn shard_key(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    on_namespace(cx, body, AnalyzeShardKey)
}

/// Requires an action on the collection that the first field names with its database.
fn on_namespace(cx: &Context<'_>, body: Doc<'_>, action: Action) -> Result<()> {
    let named = body.first().and_then(|first| first.value().as_str()).and_then(split_namespace);
    let (db, collection) = named.unwrap_or(("", ""));
    cx.require(Target::Collection(db, collection), action)
}

/// To see counts requires what `$queryStats` requires; to forget them, what the change of sampling
/// requires; a trace shows the values of all collections.
fn recorder(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let what = body.first().and_then(|first| first.value().as_str());
    match what {
        Some("reset" | "purge") => {
            cx.require(Target::Cluster, QueryStatsRead)?;
            cx.require(Target::Collection("", ""), ConfigureQueryAnalyzer)
        }
        Some("beginTrace" | "readTrace" | "endTrace") => {
            cx.require(Target::Cluster, QueryStatsRead)?;
            cx.require(Target::Collection("", ""), ConfigureQueryAnalyzer)?;
            cx.require(Target::Collection("", ""), Find)
        }
        _ => cx.require(Target::Cluster, QueryStatsRead),
    }
}

fn insert(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    cx.require(cx.named_target(body), Insert)?;
    bypasses_validation(cx, body)
}

/// Fails unless the client may bypass the validator of the collection, if the command does so.
fn bypasses_validation(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    match is_true(body.get("bypassDocumentValidation")) {
        true => cx.require(cx.named_target(body), BypassDocumentValidation),
        false => Ok(()),
    }
}

fn update(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let target = cx.named_target(body);
    cx.require(target, Update)?;
    let listed = body.get("updates").and_then(|updates| updates.as_array());
    let listed =
        listed.into_iter().flat_map(|list| list.iter()).filter_map(|one| one.as_document());
    let sequence = cx.sequence("updates").unwrap_or_default().iter().copied();
    for update in listed.chain(sequence) {
        if is_true(unambiguous(Value::Document(update))?.get("upsert")) {
            cx.require(target, Insert)?;
        }
    }
    bypasses_validation(cx, body)
}

/// Returns true if the command treats this flag as set. A value of a wrong type is refused when the
/// command is parsed.
fn is_true(value: Option<Value<'_>>) -> bool {
    value.and_then(flag).unwrap_or(false)
}

fn find_and_modify(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let target = cx.named_target(body);
    cx.require(target, Find)?;
    match is_true(body.get("remove")) {
        true => cx.require(target, Remove)?,
        false => cx.require(target, Update)?,
    }
    if is_true(body.get("upsert")) {
        cx.require(target, Insert)?;
    }
    bypasses_validation(cx, body)
}

fn bulk_write(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let documents = |name: &'static str| {
        let listed = body.get(name).and_then(|list| list.as_array());
        let listed = listed.into_iter().flat_map(|list| list.iter());
        let listed = listed.filter_map(|one| one.as_document());
        listed.chain(cx.sequence(name).unwrap_or_default().iter().copied())
    };
    let namespaces = documents("nsInfo").map(|info| {
        let info = unambiguous(Value::Document(info))?;
        Ok(info.get("ns").and_then(|ns| ns.as_str()).unwrap_or_default())
    });
    let namespaces: Vec<&str> = namespaces.collect::<Result<_>>()?;
    for op in documents("ops") {
        let op = unambiguous(Value::Document(op))?;
        let Some(first) = op.first() else { continue };
        let at = whole(first.value()).and_then(|at| usize::try_from(at).ok());
        // A statement without a namespace is refused when it is parsed.
        let Some(namespace) = at.and_then(|at| namespaces.get(at)) else { continue };
        let Some((db, collection)) = split_namespace(namespace) else { continue };
        let target = Target::Collection(db, collection);
        match first.key() {
            "insert" => cx.require(target, Insert)?,
            "update" => {
                cx.require(target, Update)?;
                if is_true(op.get("upsert")) {
                    cx.require(target, Insert)?;
                }
            }
            _ => cx.require(target, Remove)?,
        }
        if is_true(body.get("bypassDocumentValidation")) {
            cx.require(target, BypassDocumentValidation)?;
        }
    }
    Ok(())
}

fn aggregate(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let source = cx.named_target(body);
    match body.get("pipeline") {
        Some(Value::Array(stages)) => {
            // The changes of all databases require the privileges on each of them.
            let source = if pipeline::is_of_all(stages) { Target::Database("") } else { source };
            pipeline(cx, source, stages)?;
            pipeline::bypasses_validation(cx, body, stages)
        }
        // A malformed command is refused when it is parsed; it must not reveal more before.
        _ => cx.require(source, Find),
    }
}

/// Requires the privileges of a getMore. `term` is a field between the members of a replica set.
fn get_more(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    match body.get("term").is_none_or(|term| term.is_nullish()) {
        true => Ok(()),
        false => cx.require(Target::Cluster, Internal),
    }
}

/// Requires the privileges of the explained command: a plan reveals data as the command does.
fn explain(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let inner = unambiguous(body.first().map_or(Value::Null, |first| first.value()))?;
    let name = inner.first().map_or("", |first| first.key());
    let name = cx.service.commands.find(name).map_or(name, |command| command.name);
    if body.get("whatIf").is_some_and(|what_if| !what_if.is_nullish()) {
        // It copies the collection and shows its size.
        let target = cx.named_target(inner);
        [Find, CollStats].into_iter().try_for_each(|action| cx.require(target, action))?;
    }
    shown_command(cx, name, inner)
}

/// Requires the privileges of a command whose plan is shown.
fn shown_command(cx: &Context<'_>, name: &str, command: Doc<'_>) -> Result<()> {
    match REQUIRES.iter().find(|(known, _)| *known == name) {
        Some((_, Collection(actions))) => {
            let target = cx.named_target(command);
            actions.iter().try_for_each(|action| cx.require(target, *action))
        }
        Some((_, Arguments(check))) => check(cx, command),
        _ => cx.require(cx.named_target(command), Find),
    }
}

/// Requires the rights on the collections that are copied, and those of each command that runs on the
/// copies. Without the name of a collection, all collections of the database are copied.
fn advise_indexes(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let target = match body.first().map(|first| first.value()) {
        Some(Value::String(collection)) => Target::Collection(cx.db, collection),
        _ => Target::Database(cx.db),
    };
    let actions = [Find, CollStats, ListIndexes, IndexStats];
    actions.into_iter().try_for_each(|action| cx.require(target, action))?;
    let workload = body.get("workload").and_then(|workload| workload.as_document());
    if workload.is_some_and(|workload| workload.contains("last")) {
        cx.require(Target::Cluster, QueryStatsRead)?;
        // A recorded pipeline may read any collection of the database.
        cx.require(Target::Database(cx.db), Find)?;
    }
    let commands = workload.and_then(|workload| workload.get("commands")?.as_array());
    for listed in commands.into_iter().flat_map(|commands| commands.iter()) {
        let listed = unambiguous(listed)?;
        let command = match listed.get("command") {
            Some(command @ Value::Document(_)) => unambiguous(command)?,
            _ => listed,
        };
        let name = command.first().map_or("", |first| first.key());
        let name = cx.service.commands.find(name).map_or(name, |command| command.name);
        cx.require(cx.named_target(command), Find)?;
        shown_command(cx, name, command)?;
    }
    Ok(())
}

/// Requires the rights to do what the entries do. A command of an entry is checked when it runs, but one
/// that creates a collection with a UUID is checked here.
fn apply_ops(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    cx.require(Target::Cluster, ApplyOps)?;
    let entries = body.first().and_then(|first| first.value().as_array());
    for entry in entries.into_iter().flat_map(|entries| entries.iter()) {
        let entry = unambiguous(entry)?;
        let namespace = entry.get("ns").and_then(|ns| ns.as_str()).unwrap_or_default();
        // An entry with a command may name the database only.
        let (db, collection) = split_namespace(namespace).unwrap_or((namespace, ""));
        let target = Target::Collection(db, collection);
        match entry.get("op").and_then(|op| op.as_str()) {
            Some("i" | "u") => {
                cx.require(target, Insert)?;
                cx.require(target, Update)?;
                if is_true(body.get("bypassDocumentValidation")) {
                    cx.require(target, BypassDocumentValidation)?;
                }
            }
            Some("d") => cx.require(target, Remove)?,
            Some("c") if entry.contains("ui") => {
                let object = entry.get("o").and_then(|object| object.as_document());
                apply_create(cx, db, object.unwrap_or_default())?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Requires the rights to create a collection with a UUID of the client's choice.
fn apply_create(cx: &Context<'_>, db: &str, object: Doc<'_>) -> Result<()> {
    let Some(("create", Value::String(name))) = object.fields().next() else { return Ok(()) };
    cx.require(Target::Cluster, UseUUID)?;
    cx.require(Target::Cluster, ForceUUID)?;
    cx.require(Target::Collection(db, name), CreateCollection)
}

/// Requires the right to read the chunks of the file.
fn file_md5(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let root = unambiguous(Value::Document(body))?.get("root").and_then(|root| root.as_str());
    let chunks = format!("{}.chunks", root.unwrap_or("fs"));
    cx.require(Target::Collection(cx.db, &chunks), Find)
}

fn create(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let target = cx.named_target(body);
    if !cx.may(target, CreateCollection) {
        // A first insert would create the collection as well, but without options.
        cx.require(target, Insert)?;
        let plain = arguments(cx.command.name, body).next().is_none();
        if !plain {
            return Err(cx.unauthorized());
        }
    }
    declares_patterns(cx, body)?;
    defines_view(cx, body)
}

/// Fails unless the client may declare the patterns of the command: a pattern reads another
/// collection, and its rules change what writes of that collection do.
fn declares_patterns(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let Some(Value::Array(patterns)) = body.get("patterns") else { return Ok(()) };
    cx.require(cx.named_target(body), CollMod)?;
    for pattern in patterns.iter() {
        if let Some(from) = unambiguous(pattern)?.get("from").and_then(|from| from.as_str()) {
            let target = Target::Collection(cx.db, from);
            [Find, CollMod].into_iter().try_for_each(|action| cx.require(target, action))?;
        }
    }
    Ok(())
}

/// Fails unless the client may run the view that the command defines, if it defines one.
fn defines_view(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let Some(Value::String(source)) = body.get("viewOn") else { return Ok(()) };
    let source = Target::Collection(cx.db, source);
    cx.require(source, Find)?;
    match body.get("pipeline") {
        Some(Value::Array(stages)) => pipeline(cx, source, stages),
        _ => Ok(()),
    }
}

fn coll_mod(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    cx.require(cx.named_target(body), CollMod)?;
    if body.contains("viewOn") != body.contains("pipeline") {
        // The unchanged half of the definition was created by a client with other rights.
        let text =
            "Must specify both 'viewOn' and 'pipeline' when modifying a view and auth is enabled";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    declares_patterns(cx, body)?;
    defines_view(cx, body)
}

/// Within a database an action of its own; else the privileges for copying and dropping.
fn clone_as_capped(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let name = |value: Option<Value<'_>>| {
        value.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let (from, to) =
        (name(body.first().map(|first| first.value())), name(body.get("toCollection")));
    cx.require(Target::Collection(cx.db, &from), Find)?;
    let actions = [Insert, CreateIndex, ConvertToCapped];
    actions.into_iter().try_for_each(|action| cx.require(Target::Collection(cx.db, &to), action))
}

fn rename(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let split = |value: Option<Value<'_>>| {
        let name = value.and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        match split_namespace(&name) {
            Some((db, collection)) => (db.to_owned(), collection.to_owned()),
            None => (name, String::new()),
        }
    };
    let (from_db, from) = split(body.first().map(|first| first.value()));
    let (to_db, to) = split(body.get("to"));
    let (source, target) = (Target::Collection(&from_db, &from), Target::Collection(&to_db, &to));
    // The value may also be the UUID of the collection to drop.
    let drops_target = || match body.get("dropTarget") {
        None | Some(Value::Bool(false)) => Ok(()),
        Some(_) => cx.require(target, DropCollection),
    };
    // An unreadable collection must not get a name under which it is readable.
    let stays_hidden = || cx.may(source, Find) || !cx.may(target, Find);
    if from_db == to_db
        && cx.may(source, RenameCollectionSameDB)
        && cx.may(target, RenameCollectionSameDB)
        && stays_hidden()
    {
        return drops_target();
    }
    cx.require(source, Find)?;
    cx.require(source, DropCollection)?;
    cx.require(target, Insert)?;
    cx.require(target, CreateIndex)?;
    drops_target()
}

/// Every user may list the names of the collections that the user may read.
fn list_collections(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let own = is_true(body.get("nameOnly")) && is_true(body.get("authorizedCollections"));
    match own {
        true => Ok(()),
        false => cx.require(Target::Database(cx.db), ListCollections),
    }
}

fn data_size(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let named = body.first().and_then(|first| first.value().as_str()).unwrap_or_default();
    let (db, collection) = named.split_once('.').unwrap_or((cx.db, named));
    cx.require(Target::Collection(db, collection), Find)
}

fn validate_metadata(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    match body.get("db").and_then(|db| db.as_str()) {
        Some(db) => cx.require(Target::Database(db), Validate),
        None => cx.require(Target::Collection("", ""), Validate),
    }
}

fn create_user(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    cx.require(Target::Database(cx.db), CreateUser)?;
    restrictions(cx, body)?;
    roles(cx, body, GrantRole)
}

fn update_user(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let name = body.first().and_then(|first| first.value().as_str());
    let own = cx.identity().is_some_and(|identity| {
        Some(identity.name.user.as_str()) == name && identity.name.db == cx.db
    });
    let home = Target::Database(cx.db);
    for (field, any, mine) in [
        ("pwd", ChangePassword, ChangeOwnPassword),
        ("mechanisms", ChangePassword, ChangeOwnPassword),
        ("customData", ChangeCustomData, ChangeOwnCustomData),
    ] {
        if body.contains(field) && !(own && cx.may(home, mine)) {
            cx.require(home, any)?;
        }
    }
    restrictions(cx, body)?;
    if body.contains("roles") {
        cx.require(home, RevokeRole)?;
        roles(cx, body, GrantRole)?;
    }
    Ok(())
}

fn restrictions(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    match body.contains("authenticationRestrictions") {
        true => cx.require(Target::Database(cx.db), SetAuthenticationRestriction),
        false => Ok(()),
    }
}

/// Requires, for each named role, that the client may grant or revoke roles of the role's database.
fn roles(cx: &Context<'_>, body: Doc<'_>, action: Action) -> Result<()> {
    let named = body.get("roles").and_then(|roles| roles.as_array());
    let named = named.into_iter().flat_map(|roles| roles.iter());
    // A malformed role is refused when it is parsed.
    named
        .filter_map(|role| RoleName::parse(role, cx.db).ok())
        .try_for_each(|role| cx.require(Target::Database(&role.db), action))
}

fn grant_roles(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    roles(cx, body, GrantRole)?;
    cx.require(Target::Database(cx.db), GrantRole)
}

fn revoke_roles(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    roles(cx, body, RevokeRole)?;
    cx.require(Target::Database(cx.db), RevokeRole)
}

fn create_role(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    cx.require(Target::Database(cx.db), CreateRole)?;
    restrictions(cx, body)?;
    roles(cx, body, GrantRole)?;
    privileges(cx, body, GrantRole)
}

fn update_role(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    cx.require(Target::Database(cx.db), RevokeRole)?;
    restrictions(cx, body)?;
    roles(cx, body, GrantRole)?;
    privileges(cx, body, GrantRole)
}

/// Requires, for each privilege, the action on the database of its resource.
fn privileges(cx: &Context<'_>, body: Doc<'_>, action: Action) -> Result<()> {
    let Some(Value::Array(named)) = body.get("privileges") else { return Ok(()) };
    let Ok(named) = Privileges::parse(named) else { return Ok(()) };
    named
        .iter()
        .try_for_each(|privilege| cx.require(Target::Database(privilege.resource.home()), action))
}

fn grant_privileges(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    cx.require(Target::Database(cx.db), GrantRole)?;
    privileges(cx, body, GrantRole)
}

fn revoke_privileges(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    cx.require(Target::Database(cx.db), RevokeRole)?;
    privileges(cx, body, RevokeRole)
}

/// Requires the rights without which no document could be merged; the command checks those for each
/// document.
fn merge_accounts(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let db = body.get("db").and_then(|db| db.as_str()).filter(|db| !db.is_empty());
    let target = Target::Database(db.unwrap_or("admin"));
    let drops: &[Action] = if is_true(body.get("drop")) { &[DropUser, DropRole] } else { &[] };
    let makes = [CreateUser, CreateRole, GrantRole];
    makes.iter().chain(drops).try_for_each(|action| cx.require(target, *action))
}

/// Every user may read its own entry.
fn users_info(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let named = body.first().map(|first| first.value());
    if let Some(Value::Document(doc)) = named
        && doc.contains("forAllDBs")
    {
        cx.require(Target::Database("admin"), ViewUser)?;
        return cx.require(Target::Collection("admin", "system.users"), Find);
    }
    looks_at(cx, named, ViewUser, |value| {
        let user = UserName::parse(value, cx.db).ok()?;
        let is_own = cx.identity().is_some_and(|identity| identity.name == user);
        Some((user.db, is_own))
    })
}

/// Every user may read the roles that the user has.
fn roles_info(cx: &Context<'_>, body: Doc<'_>) -> Result<()> {
    let named = body.first().map(|first| first.value());
    looks_at(cx, named, ViewRole, |value| {
        let role = RoleName::parse(value, cx.db).ok()?;
        let is_own = cx.identity().is_some_and(|identity| identity.inherited.roles.contains(&role));
        Some((role.db, is_own))
    })
}

/// Requires `action` on the database of each user or role in `named`, one or an array of them,
/// except the client's own. `read` returns the database and whether it is the client's own; `None`
/// for a malformed name.
fn looks_at(
    cx: &Context<'_>,
    named: Option<Value<'_>>,
    action: Action,
    read: impl Fn(Value<'_>) -> Option<(String, bool)>,
) -> Result<()> {
    let home = || cx.require(Target::Database(cx.db), action);
    let one = |value: Value<'_>| match read(value) {
        Some((_, true)) => Ok(()),
        Some((db, false)) => cx.require(Target::Database(&db), action),
        None => home(),
    };
    match named {
        Some(Value::Array(all)) => all.iter().try_for_each(one),
        Some(value @ (Value::String(_) | Value::Document(_))) => one(value),
        _ => home(),
    }
}

#[cfg(test)]
mod tests {
    use super::REQUIRES;
    use crate::registry::COMMANDS;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_has_its_privileges() {
        let named: BTreeSet<&str> = REQUIRES.iter().map(|(name, _)| *name).collect();
        assert_eq!(named.len(), REQUIRES.len(), "a command stands twice");
        let commands: BTreeSet<&str> = COMMANDS.iter().map(|row| row.name).collect();
        let missing: Vec<_> = commands.difference(&named).collect();
        let unknown: Vec<_> = named.difference(&commands).collect();
        assert!(missing.is_empty() && unknown.is_empty(), "{missing:?} {unknown:?}");
    }
}
