//! Access control: what a client may do before a login, after it, and with few rights.

use super::{Client, Lines, Server, at, code, replica_set};
use quire_access::Mechanism;
use quire_access::scram::ClientLogin;
use quire_commands::log::NoLog;
use quire_document::{ArrayBuf, Binary, DocBuf, Value, doc};
use quire_storage::open_memory;
use std::sync::Arc;

fn binary(bytes: &str) -> Value<'_> {
    Value::Binary(Binary { subtype: 0, bytes: bytes.as_bytes() })
}

fn payload(reply: &DocBuf) -> Vec<u8> {
    match reply.get("payload") {
        Some(Value::Binary(binary)) => binary.bytes.to_vec(),
        other => panic!("no payload: {other:?}"),
    }
}

impl Client {
    /// Logs in. Returns the code of the error that ends the attempt, 0 for success.
    pub(crate) fn log_in(
        &mut self,
        db: &str,
        user: &str,
        password: &str,
        mechanism: Mechanism,
    ) -> i32 {
        let login = ClientLogin::new(mechanism, user, password).unwrap();
        let reply = self.run(doc! {
            "saslStart": 1, "mechanism": mechanism.name(), "payload": binary(&login.first()),
            "options": { "skipEmptyExchange": true }, "$db": db
        });
        if code(&reply) != 0 {
            return code(&reply);
        }
        let (proof, last) = login.prove(&payload(&reply)).unwrap();
        let reply = self.run(doc! {
            "saslContinue": 1, "conversationId": 1, "payload": binary(&last), "$db": db
        });
        if code(&reply) == 0 {
            proof.check(&payload(&reply)).unwrap();
            assert!(matches!(reply.get("done"), Some(Value::Bool(true))));
        }
        code(&reply)
    }
}

/// Returns a server with the users `root` and `reader` (of `shop`), and a client that is `root`.
pub(crate) fn guarded() -> (Server, Client) {
    with_users(Server::guarded())
}

/// Returns the server with these users.
pub(crate) fn with_users(server: Server) -> (Server, Client) {
    let mut root = server.client(1);
    root.works(doc! { "createUser": "root", "pwd": "r", "roles": ["root"], "$db": "admin" });
    assert_eq!(root.log_in("admin", "root", "r", Mechanism::Sha256), 0);
    let roles = doc! { "createUser": "reader", "pwd": "p", "roles": ["read"], "$db": "shop" };
    root.works(roles);
    let docs =
        doc! { "insert": "orders", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "shop" };
    root.works(docs);
    (server, root)
}

#[test]
fn before_a_login_only_the_handshake_works() {
    let (server, _root) = guarded();
    let mut client = server.client(2);
    client.works(doc! { "hello": 1, "$db": "admin" });
    client.works(doc! { "ping": 1, "$db": "admin" });
    for command in [
        doc! { "find": "orders", "$db": "shop" },
        doc! { "listDatabases": 1, "$db": "admin" },
        doc! { "serverStatus": 1, "$db": "admin" },
        doc! { "createUser": "x", "pwd": "x", "roles": ["root"], "$db": "admin" },
        doc! { "getMore": 1i64, "collection": "orders", "$db": "shop" },
    ] {
        assert_eq!(code(&client.run(command.clone())), 13, "{command:?}");
    }
}

#[test]
fn the_first_user_is_made_without_a_login_and_no_other() {
    let server = Server::guarded();
    let mut client = server.client(1);
    let make = |user: &str, db: &str| {
        doc! { "createUser": user, "pwd": "x", "roles": [], "$db": db }
    };
    assert_eq!(code(&client.run(make("a", "shop"))), 13);
    client.works(make("a", "admin"));
    assert_eq!(code(&client.run(make("b", "admin"))), 13);
}

#[test]
fn a_wrong_password_and_an_unknown_user_fail_alike() {
    let (server, _root) = guarded();
    for mechanism in [Mechanism::Sha1, Mechanism::Sha256] {
        let mut client = server.client(2);
        assert_eq!(client.log_in("shop", "reader", "wrong", mechanism), 18);
        assert_eq!(client.log_in("shop", "nobody", "p", mechanism), 18);
        assert_eq!(client.log_in("other", "reader", "p", mechanism), 18);
        assert_eq!(client.log_in("shop", "reader", "p", mechanism), 0);
    }
}

#[test]
fn a_reader_reads_its_database_and_nothing_else() {
    let (server, _root) = guarded();
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    let find = reader.works(doc! { "find": "orders", "$db": "shop" });
    assert_eq!(at(&find, "cursor.firstBatch").unwrap().as_array().unwrap().count(), 2);
    for command in [
        doc! { "insert": "orders", "documents": [{}], "$db": "shop" },
        doc! { "update": "orders", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }], "$db": "shop" },
        doc! { "delete": "orders", "deletes": [{ "q": {}, "limit": 0 }], "$db": "shop" },
        doc! { "findAndModify": "orders", "query": {}, "remove": true, "$db": "shop" },
        doc! { "drop": "orders", "$db": "shop" },
        doc! { "find": "orders", "$db": "other" },
        doc! { "find": "system.users", "$db": "admin" },
        doc! { "aggregate": "orders", "pipeline": [{ "$out": "copy" }], "cursor": {}, "$db": "shop" },
        doc! { "aggregate": "orders", "pipeline": [{ "$lookup": {
            "from": { "db": "other", "coll": "t" }, "localField": "a", "foreignField": "b", "as": "c"
        } }], "cursor": {}, "$db": "shop" },
        doc! { "aggregate": "orders", "pipeline": [{ "$facet": { "a": [
            { "$unionWith": { "coll": "system.users", "pipeline": [] } }
        ] } }], "cursor": {}, "$db": "shop" },
        doc! { "explain": { "delete": "orders", "deletes": [{ "q": {}, "limit": 1 }] }, "$db": "shop" },
        doc! { "renameCollection": "shop.orders", "to": "shop.x", "$db": "admin" },
        doc! { "createUser": "x", "pwd": "x", "roles": [], "$db": "shop" },
        doc! { "grantRolesToUser": "reader", "roles": ["readWrite"], "$db": "shop" },
        doc! { "usersInfo": 1, "$db": "shop" },
        doc! { "setParameter": 1, "quiet": true, "$db": "admin" },
        doc! { "shutdown": 1, "$db": "admin" },
        doc! { "currentOp": 1, "$db": "admin" },
    ] {
        assert_eq!(code(&reader.run(command.clone())), 13, "{command:?}");
    }
    // A user may read its own data.
    reader.works(doc! { "usersInfo": "reader", "$db": "shop" });
    reader.works(doc! { "rolesInfo": "read", "$db": "shop" });
    reader.works(doc! { "connectionStatus": 1, "showPrivileges": true, "$db": "admin" });
    reader.works(doc! { "currentOp": 1, "$ownOps": true, "$db": "admin" });
    let seen = reader.works(doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" });
    let seen = seen.get("databases").unwrap().as_array().unwrap();
    let names: Vec<_> = seen
        .iter()
        .map(|row| row.as_document().unwrap().get("name").unwrap().as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["shop"]);
}

#[test]
fn rights_change_under_an_open_connection() {
    let (server, mut root) = guarded();
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    let insert = doc! { "insert": "orders", "documents": [{}], "$db": "shop" };
    assert_eq!(code(&reader.run(insert.clone())), 13);
    root.works(doc! { "grantRolesToUser": "reader", "roles": ["readWrite"], "$db": "shop" });
    reader.works(insert.clone());
    root.works(doc! { "revokeRolesFromUser": "reader", "roles": ["readWrite"], "$db": "shop" });
    assert_eq!(code(&reader.run(insert)), 13);
    root.works(doc! { "dropUser": "reader", "$db": "shop" });
    assert_eq!(code(&reader.run(doc! { "find": "orders", "$db": "shop" })), 13);
}

/// A cursor stayed usable after the right to read was revoked.
#[test]
fn a_cursor_ends_with_the_right_to_read() {
    let (server, mut root) = guarded();
    let more = doc! { "insert": "orders", "documents": [{}, {}, {}, {}, {}], "$db": "shop" };
    root.works(more);
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    let opened = [
        doc! { "find": "orders", "batchSize": 1, "$db": "shop" },
        doc! { "aggregate": "orders", "pipeline": [], "cursor": { "batchSize": 1 }, "$db": "shop" },
    ];
    let opened = opened.map(|command| {
        let reply = reader.works(command);
        let Some(Value::Int64(id)) = at(&reply, "cursor.id") else { panic!("{reply:?}") };
        id
    });
    let more =
        |id: i64| doc! { "getMore": id, "collection": "orders", "batchSize": 1, "$db": "shop" };
    opened.iter().for_each(|id| drop(reader.works(more(*id))));
    let revoke = doc! { "revokeRolesFromUser": "reader", "roles": ["read"], "$db": "shop" };
    root.works(revoke);
    for id in opened {
        assert_eq!(code(&reader.run(more(id))), 13);
    }
    root.works(doc! { "grantRolesToUser": "reader", "roles": ["read"], "$db": "shop" });
    opened.iter().for_each(|id| drop(reader.works(more(*id))));
}

#[test]
fn a_cursor_belongs_to_the_user_who_opened_it() {
    let (server, mut root) = guarded();
    let find = root.works(doc! { "find": "orders", "batchSize": 1, "$db": "shop" });
    let Some(Value::Int64(id)) = at(&find, "cursor.id") else { panic!("{find:?}") };
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    let more = doc! { "getMore": id, "collection": "orders", "$db": "shop" };
    assert_eq!(code(&reader.run(more.clone())), 13);
    root.works(more);
}

#[test]
fn a_login_is_broken_by_messages_out_of_order() {
    let (server, _root) = guarded();
    let mut client = server.client(2);
    let proceed = doc! {
        "saslContinue": 1, "conversationId": 1, "payload": binary("c=biws"), "$db": "shop"
    };
    assert_eq!(code(&client.run(proceed.clone())), 17);
    let login = ClientLogin::new(Mechanism::Sha256, "reader", "p").unwrap();
    let start = doc! {
        "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": binary(&login.first()), "$db": "shop"
    };
    let reply = client.works(start);
    let (_, last) = login.prove(&payload(&reply)).unwrap();
    let proof = doc! {
        "saslContinue": 1, "conversationId": 1, "payload": binary(&last), "$db": "shop"
    };
    // The proof is correct, but the login is complete only after the empty exchange.
    client.works(proof.clone());
    assert_eq!(code(&client.run(doc! { "find": "orders", "$db": "shop" })), 13);
    assert_eq!(code(&client.run(proof)), 18);
    for mechanism in ["PLAIN", "GSSAPI", "MONGODB-OIDC", "MONGODB-AWS", "X"] {
        let start =
            doc! { "saslStart": 1, "mechanism": mechanism, "payload": binary(""), "$db": "shop" };
        assert_eq!(code(&client.run(start)), 334);
    }
    let x509 = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external" };
    assert_eq!(code(&client.run(x509)), 18);
}

#[test]
fn a_restricted_user_logs_in_from_its_addresses_only() {
    let (server, mut root) = guarded();
    root.works(doc! {
        "createUser": "far", "pwd": "p", "roles": [],
        "authenticationRestrictions": [{ "clientSource": ["192.0.2.0/24"] }], "$db": "shop"
    });
    assert_eq!(server.client(2).log_in("shop", "far", "p", Mechanism::Sha256), 18);
}

/// The test of a bug: with named users the command replied ok and did nothing. Mechanisms that need
/// a directory or a cloud, or that are broken, are refused by name.
#[test]
fn other_mechanisms_are_refused_by_name() {
    let (server, _root) = guarded();
    for name in ["PLAIN", "GSSAPI", "MONGODB-OIDC", "MONGODB-AWS", "MONGODB-CR", "none"] {
        let start =
            doc! { "saslStart": 1, "mechanism": name, "payload": binary("x"), "$db": "$external" };
        let reply = server.client(2).run(start);
        assert_eq!(code(&reply), 334, "{reply:?}");
        let text = reply.get("errmsg").unwrap().as_str().unwrap().to_owned();
        assert!(text.contains(name), "{text}");
    }
}

/// The text had the name of the command only.
#[test]
fn the_error_of_a_missing_privilege_shows_the_command_without_its_secrets() {
    let (server, mut root) = guarded();
    root.works(doc! { "createUser": "plain", "pwd": "secret1", "roles": [], "$db": "shop" });
    let mut client = server.client(3);
    assert_eq!(client.log_in("shop", "plain", "secret1", Mechanism::Sha256), 0);
    let mut text = |command: DocBuf| {
        let reply = client.run(command);
        assert_eq!(code(&reply), 13, "{reply:?}");
        reply.get("errmsg").unwrap().as_str().unwrap().to_owned()
    };
    assert_eq!(
        text(doc! { "find": "t", "filter": { "a": 1 }, "$db": "shop" }),
        r#"not authorized on shop to execute command { find: "t", filter: { a: 1 }, $db: "shop" }"#
    );
    let create = text(doc! { "createUser": "x", "pwd": "hidden2", "roles": [], "$db": "shop" });
    assert!(!create.contains("hidden2"), "{create}");
}

/// Passwords are not in the log, with every operation in it, not in the profile, and not in errors.
#[test]
fn no_password_is_logged_recorded_or_answered() {
    const PASSWORD: &str = "hunter2-secret";
    let lines = Lines::default();
    let (server, mut root) = with_users(Server::guarded_logging(Arc::new(lines.clone())));
    root.works(doc! { "setParameter": 1, "logLevel": 1, "$db": "admin" });
    root.works(doc! { "profile": 2, "$db": "shop" });
    let mut replies = Vec::new();
    for command in [
        doc! { "createUser": "new", "pwd": PASSWORD, "roles": [], "$db": "shop" },
        doc! { "createUser": "new", "pwd": PASSWORD, "roles": [], "$db": "shop" },
        doc! { "createUser": "other", "pwd": PASSWORD, "roles": ["none"], "$db": "shop" },
        doc! { "updateUser": "new", "pwd": PASSWORD, "$db": "shop" },
        doc! { "updateUser": "nobody", "pwd": PASSWORD, "$db": "shop" },
        doc! { "usersInfo": "new", "$db": "shop" },
        doc! {
            "explain": { "createUser": "new", "pwd": PASSWORD, "roles": [] }, "$db": "shop"
        },
    ] {
        replies.push(format!("{:?}", root.run(command)));
    }
    let mut client = server.client(2);
    assert_eq!(client.log_in("shop", "new", PASSWORD, Mechanism::Sha256), 0);
    assert_eq!(client.log_in("shop", "new", PASSWORD, Mechanism::Sha1), 0);
    assert_eq!(client.log_in("shop", PASSWORD, "p", Mechanism::Sha256), 18);
    let profile = root.works(doc! { "find": "system.profile", "$db": "shop" });
    let stored = root.works(doc! { "find": "system.users", "$db": "admin" });
    let logged = lines.0.lock().unwrap().iter().map(|line| format!("{:?}", line.2)).collect();
    let shown = [replies, vec![format!("{profile:?}"), format!("{stored:?}")], logged].concat();
    assert!(shown.iter().any(|text| text.contains("createUser")));
    let bad: Vec<_> = shown.iter().filter(|text| text.contains(PASSWORD)).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

/// The commands that mongorestore sends for users and roles.
#[test]
fn users_and_roles_are_taken_over_from_other_collections() {
    let (server, mut root) = guarded();
    let role = doc! { "createRole": "clerk", "roles": ["read"], "privileges": [], "$db": "shop" };
    root.works(role);
    root.works(doc! { "createUser": "ann", "pwd": "a", "roles": ["clerk"], "$db": "shop" });
    for (from, to) in [("system.users", "tempusers"), ("system.roles", "temproles")] {
        let stored = root.works(doc! { "find": from, "$db": "admin" });
        let stored = at(&stored, "cursor.firstBatch").unwrap();
        root.works(doc! { "insert": to, "documents": stored, "$db": "admin" });
    }
    root.works(doc! { "dropUser": "ann", "$db": "shop" });
    root.works(doc! { "dropRole": "clerk", "$db": "shop" });
    root.works(doc! { "createUser": "late", "pwd": "l", "roles": [], "$db": "shop" });
    let merge = |drop: bool| {
        doc! {
            "_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers",
            "tempRolesCollection": "admin.temproles", "db": "", "drop": drop, "$db": "admin"
        }
    };
    // A user who manages the users of one database cannot merge those of others, and cannot grant
    // root.
    root.works(doc! { "createRole": "temps", "roles": [], "privileges": [
        { "resource": { "db": "admin", "collection": "tempusers" }, "actions": ["find"] },
    ], "$db": "admin" });
    let roles =
        [doc! { "role": "userAdmin", "db": "shop" }, doc! { "role": "temps", "db": "admin" }];
    let roles: ArrayBuf = roles.iter().collect();
    root.works(doc! { "createUser": "some", "pwd": "s", "roles": &roles, "$db": "shop" });
    let mut some = server.client(2);
    assert_eq!(some.log_in("shop", "some", "s", Mechanism::Sha256), 0);
    let mut own = merge(false);
    assert_eq!(code(&some.run(own.clone())), 13);
    own = doc! {
        "_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers", "db": "shop",
        "$db": "admin"
    };
    let log_in = |user: &str, password: &str| {
        server.client(3).log_in("shop", user, password, Mechanism::Sha256)
    };
    // The role is missing, so nothing is merged.
    assert_eq!(code(&some.run(own)), 31);
    assert_eq!((log_in("ann", "a"), log_in("late", "l")), (18, 0));
    root.works(merge(false));
    assert_eq!((log_in("ann", "a"), log_in("late", "l")), (0, 0));
    root.works(merge(true));
    assert_eq!((log_in("ann", "a"), log_in("late", "l")), (0, 18));
    let schema = root.works(doc! { "getParameter": 1, "authSchemaVersion": 1, "$db": "admin" });
    assert!(matches!(schema.get("authSchemaVersion"), Some(Value::Int32(5))), "{schema:?}");
}

#[test]
fn all_sessions_of_a_user_are_killed_and_no_others() {
    let (server, mut root) = guarded();
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    let open = |client: &mut Client, session: u8| {
        let id = Value::Binary(Binary { subtype: 4, bytes: &[session; 16] });
        let lsid = doc! { "id": id };
        let find = doc! { "find": "orders", "batchSize": 1, "lsid": &lsid, "$db": "shop" };
        let found = client.works(find);
        let Some(Value::Int64(id)) = at(&found, "cursor.id") else { panic!("{found:?}") };
        doc! { "getMore": id, "collection": "orders", "lsid": &lsid, "$db": "shop" }
    };
    let (readers, roots) = (open(&mut reader, 1), open(&mut root, 2));
    let kill = doc! { "killAllSessions": [{ "user": "reader", "db": "shop" }], "$db": "admin" };
    root.works(kill);
    assert_eq!(code(&reader.run(readers)), 43);
    root.works(roots);
}

#[test]
fn mechanisms_that_are_not_enabled_are_neither_shown_nor_taken() {
    let parameters = [("authenticationMechanisms", "SCRAM-SHA-256")];
    let log = Arc::new(NoLog);
    let engine = open_memory().unwrap();
    let server = Server::open_with(engine, replica_set(), &parameters, log, true);
    let mut client = server.client(1);
    client.works(doc! { "createUser": "root", "pwd": "r", "roles": ["root"], "$db": "admin" });
    assert_eq!(client.log_in("admin", "root", "r", Mechanism::Sha1), 334);
    for user in ["admin.root", "admin.nobody"] {
        let hello = client.works(doc! { "hello": 1, "saslSupportedMechs": user, "$db": "admin" });
        let shown = hello.get("saslSupportedMechs").unwrap().as_array().unwrap();
        let shown: Vec<_> = shown.iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(shown, ["SCRAM-SHA-256"], "{user}");
    }
    let x509 = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external" };
    let reply = client.run(x509);
    assert_eq!(reply.get("errmsg").unwrap().as_str(), Some("Authentication failed."));
    assert_eq!(client.log_in("admin", "root", "r", Mechanism::Sha256), 0);
    // A new user has credentials for the enabled mechanisms.
    let info = client.works(doc! { "usersInfo": "root", "$db": "admin" });
    assert!(format!("{info:?}").contains("SCRAM-SHA-256"), "{info:?}");
    assert!(!format!("{info:?}").contains("SCRAM-SHA-1\""), "{info:?}");
}

#[test]
fn a_password_is_no_matter_of_the_command_authenticate() {
    let (server, _root) = guarded();
    let mut client = server.client(2);
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-1", "MONGODB-CR", ""] {
        let attempt =
            doc! { "authenticate": 1, "mechanism": mechanism, "user": "reader", "$db": "shop" };
        let reply = client.run(attempt);
        assert_eq!(code(&reply), 18, "{mechanism}");
        assert_eq!(reply.get("errmsg").unwrap().as_str(), Some("Authentication failed."));
    }
    assert_eq!(code(&client.run(doc! { "authenticate": 1, "$db": "shop" })), 40414);
}

/// The flag was checked only in writing commands, only as a boolean, and not in `aggregate`.
#[test]
fn skipping_validators_needs_its_own_privilege() {
    let (server, mut root) = guarded();
    root.works(doc! {
        "createRole": "clerk", "roles": [], "privileges": [
            { "resource": { "db": "shop", "collection": "" }, "actions": [
                "find", "insert", "update", "remove", "createCollection",
            ] },
        ], "$db": "shop"
    });
    root.works(doc! { "createUser": "clerk", "pwd": "p", "roles": ["clerk"], "$db": "shop" });
    let mut clerk = server.client(2);
    assert_eq!(clerk.log_in("shop", "clerk", "p", Mechanism::Sha256), 0);
    let commands = [
        doc! { "insert": "orders", "documents": [{ "a": 1 }], "$db": "shop" },
        doc! {
            "update": "orders", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }], "$db": "shop"
        },
        doc! { "findAndModify": "orders", "update": { "$set": { "a": 2 } }, "$db": "shop" },
        doc! {
            "aggregate": "orders", "pipeline": [{ "$out": "copy" }], "cursor": {}, "$db": "shop"
        },
        doc! {
            "aggregate": "orders", "pipeline": [{ "$merge": { "into": "copy" } }], "cursor": {},
            "$db": "shop"
        },
    ];
    for command in commands {
        clerk.works(command.clone());
        for flag in [Value::Bool(true), Value::Int32(1)] {
            let mut asks = command.clone();
            asks.append("bypassDocumentValidation", flag);
            assert_eq!(code(&clerk.run(asks.clone())), 13, "{asks:?}");
            root.works(asks);
        }
        let mut refrains = command.clone();
        refrains.append("bypassDocumentValidation", false);
        clerk.works(refrains);
    }
}

/// The cursors of listings stayed usable after the right to list was revoked.
#[test]
fn the_cursor_of_a_list_ends_with_the_right_to_list() {
    let (server, mut root) = guarded();
    for number in 0..4 {
        root.works(doc! { "create": format!("c{number}").as_str(), "$db": "shop" });
        let index = doc! { "key": { "a": number }, "name": format!("i{number}").as_str() };
        root.run(doc! { "createIndexes": "orders", "indexes": [&index], "$db": "shop" });
    }
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    let few = doc! { "batchSize": 1 };
    let opened = [
        (doc! { "listCollections": 1, "cursor": &few, "$db": "shop" }, "$cmd.listCollections"),
        (doc! { "listIndexes": "orders", "cursor": &few, "$db": "shop" }, "orders"),
    ];
    let opened = opened.map(|(command, collection)| {
        let reply = reader.works(command);
        let Some(Value::Int64(id)) = at(&reply, "cursor.id") else { panic!("{reply:?}") };
        doc! { "getMore": id, "collection": collection, "batchSize": 1, "$db": "shop" }
    });
    opened.iter().for_each(|more| drop(reader.works(more.clone())));
    root.works(doc! { "revokeRolesFromUser": "reader", "roles": ["read"], "$db": "shop" });
    opened.iter().for_each(|more| assert_eq!(code(&reader.run(more.clone())), 13));
    root.works(doc! { "grantRolesToUser": "reader", "roles": ["read"], "$db": "shop" });
    opened.iter().for_each(|more| drop(reader.works(more.clone())));
    // A field between the members of a replica set.
    let mut of_a_member = opened[0].clone();
    of_a_member.append("term", 1_i64);
    assert_eq!(code(&reader.run(of_a_member)), 13);
}

/// A login that overlapped a drop or a change of password ended with the former rights.
#[test]
fn an_unfinished_login_ends_with_its_user() {
    let (server, mut root) = guarded();
    let begin = |late: &mut Client, password: &str, skips: bool| {
        let login = ClientLogin::new(Mechanism::Sha256, "reader", password).unwrap();
        let reply = late.works(doc! {
            "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": binary(&login.first()),
            "options": { "skipEmptyExchange": skips }, "$db": "shop"
        });
        let (_, last) = login.prove(&payload(&reply)).unwrap();
        last
    };
    let proceed = |bytes: &str| {
        doc! { "saslContinue": 1, "conversationId": 1, "payload": binary(bytes), "$db": "shop" }
    };
    let find = doc! { "find": "orders", "$db": "shop" };
    let mut late = server.client(10);
    let last = begin(&mut late, "p", true);
    root.works(doc! { "updateUser": "reader", "pwd": "q", "$db": "shop" });
    assert_eq!(code(&late.run(proceed(&last))), 18);
    assert_eq!(code(&late.run(find.clone())), 13);
    let mut late = server.client(11);
    let last = begin(&mut late, "q", false);
    late.works(proceed(&last));
    root.works(doc! { "dropUser": "reader", "$db": "shop" });
    assert_eq!(code(&late.run(proceed(""))), 18);
    assert_eq!(code(&late.run(find)), 13);
}

/// A connection of a user who was dropped and created again got the rights of the new user, and a
/// user who was restricted to other addresses stayed connected.
#[test]
fn a_connection_ends_with_its_user_and_with_its_addresses() {
    let (server, mut root) = guarded();
    let find = doc! { "find": "orders", "$db": "shop" };
    let make = doc! { "createUser": "reader", "pwd": "p", "roles": ["read"], "$db": "shop" };
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    reader.works(find.clone());
    root.works(doc! { "dropUser": "reader", "$db": "shop" });
    root.works(make);
    assert_eq!(code(&reader.run(find.clone())), 13);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    reader.works(find.clone());
    let elsewhere = doc! { "clientSource": ["203.0.113.7"] };
    root.works(doc! {
        "updateUser": "reader", "authenticationRestrictions": [&elsewhere], "$db": "shop"
    });
    assert_eq!(code(&reader.run(find.clone())), 13);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 18);
    root.works(doc! { "updateUser": "reader", "authenticationRestrictions": [], "$db": "shop" });
    assert_eq!(code(&reader.run(find)), 13);
}

/// Drivers send `saslContinue` with the client's API parameters.
#[test]
fn a_client_of_the_stable_api_logs_in() {
    let (server, _root) = guarded();
    let mut strict = server.client(2);
    let mut first = doc! {
        "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": binary("n,,n=reader,r=abc"), "$db": "shop"
    };
    first.append("apiVersion", "1");
    first.append("apiStrict", true);
    strict.works(first);
    let last = doc! {
        "saslContinue": 1, "conversationId": 1, "payload": binary("x"), "apiVersion": "1", "apiStrict": true,
        "$db": "shop"
    };
    assert_eq!(code(&strict.run(last)), 18);
    strict.works(doc! { "logout": 1, "apiVersion": "1", "apiStrict": true, "$db": "shop" });
}

/// The profile did not show who ran an operation.
#[test]
fn the_profile_names_the_user_of_an_operation() {
    let (server, mut root) = guarded();
    root.works(doc! { "profile": 2, "$db": "shop" });
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    reader.works(doc! { "find": "orders", "$db": "shop" });
    let query = doc! { "find": "system.profile", "filter": { "op": "query" }, "$db": "shop" };
    let profile = root.works(query);
    let entry = |path: &str| {
        let path = format!("cursor.firstBatch.0.{path}");
        at(&profile, &path).and_then(|value| value.as_str())
    };
    assert_eq!(entry("user"), Some("reader@shop"));
    assert_eq!(entry("allUsers.0.user"), Some("reader"));
    assert_eq!(entry("allUsers.0.db"), Some("shop"));
}

/// Each privilege was compared with all before it: a role with many privileges took minutes.
#[test]
fn a_role_takes_many_privileges() {
    const PRIVILEGES: usize = 50_000;
    let (_server, mut root) = guarded();
    let rights = |names: std::ops::Range<usize>| -> quire_document::ArrayBuf {
        let privilege = |at: usize| {
            let name = format!("c{at}");
            doc! { "resource": { "db": "shop", "collection": name.as_str() }, "actions": ["find"] }
        };
        names.map(privilege).collect::<Vec<_>>().iter().map(Value::from).collect()
    };
    let all = rights(0..PRIVILEGES);
    root.works(doc! { "createRole": "wide", "roles": [], "privileges": &all, "$db": "shop" });
    root.works(doc! { "grantPrivilegesToRole": "wide", "privileges": &all, "$db": "shop" });
    let most = rights(3..PRIVILEGES);
    root.works(doc! { "revokePrivilegesFromRole": "wide", "privileges": &most, "$db": "shop" });
    let shown = root.works(doc! { "rolesInfo": "wide", "showPrivileges": true, "$db": "shop" });
    let left = at(&shown, "roles.0.privileges").and_then(|list| list.as_array());
    assert_eq!(left.map(|list| list.iter().count()), Some(3));
}

/// A role that is named very often made a reply of gigabytes.
#[test]
fn a_list_of_roles_that_does_not_fit_in_a_reply_is_refused() {
    let server = Server::new();
    let mut client = server.client(1);
    let role = doc! { "role": "root", "db": "admin" };
    let names: ArrayBuf = (0..20_000).map(|_| &role).collect();
    let command = doc! { "rolesInfo": &names, "showPrivileges": true, "$db": "admin" };
    assert_eq!(code(&client.run(command)), 10334);
    client.works(doc! { "rolesInfo": [&role, &role], "showPrivileges": true, "$db": "admin" });
}
