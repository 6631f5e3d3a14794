//! The table of all commands: names, aliases, properties, and how dispatch treats them.

use crate::cursors::{get_more, kill_cursors};
use crate::ddl::search_indexes;
use crate::frame::command::Command;
use crate::frame::command::InTransaction::{AfterFirst, Anywhere, Ends, RefusedFor};
use crate::frame::command::Kind::{Other, Read, Write};
use crate::frame::command::ReadConcerns::{All, ExceptSnapshot, OfCursor};
use crate::frame::command::{Commands, Target};
use crate::frame::service::{Service, ServiceOptions};
use crate::frame::usage::Class;
use crate::job_commands;
use crate::read::{
    aggregate, analyze_schema, count, distinct, explain, file_md5, find, query_settings,
};
use crate::requires::REQUIRES;
use crate::users;
use crate::write::{self, apply_ops, bulk_write, delete, find_and_modify, insert, update};
use crate::{admin, advise, ddl, sessions};
use quire_error::Result;
use quire_storage::Engine;
use std::sync::{Arc, LazyLock};

/// Returns the row of a command of sharded clusters.
const fn sharded(name: &'static str) -> Command {
    let summary = "Refused: this server is no part of a sharded cluster.";
    Command::new(name, Other, admin::refused::sharding, summary)
}

/// Every command, in the order of the manual's chapters.
pub static COMMANDS: &[Command] = &[
    // Handshake and diagnostics.
    Command::new("hello", Other, admin::hello::hello, "Describes the server to a driver.")
        .v1()
        .before_login()
        .handshake()
        .secrets(&["speculativeAuthenticate"])
        .in_transaction(AfterFirst),
    Command::new("isMaster", Other, admin::hello::is_master, "The older spelling of hello.")
        .aliases(&["ismaster"])
        .before_login()
        .handshake()
        .secrets(&["speculativeAuthenticate"]),
    Command::new("ping", Other, admin::ping::run, "Replies ok.").v1().before_login(),
    Command::new(
        "buildInfo",
        Other,
        admin::build_info::run,
        "Returns the version and build of the server.",
    )
    .aliases(&["buildinfo"])
    .before_login(),
    Command::new("hostInfo", Other, admin::host_info::run, "Describes the server's machine."),
    Command::new("whatsmyuri", Other, admin::whatsmyuri::run, "Returns the client's address.")
        .before_login(),
    Command::new("logRotate", Other, admin::log_rotate::run, "Opens a new log file.").admin(),
    Command::new(
        "logApplicationMessage",
        Other,
        admin::log_application_message::run,
        "Writes a text to the audit log.",
    )
    .admin()
    .audited(admin::log_application_message::event),
    Command::new(
        "rotateCertificates",
        Other,
        admin::rotate_certificates::run,
        "Reads the TLS files again.",
    )
    .admin(),
    Command::new("shutdown", Other, admin::shutdown::run, "Stops the server.").admin(),
    Command::new("getParameter", Other, admin::parameters::get, "Reads server parameters.").admin(),
    Command::new("setParameter", Other, admin::parameters::set, "Changes server parameters.")
        .admin(),
    Command::new(
        "getCmdLineOpts",
        Other,
        admin::command_line::run,
        "Returns the options of the server's start.",
    )
    .admin(),
    Command::new(
        "serverStatus",
        Other,
        admin::server_status::run,
        "Returns the counters of the server.",
    ),
    Command::new("getLog", Other, admin::get_log::run, "Returns the newest log lines.").admin(),
    Command::new(
        "connectionStatus",
        Other,
        admin::connection_status::run,
        "Returns the authenticated user of the connection.",
    )
    .before_login(),
    Command::new("listCommands", Other, admin::list_commands::run, "Lists all commands.")
        .before_login(),
    Command::new("currentOp", Other, admin::current_op::run, "Lists the running operations.")
        .admin(),
    Command::new("killOp", Other, admin::kill_op::run, "Stops a running operation.").admin(),
    Command::new(
        "configureFailPoint",
        Other,
        admin::configure_fail_point::run,
        "Injects faults into commands, for tests.",
    )
    .admin()
    .for_tests()
    .outside_fail_points(),
    Command::new("testVersion2", Other, admin::test_version2::run, "Does nothing, for tests.")
        .for_tests(),
    Command::new(
        "features",
        Other,
        admin::features::run,
        "Returns the part of object ids that identifies the process.",
    ),
    Command::new(
        "top",
        Other,
        admin::top::run,
        "Returns the number and duration of operations on each collection.",
    )
    .admin(),
    Command::new("lockInfo", Other, admin::lock_info::run, "Lists the locks that are held.")
        .admin(),
    Command::new(
        "connPoolStats",
        Other,
        admin::outgoing::pool_stats,
        "Lists connections to other servers: none.",
    ),
    Command::new(
        "dropConnections",
        Other,
        admin::outgoing::drop,
        "Closes connections to other servers.",
    )
    .admin(),
    Command::new(
        "fsync",
        Other,
        admin::fsync::lock,
        "Syncs all data to disk; with lock, writes wait until fsyncUnlock.",
    )
    .admin(),
    Command::new("fsyncUnlock", Other, admin::fsync::unlock, "Ends the lock of fsync.").admin(),
    Command::new(
        "profile",
        Other,
        admin::profile::run,
        "Sets which operations the profiler records.",
    ),
    Command::new(
        "quireBackup",
        Other,
        admin::backup::run,
        "Copies all data to a new directory of the server's machine. Quire's own command.",
    )
    .admin(),
    Command::new(
        "quireRecorder",
        Other,
        admin::recorder::run,
        "Shows, resets or deletes what was counted for each shape. Quire's own command.",
    )
    .admin(),
    // Reading and writing.
    Command::new("insert", Write, insert::run, "Inserts documents into a collection.")
        .v1()
        .class(Class::Insert)
        .retryable()
        .in_transaction(Anywhere),
    Command::new("find", Read, find::run, "Returns the matching documents.")
        .v1()
        .strict_refuses(&[
            "tailable",
            "awaitData",
            "oplogReplay",
            "noCursorTimeout",
            "returnKey",
            "showRecordId",
            "min",
            "max",
        ])
        .class(Class::Query)
        .read_concerns(All)
        .in_transaction(Anywhere)
        .request_name("FindCommandRequest")
        .explain(find::explain),
    Command::new("update", Write, update::run, "Changes documents.")
        .v1()
        .class(Class::Update)
        .retryable()
        .in_transaction(Anywhere)
        .statements()
        .explain(write::explain::update),
    Command::new("delete", Write, delete::run, "Deletes documents.")
        .v1()
        .class(Class::Remove)
        .retryable()
        .in_transaction(Anywhere)
        .statements()
        .explain(write::explain::delete),
    Command::new(
        "findAndModify",
        Write,
        find_and_modify::run,
        "Changes or deletes one document and returns it.",
    )
    .aliases(&["findandmodify"])
    .v1()
    .retryable()
    .in_transaction(Anywhere)
    .explain(write::explain::find_and_modify),
    Command::new(
        "bulkWrite",
        Write,
        bulk_write::run,
        "Runs several kinds of writes on several collections.",
    )
    .admin()
    .v1()
    .retryable()
    .in_transaction(Anywhere),
    Command::new("count", Read, count::run, "Returns the number of matching documents.")
        .v1()
        .read_concerns(ExceptSnapshot)
        .in_transaction(RefusedFor("Please see http://dochub.mongodb.org/core/transaction-count for a recommended alternative."))
        .explain(count::explain),
    Command::new("distinct", Read, distinct::run, "Returns the distinct values at a path.")
        .read_concerns(All)
        .in_transaction(Anywhere)
        .explain(distinct::explain),
    Command::new("aggregate", Read, aggregate::run, "Runs a pipeline of stages.")
        .v1()
        .strict_refuses(&["explain"])
        .target(Target::CollectionOrAggregate)
        .read_concerns(All)
        .write_concern()
        .in_transaction(Anywhere)
        .explain(aggregate::explain),
    Command::new("explain", Other, explain::run, "Returns the plan of a command.")
        .v1()
        .strict_refuses(&["whatIf"])
        // The secrets of a login command, which has no plan.
        .secrets(&["pwd", "payload"]),
    Command::new(
        "adviseIndexes",
        Other,
        advise::advise_indexes::run,
        "Says which indexes a workload needs, measured on copies. Quire's own command.",
    ),
    Command::new("getMore", Read, get_more::run, "Returns the next batch of a cursor.")
        .v1()
        .class(Class::GetMore)
        .target(Target::OfCursor)
        .read_concerns(OfCursor)
        .continues_cursor()
        .in_transaction(Anywhere),
    Command::new("killCursors", Read, kill_cursors::run, "Closes cursors.")
        .v1()
        .in_transaction(AfterFirst),
    // Databases, collections, indexes.
    Command::new("create", Write, ddl::create::run, "Creates a collection or a view.")
        .v1()
        .strict_refuses(&["capped", "size", "max", "storageEngine", "indexOptionDefaults"])
        .in_transaction(Anywhere),
    Command::new(
        "convertToCapped",
        Write,
        ddl::convert_to_capped::run,
        "Makes a collection capped.",
    ),
    Command::new(
        "cloneCollectionAsCapped",
        Write,
        ddl::clone_collection_as_capped::run,
        "Copies the newest documents of a collection to a new capped collection.",
    ),
    Command::new("drop", Write, ddl::drop::run, "Drops a collection.").v1(),
    Command::new("dropDatabase", Write, ddl::drop_database::run, "Drops a database.").v1(),
    Command::new("renameCollection", Write, ddl::rename_collection::run, "Renames a collection.")
        .admin(),
    Command::new(
        "listCollections",
        Read,
        ddl::list_collections::run,
        "Lists the collections of a database.",
    )
    .v1(),
    Command::new(
        "listDatabases",
        Read,
        ddl::list_databases::run,
        "Lists the databases with their sizes.",
    )
    .admin()
    .v1(),
    Command::new("createIndexes", Write, ddl::create_indexes::run, "Creates indexes.")
        .v1()
        .in_transaction(Anywhere),
    Command::new("listIndexes", Read, ddl::list_indexes::run, "Lists the indexes of a collection.")
        .v1(),
    Command::new("dropIndexes", Write, ddl::drop_indexes::run, "Drops indexes.")
        .aliases(&["deleteIndexes"])
        .v1(),
    Command::new(
        "collMod",
        Write,
        ddl::coll_mod::run,
        "Changes an index, a view, or the options and patterns of a collection.",
    )
    .v1(),
    Command::new(
        "collStats",
        Read,
        admin::coll_stats::run,
        "Returns counts and sizes of a collection.",
    ),
    Command::new(
        "adviseSchema",
        Read,
        advise::advise_schema::run,
        "Names the problems of a database with their costs and the commands that mend them.",
    )
    .target(Target::Database),
    Command::new(
        "analyzeSchema",
        Read,
        analyze_schema::run,
        "Returns what the documents of a collection or database look like.",
    ),
    Command::new(
        "setDefaultRWConcern",
        Other,
        admin::set_default_rw_concern::run,
        "Sets the default read and write concern.",
    )
    .stores_setting()
    .admin()
    .write_concern(),
    Command::new(
        "getDefaultRWConcern",
        Other,
        admin::get_default_rw_concern::run,
        "Returns the default read and write concern.",
    )
    .admin(),
    Command::new("dbStats", Other, admin::db_stats::run, "Returns counts and sizes of a database.")
        .aliases(&["dbstats"]),
    Command::new(
        "dataSize",
        Other,
        admin::data_size::run,
        "Returns the documents and bytes of a collection, or of a range of it.",
    )
    .aliases(&["datasize"])
    .target(Target::Namespace),
    Command::new("dbHash", Other, admin::db_hash::run, "Returns a hash of each collection.")
        .aliases(&["dbhash"]),
    Command::new("validate", Other, admin::validate::run, "Checks a collection and its indexes.")
        .target(Target::Collection),
    Command::new("compact", Other, admin::compact::run, "Frees the space of deleted documents.")
        .target(Target::Collection),
    Command::new("reIndex", Write, ddl::re_index::run, "Builds the indexes of a collection again.")
        .refuses_write_concern(),
    Command::new(
        "validateDBMetadata",
        Other,
        admin::validate_metadata::run,
        "Finds parts of the catalog that an API version does not allow.",
    ),
    Command::new(
        "planCacheClear",
        Other,
        admin::index_filters::clear_plans,
        "Removes the cached plans of a collection, or those of a shape.",
    )
    .target(Target::Collection),
    Command::new(
        "planCacheClearFilters",
        Other,
        admin::index_filters::clear,
        "Removes the index filters of a collection, or the one of a shape.",
    )
    .target(Target::Collection),
    Command::new(
        "planCacheListFilters",
        Other,
        admin::index_filters::list,
        "Lists the index filters of a collection.",
    )
    .target(Target::Collection),
    Command::new(
        "planCacheSetFilter",
        Other,
        admin::index_filters::set,
        "Restricts the requests of one shape to some indexes.",
    )
    .target(Target::Collection),
    Command::new(
        "setQuerySettings",
        Write,
        query_settings::set,
        "Sets the allowed indexes of the requests of one shape, or refuses them.",
    )
    .admin(),
    Command::new(
        "removeQuerySettings",
        Write,
        query_settings::remove,
        "Removes the query settings of a shape.",
    )
    .admin(),
    // Sessions and transactions.
    Command::new(
        "commitTransaction",
        Write,
        sessions::commit_transaction::run,
        "Commits a transaction.",
    )
    .admin()
    .v1()
    .target(Target::Database)
    .in_transaction(Ends),
    Command::new(
        "abortTransaction",
        Write,
        sessions::abort_transaction::run,
        "Aborts a transaction.",
    )
    .admin()
    .v1()
    .target(Target::Database)
    .in_transaction(Ends),
    Command::new("startSession", Other, sessions::start_session::run, "Begins a session."),
    Command::new("endSessions", Other, sessions::end_sessions::run, "Ends sessions.").v1(),
    Command::new(
        "refreshSessions",
        Other,
        sessions::refresh_sessions::run,
        "Keeps idle sessions alive.",
    )
    .v1(),
    Command::new(
        "killSessions",
        Other,
        sessions::kill_sessions::run,
        "Stops the operations of sessions and closes their cursors.",
    )
    .in_transaction(AfterFirst),
    Command::new(
        "killAllSessions",
        Other,
        sessions::kill_all_sessions::run,
        "Stops the operations of all sessions of some users.",
    ),
    Command::new(
        "killAllSessionsByPattern",
        Other,
        sessions::kill_all_sessions_by_pattern::run,
        "Stops the operations of sessions that match a pattern.",
    ),
    // Replication, as a replica set with one member.
    Command::new(
        "replSetInitiate",
        Other,
        admin::repl_set::initiate,
        "Accepts the replica set with one member.",
    )
    .admin(),
    Command::new(
        "replSetGetStatus",
        Other,
        admin::repl_set::status,
        "Returns the state of the replica set.",
    )
    .admin(),
    Command::new(
        "replSetGetConfig",
        Other,
        admin::repl_set::config,
        "Returns the configuration of the replica set.",
    )
    .admin(),
    Command::new(
        "createSearchIndexes",
        Other,
        search_indexes::run,
        "Refused: there is no search service.",
    ),
    Command::new(
        "dropSearchIndex",
        Other,
        search_indexes::run,
        "Refused: there is no search service.",
    ),
    Command::new(
        "listSearchIndexes",
        Other,
        search_indexes::run,
        "Refused: there is no search service.",
    ),
    Command::new(
        "updateSearchIndex",
        Other,
        search_indexes::run,
        "Refused: there is no search service.",
    ),
    // Users, roles and logins.
    Command::new("saslStart", Other, users::sasl::start, "Begins a login.")
        .v1()
        .before_login()
        .secrets(&["payload"]),
    Command::new("saslContinue", Other, users::sasl::proceed, "Continues a login.")
        .v1()
        .before_login()
        .secrets(&["payload"]),
    Command::new("authenticate", Other, users::authenticate::run, "Logs in by certificate.")
        .v1()
        .before_login()
        // The secrets of MONGODB-CR, which old clients still send.
        .secrets(&["pwd", "key", "nonce"]),
    Command::new("logout", Other, users::logout::run, "Ends a login.").v1().before_login(),
    Command::new("createUser", Write, users::create_user::run, "Creates a user.")
        .target(Target::Database)
        .audited(users::audited::user)
        .secrets(&["pwd"]),
    Command::new("updateUser", Write, users::update_user::run, "Changes a user.")
        .target(Target::Database)
        .audited(users::audited::user)
        .secrets(&["pwd"]),
    Command::new("dropUser", Write, users::drop_user::one, "Drops a user.")
        .target(Target::Database)
        .audited(users::audited::user),
    Command::new(
        "dropAllUsersFromDatabase",
        Write,
        users::drop_user::all,
        "Drops all users of a database.",
    )
    .target(Target::Database)
    .audited(users::audited::of_database),
    Command::new("grantRolesToUser", Write, users::grant_roles::to_user, "Grants roles to a user.")
        .target(Target::Database)
        .audited(users::audited::user),
    Command::new(
        "revokeRolesFromUser",
        Write,
        users::grant_roles::from_user,
        "Revokes roles from a user.",
    )
    .target(Target::Database)
    .audited(users::audited::user),
    Command::new("usersInfo", Other, users::users_info::run, "Returns users."),
    Command::new("createRole", Write, users::create_role::run, "Creates a role.")
        .target(Target::Database)
        .audited(users::audited::role),
    Command::new("updateRole", Write, users::update_role::run, "Changes a role.")
        .target(Target::Database)
        .audited(users::audited::role),
    Command::new("dropRole", Write, users::drop_role::one, "Drops a role.")
        .target(Target::Database)
        .audited(users::audited::role),
    Command::new(
        "dropAllRolesFromDatabase",
        Write,
        users::drop_role::all,
        "Drops all roles of a database.",
    )
    .target(Target::Database)
    .audited(users::audited::of_database),
    Command::new(
        "grantPrivilegesToRole",
        Write,
        users::grant_privileges::grant,
        "Grants privileges to a role.",
    )
    .target(Target::Database)
    .audited(users::audited::role),
    Command::new(
        "revokePrivilegesFromRole",
        Write,
        users::grant_privileges::revoke,
        "Revokes privileges from a role.",
    )
    .target(Target::Database)
    .audited(users::audited::role),
    Command::new("grantRolesToRole", Write, users::grant_roles::to_role, "Grants roles to a role.")
        .target(Target::Database)
        .audited(users::audited::role),
    Command::new(
        "revokeRolesFromRole",
        Write,
        users::grant_roles::from_role,
        "Revokes roles from a role.",
    )
    .target(Target::Database)
    .audited(users::audited::role),
    Command::new("rolesInfo", Other, users::roles_info::run, "Returns roles."),
    Command::new(
        "_mergeAuthzCollections",
        Write,
        users::merge_accounts::run,
        "Merges users and roles from mongorestore.",
    )
    .admin()
    .target(Target::Database)
    .audited(users::audited::merge),
    Command::new(
        "invalidateUserCache",
        Other,
        users::invalidate_user_cache::run,
        "Makes every connection read its user's rights again.",
    )
    .admin()
    .target(Target::Database),
    // Parameters of the cluster, the block of writes, compaction.
    Command::new(
        "getClusterParameter",
        Other,
        admin::cluster_parameters::get,
        "Reads parameters of the cluster.",
    )
    .admin(),
    Command::new(
        "setClusterParameter",
        Other,
        admin::cluster_parameters::set,
        "Sets a parameter of the cluster, durably.",
    )
    .stores_setting()
    .admin(),
    Command::new(
        "setFeatureCompatibilityVersion",
        Other,
        admin::feature_compatibility::run,
        "Sets the version that getParameter shows. Nothing depends on it.",
    )
    .stores_setting()
    .admin()
    .write_concern(),
    Command::new(
        "setUserWriteBlockMode",
        Other,
        admin::write_block::run,
        "Refuses the writes of users, or ends that.",
    )
    .admin(),
    Command::new(
        "autoCompact",
        Other,
        admin::auto_compact::run,
        "Turns compaction in the background on or off.",
    )
    .admin(),
    Command::new("applyOps", Other, apply_ops::run, "Applies entries of an oplog, but none to collections of the server.").write_concern(),
    // Jobs, Quire's own.
    Command::new(
        "createJob",
        Other,
        job_commands::create_job::run,
        "Quire's own: creates a job that runs on a schedule or on changes.",
    )
    .defines_max_time()
    .write_concern(),
    Command::new(
        "updateJob",
        Other,
        job_commands::update_job::run,
        "Quire's own: changes the definition of a job.",
    )
    .defines_max_time()
    .write_concern(),
    Command::new(
        "listJobs",
        Other,
        job_commands::list_jobs::run,
        "Quire's own: lists jobs with their last runs and their errors.",
    ),
    Command::new(
        "runJob",
        Other,
        job_commands::run_job::run,
        "Quire's own: runs a scheduled job now.",
    )
    .write_concern(),
    Command::new(
        "pauseJob",
        Other,
        job_commands::pause_job::run,
        "Quire's own: stops a job, which keeps its position.",
    )
    .write_concern(),
    Command::new(
        "resumeJob",
        Other,
        job_commands::pause_job::resume,
        "Quire's own: makes a paused job go on.",
    )
    .write_concern(),
    Command::new("dropJob", Other, job_commands::drop_job::run, "Quire's own: removes a job.")
        .write_concern(),
    Command::new("filemd5", Read, file_md5::run, "Returns the MD5 hash of a file of GridFS.")
        .target(Target::Database),
    Command::new(
        "getDiagnosticData",
        Other,
        admin::diagnostic_data::run,
        "Returns a sample of the server's state, for monitoring.",
    )
    .admin(),
    Command::new(
        "getAuditConfig",
        Other,
        admin::audit_config::run,
        "Returns what the audit log records.",
    )
    .admin(),
    Command::new(
        "shardingState",
        Other,
        admin::repl_set_changes::sharding_state,
        "Says that the server is no shard.",
    )
    .admin(),
    Command::new(
        "replSetReconfig",
        Other,
        admin::repl_set_changes::reconfig,
        "Raises the version of the configuration; other changes are refused.",
    )
    .stores_setting()
    .admin(),
    Command::new(
        "replSetStepDown",
        Other,
        admin::repl_set_changes::step_down,
        "Fails: the only member is always primary.",
    )
    .admin(),
    Command::new(
        "replSetFreeze",
        Other,
        admin::repl_set_changes::freeze,
        "Fails: the only member is always primary.",
    )
    .admin(),
    Command::new(
        "replSetGetRBID",
        Other,
        admin::repl_set_changes::rollback_id,
        "Returns the number of rollbacks.",
    )
    .admin(),
    Command::new(
        "replSetSyncFrom",
        Other,
        admin::repl_set_changes::sync_from,
        "Fails: the only member is always primary.",
    )
    .admin(),
    Command::new(
        "replSetMaintenance",
        Other,
        admin::repl_set_changes::maintenance,
        "Fails: the only member is always primary.",
    )
    .admin(),
    Command::new(
        "replSetAbortPrimaryCatchUp",
        Other,
        admin::repl_set_changes::abort_catch_up,
        "Fails: the only member has nothing to catch up with.",
    )
    .admin(),
    Command::new(
        "replSetResizeOplog",
        Other,
        admin::resize_oplog::run,
        "Changes how much of the past the change log keeps.",
    )
    .stores_setting()
    .admin(),
    Command::new(
        "appendOplogNote",
        Other,
        admin::refused::oplog,
        "Refused: only changes are in the change log.",
    )
    .admin(),
    Command::new(
        "compactStructuredEncryptionData",
        Other,
        admin::refused::encryption,
        "Refused: there are no encrypted collections.",
    )
    .target(Target::Collection),
    Command::new(
        "cleanupStructuredEncryptionData",
        Other,
        admin::refused::encryption,
        "Refused: there are no encrypted collections.",
    )
    .target(Target::Collection),
    Command::new(
        "setAuditConfig",
        Other,
        admin::refused::audit,
        "Refused: the audit log is configured at the start.",
    )
    .admin(),
    Command::new(
        "setIndexCommitQuorum",
        Other,
        ddl::set_index_commit_quorum::run,
        "Accepts a quorum for an index build: the only member is all of them.",
    )
    .target(Target::Collection),
    Command::new(
        "configureQueryAnalyzer",
        Other,
        admin::query_analyzer::run,
        "Samples whole queries of a collection, which stay in memory.",
    )
    .admin()
    .target(Target::Namespace),
    Command::new(
        "analyzeShardKey",
        Other,
        advise::analyze_shard_key::run,
        "Returns what a shard key would be worth, although there are no shards.",
    )
    .admin()
    .target(Target::Namespace),
    // Commands of sharded clusters.
    sharded("abortReshardCollection"),
    sharded("addShard"),
    sharded("addShardToZone"),
    sharded("balancerCollectionStatus"),
    sharded("balancerStart"),
    sharded("balancerStatus"),
    sharded("balancerStop"),
    sharded("checkMetadataConsistency"),
    sharded("cleanupOrphaned"),
    sharded("cleanupReshardCollection"),
    sharded("clearJumboFlag"),
    sharded("commitReshardCollection"),
    sharded("configureCollectionBalancing"),
    sharded("enableSharding"),
    sharded("flushRouterConfig"),
    sharded("getShardMap"),
    sharded("getShardVersion"),
    sharded("listShards"),
    sharded("mergeAllChunksOnShard"),
    sharded("mergeChunks"),
    sharded("moveChunk"),
    sharded("moveCollection"),
    sharded("movePrimary"),
    sharded("moveRange"),
    sharded("refineCollectionShardKey"),
    sharded("removeShard"),
    sharded("removeShardFromZone"),
    sharded("reshardCollection"),
    sharded("setAllowMigrations"),
    sharded("shardCollection"),
    sharded("split"),
    sharded("splitVector"),
    sharded("transitionFromDedicatedConfigServer"),
    sharded("transitionToDedicatedConfigServer"),
    sharded("unshardCollection"),
    sharded("updateZoneKeyRange"),
    sharded("abortMoveCollection"),
    sharded("abortUnshardCollection"),
    sharded("checkShardingIndex"),
    sharded("isdbgrid"),
    sharded("medianKey"),
    // Commands of MongoDB that are known and not built yet.
    Command::missing("mapReduce", "The older form of aggregation."),
];

/// The table with its index by name.
static TABLE: LazyLock<Commands> = LazyLock::new(|| Commands::new(COMMANDS, REQUIRES));

impl Service {
    /// Opens a service over an engine.
    ///
    /// # Errors
    /// The errors of the catalog; `BadValue` for a parameter that does not exist.
    pub fn open(engine: Arc<dyn Engine>, options: ServiceOptions) -> Result<Arc<Service>> {
        Service::open_with(&TABLE, engine, options)
    }
}
