//! Each built-in role with each command and stage: allowed, or 13. The table follows MongoDB's
//! manual ("Built-In Roles", "Privilege Actions", "Required Access" of each command) and does not
//! use the tables of the program.

use super::access::guarded;
use super::code;
use quire_access::Mechanism;
use quire_commands::{COMMANDS, Command};
use quire_document::{DocBuf, doc};

/// The roles, granted in `shop` if they are roles of a database, else in `admin`.
const ROLES: &[&str] = &[
    "read",
    "readWrite",
    "dbAdmin",
    "dbOwner",
    "userAdmin",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "dbAdminAnyDatabase",
    "userAdminAnyDatabase",
    "clusterManager",
    "clusterMonitor",
    "hostManager",
    "clusterAdmin",
    "backup",
    "restore",
    "root",
];

const OF_A_DATABASE: &[&str] = &["read", "readWrite", "dbAdmin", "dbOwner", "userAdmin"];

/// Roles with similar rights, besides `root`, which has all of them.
const READ: &str = "read readWrite dbOwner readAnyDatabase readWriteAnyDatabase";
const WRITE: &str = "readWrite dbOwner readWriteAnyDatabase";
const MANAGE: &str = "dbAdmin dbOwner dbAdminAnyDatabase";
const USERS: &str = "dbOwner userAdmin userAdminAnyDatabase restore";
const HOST: &str = "hostManager clusterAdmin";
const MONITOR: &str = "clusterMonitor clusterAdmin";
const CLUSTER: &str = "clusterManager clusterAdmin";

/// A command, its database, and the roles that may run it.
type Row = (&'static str, DocBuf, Vec<&'static str>);

fn aggregate(stage: DocBuf) -> DocBuf {
    doc! { "aggregate": "orders", "pipeline": [&stage], "cursor": {} }
}

fn server_stage(stage: DocBuf) -> DocBuf {
    doc! { "aggregate": 1, "pipeline": [&stage], "cursor": {} }
}

fn reading() -> Vec<Row> {
    vec![
        ("shop", doc! { "find": "orders" }, vec![READ, "backup"]),
        ("shop", doc! { "count": "orders" }, vec![READ, "backup"]),
        ("shop", doc! { "distinct": "orders", "key": "a" }, vec![READ, "backup"]),
        ("shop", aggregate(doc! { "$match": {} }), vec![READ, "backup"]),
        ("shop", aggregate(doc! { "$unionWith": "other" }), vec![READ, "backup"]),
        ("shop", doc! { "explain": { "find": "orders" } }, vec![READ, "backup"]),
        ("shop", doc! { "dbHash": 1 }, vec![READ]),
        ("shop", doc! { "listCollections": 1 }, vec![READ, MANAGE, "backup restore"]),
        ("shop", doc! { "listIndexes": "orders" }, vec![READ, MANAGE, "backup"]),
        ("shop", doc! { "collStats": "orders" }, vec![READ, MANAGE, MONITOR]),
        ("shop", doc! { "dbStats": 1 }, vec![READ, MANAGE, MONITOR]),
        ("shop", aggregate(doc! { "$collStats": { "count": {} } }), vec![READ, MANAGE, MONITOR]),
        ("shop", aggregate(doc! { "$indexStats": {} }), vec![MONITOR]),
        ("shop", aggregate(doc! { "$schemaStats": {} }), vec![READ, "backup"]),
        ("shop", doc! { "analyzeSchema": "orders" }, vec![READ, "backup"]),
        ("shop", doc! { "analyzeSchema": 1 }, vec![READ, "backup"]),
        ("shop", doc! { "adviseSchema": 1 }, vec![READ, "backup"]),
        ("vault", doc! { "find": "gold" }, vec!["readAnyDatabase readWriteAnyDatabase backup"]),
        ("admin", doc! { "find": "system.users" }, vec!["userAdminAnyDatabase backup restore"]),
        ("shop", doc! { "find": "system.profile" }, vec![MANAGE, MONITOR, "backup"]),
    ]
}

fn writing() -> Vec<Row> {
    let update = doc! { "q": { "_id": 1 }, "u": { "$set": { "a": 1 } } };
    let delete = doc! { "q": { "_id": 99 }, "limit": 1 };
    let index = doc! { "key": { "a": 1 }, "name": "a" };
    vec![
        ("shop", doc! { "insert": "orders", "documents": [{}] }, vec![WRITE, "restore"]),
        ("shop", doc! { "update": "orders", "updates": [&update] }, vec![WRITE]),
        ("shop", doc! { "delete": "orders", "deletes": [&delete] }, vec![WRITE]),
        (
            "shop",
            doc! { "findAndModify": "orders", "query": { "_id": 99 }, "remove": true },
            vec![WRITE],
        ),
        ("shop", aggregate(doc! { "$out": "copy" }), vec![WRITE]),
        ("shop", aggregate(doc! { "$merge": "copy" }), vec![WRITE]),
        ("shop", doc! { "create": "made" }, vec![WRITE, MANAGE, "restore"]),
        (
            "shop",
            doc! { "createIndexes": "orders", "indexes": [&index] },
            vec![WRITE, MANAGE, "restore"],
        ),
        ("shop", doc! { "dropIndexes": "orders", "index": "none" }, vec![WRITE, MANAGE]),
        ("shop", doc! { "drop": "made" }, vec![WRITE, MANAGE, "restore"]),
        ("shop", doc! { "collMod": "orders" }, vec![MANAGE, "restore"]),
        ("shop", doc! { "validate": "orders" }, vec![MANAGE]),
        ("shop", doc! { "profile": 0 }, vec![MANAGE]),
        ("shop", doc! { "planCacheClear": "orders" }, vec![MANAGE]),
        ("admin", doc! { "renameCollection": "shop.none", "to": "shop.made" }, vec![WRITE, MANAGE]),
        ("elsewhere", doc! { "dropDatabase": 1 }, vec!["dbAdminAnyDatabase clusterAdmin"]),
        (
            "vault",
            doc! { "insert": "gold", "documents": [{}] },
            vec!["readWriteAnyDatabase restore"],
        ),
    ]
}

fn administration() -> Vec<Row> {
    vec![
        ("shop", doc! { "createUser": "new", "pwd": "x", "roles": [] }, vec![USERS]),
        ("shop", doc! { "dropUser": "new" }, vec![USERS]),
        ("shop", doc! { "grantRolesToUser": "none", "roles": ["read"] }, vec![USERS]),
        ("shop", doc! { "usersInfo": 1 }, vec![USERS]),
        ("shop", doc! { "rolesInfo": 1 }, vec![USERS]),
        ("shop", doc! { "createRole": "new", "roles": [], "privileges": [] }, vec![USERS]),
        ("shop", doc! { "dropRole": "new" }, vec![USERS]),
        ("vault", doc! { "usersInfo": 1 }, vec!["userAdminAnyDatabase restore"]),
        ("admin", doc! { "serverStatus": 1 }, vec![MONITOR, "backup"]),
        ("admin", doc! { "getLog": "global" }, vec![MONITOR]),
        ("admin", doc! { "getCmdLineOpts": 1 }, vec![MONITOR]),
        ("admin", doc! { "hostInfo": 1 }, vec![MONITOR]),
        ("admin", doc! { "top": 1 }, vec![MONITOR]),
        ("admin", doc! { "connPoolStats": 1 }, vec![MONITOR]),
        ("admin", doc! { "currentOp": 1 }, vec![MONITOR]),
        ("admin", server_stage(doc! { "$currentOp": { "allUsers": true } }), vec![MONITOR]),
        (
            "admin",
            server_stage(doc! { "$listLocalSessions": { "allUsers": true } }),
            vec![MONITOR, CLUSTER],
        ),
        ("admin", doc! { "getParameter": 1, "quiet": 1 }, vec![MONITOR, "backup restore"]),
        ("admin", doc! { "setParameter": 1, "quiet": false }, vec![HOST]),
        ("admin", doc! { "logRotate": 1 }, vec![HOST]),
        ("admin", doc! { "rotateCertificates": 1 }, vec![HOST]),
        ("admin", doc! { "fsync": 1 }, vec![HOST]),
        ("admin", doc! { "killAllSessions": [{ "user": "none", "db": "none" }] }, vec![HOST]),
        ("admin", doc! { "invalidateUserCache": 1 }, vec![HOST, "userAdminAnyDatabase"]),
        ("admin", doc! { "replSetGetStatus": 1 }, vec![MONITOR, CLUSTER]),
        ("admin", doc! { "getDefaultRWConcern": 1 }, vec![MONITOR, CLUSTER]),
        (
            "admin",
            doc! { "setDefaultRWConcern": 1, "defaultReadConcern": { "level": "local" } },
            vec![CLUSTER],
        ),
    ]
}

/// Commands and stages that require the same as others of their family.
fn the_rest_of_families() -> Vec<Row> {
    let graph = doc! {
        "from": "other", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "g"
    };
    let lookup = doc! { "from": "other", "localField": "a", "foreignField": "b", "as": "l" };
    let own = doc! { "resource": { "db": "shop", "collection": "" }, "actions": ["find"] };
    let bulk = doc! {
        "bulkWrite": 1, "ops": [{ "insert": 0, "document": {} }], "nsInfo": [{ "ns": "shop.orders" }]
    };
    let filter = doc! { "planCacheSetFilter": "orders", "query": { "a": 1 }, "indexes": ["a_1"] };
    vec![
        ("shop", aggregate(doc! { "$lookup": &lookup }), vec![READ, "backup"]),
        ("shop", aggregate(doc! { "$graphLookup": &graph }), vec![READ, "backup"]),
        ("shop", aggregate(doc! { "$facet": { "a": [] } }), vec![READ, "backup"]),
        ("shop", aggregate(doc! { "$planCacheStats": {} }), vec![READ, MANAGE]),
        ("admin", server_stage(doc! { "$queryStats": {} }), vec![MONITOR]),
        ("admin", server_stage(doc! { "$statusHistory": {} }), vec![MONITOR, "backup"]),
        ("admin", server_stage(doc! { "$querySettings": {} }), vec![CLUSTER]),
        ("admin", doc! { "quireRecorder": "show" }, vec![MONITOR]),
        ("admin", doc! { "configureQueryAnalyzer": "shop.orders", "mode": "off" }, vec![CLUSTER]),
        ("admin", doc! { "analyzeShardKey": "shop.orders", "key": { "_id": 1 } }, vec![CLUSTER]),
        (
            "admin",
            doc! { "setQuerySettings": &*"0".repeat(64), "settings": { "queryFramework": "sbe" } },
            vec![CLUSTER],
        ),
        ("admin", doc! { "removeQuerySettings": &*"0".repeat(64) }, vec![CLUSTER]),
        ("shop", doc! { "dataSize": "shop.orders" }, vec![READ, "backup"]),
        ("shop", doc! { "listSearchIndexes": "orders" }, vec![READ, MANAGE, "backup"]),
        ("admin", bulk, vec![WRITE, "restore"]),
        (
            "shop",
            doc! { "createSearchIndexes": "orders", "indexes": [] },
            vec![WRITE, MANAGE, "restore"],
        ),
        ("shop", doc! { "dropSearchIndex": "orders", "name": "s" }, vec![WRITE, MANAGE]),
        (
            "shop",
            doc! { "updateSearchIndex": "orders", "name": "s" },
            vec![WRITE, MANAGE, "restore"],
        ),
        ("shop", doc! { "convertToCapped": "orders" }, vec![WRITE, MANAGE, "restore"]),
        ("shop", doc! { "compact": "orders" }, vec![MANAGE]),
        ("shop", doc! { "reIndex": "orders" }, vec![MANAGE]),
        ("shop", doc! { "validateDBMetadata": 1, "db": "shop", "apiParameters": {} }, vec![MANAGE]),
        ("shop", doc! { "planCacheListFilters": "orders" }, vec![MANAGE]),
        ("shop", doc! { "planCacheClearFilters": "orders" }, vec![MANAGE]),
        ("shop", filter, vec![MANAGE]),
        ("shop", doc! { "updateUser": "none", "customData": {} }, vec![USERS]),
        ("shop", doc! { "revokeRolesFromUser": "none", "roles": ["read"] }, vec![USERS]),
        ("shop", doc! { "dropAllUsersFromDatabase": 1 }, vec![USERS]),
        ("shop", doc! { "updateRole": "none", "roles": [] }, vec![USERS]),
        ("shop", doc! { "dropAllRolesFromDatabase": 1 }, vec![USERS]),
        ("shop", doc! { "grantRolesToRole": "none", "roles": ["read"] }, vec![USERS]),
        ("shop", doc! { "revokeRolesFromRole": "none", "roles": ["read"] }, vec![USERS]),
        ("shop", doc! { "grantPrivilegesToRole": "none", "privileges": [&own] }, vec![USERS]),
        ("shop", doc! { "revokePrivilegesFromRole": "none", "privileges": [&own] }, vec![USERS]),
        (
            "admin",
            doc! { "_mergeAuthzCollections": 1, "tempUsersCollection": "" },
            vec!["userAdminAnyDatabase restore"],
        ),
        ("admin", doc! { "logApplicationMessage": "m" }, vec![HOST, CLUSTER]),
        ("admin", doc! { "lockInfo": 1 }, vec![MONITOR, "backup"]),
        ("admin", doc! { "dropConnections": 1, "hostAndPort": [] }, vec![HOST]),
        ("admin", doc! { "fsyncUnlock": 1 }, vec![HOST]),
        ("admin", doc! { "killAllSessionsByPattern": [{ "uid": 1 }] }, vec![HOST]),
        ("admin", doc! { "getClusterParameter": "none" }, vec![CLUSTER]),
        ("admin", doc! { "setClusterParameter": {} }, vec![CLUSTER]),
        ("admin", doc! { "setFeatureCompatibilityVersion": "8.2" }, vec![CLUSTER]),
        ("admin", doc! { "replSetGetConfig": 1 }, vec![MONITOR, CLUSTER]),
        ("admin", doc! { "replSetInitiate": {} }, vec![CLUSTER]),
        ("admin", doc! { "shutdown": 1 }, vec![HOST]),
        ("admin", doc! { "setUserWriteBlockMode": 1, "global": false }, vec!["backup restore"]),
        ("admin", doc! { "autoCompact": false }, vec![HOST]),
        ("admin", doc! { "applyOps": [] }, vec!["dbAdminAnyDatabase"]),
        ("shop", doc! { "filemd5": 1 }, vec![READ, "backup"]),
        ("admin", doc! { "getDiagnosticData": 1 }, vec![MONITOR]),
        ("admin", doc! { "shardingState": 1 }, vec![MONITOR]),
        ("admin", doc! { "replSetReconfig": {} }, vec![CLUSTER]),
        ("admin", doc! { "replSetStepDown": 1 }, vec![CLUSTER]),
        ("admin", doc! { "replSetFreeze": 1 }, vec![CLUSTER]),
        ("admin", doc! { "replSetSyncFrom": "none:1" }, vec![CLUSTER]),
        ("admin", doc! { "replSetMaintenance": 1 }, vec![CLUSTER]),
        ("admin", doc! { "replSetAbortPrimaryCatchUp": 1 }, vec![CLUSTER]),
        ("admin", doc! { "replSetGetRBID": 1 }, vec![MONITOR, CLUSTER]),
        ("admin", doc! { "replSetResizeOplog": 1 }, vec![CLUSTER]),
        // Jobs, Quire's own.
        ("shop", doc! { "createJob": "j" }, vec![MANAGE]),
        ("shop", doc! { "updateJob": "none" }, vec![MANAGE]),
        ("shop", doc! { "listJobs": 1 }, vec![MANAGE]),
        ("shop", doc! { "runJob": "none" }, vec![MANAGE]),
        ("shop", doc! { "pauseJob": "none" }, vec![MANAGE]),
        ("shop", doc! { "resumeJob": "none" }, vec![MANAGE]),
        ("shop", doc! { "dropJob": "none" }, vec![MANAGE]),
        (
            "shop",
            doc! { "setIndexCommitQuorum": "orders", "indexNames": [], "commitQuorum": 1 },
            vec![WRITE, MANAGE, "restore"],
        ),
    ]
}

/// Commands that require a right and have no row here, and why.
const WITHOUT_ROW: &[&str] = &[
    // Requires nothing.
    "features",
    // For tests only.
    "configureFailPoint",
    "testVersion2",
    // Quire's own.
    "quireBackup",
    "adviseIndexes",
    // Not built: they are refused whatever the rights.
    "cloneCollectionAsCapped",
    "mapReduce",
    // No built-in role has the right.
    "getAuditConfig",
    // Every logged-in user may run them on its own data.
    "abortTransaction",
    "commitTransaction",
    "endSessions",
    "getMore",
    "killCursors",
    "killOp",
    "killSessions",
    "listDatabases",
    "refreshSessions",
    "startSession",
];

#[test]
fn every_command_that_needs_a_right_is_in_the_table() {
    let rows = all_rows();
    let has_row = |name: &str| {
        rows.iter().any(|(_, command, _)| command.as_doc().fields().next().unwrap().0 == name)
    };
    let needs = COMMANDS.iter().filter(|command| !command.before_login);
    // Commands that are refused whatever the rights need none.
    let is_built = |command: &&Command| !command.summary.starts_with("Refused: ");
    for command in needs.filter(is_built) {
        let stands = WITHOUT_ROW.contains(&command.name);
        assert_ne!(has_row(command.name), stands, "{}: one row, here or there", command.name);
    }
}

fn all_rows() -> Vec<Row> {
    [reading(), writing(), administration(), the_rest_of_families()].concat()
}

#[test]
fn each_role_has_the_privileges_of_the_manual() {
    let (server, mut root) = guarded();
    root.works(doc! { "insert": "gold", "documents": [{}], "$db": "vault" });
    let rows = all_rows();
    let mut wrong = Vec::new();
    for (id, role) in ROLES.iter().enumerate() {
        let db = if OF_A_DATABASE.contains(role) { "shop" } else { "admin" };
        let granted = doc! { "role": *role, "db": db };
        let user = format!("is-{role}");
        root.works(
            doc! { "createUser": user.as_str(), "pwd": "p", "roles": [&granted], "$db": "admin" },
        );
        let mut client = server.client(100 + id as u64);
        assert_eq!(client.log_in("admin", &user, "p", Mechanism::Sha256), 0);
        for (db, command, allowed) in &rows {
            let mut command = command.clone();
            command.append("$db", *db);
            let allowed = *role == "root" || allowed.join(" ").split(' ').any(|name| name == *role);
            if (code(&client.run(command.clone())) != 13) != allowed {
                wrong.push(format!("{role} allowed: {allowed}: {command:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
