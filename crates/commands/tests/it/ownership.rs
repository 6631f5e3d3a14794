//! What belongs to a user, and what a user may do with what belongs to others: sessions, cursors and
//! transactions, the accounts of `_mergeAuthzCollections`, and the first user.

use super::access::guarded;
use super::transactions::{commit, within};
use super::{Client, Lines, Server, at, code};
use quire_access::Mechanism;
use quire_document::{Binary, DocBuf, Timestamp, Value, doc};
use std::sync::{Arc, Barrier};

fn log_in(server: &Server, id: u64, (db, user, password): (&str, &str, &str)) -> Client {
    let mut client = server.client(id);
    assert_eq!(client.log_in(db, user, password, Mechanism::Sha256), 0);
    client
}

fn create(root: &mut Client, user: &str, role: &str) {
    let roles = [doc! { "role": role, "db": "shop" }];
    root.works(doc! { "createUser": user, "pwd": "p", "roles": [&roles[0]], "$db": "shop" });
}

fn lsid(session: u8) -> DocBuf {
    doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &[session; 16] }) }
}

fn cursor(reply: &DocBuf) -> i64 {
    match at(reply, "cursor.id") {
        Some(Value::Int64(id)) if id != 0 => id,
        other => panic!("no cursor: {other:?}"),
    }
}

/// A user who was dropped and created again owned the cursors and the open transaction of the
/// earlier one.
#[test]
fn a_user_who_is_created_again_owns_nothing_of_the_earlier_one() {
    let (server, mut root) = guarded();
    create(&mut root, "ann", "readWrite");
    let mut ann = log_in(&server, 2, ("shop", "ann", "p"));
    let find = doc! { "find": "orders", "batchSize": 1, "lsid": &lsid(1), "$db": "shop" };
    let id = cursor(&ann.works(find));
    let insert = doc! { "insert": "orders", "documents": [{ "_id": 7 }], "$db": "shop" };
    ann.works(within(insert, (2, 1), true));
    root.works(doc! { "dropUser": "ann", "$db": "shop" });
    create(&mut root, "ann", "readWrite");
    let mut later = log_in(&server, 3, ("shop", "ann", "p"));
    let more = doc! { "getMore": id, "collection": "orders", "lsid": &lsid(1), "$db": "shop" };
    assert_eq!(code(&later.run(more)), 13);
    let commits = within(commit(), (2, 1), false);
    assert_eq!(code(&later.run(commits)), 251);
    let found = root.works(doc! { "find": "orders", "filter": { "_id": 7 }, "$db": "shop" });
    assert_eq!(at(&found, "cursor.firstBatch").unwrap().as_array().unwrap().count(), 0);
}

/// `alice@corp` of `admin` and `alice` of `corp@admin` had one digest.
#[test]
fn users_whose_names_read_alike_own_different_things() {
    let (server, mut root) = guarded();
    for (user, db) in [("alice@corp", "admin"), ("alice", "corp@admin")] {
        let role = doc! { "role": "readAnyDatabase", "db": "admin" };
        root.works(doc! { "createUser": user, "pwd": "p", "roles": [&role], "$db": db });
    }
    let mut one = log_in(&server, 2, ("admin", "alice@corp", "p"));
    let mut other = log_in(&server, 3, ("corp@admin", "alice", "p"));
    let id = cursor(&one.works(doc! { "find": "orders", "batchSize": 1, "$db": "shop" }));
    let more = doc! { "getMore": id, "collection": "orders", "$db": "shop" };
    assert_eq!(code(&other.run(more.clone())), 13);
    one.works(more);
}

/// The right to write was checked when the statement ran, and not when its writes became visible.
#[test]
fn a_commit_needs_the_rights_of_its_statements() {
    let (server, mut root) = guarded();
    create(&mut root, "ann", "readWrite");
    let mut ann = log_in(&server, 2, ("shop", "ann", "p"));
    let insert = |id: i32| doc! { "insert": "orders", "documents": [{ "_id": id }], "$db": "shop" };
    ann.works(within(insert(7), (1, 1), true));
    let roles = |name: &str| doc! { name: "ann", "roles": ["readWrite"], "$db": "shop" };
    root.works(roles("revokeRolesFromUser"));
    assert_eq!(code(&ann.run(within(commit(), (1, 1), false))), 13);
    root.works(roles("grantRolesToUser"));
    // The refused commit has aborted it.
    assert_eq!(code(&ann.run(within(commit(), (1, 1), false))), 251);
    ann.works(within(insert(8), (1, 2), true));
    ann.works(within(commit(), (1, 2), false));
    root.works(roles("revokeRolesFromUser"));
    // A commit that is repeated changes nothing and needs no right.
    ann.works(within(commit(), (1, 2), false));
    let found = root
        .works(doc! { "find": "orders", "filter": { "_id": { "$in": [7, 8] } }, "$db": "shop" });
    assert_eq!(at(&found, "cursor.firstBatch").unwrap().as_array().unwrap().count(), 1);
}

/// The command names a collection on which the client has the right, and a cursor of another one.
#[test]
fn killing_a_cursor_needs_the_right_on_its_own_collection() {
    let (server, mut root) = guarded();
    root.works(
        doc! { "insert": "gold", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "vault" },
    );
    let mut reader = log_in(&server, 2, ("shop", "reader", "p"));
    let open = |root: &mut Client, (db, collection): (&str, &str)| {
        cursor(&root.works(doc! { "find": collection, "batchSize": 1, "$db": db }))
    };
    let gold = open(&mut root, ("vault", "gold"));
    let kill = |id: i64| doc! { "killCursors": "orders", "cursors": [id], "$db": "shop" };
    assert_eq!(code(&reader.run(kill(gold))), 13);
    root.works(doc! { "getMore": gold, "collection": "gold", "$db": "vault" });
    let orders = open(&mut root, ("shop", "orders"));
    reader.works(kill(orders));
    // The owner may name any collection.
    let gold = open(&mut root, ("vault", "gold"));
    let killed = root.works(kill(gold));
    assert_eq!(at(&killed, "cursorsKilled").unwrap().as_array().unwrap().count(), 1);
}

/// A role with `createUser` and `grantRole` read any collection and replaced the credentials of any
/// user.
#[test]
fn merging_accounts_needs_the_rights_of_the_single_commands() {
    let (server, mut root) = guarded();
    let on = |db: &str, collection: &str, actions: &[&str]| {
        let actions: quire_document::ArrayBuf = actions.iter().map(|a| Value::String(a)).collect();
        doc! { "resource": { "db": db, "collection": collection }, "actions": &actions }
    };
    let makes = on("admin", "", &["createUser", "createRole", "grantRole", "insert"]);
    let shop = on("shop", "", &["createUser", "createRole", "grantRole"]);
    let role = |name: &str, privileges: &[&DocBuf]| {
        let privileges: quire_document::ArrayBuf =
            privileges.iter().map(|one| Value::from(*one)).collect();
        doc! { "createRole": name, "roles": [], "privileges": &privileges, "$db": "admin" }
    };
    let reads = on("admin", "temp", &["find"]);
    root.works(role("maker", &[&makes, &shop]));
    root.works(role("reading", &[&makes, &shop, &reads]));
    let changes = on("shop", "", &["changePassword"]);
    let drops = on("shop", "", &["dropUser"]);
    root.works(role("changing", &[&makes, &shop, &reads, &changes]));
    root.works(role("dropping", &[&makes, &shop, &reads, &drops]));
    for user in ["maker", "reading", "changing", "dropping"] {
        root.works(doc! { "createUser": user, "pwd": "p", "roles": [user], "$db": "admin" });
    }
    create(&mut root, "victim", "read");
    create(&mut root, "twin", "read");
    let stored = |root: &mut Client, user: &str| {
        let id = format!("shop.{user}");
        let found = root.works(
            doc! { "find": "system.users", "filter": { "_id": id.as_str() }, "$db": "admin" },
        );
        at(&found, "cursor.firstBatch.0").unwrap().as_document().unwrap().to_owned()
    };
    let (victim, twin) = (stored(&mut root, "victim"), stored(&mut root, "twin"));
    let with = |fields: &[&str]| {
        DocBuf::build(|out| {
            for element in victim.as_doc().iter() {
                match fields.contains(&element.key()) {
                    true => out.append(element.key(), twin.get(element.key()).unwrap()),
                    false => out.append_element(element),
                };
            }
        })
    };
    let mut merge_as = |user: &str, doc: &DocBuf| {
        root.works(doc! { "delete": "temp", "deletes": [{ "q": {}, "limit": 0 }], "$db": "admin" });
        root.works(doc! { "insert": "temp", "documents": [doc], "$db": "admin" });
        let mut client = log_in(&server, 9, ("admin", user, "p"));
        code(&client.run(doc! {
            "_mergeAuthzCollections": 1, "tempUsersCollection": "admin.temp", "$db": "admin"
        }))
    };
    assert_eq!(merge_as("maker", &victim), 13, "cannot read the collection");
    assert_eq!(merge_as("reading", &victim), 0, "changes nothing");
    let credentials = with(&["credentials"]);
    assert_eq!(merge_as("reading", &credentials), 13);
    assert_eq!(merge_as("dropping", &credentials), 13);
    assert_eq!(merge_as("changing", &credentials), 0);
    let replaced = with(&["credentials", "userId"]);
    assert_eq!(merge_as("changing", &replaced), 13);
    assert_eq!(merge_as("dropping", &replaced), 0);
}

/// Several clients that created the first user at once all succeeded.
#[test]
fn one_of_several_first_users_is_created() {
    for round in 0..5u64 {
        let server = Server::guarded();
        let together = Arc::new(Barrier::new(6));
        let created: i32 = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..6u64)
                .map(|number| {
                    let (mut client, together) =
                        (server.client(round * 10 + number), together.clone());
                    scope.spawn(move || {
                        let user = format!("user{number}");
                        let create = doc! {
                            "createUser": user.as_str(), "pwd": "p", "roles": ["root"],
                            "mechanisms": ["SCRAM-SHA-1"], "$db": "admin"
                        };
                        together.wait();
                        match code(&client.run(create)) {
                            0 => 1,
                            13 => 0,
                            other => panic!("code {other}"),
                        }
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        assert_eq!(created, 1);
    }
}

/// A client without a login moved the clock a year ahead.
#[test]
fn the_cluster_time_of_a_client_without_a_login_is_not_used() {
    let (server, mut root) = guarded();
    let now = |root: &mut Client| match root
        .works(doc! { "ping": 1, "$db": "admin" })
        .get("operationTime")
    {
        Some(Value::Timestamp(time)) => time,
        other => panic!("{other:?}"),
    };
    let ahead = Timestamp { seconds: now(&mut root).seconds + 100_000, increment: 1 };
    for command in ["hello", "ping"] {
        let mut ping = doc! { command: 1, "$db": "admin" };
        ping.append("$clusterTime", &doc! { "clusterTime": ahead });
        server.client(2).works(ping.clone());
        assert!(now(&mut root) < ahead);
    }
    let mut ping = doc! { "ping": 1, "$db": "admin" };
    ping.append("$clusterTime", &doc! { "clusterTime": ahead });
    root.works(ping);
    assert!(now(&mut root) >= ahead);
}

/// `find` on `admin` was enough to copy every database.
#[test]
fn a_backup_needs_the_right_to_read_everything() {
    let (server, mut root) = guarded();
    root.works(doc! {
        "createRole": "copier", "roles": [{ "role": "read", "db": "admin" }], "privileges": [
            { "resource": { "cluster": true }, "actions": ["fsync"] },
            { "resource": { "db": "admin", "collection": "system.users" }, "actions": ["find"] },
            { "resource": { "db": "admin", "collection": "system.roles" }, "actions": ["find"] },
            { "resource": { "db": "admin", "collection": "system.version" }, "actions": ["find"] },
        ], "$db": "admin"
    });
    let roles = |name: &str, roles: &[&str]| {
        let roles: quire_document::ArrayBuf =
            roles.iter().map(|role| Value::String(role)).collect();
        doc! { "createUser": name, "pwd": "p", "roles": &roles, "$db": "admin" }
    };
    root.works(roles("copier", &["copier"]));
    root.works(roles("backup", &["backup"]));
    let backup = doc! { "quireBackup": "relative", "$db": "admin" };
    let mut copier = log_in(&server, 2, ("admin", "copier", "p"));
    assert_eq!(code(&copier.run(backup.clone())), 13);
    // Allowed, and refused for the path.
    let mut allowed = log_in(&server, 3, ("admin", "backup", "p"));
    assert_eq!(code(&allowed.run(backup)), 2);
}

/// An entry that named the database without a dot created a collection in any database.
#[test]
fn an_entry_of_an_oplog_creates_a_collection_with_the_rights_to_create_it() {
    let (server, mut root) = guarded();
    root.works(doc! {
        "createRole": "applier", "roles": [], "privileges": [
            { "resource": { "cluster": true }, "actions": ["applyOps"] },
        ], "$db": "admin"
    });
    root.works(doc! {
        "createRole": "restorer", "roles": ["readWriteAnyDatabase"], "privileges": [
            { "resource": { "cluster": true }, "actions": ["applyOps", "useUUID", "forceUUID"] },
        ], "$db": "admin"
    });
    for role in ["applier", "restorer"] {
        root.works(doc! { "createUser": role, "pwd": "p", "roles": [role], "$db": "admin" });
    }
    let uuid = quire_document::Binary { subtype: 4, bytes: &[7; 16] };
    let apply = |ns: &str| {
        let entry = doc! { "op": "c", "ns": ns, "ui": Value::Binary(uuid), "o": { "create": "c" } };
        doc! { "applyOps": [&entry], "$db": "admin" }
    };
    let mut applier = log_in(&server, 2, ("admin", "applier", "p"));
    let mut restorer = log_in(&server, 3, ("admin", "restorer", "p"));
    for ns in ["shop", "shop.$cmd"] {
        assert_eq!(code(&applier.run(apply(ns))), 13, "{ns}");
    }
    for ns in ["shop", "shop.$cmd"] {
        restorer.works(apply(ns));
    }
}

#[test]
fn a_failed_authenticate_does_not_log_its_password() {
    let lines = Lines::default();
    let server = Server::guarded_logging(Arc::new(lines.clone()));
    let (server, mut root) = super::access::with_users(server);
    root.works(doc! { "setParameter": 1, "logLevel": 5, "$db": "admin" });
    server.client(2).run(doc! {
        "authenticate": 1, "user": "reader", "pwd": "TOPSECRET", "key": "TOPSECRET", "$db": "shop"
    });
    let all = format!("{:?}", lines.0.lock().unwrap());
    assert!(all.contains("authenticate"), "{all}");
    assert!(!all.contains("TOPSECRET"), "{all}");
}

/// Normalising a password of 9 MB took 2.2 seconds.
#[test]
fn a_password_has_a_limit() {
    let (_server, mut root) = guarded();
    let create = |bytes: usize| {
        doc! { "createUser": "long", "pwd": "p".repeat(bytes).as_str(), "roles": [], "$db": "shop" }
    };
    let limit = quire_document::limits::PASSWORD_BYTES_MAX;
    assert_eq!(code(&root.run(create(limit + 1))), 2);
    root.works(create(limit));
    let update =
        doc! { "updateUser": "long", "pwd": "p".repeat(limit + 1).as_str(), "$db": "shop" };
    assert_eq!(code(&root.run(update)), 2);
}
