//! Attacks on access control by users with few rights. Each must end with 13 or another error, and
//! change nothing.

use super::access::{guarded, with_users};
use super::{Client, Lines, Server, at, code};
use quire_access::Mechanism;
use quire_access::scram::ClientLogin;
use quire_document::{ArrayBuf, Binary, DocBuf, Value, doc};
use quire_storage::{Interrupt, Interruption};

/// Returns a server with a secret in `shop.secret` and in `vault.gold`, and the user `insider`, who
/// reads and writes `shop.orders` and manages its collections and users' roles, but has no right on
/// the secret.
fn with_insider() -> (Server, Client, Client) {
    let (server, mut root) = guarded();
    for (db, collection) in [("shop", "secret"), ("vault", "gold")] {
        let docs = doc! { "insert": collection, "documents": [{ "_id": 7 }], "$db": db };
        root.works(docs);
    }
    root.works(doc! {
        "createRole": "clerk", "roles": [], "privileges": [
            { "resource": { "db": "shop", "collection": "orders" }, "actions": [
                "find", "insert", "update", "remove", "createCollection", "collMod",
                "renameCollectionSameDB", "createIndex", "dropCollection", "listIndexes",
            ] },
            { "resource": { "db": "shop", "collection": "mine" }, "actions": [
                "find", "insert", "update", "remove", "createCollection", "collMod",
                "renameCollectionSameDB", "createIndex", "dropCollection", "listIndexes",
            ] },
            { "resource": { "db": "shop", "collection": "secret" }, "actions": [
                "renameCollectionSameDB", "insert", "convertToCapped",
            ] },
            { "resource": { "db": "shop", "collection": "" }, "actions": [
                "createUser", "createRole",
            ] },
        ], "$db": "shop"
    });
    root.works(doc! { "createUser": "insider", "pwd": "p", "roles": ["clerk"], "$db": "shop" });
    let mut insider = server.client(2);
    assert_eq!(insider.log_in("shop", "insider", "p", Mechanism::Sha256), 0);
    insider.works(doc! { "find": "orders", "$db": "shop" });
    (server, root, insider)
}

/// Returns a document with a field twice.
fn twice(mut first: DocBuf, name: &str, value: Value<'_>) -> DocBuf {
    first.append(name, value);
    first
}

/// Returns true if a reply contains the secret.
fn leaks(reply: &DocBuf) -> bool {
    format!("{reply:?}").contains("Int32(7)")
}

/// A look-up of a duplicate field finds the first value, a loop over the fields the last: the check
/// and the execution must use the same.
#[test]
fn a_duplicate_field_gives_no_access() {
    let (_server, mut root, mut insider) = with_insider();
    let secret = doc! { "$unionWith": "secret" };
    let stages = doc! { "a": [&secret] };
    let secret_stages = stages.get("a").unwrap();
    let aggregate = |stage: DocBuf| {
        doc! { "aggregate": "orders", "pipeline": [&stage], "cursor": {}, "$db": "shop" }
    };
    let text = |name: &'static str| Value::String(name);
    let admin = doc! { "r": [{ "role": "root", "db": "admin" }] };
    let admin = admin.get("r").unwrap();
    let upsert = twice(
        doc! { "q": { "_id": 9 }, "u": { "$set": { "a": 1 } }, "upsert": false },
        "upsert",
        Value::Bool(true),
    );
    let union = twice(doc! { "coll": "orders" }, "coll", text("secret"));
    let union_stages = twice(doc! { "coll": "orders", "pipeline": [] }, "pipeline", secret_stages);
    let lookup = doc! { "from": "orders", "as": "x", "pipeline": [] };
    let merge = twice(doc! { "into": "mine" }, "into", text("gold"));
    let out = twice(doc! { "db": "shop", "coll": "mine" }, "db", text("vault"));
    let facet = twice(doc! { "a": [{ "$match": {} }] }, "a", secret_stages);
    let list = doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true };
    let rename = doc! { "renameCollection": "shop.orders", "to": "shop.mine" };
    let view = doc! { "create": "mine", "viewOn": "orders", "pipeline": [] };
    let user = doc! { "createUser": "evil", "pwd": "x", "roles": [] };
    let role = doc! { "createRole": "evil", "roles": [], "privileges": [] };
    for (db, command) in [
        (
            "shop",
            twice(
                doc! { "aggregate": "orders", "pipeline": [], "cursor": {} },
                "pipeline",
                secret_stages,
            ),
        ),
        ("shop", aggregate(doc! { "$unionWith": &union })),
        ("shop", aggregate(doc! { "$unionWith": &union_stages })),
        ("shop", aggregate(doc! { "$lookup": &twice(lookup.clone(), "from", text("secret")) })),
        ("shop", aggregate(doc! { "$lookup": &twice(lookup, "pipeline", secret_stages) })),
        ("shop", aggregate(doc! { "$facet": &facet })),
        ("shop", aggregate(doc! { "$merge": &merge })),
        ("shop", aggregate(doc! { "$out": &out })),
        ("shop", twice(list, "authorizedCollections", Value::Bool(false))),
        ("admin", twice(rename, "to", text("vault.mine"))),
        ("shop", twice(view, "viewOn", text("secret"))),
        ("shop", twice(user, "roles", admin)),
        ("shop", twice(role, "roles", admin)),
        (
            "shop",
            doc! { "explain": &twice(doc! { "aggregate": "orders", "pipeline": [], "cursor": {} }, "pipeline", secret_stages) },
        ),
        ("vault", doc! { "update": "gold", "updates": [&upsert] }),
    ] {
        let mut command = command;
        if command.get("$db").is_none() {
            command.append("$db", db);
        }
        let reply = insider.run(command.clone());
        assert_ne!(code(&reply), 0, "{command:?}: {reply:?}");
        assert!(!leaks(&reply), "{command:?}: {reply:?}");
    }
    let users = root.works(doc! { "usersInfo": { "user": "evil", "db": "shop" }, "$db": "shop" });
    assert_eq!(at(&users, "users").unwrap().as_array().unwrap().count(), 0);
}

#[test]
fn a_collection_does_not_come_into_reach_by_another_name() {
    let (_server, mut root, mut insider) = with_insider();
    for command in [
        doc! { "renameCollection": "shop.secret", "to": "shop.mine", "$db": "admin" },
        doc! { "renameCollection": "vault.gold", "to": "shop.mine", "$db": "admin" },
        doc! { "renameCollection": "shop.orders", "to": "vault.mine", "$db": "admin" },
        doc! { "cloneCollectionAsCapped": "secret", "toCollection": "mine", "size": 4096, "$db": "shop" },
        doc! { "create": "mine", "viewOn": "secret", "$db": "shop" },
        doc! { "create": "mine", "viewOn": "orders", "pipeline": [{ "$unionWith": "secret" }], "$db": "shop" },
        doc! { "explain": { "find": "gold", "$db": "vault" }, "$db": "shop" },
        doc! { "explain": { "aggregate": "orders", "pipeline": [{ "$unionWith": "secret" }], "cursor": {} }, "$db": "shop" },
        doc! { "explain": { "findandmodify": "secret", "query": {}, "remove": true }, "$db": "shop" },
        doc! { "find": "secret", "$db": "shop" },
        doc! { "count": "secret", "$db": "shop" },
        doc! { "distinct": "secret", "key": "_id", "$db": "shop" },
        doc! { "dataSize": "shop.secret", "$db": "shop" },
        doc! { "validate": "secret", "$db": "shop" },
        doc! { "listIndexes": "secret", "$db": "shop" },
        doc! { "aggregate": 1, "pipeline": [{ "$currentOp": { "allUsers": true } }], "cursor": {}, "$db": "admin" },
        doc! { "insert": "system.views", "documents": [{ "_id": "shop.mine", "viewOn": "secret", "pipeline": [] }], "$db": "shop" },
        doc! { "insert": "system.users", "documents": [{ "_id": "admin.evil" }], "$db": "admin" },
        doc! { "bulkWrite": 1, "ops": [{ "delete": 0, "filter": {} }], "nsInfo": [{ "ns": "shop.secret" }], "$db": "admin" },
    ] {
        let reply = insider.run(command.clone());
        assert_ne!(code(&reply), 0, "{command:?}: {reply:?}");
        assert!(!leaks(&reply), "{command:?}: {reply:?}");
    }
    // A user's own view cannot be changed to read what the user may not.
    insider.works(doc! { "create": "mine", "viewOn": "orders", "$db": "shop" });
    for command in [
        doc! { "collMod": "mine", "viewOn": "secret", "pipeline": [], "$db": "shop" },
        doc! { "collMod": "mine", "pipeline": [{ "$unionWith": "secret" }], "$db": "shop" },
        doc! { "collMod": "mine", "viewOn": "orders", "pipeline": [{ "$unionWith": "secret" }], "$db": "shop" },
    ] {
        assert_ne!(code(&insider.run(command.clone())), 0, "{command:?}");
    }
    assert!(!leaks(&insider.works(doc! { "find": "mine", "$db": "shop" })));
    let kept = root.works(doc! { "find": "secret", "$db": "shop" });
    assert!(leaks(&kept), "{kept:?}");
}

#[test]
fn the_error_of_an_insert_shows_no_data_without_the_right_to_read() {
    let (_server, mut root, mut insider) = with_insider();
    root.works(doc! {
        "createIndexes": "secret",
        "indexes": [{ "key": { "a": 1 }, "name": "a", "unique": true, "partialFilterExpression": { "hidden": 1 } }],
        "$db": "shop"
    });
    let reply =
        insider.run(doc! { "insert": "secret", "documents": [{ "_id": 7 }], "$db": "shop" });
    let text = format!("{reply:?}");
    assert!(text.contains("11000"), "{text}");
    assert!(!text.contains("hidden"), "{text}");
}

#[test]
fn cursors_and_sessions_of_others_stay_theirs() {
    let (_server, mut root, mut insider) = with_insider();
    let find = root.works(doc! { "find": "orders", "batchSize": 0, "$db": "shop" });
    let Some(Value::Int64(id)) = at(&find, "cursor.id") else { panic!("{find:?}") };
    let kill = doc! { "killCursors": "orders", "cursors": [id], "$db": "shop" };
    let reply = insider.run(kill);
    assert_ne!(code(&reply), 0, "{reply:?}");
    root.works(doc! { "getMore": id, "collection": "orders", "$db": "shop" });
    for command in [
        doc! { "killAllSessions": [], "$db": "admin" },
        doc! { "killAllSessions": [{ "user": "root", "db": "admin" }], "$db": "admin" },
        doc! { "killAllSessionsByPattern": [], "$db": "admin" },
        doc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": { "allUsers": true } }], "cursor": {}, "$db": "admin" },
    ] {
        assert_eq!(code(&insider.run(command.clone())), 13, "{command:?}");
    }
}

fn binary(bytes: &str) -> Value<'_> {
    Value::Binary(Binary { subtype: 0, bytes: bytes.as_bytes() })
}

fn payload(reply: &DocBuf) -> String {
    match reply.get("payload") {
        Some(Value::Binary(binary)) => String::from_utf8(binary.bytes.to_vec()).unwrap(),
        other => panic!("no payload: {other:?}"),
    }
}

/// Begins a login. Returns the message of the reply.
fn begin(client: &mut Client, first: &str) -> Result<String, i32> {
    let reply = client.run(doc! {
        "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": binary(first), "$db": "shop"
    });
    match code(&reply) {
        0 => Ok(payload(&reply)),
        code => Err(code),
    }
}

fn finish(client: &mut Client, last: &str) -> i32 {
    let proof = doc! {
        "saslContinue": 1, "conversationId": 1, "payload": binary(last), "$db": "shop"
    };
    code(&client.run(proof))
}

#[test]
fn scram_messages_that_were_seen_before_or_changed_do_not_log_in() {
    let (server, _root) = guarded();
    let login = || ClientLogin::new(Mechanism::Sha256, "reader", "p").unwrap();
    let mut client = server.client(2);
    let good = login();
    let first = good.first();
    let challenge = begin(&mut client, &first).unwrap();
    let (_, proof) = good.prove(challenge.as_bytes()).unwrap();

    // The whole login again, on another connection and on this one.
    for id in [3, 2] {
        let mut other = server.client(id);
        begin(&mut other, &first).unwrap();
        assert_eq!(finish(&mut other, &proof), 18);
    }
    // A proof can be tried once: new logins began only on other connections.
    assert_eq!(finish(&mut client, &proof), 0);

    // Truncated, changed by one letter, with another nonce, with another channel binding.
    let changed = |change: &dyn Fn(&str) -> String| {
        let mut client = server.client(4);
        let good = login();
        let challenge = begin(&mut client, &good.first()).unwrap();
        let (_, proof) = good.prove(challenge.as_bytes()).unwrap();
        finish(&mut client, &change(&proof))
    };
    assert_eq!(changed(&|proof| proof.to_owned()), 0);
    let attacks: [&dyn Fn(&str) -> String; 6] = [
        &|proof| proof[..proof.len() - 5].to_owned(),
        &|proof| proof[..proof.find(",p=").unwrap()].to_owned(),
        &|_| String::new(),
        &|proof| proof.replace("c=biws", "c=eSws"),
        &|proof| {
            let at = proof.find("r=").unwrap() + 2;
            let swapped: String = proof[at..at + 4].chars().rev().collect();
            format!("{}{swapped}x{}", &proof[..at], &proof[at + 5..])
        },
        &|proof| {
            let at = proof.find(",p=").unwrap() + 3;
            let letter = if proof[at..].starts_with('A') { "B" } else { "A" };
            format!("{}{letter}{}", &proof[..at], &proof[at + 1..])
        },
    ];
    for (number, attack) in attacks.iter().enumerate() {
        assert_ne!(changed(attack), 0, "attack {number}");
    }
    for first in [
        "",
        "n",
        "n,,",
        "n,,n=",
        "n,,n=reader",
        "n,,n=reader,r=",
        "y,,n=reader",
        "p=tls-unique,,n=reader,r=x",
    ] {
        let began = begin(&mut server.client(5), first);
        assert!(began.is_err(), "{first}: {began:?}");
    }
}

/// The steps of a login belong to one connection: a login that another connection began, or began
/// and abandoned, cannot be used.
#[test]
fn a_login_is_not_ended_on_another_connection() {
    let (server, _root) = guarded();
    let login = ClientLogin::new(Mechanism::Sha256, "reader", "p").unwrap();
    let mut first = server.client(2);
    let challenge = begin(&mut first, &login.first()).unwrap();
    let (_, proof) = login.prove(challenge.as_bytes()).unwrap();
    let mut second = server.client(3);
    assert_eq!(finish(&mut second, &proof), 17);
    drop(first);
    assert_eq!(finish(&mut second, &proof), 17);
    let find = doc! { "find": "orders", "$db": "shop" };
    assert_eq!(code(&second.run(find)), 13);
    // The same conversation id does not help: each connection has its own conversation.
    begin(&mut second, &ClientLogin::new(Mechanism::Sha256, "reader", "x").unwrap().first())
        .unwrap();
    assert_eq!(finish(&mut second, &proof), 18);
}

/// No user is locked out, not even the one whose password is guessed, and memory does not grow.
#[test]
fn ten_thousand_wrong_passwords_lock_no_other_client_out() {
    let (server, mut root) = guarded();
    let mut attacker = server.client(2);
    // Skips the delays after failures, which are tested in `failed_logins.rs`.
    let hurried = || {
        let interrupt = Interrupt::new();
        interrupt.kill(Interruption::Disconnected);
        interrupt
    };
    for number in 0..10_000 {
        let first = format!("n,,n=reader,r=nonce{number}");
        let start = doc! {
            "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": binary(&first), "$db": "shop"
        };
        let (reply, _) = attacker.exchange(&start, hurried());
        assert_eq!(code(&reply), 0);
        let challenge = payload(&reply);
        let nonce = challenge.split(',').next().unwrap();
        let last = format!("c=biws,{nonce},p=3q2+7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        let proof = doc! {
            "saslContinue": 1, "conversationId": 1, "payload": binary(&last), "$db": "shop"
        };
        assert_eq!(code(&attacker.exchange(&proof, hurried()).0), 18);
    }
    let mut reader = server.client(3);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    let status = root.works(doc! { "serverStatus": 1, "$db": "admin" });
    let counted = |name: &str| {
        let path = format!("security.authentication.mechanisms.SCRAM-SHA-256.authenticate.{name}");
        at(&status, &path).map(|value| format!("{value:?}"))
    };
    assert_eq!(counted("received"), Some("Int64(10002)".to_owned()));
    assert_eq!(counted("successful"), Some("Int64(2)".to_owned()));
}

/// A weaker mechanism is accepted only if the user has a credential for it and the server allows
/// it.
#[test]
fn a_login_is_not_talked_down_to_sha_1() {
    let (server, mut root) = guarded();
    let strong = doc! {
        "createUser": "strong", "pwd": "p", "roles": [], "mechanisms": ["SCRAM-SHA-256"],
        "$db": "shop"
    };
    root.works(strong);
    let mut client = server.client(2);
    assert_eq!(client.log_in("shop", "strong", "p", Mechanism::Sha1), 18);
    assert_eq!(client.log_in("shop", "strong", "p", Mechanism::Sha256), 0);
    // A SHA-1 exchange cannot be completed by a proof of the other mechanism.
    let login = ClientLogin::new(Mechanism::Sha256, "reader", "p").unwrap();
    let mut client = server.client(3);
    let start = doc! {
        "saslStart": 1, "mechanism": "SCRAM-SHA-1", "payload": binary(&login.first()), "$db": "shop"
    };
    let challenge = payload(&client.works(start));
    let (_, proof) = login.prove(challenge.as_bytes()).unwrap();
    assert_eq!(finish(&mut client, &proof), 18);
}

/// Names are data: they do not become file names, and none of them is taken for another user's
/// name.
#[test]
fn names_that_look_like_paths_are_only_names() {
    let (server, mut root) = guarded();
    for name in ["../../etc/passwd", "/dev/null", "a/b", "a\\b", "admin.root", "a=b,c", "%00", "."]
    {
        root.works(doc! { "createUser": name, "pwd": "p", "roles": [], "$db": "shop" });
        let mut client = server.client(2);
        assert_eq!(client.log_in("shop", name, "p", Mechanism::Sha256), 0, "{name}");
        assert_eq!(client.log_in("admin", name, "p", Mechanism::Sha256), 18, "{name}");
        let own = client.works(doc! { "connectionStatus": 1, "$db": "shop" });
        let user = at(&own, "authInfo.authenticatedUsers.0.user").unwrap();
        assert_eq!(user.as_str(), Some(name));
    }
    // A user `b` of `shop.a` would have the `_id` of a user `a.b` of `shop`, but a database name
    // has no dot.
    for db in ["../up", "a/b", "a\\b", "shop.a", "a b", "a\0b", "\"", ""] {
        for command in [
            doc! { "createUser": "u", "pwd": "p", "roles": [], "$db": db },
            doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": binary("n,,n=u,r=x"), "$db": db },
            doc! { "insert": "c", "documents": [{}], "$db": db },
        ] {
            assert_ne!(code(&root.run(command.clone())), 0, "{command:?}");
        }
    }
}

/// A driver guesses SCRAM-SHA-256 inside its first `hello`. If the user has a credential for SHA-1
/// only, a guess that got a challenge could not be completed, and the driver did not try the other
/// mechanism.
#[test]
fn a_guess_of_the_wrong_mechanism_gets_no_challenge() {
    let (server, mut root) = guarded();
    for (user, mechanisms) in [("old", "SCRAM-SHA-1"), ("new", "SCRAM-SHA-256")] {
        root.works(doc! {
            "createUser": user, "pwd": "p", "roles": [], "mechanisms": [mechanisms], "$db": "shop"
        });
    }
    let guess = |user: &str, mechanism: Mechanism| {
        let login = ClientLogin::new(mechanism, user, "p").unwrap();
        let start = doc! {
            "saslStart": 1, "mechanism": mechanism.name(), "payload": binary(&login.first()),
            "db": "shop"
        };
        let name = format!("shop.{user}");
        let hello = doc! {
            "hello": 1, "saslSupportedMechs": name.as_str(), "speculativeAuthenticate": &start,
            "$db": "admin"
        };
        server.client(2).works(hello).get("speculativeAuthenticate").is_some()
    };
    assert!(guess("new", Mechanism::Sha256) && guess("old", Mechanism::Sha1));
    assert!(!guess("old", Mechanism::Sha256) && !guess("new", Mechanism::Sha1));
    // A reply about a name without a user reveals nothing.
    assert!(guess("nobody", Mechanism::Sha256) && guess("nobody", Mechanism::Sha1));
}

/// A password that was typed as a name was written to the log, and so was a name of any length.
#[test]
fn the_log_shows_little_of_a_name_that_no_user_has() {
    let lines = Lines::default();
    let (server, _root) = with_users(Server::guarded_logging(std::sync::Arc::new(lines.clone())));
    let long = "x".repeat(500);
    let mut client = server.client(2);
    for name in ["hunter2-secret", &long, "reader", "a\u{1b}[2J"] {
        assert_eq!(client.log_in("shop", name, "wrong", Mechanism::Sha256), 18);
    }
    let odd = doc! {
        "authenticate": 1, "mechanism": long.as_str(), "user": "hunter2-secret", "$db": "shop"
    };
    assert_eq!(code(&client.run(odd)), 18);
    let failed = lines.with_message("Failed to authenticate");
    let text = |at: usize, field: &str| match failed[at].1.get(field) {
        Some(Value::String(text)) => text.to_owned(),
        other => panic!("{field}: {other:?}"),
    };
    assert_eq!(text(0, "user"), "hu... (14 bytes)");
    assert_eq!(text(1, "user"), "xx... (500 bytes)");
    assert_eq!(text(2, "user"), "reader");
    assert_eq!(text(3, "user"), "a\\u{1b}... (5 bytes)");
    assert_eq!(text(4, "user"), "hu... (14 bytes)");
    assert!(text(4, "mechanism").len() < 200);
}

/// A false server asks for few iterations so that the password can be guessed from the proof.
#[test]
fn a_client_refuses_few_iterations_and_a_foreign_nonce() {
    let login = || ClientLogin::new(Mechanism::Sha256, "reader", "p").unwrap();
    let nonce = |login: &ClientLogin| login.first().rsplit("r=").next().unwrap().to_owned();
    let good = login();
    let challenge = format!("r={}abc,s=c2FsdHNhbHQ=,i=4096", nonce(&good));
    assert!(good.prove(challenge.as_bytes()).is_ok());
    let few = login();
    let challenge = format!("r={}abc,s=c2FsdHNhbHQ=,i=1", nonce(&few));
    assert!(few.prove(challenge.as_bytes()).is_err());
    assert!(login().prove(b"r=other,s=c2FsdHNhbHQ=,i=4096").is_err());
}

#[test]
fn names_with_a_nul_are_no_names() {
    let (server, mut root) = guarded();
    for command in [
        doc! { "createUser": "a\0b", "pwd": "x", "roles": [], "$db": "shop" },
        doc! { "createRole": "a\0b", "roles": [], "privileges": [], "$db": "shop" },
        doc! { "createUser": "ab", "pwd": "x", "roles": [], "$db": "sh\0op" },
    ] {
        assert_ne!(code(&root.run(command.clone())), 0, "{command:?}");
    }
    assert_eq!(server.client(2).log_in("shop", "reader\0x", "p", Mechanism::Sha256), 18);
}

/// The check of rights truncated a fraction to 0, the command read it as "not zero".
#[test]
fn a_flag_that_is_a_fraction_is_a_flag() {
    let (server, mut root) = guarded();
    root.works(doc! {
        "createRole": "editor", "roles": [], "privileges": [
            { "resource": { "db": "shop", "collection": "orders" }, "actions": ["find", "update"] },
        ], "$db": "shop"
    });
    root.works(doc! { "createUser": "editor", "pwd": "p", "roles": ["editor"], "$db": "shop" });
    let mut editor = server.client(2);
    assert_eq!(editor.log_in("shop", "editor", "p", Mechanism::Sha256), 0);
    for flag in [Value::Double(0.5), Value::Double(f64::NAN), Value::Int64(2)] {
        let one = doc! { "q": { "_id": 9 }, "u": { "$set": { "a": 1 } }, "upsert": flag };
        for command in [
            doc! { "update": "orders", "updates": [&one], "$db": "shop" },
            doc! {
                "findAndModify": "orders", "query": { "_id": 9 }, "update": { "$set": { "a": 1 } },
                "upsert": flag, "$db": "shop"
            },
            doc! {
                "findAndModify": "orders", "query": { "_id": 1 }, "remove": flag, "$db": "shop"
            },
        ] {
            assert_eq!(code(&editor.run(command.clone())), 13, "{command:?}");
        }
    }
    let left = root.works(doc! { "count": "orders", "$db": "shop" });
    assert!(matches!(left.get("n"), Some(Value::Int32(2))), "{left:?}");
}

/// The check of rights treated a UUID, which names the collection to drop, as "drop nothing".
#[test]
fn a_rename_drops_no_collection_by_its_uuid_without_the_right() {
    let (server, mut root) = guarded();
    root.works(doc! { "insert": "mine", "documents": [{ "_id": 1 }], "$db": "shop" });
    root.works(doc! {
        "createRole": "mover", "roles": [], "privileges": [
            { "resource": { "db": "shop", "collection": "" }, "actions": [
                "find", "renameCollectionSameDB",
            ] },
        ], "$db": "shop"
    });
    root.works(doc! { "createUser": "mover", "pwd": "p", "roles": ["mover"], "$db": "shop" });
    let mut mover = server.client(2);
    assert_eq!(mover.log_in("shop", "mover", "p", Mechanism::Sha256), 0);
    let listed = root.works(doc! {
        "listCollections": 1, "filter": { "name": "orders" }, "$db": "shop"
    });
    let uuid = at(&listed, "cursor.firstBatch.0.info.uuid").unwrap();
    let rename = doc! {
        "renameCollection": "shop.mine", "to": "shop.orders", "dropTarget": uuid, "$db": "admin"
    };
    assert_eq!(code(&mover.run(rename.clone())), 13);
    root.works(rename);
}

/// A condition that fails shows the value that it failed on, so it must not read a document that a
/// view hides, at any position and with any later stage.
#[test]
fn a_condition_that_fails_sees_no_document_that_a_view_leaves_out() {
    let (server, mut root) = guarded();
    root.works(doc! { "insert": "secret", "documents": [
        { "_id": 1, "open": true, "code": "5", "tags": ["a"], "next": 2 },
        { "_id": 2, "open": false, "code": "HIDDEN", "tags": ["a"], "next": 1 },
    ], "$db": "shop" });
    root.works(doc! { "createIndexes": "secret", "indexes": [
        { "key": { "next": 1 }, "name": "next" }, { "key": { "open": 1 }, "name": "open" }
    ], "$db": "shop" });
    let shown = doc! { "$match": { "open": true } };
    let unwound = [shown.clone(), doc! { "$unwind": "$tags" }];
    for (view, pipeline) in [("window", &[shown][..]), ("unwound", &unwound[..])] {
        let pipeline: ArrayBuf = pipeline.iter().map(Value::from).collect();
        let view =
            doc! { "create": view, "viewOn": "secret", "pipeline": &pipeline, "$db": "shop" };
        root.works(view);
    }
    let above = doc! { "$match": { "$expr": { "$lt": [{ "$toInt": "$code" }, 9] } } };
    root.works(doc! { "create": "above", "viewOn": "window", "pipeline": [&above], "$db": "shop" });
    let rights: ArrayBuf = ["window", "unwound", "above", "orders"]
        .map(|collection| doc! { "resource": { "db": "shop", "collection": collection }, "actions": ["find"] })
        .iter()
        .map(Value::from)
        .collect();
    root.works(doc! { "createRole": "viewer", "roles": [], "privileges": &rights, "$db": "shop" });
    root.works(doc! { "createUser": "viewer", "pwd": "p", "roles": ["viewer"], "$db": "shop" });
    let mut viewer = server.client(2);
    assert_eq!(viewer.log_in("shop", "viewer", "p", Mechanism::Sha256), 0);

    let plain = doc! { "$expr": { "$eq": [{ "$toInt": "$code" }, 5] } };
    let divided =
        doc! { "$expr": { "$gt": [{ "$divide": [1, { "$cond": ["$open", 1, 0] }] }, 0] } };
    let either = doc! { "$or": [&plain, { "next": 7 }] };
    let beside =
        doc! { "next": { "$gte": 0 }, "$nor": [{ "$expr": { "$not": { "$toInt": "$code" } } }] };
    for filter in [plain, divided, either, beside] {
        for view in ["window", "unwound", "above"] {
            let matching = doc! { "$match": &filter };
            let joined = doc! { "$lookup": { "from": view, "pipeline": [&matching], "as": "j" } };
            let by_field = doc! { "$lookup": {
                "from": view, "localField": "_id", "foreignField": "next", "pipeline": [&matching], "as": "j"
            } };
            let graph = doc! { "$graphLookup": {
                "from": view, "startWith": "$_id", "connectFromField": "next", "connectToField": "_id",
                "restrictSearchWithMatch": &filter, "as": "j"
            } };
            let union = doc! { "$unionWith": { "coll": view, "pipeline": [&matching] } };
            let whole = doc! { "$unionWith": view };
            let found = doc! { "find": view, "filter": &filter, "sort": { "next": 1 } };
            for command in [
                doc! { "find": view, "filter": &filter, "$db": "shop" },
                doc! { "find": view, "filter": &filter, "hint": { "next": 1 }, "$db": "shop" },
                doc! { "count": view, "query": &filter, "$db": "shop" },
                doc! { "distinct": view, "key": "next", "query": &filter, "$db": "shop" },
                doc! { "explain": &found, "verbosity": "executionStats", "$db": "shop" },
                doc! { "aggregate": view, "pipeline": [{ "$sort": { "next": 1 } }, { "$limit": 9 }, &matching], "cursor": {}, "$db": "shop" },
                doc! { "aggregate": view, "pipeline": [{ "$set": { "n": 1 } }, &matching, { "$match": { "next": 2 } }], "cursor": {}, "$db": "shop" },
                doc! { "aggregate": "orders", "pipeline": [&joined], "cursor": {}, "$db": "shop" },
                doc! { "aggregate": "orders", "pipeline": [&by_field], "cursor": {}, "$db": "shop" },
                doc! { "aggregate": "orders", "pipeline": [&graph], "cursor": {}, "$db": "shop" },
                doc! { "aggregate": "orders", "pipeline": [&union], "cursor": {}, "$db": "shop" },
                doc! { "aggregate": "orders", "pipeline": [{ "$match": { "_id": 99 } }, &whole, &matching], "cursor": {}, "$db": "shop" },
            ] {
                let reply = viewer.run(command.clone());
                let is_ok = at(&reply, "ok").and_then(|ok| ok.to_f64()) == Some(1.0);
                assert!(is_ok, "{command:?} {reply:?}");
            }
        }
    }
}
