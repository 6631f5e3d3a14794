//! The built-in roles of MongoDB 8.2 with their privileges. (MongoDB manual, "Built-In Roles".)

use crate::action::Action::*;
use crate::action::{Action, ActionSet};
use crate::name::RoleName;
use crate::privilege::{Privilege, Privileges};
use crate::resource::Resource;

/// The built-in roles that every database has.
pub const DATABASE_ROLES: &[&str] =
    &["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"];

/// The built-in roles that only `admin` has.
pub const ADMIN_ROLES: &[&str] = &[
    "__queryableBackup",
    "__system",
    "backup",
    "clusterAdmin",
    "clusterManager",
    "clusterMonitor",
    "dbAdminAnyDatabase",
    "directShardOperations",
    "hostManager",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "restore",
    "root",
    "searchCoordinator",
    "userAdminAnyDatabase",
];

/// Returns the privileges of a built-in role; `None` if no built-in role has this name.
pub fn privileges(role: &RoleName) -> Option<Privileges> {
    let db = role.db.as_str();
    let granted = match role.role.as_str() {
        "read" => on_database(db, READ),
        "readWrite" => on_database(db, READ_WRITE),
        "dbAdmin" => db_admin(db),
        "userAdmin" => vec![on(db, "", USER_ADMIN)],
        "dbOwner" => {
            [on_database(db, READ_WRITE), db_admin(db), vec![on(db, "", USER_ADMIN)]].concat()
        }
        "enableSharding" => vec![on(db, "", ENABLE_SHARDING)],
        name if db == "admin" => admin_role(name)?,
        _ => return None,
    };
    Some(granted.into_iter().collect())
}

/// Returns every built-in role of a database, ordered by name.
pub fn roles_of(db: &str) -> Vec<RoleName> {
    let admin = if db == "admin" { ADMIN_ROLES } else { &[] };
    let mut names: Vec<&str> = DATABASE_ROLES.iter().chain(admin).copied().collect();
    names.sort_unstable();
    names.into_iter().map(|role| RoleName::new(role, db)).collect()
}

const READ: &[Action] = &[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PerformRawDataOperations,
    PlanCacheRead,
];

const READ_WRITE: &[Action] = &[
    ChangeStream,
    CleanupStructuredEncryptionData,
    CollStats,
    CompactStructuredEncryptionData,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DbHash,
    DbStats,
    DropCollection,
    DropIndex,
    DropSearchIndex,
    Find,
    Insert,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PerformRawDataOperations,
    PlanCacheRead,
    Remove,
    RenameCollectionSameDB,
    Update,
    UpdateSearchIndex,
];

const DB_ADMIN: &[Action] = &[
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateJob,
    CreateSearchIndexes,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    DropJob,
    DropSearchIndex,
    EnableProfiler,
    ListCollections,
    ListIndexes,
    ListJobs,
    ListSearchIndexes,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDB,
    RunJob,
    StorageDetails,
    UpdateSearchIndex,
    Validate,
];

const PROFILE: &[Action] = &[
    ChangeStream,
    CollStats,
    ConvertToCapped,
    CreateCollection,
    DbHash,
    DbStats,
    DropCollection,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheRead,
];

const USER_ADMIN: &[Action] = &[
    ChangeCustomData,
    ChangePassword,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewRole,
    ViewUser,
];

/// The actions of `userAdminAnyDatabase` on the collections that store users and roles.
const USER_COLLECTIONS: &[Action] = &[
    CollStats,
    CreateIndex,
    CreateSearchIndexes,
    DbHash,
    DbStats,
    DropIndex,
    DropSearchIndex,
    Find,
    KillCursors,
    PlanCacheRead,
];

const ENABLE_SHARDING: &[Action] = &[
    AnalyzeShardKey,
    Action::EnableSharding,
    MoveCollection,
    RefineCollectionShardKey,
    ReshardCollection,
    UnshardCollection,
];

const CLUSTER_MANAGER: &[Action] = &[
    AddShard,
    AppendOplogNote,
    ApplicationMessage,
    CheckMetadataConsistency,
    CleanupOrphaned,
    FlushRouterConfig,
    GetClusterParameter,
    GetDefaultRWConcern,
    ListSessions,
    ListShards,
    MoveCollection,
    QuerySettings,
    RemoveShard,
    ReplSetConfigure,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ReplSetResizeOplog,
    ReplSetStateChange,
    Resync,
    SetClusterParameter,
    SetDefaultRWConcern,
    SetFeatureCompatibilityVersion,
    TransitionFromDedicatedConfigServer,
    TransitionToDedicatedConfigServer,
    UnshardCollection,
];

const CLUSTER_MANAGER_DATABASES: &[Action] = &[
    AnalyzeShardKey,
    ClearJumboFlag,
    ConfigureQueryAnalyzer,
    Action::EnableSharding,
    MoveChunk,
    RefineCollectionShardKey,
    ReshardCollection,
];

/// The read actions of the cluster roles on `config` and `local`.
const READ_SERVER_DATABASES: &[Action] = &[
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheRead,
];

const CLUSTER_MONITOR: &[Action] = &[
    ConnPoolStats,
    GetCmdLineOpts,
    GetDefaultRWConcern,
    GetLog,
    GetParameter,
    GetShardMap,
    HostInfo,
    Inprog,
    ListClusterCatalog,
    ListDatabases,
    ListSessions,
    ListShards,
    QueryStatsRead,
    QueryStatsReadTransformed,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ServerStatus,
    ShardingState,
    Top,
];

const HOST_MANAGER: &[Action] = &[
    ApplicationMessage,
    CloseAllDatabases,
    Compact,
    ConnPoolSync,
    DropConnections,
    FlushRouterConfig,
    Fsync,
    InvalidateUserCache,
    KillAnyCursor,
    KillAnySession,
    Killop,
    LogRotate,
    OidReset,
    Resync,
    RotateCertificates,
    SetParameter,
    Shutdown,
    Touch,
    Unlock,
];

const RESTORE: &[Action] = &[
    BypassDocumentValidation,
    ChangeCustomData,
    ChangePassword,
    CollMod,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateRole,
    CreateSearchIndexes,
    CreateUser,
    DropCollection,
    DropRole,
    DropUser,
    GrantRole,
    Insert,
    RevokeRole,
    UpdateSearchIndex,
    ViewRole,
    ViewUser,
];

const RESTORE_COLLECTION: &[Action] = &[
    BypassDocumentValidation,
    CollMod,
    CreateCollection,
    CreateIndex,
    DropCollection,
    Insert,
    UpdateSearchIndex,
];

const RESTORE_VERSION: &[Action] = &[
    BypassDocumentValidation,
    CollMod,
    CreateCollection,
    CreateIndex,
    DropCollection,
    Find,
    Insert,
    UpdateSearchIndex,
];

const RESTORE_USERS: &[Action] = &[
    BypassDocumentValidation,
    CollMod,
    CreateCollection,
    CreateIndex,
    DropCollection,
    Find,
    Insert,
    Remove,
    Update,
    UpdateSearchIndex,
];

/// Returns the privileges of a role that only `admin` has.
fn admin_role(name: &str) -> Option<Vec<Privilege>> {
    Some(match name {
        "readAnyDatabase" => [on_any_database(READ), vec![cluster(&[ListDatabases])]].concat(),
        "readWriteAnyDatabase" => {
            [on_any_database(READ_WRITE), vec![cluster(&[ListDatabases])]].concat()
        }
        "userAdminAnyDatabase" => user_admin_any_database(),
        "dbAdminAnyDatabase" => {
            let own = vec![on_buckets(DB_ADMIN), cluster(&[ListDatabases, ApplyOps])];
            [db_admin(""), own].concat()
        }
        "clusterMonitor" => cluster_monitor(),
        "clusterManager" => cluster_manager(),
        "hostManager" => vec![cluster(HOST_MANAGER), on("", "", &[KillCursors])],
        "clusterAdmin" => cluster_admin(),
        "backup" => backup(),
        "restore" => restore(),
        "root" => root(),
        "directShardOperations" => vec![cluster(&[IssueDirectShardOperations])],
        "searchCoordinator" => search_coordinator(),
        "__queryableBackup" => [backup(), vec![any(&[CollStats])]].concat(),
        "__system" => vec![Privilege { resource: Resource::Any, actions: ActionSet::all() }],
        _ => return None,
    })
}

/// Returns privileges for these actions on a database's ordinary collections and on its
/// `system.js`.
fn on_database(db: &str, actions: &[Action]) -> Vec<Privilege> {
    vec![on(db, "", actions), on(db, "system.js", actions)]
}

/// Returns privileges for these actions on the ordinary collections of every database, on `system.js` and on the buckets of
/// time-series collections.
fn on_any_database(actions: &[Action]) -> Vec<Privilege> {
    [on_database("", actions), vec![on_buckets(actions)]].concat()
}

fn db_admin(db: &str) -> Vec<Privilege> {
    vec![on(db, "", DB_ADMIN), on(db, "system.profile", PROFILE)]
}

fn user_admin_any_database() -> Vec<Privilege> {
    vec![
        on("", "", USER_ADMIN),
        cluster(&[AuthSchemaUpgrade, InvalidateUserCache, ListDatabases]),
        on("", "system.users", USER_COLLECTIONS),
        on("admin", "system.users", USER_COLLECTIONS),
        on("admin", "system.roles", USER_COLLECTIONS),
        on("admin", "system.version", &[CollStats, DbHash, DbStats, Find, KillCursors]),
    ]
}

fn cluster_monitor() -> Vec<Privilege> {
    let read: Vec<Action> = READ_SERVER_DATABASES.iter().copied().chain([IndexStats]).collect();
    vec![
        cluster(CLUSTER_MONITOR),
        on("", "", &[CollStats, DbStats, IndexStats, UseUUID, GetDatabaseVersion]),
        on("", "system.profile", &[Find]),
        on("config", "", &read),
        on("config", "system.js", READ_SERVER_DATABASES),
        on("local", "", &read),
        on("local", "system.js", READ_SERVER_DATABASES),
        on("local", "system.replset", &[Find]),
        on("local", "system.profile", &[Find]),
    ]
}

fn cluster_manager() -> Vec<Privilege> {
    let config: Vec<Action> = READ_SERVER_DATABASES
        .iter()
        .copied()
        .chain([Action::EnableSharding, Insert, MoveChunk, Remove, Update])
        .collect();
    vec![
        cluster(CLUSTER_MANAGER),
        on("", "", CLUSTER_MANAGER_DATABASES),
        on_buckets(CLUSTER_MANAGER_DATABASES),
        on("config", "", &config),
        on("config", "system.js", READ_SERVER_DATABASES),
        on("local", "", &[Action::EnableSharding, Insert, MoveChunk, Remove, Update]),
        on("local", "system.replset", READ_SERVER_DATABASES),
    ]
}

fn cluster_admin() -> Vec<Privilege> {
    let host = vec![cluster(HOST_MANAGER), on("", "", &[KillCursors, DropDatabase])];
    [cluster_manager(), cluster_monitor(), host].concat()
}

fn backup() -> Vec<Privilege> {
    vec![
        any(&[ListCollections, ListDatabases, ListIndexes, ListSearchIndexes]),
        cluster(&[
            AppendOplogNote,
            GetParameter,
            ListDatabases,
            ServerStatus,
            SetUserWriteBlockMode,
        ]),
        on("", "", &[Find]),
        on_buckets(&[Find]),
        on("config", "", &[Find]),
        on("local", "", &[Find]),
        on("", "system.js", &[Find]),
        on("", "system.profile", &[Find]),
        on("", "system.users", &[Find]),
        on("", "system.views", &[Find]),
        on("admin", "system.users", &[Find]),
        on("admin", "system.roles", &[Find]),
        on("admin", "system.version", &[Find]),
        on("admin", "system.jobs", &[Find]),
        on("config", "settings", &[Find, Insert, Update]),
    ]
}

fn restore() -> Vec<Privilege> {
    vec![
        on("", "", RESTORE),
        on_buckets(RESTORE_COLLECTION),
        on("", "system.js", RESTORE_COLLECTION),
        any(&[ListCollections]),
        on("config", "", RESTORE_COLLECTION),
        on("local", "", RESTORE_COLLECTION),
        on("admin", "system.version", RESTORE_VERSION),
        on("admin", "system.roles", &[CreateIndex]),
        on("admin", "system.jobs", RESTORE_COLLECTION),
        // The collections from which mongorestore lets users and roles be merged.
        on("admin", "tempusers", &[Find]),
        on("admin", "temproles", &[Find]),
        on("admin", "system.users", RESTORE_USERS),
        on("", "system.users", RESTORE_USERS),
        on("", "system.views", &[DropCollection]),
        cluster(&[BypassWriteBlockingMode, GetParameter, SetUserWriteBlockMode]),
    ]
}

fn root() -> Vec<Privilege> {
    [
        cluster_admin(),
        user_admin_any_database(),
        db_admin(""),
        on_any_database(READ_WRITE),
        restore(),
        backup(),
        vec![
            on_buckets(DB_ADMIN),
            cluster(&[ApplyOps, ListDatabases]),
            on("config", "system.preimages", &[Find, Remove]),
            any(&[Validate]),
        ],
    ]
    .concat()
}

fn search_coordinator() -> Vec<Privilege> {
    let write = on_database("__mdb_internal_search", READ_WRITE);
    let cluster = cluster(&[BypassDefaultMaxTimeMS, ListDatabases]);
    [on_database("", READ), write, vec![cluster]].concat()
}

fn on(db: &str, collection: &str, actions: &[Action]) -> Privilege {
    Privilege { resource: Resource::collection(db, collection), actions: ActionSet::of(actions) }
}

/// Returns a privilege on the buckets of every time-series collection.
fn on_buckets(actions: &[Action]) -> Privilege {
    let resource = Resource::Buckets { db: String::new(), collection: String::new() };
    Privilege { resource, actions: ActionSet::of(actions) }
}

fn cluster(actions: &[Action]) -> Privilege {
    Privilege { resource: Resource::Cluster, actions: ActionSet::of(actions) }
}

fn any(actions: &[Action]) -> Privilege {
    Privilege { resource: Resource::Any, actions: ActionSet::of(actions) }
}

#[cfg(test)]
mod tests {
    use super::{ADMIN_ROLES, privileges, roles_of};
    use crate::action::Action::*;
    use crate::name::RoleName;
    use crate::resource::Target;

    #[test]
    fn every_listed_role_has_privileges() {
        for role in roles_of("admin") {
            assert!(privileges(&role).is_some_and(|list| list.iter().count() > 0), "{role:?}");
        }
        for name in ADMIN_ROLES {
            assert!(privileges(&RoleName::new(name, "shop")).is_none());
        }
        assert!(privileges(&RoleName::new("nothing", "admin")).is_none());
    }

    #[test]
    fn a_role_of_a_database_grants_nothing_in_another() {
        let read = privileges(&RoleName::new("readWrite", "shop")).unwrap();
        assert!(read.allow(Target::Collection("shop", "orders"), Insert));
        assert!(!read.allow(Target::Collection("other", "orders"), Find));
        assert!(!read.allow(Target::Collection("shop", "system.users"), Find));
        assert!(!read.allow(Target::Cluster, Shutdown));
        let admin = privileges(&RoleName::new("dbAdmin", "shop")).unwrap();
        assert!(!admin.allow(Target::Collection("shop", "orders"), Find));
        assert!(admin.allow(Target::Collection("shop", "system.profile"), Find));
    }

    #[test]
    fn buckets_are_for_the_roles_of_all_databases() {
        let buckets = Target::Collection("shop", "system.buckets.readings");
        for (role, action) in [
            ("backup", Find),
            ("restore", Insert),
            ("readAnyDatabase", Find),
            ("readWriteAnyDatabase", Remove),
            ("dbAdminAnyDatabase", Compact),
            ("root", Insert),
        ] {
            let own = privileges(&RoleName::new(role, "admin")).unwrap();
            assert!(own.allow(buckets, action), "{role}");
            let of_server = Target::Collection("config", "system.buckets.readings");
            assert!(!own.allow(of_server, action), "{role}");
        }
        let own = privileges(&RoleName::new("dbOwner", "shop")).unwrap();
        assert!(!own.allow(buckets, Find));
    }

    #[test]
    fn root_reaches_every_database_but_does_not_write_users_by_hand_elsewhere() {
        let root = privileges(&RoleName::new("root", "admin")).unwrap();
        assert!(root.allow(Target::Cluster, Shutdown) && root.allow(Target::Cluster, Inprog));
        assert!(root.allow(Target::Collection("shop", "orders"), Update));
        assert!(root.allow(Target::Collection("admin", "system.users"), Find));
        assert!(!root.allow(Target::Collection("config", "system.sessions"), Insert));
    }
}
