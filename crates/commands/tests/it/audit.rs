//! The audit log: its events, their users, and that it contains no password.

use super::access::with_users;
use super::{Client, Server, at, code, replica_set};
use quire_access::Mechanism;
use quire_commands::log::NoLog;
use quire_commands::{AuditOptions, AuditSink, Service, ServiceOptions};
use quire_document::extjson;
use quire_document::{DocBuf, Value, doc};
use quire_storage::open_memory;
use std::sync::{Arc, Mutex};

/// Keeps the lines of the audit log.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl AuditSink for Events {
    fn write(&self, line: &str) -> std::io::Result<()> {
        self.0.lock().unwrap().push(line.to_owned());
        Ok(())
    }

    fn rotate(&self) -> std::io::Result<String> {
        Ok("old.json".to_owned())
    }
}

impl Events {
    /// Returns the events since the last call, parsed.
    fn take(&self) -> Vec<DocBuf> {
        let lines = std::mem::take(&mut *self.0.lock().unwrap());
        lines.iter().map(|line| extjson::parse_doc(line).unwrap()).collect()
    }

    /// Returns the type, the result and the parameters of the events since the last call.
    fn told(&self) -> Vec<String> {
        let told = |event: &DocBuf| {
            let param = event.get("param").unwrap().as_document().unwrap();
            let param = extjson::print(param, extjson::Format::default());
            let Some(Value::Int32(result)) = event.get("result") else { panic!("{event:?}") };
            format!("{} {result} {param}", event.get("atype").unwrap().as_str().unwrap())
        };
        self.take().iter().map(told).collect()
    }
}

fn audited(filter: Option<DocBuf>) -> (Events, Server, Client) {
    let events = Events::default();
    let options = ServiceOptions {
        topology: replica_set(),
        log: Arc::new(NoLog),
        audit: Some(AuditOptions { sink: Arc::new(events.clone()), filter }),
        access_control: true,
        ..ServiceOptions::in_process("memory", None)
    };
    let service = Service::open(open_memory().unwrap(), options).unwrap();
    let (server, root) = with_users(Server(service));
    (events, server, root)
}

#[test]
fn an_event_has_the_shape_of_mongodbs() {
    let (events, server, mut root) = audited(None);
    let first = events.0.lock().unwrap()[0].clone();
    assert!(first.starts_with("{\"atype\":\"startup\",\"ts\":{\"$date\":\"20"), "{first}");
    assert!(first.contains("+00:00\"},\"uuid\":{\"$binary\":\""), "{first}");
    assert!(first.contains("\",\"$type\":\"04\"},\"local\":{\"isSystemUser\":true}"), "{first}");
    events.take();
    root.works(doc! { "create": "made", "$db": "shop" });
    let told = events.take();
    let names: Vec<&str> = told[0].as_doc().fields().map(|(name, _)| name).collect();
    let shape = ["atype", "ts", "uuid", "local", "remote", "users", "roles", "param", "result"];
    assert_eq!(names, shape);
    assert_eq!(at(&told[0], "users.0.user").unwrap().as_str(), Some("root"));
    assert_eq!(at(&told[0], "roles.0.role").unwrap().as_str(), Some("root"));
    assert_eq!(at(&told[0], "local.unix").unwrap().as_str(), Some("anonymous"));
    // Events of one connection have the same UUID, other connections have another.
    let mut other = server.client(2);
    assert_eq!(other.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    root.works(doc! { "drop": "made", "$db": "shop" });
    let more = events.take();
    let uuid = |event: &DocBuf| format!("{:?}", event.get("uuid"));
    assert_ne!(uuid(&told[0]), uuid(&more[0]));
    assert_eq!(uuid(&told[0]), uuid(&more[1]));
}

#[test]
fn logins_and_logouts_are_recorded() {
    let (events, server, _root) = audited(None);
    events.take();
    let mut client = server.client(2);
    client.log_in("shop", "reader", "wrong", Mechanism::Sha256);
    client.log_in("shop", "hunter2-secret", "p", Mechanism::Sha1);
    client.log_in("shop", "reader", "p", Mechanism::Sha256);
    let told = events.told();
    let reader = r#"{"user":"reader","db":"shop","mechanism":"SCRAM-SHA-256"}"#;
    assert_eq!(told[0], format!("authenticate 18 {reader}"));
    let unknown = r#"{"user":"hu... (14 bytes)","db":"shop","mechanism":"SCRAM-SHA-1"}"#;
    assert_eq!(told[1], format!("authenticate 18 {unknown}"));
    assert_eq!(told[2], format!("authenticate 0 {reader}"));
    client.works(doc! { "logout": 1, "$db": "shop" });
    let told = events.told();
    assert!(
        told[0].starts_with(r#"logout 0 {"reason":"Logging out on user request","#),
        "{told:?}"
    );
    client.log_in("shop", "reader", "p", Mechanism::Sha256);
    drop(client);
    let told = events.told();
    let gone = r#"logout 0 {"reason":"Client has disconnected","initialUsers":[{"user":"reader","db":"shop"}],"updatedUsers":[],"#;
    assert!(told[1].starts_with(gone), "{told:?}");
}

#[test]
fn refusals_are_recorded_and_allowed_commands_on_request() {
    let (events, server, mut root) = audited(None);
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    events.take();
    reader.works(doc! { "find": "orders", "$db": "shop" });
    assert!(events.take().is_empty());
    let evil = doc! { "createUser": "evil", "pwd": "hunter2", "roles": ["root"], "$db": "admin" };
    assert_eq!(code(&reader.run(evil)), 13);
    let insert = doc! { "insert": "orders", "documents": [{ "a": 1 }], "$db": "shop" };
    assert_eq!(code(&reader.run(insert)), 13);
    assert_eq!(code(&server.client(3).run(doc! { "find": "orders", "$db": "shop" })), 13);
    let told = events.told();
    assert_eq!(told.len(), 3, "{told:?}");
    let create = r#"authCheck 13 {"command":"createUser","ns":"admin.evil","args":{"createUser":"evil","pwd":"xxx","#;
    assert!(told[0].starts_with(create), "{told:?}");
    assert!(told[1].starts_with(r#"authCheck 13 {"command":"insert","ns":"shop.orders","#));
    root.works(doc! { "setParameter": 1, "auditAuthorizationSuccess": true, "$db": "admin" });
    reader.works(doc! { "find": "orders", "$db": "shop" });
    let told = events.told();
    assert!(told.last().unwrap().starts_with(r#"authCheck 0 {"command":"find","#), "{told:?}");
}

#[test]
fn changes_of_users_and_roles_are_recorded_without_passwords() {
    let (events, _server, mut root) = audited(None);
    events.take();
    for command in [
        doc! { "createUser": "ann", "pwd": "hunter2", "roles": ["read"], "customData": { "a": 1 } },
        doc! { "updateUser": "ann", "pwd": "hunter3" },
        doc! { "grantRolesToUser": "ann", "roles": [{ "role": "read", "db": "vault" }] },
        doc! { "createRole": "clerk", "roles": [], "privileges": [] },
        doc! { "dropRole": "clerk" },
        doc! { "dropAllRolesFromDatabase": 1 },
        doc! { "dropUser": "ann" },
    ] {
        let mut command = command;
        command.append("$db", "shop");
        root.works(command);
    }
    // A command that fails changes nothing and has no event.
    assert_ne!(code(&root.run(doc! { "dropUser": "ann", "$db": "shop" })), 0);
    let accounts = |told: &String| !told.contains("system.");
    let told: Vec<String> = events.told().into_iter().filter(accounts).collect();
    assert_eq!(
        told,
        [
            r#"createUser 0 {"user":"ann","db":"shop","customData":{"a":1},"roles":[{"role":"read","db":"shop"}]}"#,
            r#"updateUser 0 {"user":"ann","db":"shop","passwordChanged":true}"#,
            r#"grantRolesToUser 0 {"user":"ann","db":"shop","roles":[{"role":"read","db":"vault"}]}"#,
            r#"createRole 0 {"role":"clerk","db":"shop","roles":[],"privileges":[]}"#,
            r#"dropRole 0 {"role":"clerk","db":"shop"}"#,
            r#"dropAllRolesFromDatabase 0 {"db":"shop"}"#,
            r#"dropUser 0 {"user":"ann","db":"shop"}"#,
        ]
    );
    let direct = doc! {
        "update": "system.users", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "a": 1 } } }],
        "$db": "admin"
    };
    root.works(direct);
    let told = events.told();
    let direct = r#"directAuthMutation 0 {"ns":"admin.system.users","operation":"update"}"#;
    assert_eq!(told, [direct]);
}

#[test]
fn changes_of_the_catalog_are_recorded_for_every_command() {
    let (events, _server, mut root) = audited(None);
    events.take();
    let mut told_by = |command: DocBuf| {
        root.works(command);
        events.told()
    };
    let ns = |what: &str, ns: &str| format!(r#"{what} 0 {{"ns":"{ns}"}}"#);
    let insert = doc! { "insert": "a", "documents": [{ "a": 1 }], "$db": "made" };
    assert_eq!(told_by(insert), [ns("createDatabase", "made"), ns("createCollection", "made.a")]);
    let again = doc! { "insert": "a", "documents": [{ "a": 1 }], "$db": "made" };
    assert!(told_by(again).is_empty());
    let index = doc! {
        "createIndexes": "a", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }], "$db": "made"
    };
    let told = told_by(index);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with(r#"createIndex 0 {"ns":"made.a","indexName":"a_1","#), "{told:?}");
    assert!(told[0].ends_with(r#""indexBuildState":"IndexBuildStarted"}"#), "{told:?}");
    assert!(told[1].ends_with(r#""indexBuildState":"IndexBuildSucceeded"}"#), "{told:?}");
    let unique = doc! {
        "createIndexes": "a", "indexes": [{ "key": { "a": -1 }, "name": "u", "unique": true }],
        "$db": "made"
    };
    assert_eq!(code(&root.run(unique)), 11000);
    let told = events.told();
    assert!(told[0].ends_with(r#""indexBuildState":"IndexBuildStarted"}"#), "{told:?}");
    assert!(told[1].starts_with("createIndex 276 ") && told[1].contains("IndexBuildAborted"));
    let mut told_by = |command: DocBuf| {
        root.works(command);
        events.told()
    };
    let drop_index = doc! { "dropIndexes": "a", "index": "a_1", "$db": "made" };
    assert_eq!(told_by(drop_index), [r#"dropIndex 0 {"ns":"made.a","indexName":"a_1"}"#]);
    let rename = doc! { "renameCollection": "made.a", "to": "made.b", "$db": "admin" };
    assert_eq!(told_by(rename), [r#"renameCollection 0 {"old":"made.a","new":"made.b"}"#]);
    let view = doc! { "create": "v", "viewOn": "b", "pipeline": [{ "$limit": 1 }], "$db": "made" };
    let told = told_by(view);
    let made = r#"createCollection 0 {"ns":"made.v","viewOn":"b","pipeline":[{"$limit":1}]}"#;
    assert!(told.contains(&made.to_owned()), "{told:?}");
    let out = doc! { "aggregate": "b", "pipeline": [{ "$out": "c" }], "cursor": {}, "$db": "made" };
    let told = told_by(out);
    assert!(told.last().unwrap().ends_with(r#""new":"made.c"}"#), "{told:?}");
    let told = told_by(doc! { "dropDatabase": 1, "$db": "made" });
    assert!(told.contains(&ns("dropCollection", "made.b")), "{told:?}");
    assert_eq!(told.last().unwrap(), &ns("dropDatabase", "made"));
}

#[test]
fn a_filter_picks_events() {
    let (events, _server, mut root) =
        audited(Some(doc! { "atype": { "$in": ["dropUser", "applicationMessage"] } }));
    root.works(doc! { "dropUser": "reader", "$db": "shop" });
    root.works(doc! { "create": "made", "$db": "shop" });
    root.works(doc! { "logApplicationMessage": "released", "$db": "admin" });
    let told = events.told();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1], r#"applicationMessage 0 {"msg":"released"}"#);
}

#[test]
fn a_message_needs_its_privilege_and_an_audit_log() {
    let (events, server, mut root) = audited(None);
    let message = || doc! { "logApplicationMessage": "hello", "$db": "admin" };
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    assert_eq!(code(&reader.run(message())), 13);
    assert_eq!(code(&root.run(doc! { "logApplicationMessage": 1, "$db": "admin" })), 14);
    events.take();
    root.works(doc! { "logRotate": "audit", "$db": "admin" });
    let told = events.told();
    assert!(told[0].starts_with(r#"rotateLog 0 {"pid":"#), "{told:?}");
    assert!(told[0].contains(r#""rotatedLogPath":"old.json""#), "{told:?}");
    let mut client = Server::new().client(1);
    assert_eq!(code(&client.run(message())), 59);
    assert_ne!(code(&client.run(doc! { "logRotate": "audit", "$db": "admin" })), 0);
}
