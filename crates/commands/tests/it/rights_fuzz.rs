//! Random commands of users with few rights: a reply contains nothing that the user may not read,
//! and nothing changes that the user may not change. `QUIRE_FUZZ_ROUNDS` sets the number of users,
//! each with another seed.

use super::access::guarded;
use super::{Client, Server, at, code};
use quire_access::Mechanism;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, doc};
use quire_storage::rng::Rng;

/// The collections, as database and name. Each document and each definition in them contains a mark
/// that names its collection.
const COLLECTIONS: [(&str, &str); 6] = [
    ("shop", "orders"),
    ("shop", "mine"),
    ("shop", "secret"),
    ("shop", "drop"),
    ("vault", "gold"),
    ("vault", "orders"),
];
/// A view on `shop.secret` that hides its mark.
const VIEW: (&str, &str) = ("shop", "window");
/// A view on `shop.drop` that shows one document, which has no mark.
const FILTERED: (&str, &str) = ("shop", "filtered");

const COMMANDS_PER_USER: usize = 60;

/// A user and its rights.
struct Player {
    /// The name of its role in `shop`, built in or created by [`make_roles`].
    role: &'static str,
    /// The collections whose documents it may read.
    reads: &'static [(&'static str, &'static str)],
    /// The collections that it may change.
    changes: &'static [(&'static str, &'static str)],
    /// The collections whose indexes and options it may see: plans of its reads, also through a
    /// view, and errors of its inserts name indexes.
    describes: &'static [(&'static str, &'static str)],
}

const SHOP: &[(&str, &str)] =
    &[("shop", "orders"), ("shop", "mine"), ("shop", "secret"), ("shop", "drop"), VIEW, FILTERED];
const ORDERS_AND_MINE: &[(&str, &str)] = &[("shop", "orders"), ("shop", "mine")];

const PLAYERS: [Player; 11] = [
    Player { role: "read", reads: SHOP, changes: &[], describes: SHOP },
    Player { role: "readWrite", reads: SHOP, changes: SHOP, describes: SHOP },
    Player { role: "dbAdmin", reads: &[], changes: SHOP, describes: SHOP },
    Player { role: "dbOwner", reads: SHOP, changes: SHOP, describes: SHOP },
    Player { role: "userAdmin", reads: SHOP, changes: SHOP, describes: SHOP },
    Player {
        role: "finder",
        reads: &[("shop", "orders")],
        changes: &[],
        describes: &[("shop", "orders")],
    },
    Player {
        role: "clerk",
        reads: ORDERS_AND_MINE,
        changes: ORDERS_AND_MINE,
        describes: ORDERS_AND_MINE,
    },
    Player {
        role: "dropper",
        reads: &[],
        changes: &[("shop", "drop"), ("shop", "secret")],
        describes: &[("shop", "drop"), ("shop", "secret")],
    },
    Player {
        role: "changer",
        reads: &[("shop", "orders")],
        changes: &[("shop", "drop"), ("shop", "secret")],
        describes: &[("shop", "orders"), ("shop", "drop"), ("shop", "secret")],
    },
    Player { role: "viewer", reads: &[VIEW], changes: &[], describes: &[("shop", "secret")] },
    Player { role: "guest", reads: &[FILTERED], changes: &[], describes: &[("shop", "drop")] },
];

fn make_roles(root: &mut Client) {
    let on = |collection: &str, actions: &[&str]| {
        let actions: ArrayBuf = actions.iter().map(|action| Value::String(action)).collect();
        doc! { "resource": { "db": "shop", "collection": collection }, "actions": &actions }
    };
    let all = [
        "find",
        "insert",
        "update",
        "remove",
        "createCollection",
        "collMod",
        "listIndexes",
        "renameCollectionSameDB",
        "createIndex",
        "dropIndex",
        "dropCollection",
        "listCollections",
    ];
    let roles = [
        ("finder", vec![on("orders", &["find"])]),
        ("clerk", vec![on("orders", &all), on("mine", &all)]),
        ("dropper", vec![on("drop", &["insert"]), on("secret", &["insert"])]),
        (
            "changer",
            vec![
                on("orders", &["find"]),
                on("drop", &["insert", "update", "remove"]),
                on("secret", &["insert", "update", "remove"]),
            ],
        ),
        ("viewer", vec![on("window", &["find"])]),
        ("guest", vec![on("filtered", &["find"])]),
    ];
    for (role, privileges) in roles {
        let privileges: ArrayBuf = privileges.iter().map(Value::from).collect();
        let make =
            doc! { "createRole": role, "roles": [], "privileges": &privileges, "$db": "shop" };
        root.works(make);
    }
}

/// Returns the mark of the documents of a collection.
fn mark((db, collection): (&str, &str)) -> String {
    format!("MARK-{db}-{collection}-")
}

/// Returns the mark of the indexes of a collection.
fn index_mark((db, collection): (&str, &str)) -> String {
    format!("INDEX-{db}-{collection}-")
}

fn make_world(root: &mut Client) {
    // Data of another user may contain marks that it wrote itself.
    for db in ["shop", "vault"] {
        root.works(doc! { "dropDatabase": 1, "$db": db });
    }
    root.run(doc! { "drop": "new", "$db": "admin" });
    for (db, collection) in COLLECTIONS {
        let (mark, index) = (mark((db, collection)), index_mark((db, collection)));
        let docs: ArrayBuf = (0..6)
            .map(|id| doc! { "_id": id, "k": id % 3, "code": format!("{mark}{id}").as_str(), "open": "PUBLIC", "same": mark.as_str() })
            .collect::<Vec<_>>()
            .iter()
            .map(Value::from)
            .collect();
        root.works(doc! { "insert": collection, "documents": &docs, "$db": db });
        let unique = doc! { "key": { "code": 1 }, "name": index.as_str(), "unique": true };
        // Its keys hold what a view shows beside what it hides.
        let both = format!("{index}both");
        let both = doc! { "key": { "open": 1, "code": 1 }, "name": both.as_str() };
        root.works(doc! { "createIndexes": collection, "indexes": [&unique, &both], "$db": db });
    }
    root.works(doc! {
        "create": VIEW.1, "viewOn": "secret", "pipeline": [{ "$project": { "code": 0, "same": 0 } }],
        "$db": VIEW.0
    });
    let shown = doc! { "_id": 9, "k": 9, "code": "9", "open": "PUBLIC", "same": "9" };
    root.works(doc! { "insert": "drop", "documents": [&shown], "$db": FILTERED.0 });
    root.works(doc! {
        "create": FILTERED.1, "viewOn": "drop", "pipeline": [{ "$match": { "k": 9 } }],
        "$db": FILTERED.0
    });
}

/// Returns the documents and the properties of a collection; for a view its definition.
fn state(root: &mut Client, (db, collection): (&str, &str)) -> String {
    let find = match [VIEW, FILTERED].contains(&(db, collection)) {
        true => DocBuf::new(),
        false => root.run(doc! { "find": collection, "sort": { "_id": 1 }, "$db": db }),
    };
    let of = doc! { "name": collection };
    let listed = root.works(doc! { "listCollections": 1, "filter": &of, "$db": db });
    let indexes = root.run(doc! { "listIndexes": collection, "$db": db });
    let first = |reply: &DocBuf| format!("{:?}", at(reply, "cursor.firstBatch"));
    format!("{} {} {}", first(&find), first(&listed), first(&indexes))
}

/// The random generator of one user.
struct Dice(Rng);

impl Dice {
    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.0.below(of.len() as u64) as usize]
    }

    fn yes(&mut self, in_: u64) -> bool {
        self.0.one_in(in_)
    }

    /// Returns a collection or a view; sometimes one that does not exist.
    fn namespace(&mut self) -> (&'static str, &'static str) {
        match self.0.below(10) {
            0 => [VIEW, FILTERED][self.0.below(2) as usize],
            1 => (
                self.pick(&["shop", "vault", "admin"]),
                self.pick(&["new", "system.views", "system.users"]),
            ),
            _ => COLLECTIONS[self.0.below(COLLECTIONS.len() as u64) as usize],
        }
    }

    /// Returns `"collection"` or `{db, coll}`, for stages that take both.
    fn named(&mut self) -> DocBuf {
        let (db, collection) = self.namespace();
        match self.yes(2) {
            true => doc! { "v": collection },
            false => doc! { "v": { "db": db, "coll": collection } },
        }
    }

    /// Returns a `$meta`.
    fn meta(&mut self) -> DocBuf {
        let kinds = ["indexKey", "indexKey", "sortKey", "recordId", "score", "scoreDetails"];
        doc! { "$meta": self.pick::<str>(&kinds) }
    }

    /// Returns a hint, by key or by the name of an index of some collection.
    fn hint(&mut self) -> DocBuf {
        let of = COLLECTIONS[self.0.below(COLLECTIONS.len() as u64) as usize];
        match self.0.below(3) {
            0 => doc! { "v": { "code": 1 } },
            1 => doc! { "v": { "open": 1, "code": 1 } },
            _ => doc! { "v": format!("{}both", index_mark(of)).as_str() },
        }
    }

    fn filter(&mut self) -> DocBuf {
        match self.0.below(9) {
            7 => doc! { "open": "PUBLIC" },
            0 => doc! {},
            1 => doc! { "_id": self.0.below(7) as i32 },
            2 => doc! { "code": { "$regex": "^MARK" } },
            3 => doc! { "$expr": { "$gt": ["$code", "A"] } },
            4 => doc! { "k": { "$in": [0, 1] } },
            // Errors that contain a value.
            5 => doc! { "$or": [{ "$expr": { "$toInt": "$code" } }, { "k": 0 }] },
            6 => doc! { "_id": { "$gte": 0 }, "$nor": [{ "$expr": { "$toInt": "$code" } }] },
            _ => doc! { "$expr": { "$toInt": "$code" } },
        }
    }

    fn stage(&mut self, depth: u32) -> DocBuf {
        let inner = match depth {
            0 => ArrayBuf::new(),
            _ => self.pipeline(depth - 1),
        };
        let (_, from) = self.namespace();
        let named = self.named();
        let named = named.get("v").unwrap();
        match self.0.below(20) {
            0 => doc! { "$match": &self.filter() },
            16 | 17 => doc! { "$addFields": { "m": &self.meta() } },
            18 => doc! { "$replaceWith": { "m": &self.meta() } },
            19 => doc! { "$match": { "$expr": { "$eq": [{ "$toInt": &self.meta() }, 1] } } },
            1 => doc! { "$lookup": { "from": from, "pipeline": &inner, "as": "j" } },
            2 => {
                doc! { "$lookup": { "from": from, "localField": "k", "foreignField": "k", "as": "j" } }
            }
            3 => doc! { "$lookup": { "from": named, "pipeline": &inner, "as": "j" } },
            4 => doc! { "$unionWith": { "coll": from, "pipeline": &inner } },
            5 => doc! { "$unionWith": from },
            6 => doc! { "$graphLookup": {
                "from": from, "startWith": "$k", "connectFromField": "k", "connectToField": "k", "as": "g"
            } },
            7 => doc! { "$facet": { "a": &inner, "b": &inner } },
            8 if self.yes(2) => {
                doc! { "$merge": { "into": named, "whenMatched": [&self.change()] } }
            }
            8 => {
                doc! { "$merge": { "into": named, "whenMatched": self.pick::<str>(&["replace", "merge", "fail"]) } }
            }
            9 => doc! { "$out": named },
            10 => doc! { "$addFields": { "n": { "$toInt": "$code" } } },
            11 => doc! { "$group": { "_id": "$code", "all": { "$push": "$$ROOT" } } },
            12 => doc! { "$collStats": { "count": {} } },
            13 => doc! { "$indexStats": {} },
            14 => doc! { "$planCacheStats": {} },
            _ => doc! { "$sort": { "code": 1 } },
        }
    }

    fn pipeline(&mut self, depth: u32) -> ArrayBuf {
        let count = 1 + self.0.below(2);
        let stages: Vec<DocBuf> = (0..count).map(|_| self.stage(depth)).collect();
        stages.iter().map(Value::from).collect()
    }

    fn read(&mut self) -> DocBuf {
        let (db, collection) = self.namespace();
        let mut command = match self.0.below(5) {
            0 => doc! { "find": collection, "filter": &self.filter() },
            1 => doc! { "count": collection, "query": &self.filter() },
            2 => doc! { "distinct": collection, "key": "code", "query": &self.filter() },
            _ => doc! { "aggregate": collection, "pipeline": &self.pipeline(2), "cursor": {} },
        };
        if self.yes(3) {
            let hint = self.hint();
            command.append("hint", hint.get("v").unwrap());
        }
        if command.as_doc().contains("find") {
            match self.0.below(5) {
                0 => command.append("projection", &doc! { "m": &self.meta() }),
                1 => command.append("returnKey", true).append("hint", &doc! { "code": 1 }),
                2 => command.append("showRecordId", true),
                _ => command.append("sort", &doc! { "open": 1, "code": 1 }),
            };
        }
        match self.yes(5) {
            true => doc! { "explain": &command, "verbosity": "executionStats", "$db": db },
            false => {
                command.append("$db", db);
                command
            }
        }
    }

    /// Returns a stage of an update, whose errors may repeat values of the document.
    fn change(&mut self) -> DocBuf {
        match self.0.below(4) {
            0 => doc! { "$set": { "x": "$code" } },
            1 => doc! { "$set": { "x": { "$toInt": "$code" } } },
            // Violates a unique index.
            2 => doc! { "$set": { "code": "$same" } },
            _ => doc! { "$replaceWith": { "_id": "$code" } },
        }
    }

    fn write(&mut self) -> DocBuf {
        let (db, collection) = self.namespace();
        let (target, id) = (self.namespace(), self.0.below(9) as i32);
        // Violates a unique index, whose error contains the existing value.
        let code = format!("{}{}", mark(target), id % 6);
        let change = self.change();
        let update = match self.yes(2) {
            true => {
                doc! { "q": &self.filter(), "u": { "$set": { "code": "taken" } }, "upsert": self.yes(2) }
            }
            false => doc! { "q": &self.filter(), "u": [&change], "multi": true },
        };
        let mut command = match self.0.below(8) {
            0 => doc! { "insert": collection, "documents": [{ "_id": id }] },
            1 => {
                doc! { "insert": collection, "documents": [{ "code": code.as_str() }, { "_id": id }], "ordered": false }
            }
            2 => doc! { "update": collection, "updates": [&update] },
            3 => doc! { "delete": collection, "deletes": [{ "q": &self.filter(), "limit": 1 }] },
            4 => {
                doc! { "findAndModify": collection, "query": &self.filter(), "update": { "$set": { "code": "taken" } }, "new": true }
            }
            5 => doc! { "findAndModify": collection, "query": &self.filter(), "remove": true },
            6 => {
                let ns = format!("{db}.{collection}");
                let other = format!("{}.{}", target.0, target.1);
                let ops = [
                    doc! { "insert": 0, "document": { "_id": id } },
                    doc! { "update": 1, "filter": &self.filter(), "updateMods": [&change] },
                    doc! { "delete": 1, "filter": &self.filter() },
                ];
                let ops: ArrayBuf = ops.iter().map(Value::from).collect();
                return doc! {
                    "bulkWrite": 1, "ops": &ops, "nsInfo": [{ "ns": ns.as_str() }, { "ns": other.as_str() }],
                    "$db": "admin"
                };
            }
            _ => {
                let delete =
                    doc! { "delete": collection, "deletes": [{ "q": &self.filter(), "limit": 0 }] };
                doc! { "explain": &delete, "verbosity": "executionStats" }
            }
        };
        command.append("$db", db);
        command
    }

    fn definition(&mut self) -> DocBuf {
        let ((db, collection), (other_db, other)) = (self.namespace(), self.namespace());
        let (from, to) = (format!("{db}.{collection}"), format!("{other_db}.{other}"));
        let index = doc! { "key": { "k": 1 }, "name": "k" };
        let mut command = match self.0.below(14) {
            0 => {
                return doc! { "renameCollection": from.as_str(), "to": to.as_str(), "dropTarget": self.yes(2), "$db": "admin" };
            }
            1 => doc! { "create": collection },
            2 => doc! { "create": collection, "viewOn": other, "pipeline": &self.pipeline(1) },
            3 => doc! { "collMod": collection, "viewOn": other, "pipeline": &self.pipeline(1) },
            4 => doc! { "drop": collection },
            5 => doc! { "createIndexes": collection, "indexes": [&index] },
            6 => {
                doc! { "createIndexes": collection, "indexes": [{ "key": { "same": 1 }, "name": "same", "unique": true }] }
            }
            7 => doc! { "dropIndexes": collection, "index": "*" },
            8 => doc! { "listIndexes": collection },
            9 => {
                doc! { "listCollections": 1, "nameOnly": self.yes(2), "authorizedCollections": self.yes(2) }
            }
            10 => doc! { "collStats": collection },
            11 => doc! { "validate": collection },
            12 => doc! { "dbHash": 1 },
            _ => doc! { "convertToCapped": collection, "size": 4096 },
        };
        command.append("$db", db);
        command
    }

    fn administration(&mut self, cursors: &[i64]) -> DocBuf {
        let (db, collection) = self.namespace();
        let role = self.pick::<str>(&["root", "read", "dbOwner", "readWriteAnyDatabase", "clerk"]);
        let role_db = self.pick::<str>(&["shop", "vault", "admin"]);
        let granted = doc! { "role": role, "db": role_db };
        let privilege = doc! { "resource": { "db": db, "collection": collection }, "actions": ["find", "update"] };
        let cursor = cursors[self.0.below(cursors.len() as u64) as usize];
        let mut command = match self.0.below(14) {
            0 => doc! { "createUser": "other", "pwd": "p", "roles": [&granted] },
            1 => doc! { "grantRolesToUser": "player", "roles": [&granted] },
            2 => doc! { "updateUser": "player", "roles": [&granted] },
            3 => doc! { "createRole": "made", "roles": [&granted], "privileges": [&privilege] },
            4 => doc! { "grantRolesToUser": "player", "roles": ["made"] },
            5 => doc! { "grantPrivilegesToRole": "finder", "privileges": [&privilege] },
            6 => doc! { "getMore": cursor, "collection": collection },
            7 => doc! { "killCursors": collection, "cursors": [cursor] },
            8 => doc! { "currentOp": 1, "$all": true },
            9 => {
                doc! { "aggregate": 1, "pipeline": [{ "$currentOp": { "allUsers": true, "idleCursors": true } }], "cursor": {} }
            }
            10 => {
                doc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": { "allUsers": true } }], "cursor": {} }
            }
            11 => doc! { "getLog": "global" },
            12 => doc! { "usersInfo": { "forAllDBs": true }, "showCredentials": true },
            _ => doc! { "profile": 2 },
        };
        let db = match self.yes(3) {
            true => "admin",
            false => db,
        };
        command.append("$db", db);
        command
    }

    fn command(&mut self, cursors: &[i64]) -> DocBuf {
        match self.0.below(8) {
            0..=2 => self.read(),
            3 | 4 => self.write(),
            5 | 6 => self.definition(),
            _ => self.administration(cursors),
        }
    }
}

/// Opens cursors of `root` on data that other users may not read.
fn open_cursors(root: &mut Client) -> Vec<i64> {
    let mut open = |(db, collection): (&str, &str)| {
        let filter = doc! { "code": { "$regex": "^MARK" } };
        let reply =
            root.works(doc! { "find": collection, "filter": &filter, "batchSize": 1, "$db": db });
        match at(&reply, "cursor.id") {
            Some(Value::Int64(id)) => id,
            other => panic!("{other:?}"),
        }
    };
    COLLECTIONS.iter().map(|namespace| open(*namespace)).collect()
}

fn play(server: &Server, root: &mut Client, seed: u64) {
    let player = &PLAYERS[(seed % PLAYERS.len() as u64) as usize];
    make_world(root);
    root.works(doc! { "dropAllRolesFromDatabase": 1, "$db": "shop" });
    make_roles(root);
    root.run(doc! { "dropAllUsersFromDatabase": 1, "$db": "shop" });
    root.works(doc! { "createUser": "player", "pwd": "p", "roles": [player.role], "$db": "shop" });
    let cursors = open_cursors(root);
    let everything = COLLECTIONS.iter().copied().chain([VIEW, FILTERED]);
    let kept: Vec<_> = everything.filter(|one| !player.changes.contains(one)).collect();
    let before: Vec<String> = kept.iter().map(|one| state(root, *one)).collect();
    let mut client = server.client(1000 + seed);
    assert_eq!(client.log_in("shop", "player", "p", Mechanism::Sha256), 0);
    let mut dice = Dice(Rng::new(seed));
    let hidden: Vec<String> = COLLECTIONS
        .iter()
        .filter(|one| !player.reads.contains(one))
        .map(|one| mark(*one))
        .chain(
            COLLECTIONS
                .iter()
                .filter(|one| !player.describes.contains(one))
                .map(|one| index_mark(*one)),
        )
        .chain(["storedKey".to_owned()])
        .collect();
    let mut named = Vec::new();
    for number in 0..COMMANDS_PER_USER {
        let command = dice.command(&cursors);
        let reply = client.run(command.clone());
        strings(command.as_doc(), &mut named);
        let shown = shown_without(&named, &reply);
        for mark in &hidden {
            assert!(
                !shown.contains(mark.as_str()),
                "seed {seed}, {}, command {number} {command:?} shows {mark}: {reply:?}",
                player.role
            );
        }
    }
    for (one, before) in kept.iter().zip(before) {
        let after = state(root, *one);
        assert_eq!(before, after, "seed {seed}: {} changed {one:?}", player.role);
    }
    root.run(doc! { "profile": 0, "$db": "shop" });
    let kill = |(db, collection): (&str, &str), id: i64| {
        doc! { "killCursors": collection, "cursors": [id], "$db": db }
    };
    COLLECTIONS.iter().zip(cursors).for_each(|(one, id)| drop(root.run(kill(*one, id))));
}

/// Returns the reply as text, without the values that the user sent itself.
fn shown_without(named: &[String], reply: &DocBuf) -> String {
    // The error of a missing right ends with the client's own command.
    if let Some(Value::String(text)) = reply.get("errmsg")
        && let Some((told, _)) = text.split_once(" to execute command ")
    {
        return told.to_owned();
    }
    let mut shown = format!("{reply:?}");
    for text in named.iter().filter(|text| text.starts_with("MARK-")) {
        shown = shown.replace(text.as_str(), "(named)");
    }
    shown
}

fn strings(doc: Doc<'_>, found: &mut Vec<String>) {
    for (_, value) in doc.fields() {
        match value {
            Value::String(text) => found.push(text.to_owned()),
            Value::Document(inner) => strings(inner, found),
            Value::Array(list) => list.iter().for_each(|value| match value {
                Value::Document(inner) => strings(inner, found),
                Value::String(text) => found.push(text.to_owned()),
                _ => {}
            }),
            _ => {}
        }
    }
}

#[test]
fn no_sequence_of_commands_reaches_beyond_the_rights() {
    let rounds = std::env::var("QUIRE_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    let (server, mut root) = guarded();
    for seed in 0..rounds.unwrap_or(30) {
        play(&server, &mut root, seed);
    }
    assert_eq!(code(&root.run(doc! { "ping": 1, "$db": "admin" })), 0);
}
