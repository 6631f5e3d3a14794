//! Commands that administer the server: parameters of the cluster, the block of writes, the oplog's
//! entries, and what a replica set of one member refuses.

use crate::transactions::{commit, within};
use crate::{Client, Server, at, code, number, text};
use quire_commands::{COMMANDS, Topology};
use quire_document::{Binary, DocBuf, Value, doc};

fn admin(client: &mut Client, mut command: DocBuf) -> DocBuf {
    command.append("$db", "admin");
    client.run(command)
}

fn works(client: &mut Client, command: DocBuf) -> DocBuf {
    let reply = admin(client, command.clone());
    assert_eq!(code(&reply), 0, "{command:?}: {reply:?}");
    reply
}

#[test]
fn parameters_of_the_cluster_outlive_the_server() {
    let server = Server::new();
    let mut client = server.client(1);
    let kept = doc! { "preAndPostImages": { "expireAfterSeconds": 100 } };
    let get = || doc! { "getClusterParameter": "changeStreamOptions" };
    let path = "clusterParameters.0.preAndPostImages.expireAfterSeconds";
    assert_eq!(text(&works(&mut client, get()), path), Some("off"));
    works(&mut client, doc! { "setClusterParameter": { "changeStreamOptions": &kept } });
    let again = server.reopened();
    let shown = works(&mut again.client(1), get());
    assert_eq!(number(&shown, path), Some(100));
    let Some(Value::Timestamp(time)) = at(&shown, "clusterParameters.0.clusterParameterTime")
    else {
        panic!("{shown:?}")
    };
    assert!(time.seconds > 0);
    let unknown = admin(&mut client, doc! { "setClusterParameter": { "x": { "y": 1 } } });
    assert_eq!(code(&unknown), 4);
    let standalone = Server::of(Topology::Standalone);
    let set = doc! { "setClusterParameter": { "changeStreamOptions": &kept } };
    assert_eq!(code(&admin(&mut standalone.client(1), set)), 20);
}

#[test]
fn the_default_time_limit_ends_reads() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "a": 1 }], "$db": "test" });
    let limit = doc! { "readOperations": 1 };
    works(&mut client, doc! { "setClusterParameter": { "defaultMaxTimeMS": &limit } });
    // 360,000 additions take longer than that.
    let list: quire_document::ArrayBuf = (0..600).collect();
    let inner = doc! { "$reduce": { "input": &list, "initialValue": 0, "in": { "$add": ["$$value", "$$this"] } } };
    let map = doc! { "$map": { "input": &list, "in": &inner } };
    let slow = doc! { "$expr": { "$gt": [{ "$sum": &map }, 0] } };
    let find = |body: DocBuf| {
        let mut command = doc! { "find": "c", "filter": &slow };
        command.extend(|writer| {
            writer.append_all(body.as_doc());
        });
        command.append("$db", "test");
        command
    };
    assert_eq!(code(&client.run(find(doc! {}))), 50);
    assert_eq!(code(&client.run(find(doc! { "maxTimeMS": 600_000 }))), 0);
    works(
        &mut client,
        doc! { "setClusterParameter": { "defaultMaxTimeMS": { "readOperations": 0 } } },
    );
    assert_eq!(code(&client.run(find(doc! {}))), 0);
}

#[test]
fn a_block_refuses_the_writes_of_users_until_it_ends() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" });
    works(&mut client, doc! { "setUserWriteBlockMode": 1, "global": true });
    let insert = |id: i32| doc! { "insert": "c", "documents": [{ "_id": id }], "$db": "test" };
    let copy =
        doc! { "aggregate": "c", "pipeline": [{ "$out": "d" }], "cursor": {}, "$db": "test" };
    let entry = doc! { "op": "i", "ns": "test.c", "o": { "_id": 2 } };
    let apply = doc! { "applyOps": [&entry], "$db": "admin" };
    let rename = doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin" };
    // It holds in the next process too.
    let again = server.reopened();
    let mut other = again.client(1);
    for command in [insert(2), copy.clone(), apply.clone(), rename] {
        assert_eq!(code(&client.run(command.clone())), 371, "{command:?}");
        assert_eq!(code(&other.run(command)), 371);
    }
    client.works(doc! { "find": "c", "$db": "test" });
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "config" });
    // A pipeline writes to another database than the one in which it runs.
    let merge = doc! { "$merge": { "into": { "db": "test", "coll": "c" } } };
    let from_config =
        doc! { "aggregate": "c", "pipeline": [&merge], "cursor": {}, "$db": "config" };
    assert_eq!(code(&client.run(from_config)), 371);
    let reason = "ClusterToClusterMigrationInProgress";
    let wrong = doc! { "setUserWriteBlockMode": 1, "global": false, "reason": reason };
    assert_eq!(code(&admin(&mut client, wrong)), 20);
    works(&mut client, doc! { "setUserWriteBlockMode": 1, "global": false });
    [insert(3), copy, apply].into_iter().for_each(|command| drop(client.works(command)));
}

/// Returns when `currentOp` shows a command that waits for a lock.
fn await_waiting(client: &mut Client, command: &str) {
    let mut shown = doc! { "currentOp": 1, "waitingForLock": true };
    shown.append(&format!("command.{command}"), &doc! { "$exists": true });
    let is_none = |client: &mut Client| at(&works(client, shown.clone()), "inprog.0").is_none();
    while is_none(client) {
        std::thread::yield_now();
    }
}

/// A write that ran when the block began went on after the command had answered.
#[test]
fn a_block_waits_for_the_writes_under_way_and_refuses_new_ones_meanwhile() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" });
    client.works(doc! { "insert": "d", "documents": [{ "_id": 1 }], "$db": "test" });
    let (writing, reading) = ((1, 1), (2, 1));
    let insert = |id: i32| doc! { "insert": "c", "documents": [{ "_id": id }], "$db": "test" };
    client.works(within(insert(2), writing, true));
    client.works(within(doc! { "find": "d", "$db": "test" }, reading, true));
    let (mut blocker, mut dropper) = (server.client(2), server.client(3));
    // The drop has passed the gate, and waits for the transaction that has read.
    let drop_d = std::thread::spawn(move || {
        dropper.works(doc! { "drop": "d", "$db": "test" });
    });
    await_waiting(&mut client, "drop");
    let block = std::thread::spawn(move || {
        works(&mut blocker, doc! { "setUserWriteBlockMode": 1, "global": true });
    });
    await_waiting(&mut client, "setUserWriteBlockMode");
    assert_eq!(code(&client.run(insert(3))), 371);
    assert_eq!(code(&client.run(within(insert(3), (3, 1), true))), 371);
    assert!(!block.is_finished() && !drop_d.is_finished());
    let abort = doc! { "abortTransaction": 1, "$db": "admin" };
    client.works(within(abort, reading, false));
    drop_d.join().unwrap();
    // Now it waits for the transaction that has written.
    await_waiting(&mut client, "setUserWriteBlockMode");
    client.works(within(commit(), writing, false));
    block.join().unwrap();
    assert_eq!(number(&client.works(doc! { "count": "c", "$db": "test" }), "n"), Some(2));
    works(&mut client, doc! { "setUserWriteBlockMode": 1, "global": false });
    client.works(insert(4));
}

/// An interrupted wait for the writes leaves no block.
#[test]
fn a_block_that_does_not_come_about_refuses_nothing() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "create": "c", "$db": "test" });
    let insert = |id: i32| doc! { "insert": "c", "documents": [{ "_id": id }], "$db": "test" };
    client.works(within(insert(1), (1, 1), true));
    let block = doc! { "setUserWriteBlockMode": 1, "global": true, "maxTimeMS": 20 };
    assert_eq!(code(&admin(&mut client, block)), 50);
    client.works(insert(2));
}

#[test]
fn entries_of_an_oplog_are_applied_at_once_or_one_by_one() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(
        doc! { "insert": "c", "documents": [{ "_id": 1, "a": 1, "b": [1, 2] }], "$db": "test" },
    );
    let insert = doc! { "op": "i", "ns": "test.c", "o": { "_id": 2 } };
    let diff = doc! { "u": { "a": 2 }, "sb": { "a": true, "u1": 9 } };
    let change =
        doc! { "op": "u", "ns": "test.c", "o": { "$v": 2, "diff": &diff }, "o2": { "_id": 1 } };
    let missing = doc! { "op": "u", "ns": "test.c", "o": { "x": 1 }, "o2": { "_id": 9 } };
    let failed = admin(&mut client, doc! { "applyOps": [&insert, &change, &missing] });
    assert_eq!((code(&failed), number(&failed, "applied")), (8, Some(3)));
    let count =
        |client: &mut Client| number(&client.works(doc! { "count": "c", "$db": "test" }), "n");
    assert_eq!(count(&mut client), Some(1));
    let failed =
        admin(&mut client, doc! { "applyOps": [&insert, &change, &missing], "allowAtomic": false });
    assert_eq!(code(&failed), 8);
    let found = client.works(doc! { "find": "c", "sort": { "_id": 1 }, "$db": "test" });
    assert_eq!(number(&found, "cursor.firstBatch.0.a"), Some(2));
    assert_eq!(number(&found, "cursor.firstBatch.0.b.1"), Some(9));
    assert_eq!(number(&found, "cursor.firstBatch.1._id"), Some(2));
    let index = doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] };
    let command = doc! { "op": "c", "ns": "test.$cmd", "o": &index };
    let delete = doc! { "op": "d", "ns": "test.c", "o": { "_id": 2 } };
    let applied = works(&mut client, doc! { "applyOps": [&command, &delete] });
    assert_eq!(number(&applied, "applied"), Some(2));
    assert_eq!(count(&mut client), Some(1));
    // The oplog has one index in an entry, without a list.
    let index =
        doc! { "createIndexes": "c", "v": 2, "key": { "b": -1 }, "name": "b", "unique": true };
    let command = doc! { "op": "c", "ns": "test.$cmd", "o": &index };
    works(&mut client, doc! { "applyOps": [&command] });
    let indexes = client.works(doc! { "listIndexes": "c", "$db": "test" });
    assert_eq!(number(&indexes, "cursor.firstBatch.2.key.b"), Some(-1));
    assert!(matches!(at(&indexes, "cursor.firstBatch.2.unique"), Some(Value::Bool(true))));
    let forbidden = doc! { "op": "c", "ns": "admin.$cmd", "o": { "shutdown": 1 } };
    assert_eq!(code(&admin(&mut client, doc! { "applyOps": [&forbidden] })), 2);
}

/// `mongorestore --preserveUUID` creates collections so.
#[test]
fn a_collection_of_an_oplog_keeps_its_uuid() {
    let server = Server::new();
    let mut client = server.client(1);
    let create = |name: &str, uuid: Value<'_>| {
        let object =
            doc! { "create": name, "idIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_" } };
        let entry = doc! { "op": "c", "ns": "test.$cmd", "ui": uuid, "o": &object };
        doc! { "applyOps": [&entry] }
    };
    let uuid = |bytes: &'static [u8]| Value::Binary(Binary { subtype: 4, bytes });
    let shown = |client: &mut Client, name: &str| {
        let listed =
            client.works(doc! { "listCollections": 1, "filter": { "name": name }, "$db": "test" });
        let found = at(&listed, "cursor.firstBatch.0.info.uuid");
        matches!(found, Some(Value::Binary(Binary { subtype: 4, bytes })) if bytes == [1; 16])
    };
    works(&mut client, create("c", uuid(&[1; 16])));
    assert!(shown(&mut client, "c"));
    // The same entry again finds the collection that it made.
    works(&mut client, create("c", uuid(&[1; 16])));
    for (name, id) in [("c", uuid(&[2; 16])), ("d", uuid(&[1; 16]))] {
        assert_eq!(code(&admin(&mut client, create(name, id))), 48, "{name}");
    }
    assert_eq!(code(&admin(&mut client, create("e", Value::Int32(1)))), 2);
}

/// A user whom an entry had deleted kept its open connection, an entry of `system.views` damaged the
/// database, and a validator was passed.
#[test]
fn entries_of_an_oplog_are_writes_of_a_client() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "create": "c", "validator": { "a": { "$gt": 1 } }, "$db": "test" });
    let insert = |ns: &str| doc! { "op": "i", "ns": ns, "o": { "_id": "test.x", "a": 1 } };
    for ns in ["admin.system.users", "test.system.views", "test.system.profile", "config.c"] {
        assert_eq!(code(&admin(&mut client, doc! { "applyOps": [&insert(ns)] })), 73, "{ns}");
    }
    assert_eq!(code(&admin(&mut client, doc! { "applyOps": [&insert("test.c")] })), 121);
    let bypassing = doc! { "applyOps": [&insert("test.c")], "bypassDocumentValidation": true };
    works(&mut client, bypassing);
    let rename = doc! { "renameCollection": "test.c", "to": "test.d", "stayTemp": false };
    works(&mut client, doc! { "applyOps": [{ "op": "c", "ns": "test.$cmd", "o": &rename }] });
    let count = client.works(doc! { "count": "d", "$db": "test" });
    assert_eq!(number(&count, "n"), Some(1));
}

#[test]
fn a_file_is_hashed_in_the_order_of_its_chunks() {
    let server = Server::new();
    let mut client = server.client(1);
    let data = |bytes: &'static [u8]| Value::Binary(Binary { subtype: 0, bytes });
    client.works(doc! { "insert": "fs.chunks", "documents": [
        { "_id": 1, "files_id": 7, "n": 1, "data": (data(b"lo")) },
        { "_id": 2, "files_id": 7, "n": 0, "data": (data(b"hel")) },
        { "_id": 3, "files_id": 8, "n": 1, "data": (data(b"x")) },
    ], "$db": "test" });
    let hashed = client.works(doc! { "filemd5": 7, "root": "fs", "$db": "test" });
    assert_eq!(text(&hashed, "md5"), Some("5d41402abc4b2a76b9719d911017c592"));
    assert_eq!(number(&hashed, "numChunks"), Some(2));
    assert_eq!(code(&client.run(doc! { "filemd5": 8, "$db": "test" })), 50985);
    let none = client.works(doc! { "filemd5": 9, "$db": "test" });
    assert_eq!(number(&none, "numChunks"), Some(0));
}

#[test]
fn compaction_in_the_background_is_turned_on_once() {
    let server = Server::new();
    let mut client = server.client(1);
    let jobs = server.0.start_jobs().unwrap();
    works(&mut client, doc! { "autoCompact": true, "freeSpaceTargetMB": 5 });
    works(&mut client, doc! { "autoCompact": true, "freeSpaceTargetMB": 5 });
    assert_eq!(code(&admin(&mut client, doc! { "autoCompact": true })), 23);
    works(&mut client, doc! { "autoCompact": false });
    works(&mut client, doc! { "autoCompact": true, "runOnce": true });
    // After its only pass it is off, so other options are accepted.
    while code(&admin(&mut client, doc! { "autoCompact": true })) != 0 {
        std::thread::yield_now();
    }
    drop(jobs);
}

#[test]
fn the_configuration_of_the_set_keeps_its_version() {
    let server = Server::new();
    let mut client = server.client(1);
    let shown = works(&mut client, doc! { "replSetGetConfig": 1 });
    let config = at(&shown, "config").unwrap().as_document().unwrap();
    let with = |name: &str, value: Value<'_>| {
        DocBuf::build(|changed| {
            config.fields().filter(|(other, _)| *other != name).for_each(|(other, value)| {
                changed.append(other, value);
            });
            changed.append(name, value);
        })
    };
    assert_eq!(code(&admin(&mut client, doc! { "replSetReconfig": config })), 103);
    let next = with("version", Value::Int32(2));
    works(&mut client, doc! { "replSetReconfig": &next });
    let other = with("protocolVersion", Value::Int32(7));
    assert_eq!(code(&admin(&mut client, doc! { "replSetReconfig": &other, "force": true })), 103);
    let again = server.reopened();
    let mut client = again.client(1);
    assert_eq!(number(&works(&mut client, doc! { "hello": 1 }), "setVersion"), Some(2));
    for (command, expected) in [
        (doc! { "replSetStepDown": 60 }, 262),
        (doc! { "replSetStepDown": 60, "force": true }, 115),
        (doc! { "replSetStepDown": -1 }, 2),
        (doc! { "replSetFreeze": 10 }, 95),
        (doc! { "replSetSyncFrom": "localhost:1" }, 95),
        (doc! { "replSetResizeOplog": 1, "size": 1000 }, 76),
        (doc! { "appendOplogNote": 1 }, 115),
        (doc! { "replSetGetRBID": 1 }, 0),
        (doc! { "shardingState": 1 }, 0),
        (doc! { "addShard": "a:1" }, 115),
    ] {
        assert_eq!(code(&admin(&mut client, command.clone())), expected, "{command:?}");
    }
    let standalone = Server::of(Topology::Standalone);
    let freeze = doc! { "replSetFreeze": 10 };
    assert_eq!(code(&admin(&mut standalone.client(1), freeze)), 76);
}

#[test]
fn a_sample_of_the_state_has_a_part_for_each_collector() {
    let server = Server::new();
    let mut client = server.client(1);
    let data = works(&mut client, doc! { "getDiagnosticData": 1 });
    for path in ["serverStatus.opcounters.insert", "replSetGetStatus.myState"] {
        assert!(number(&data, &format!("data.{path}")).is_some(), "{path}");
    }
    for part in ["serverStatus", "replSetGetStatus", "systemMetrics"] {
        for time in ["start", "end"] {
            let time = at(&data, &format!("data.{part}.{time}"));
            assert!(matches!(time, Some(Value::Date(_))), "{part}");
        }
    }
}

#[test]
fn the_compatibility_version_is_shown_and_kept() {
    let server = Server::new();
    let mut client = server.client(1);
    let set = |version: &str| doc! { "setFeatureCompatibilityVersion": version, "confirm": true };
    assert_eq!(code(&admin(&mut client, set("7.0"))), 4_926_900);
    assert_eq!(
        code(&admin(&mut client, doc! { "setFeatureCompatibilityVersion": "8.0" })),
        7_369_100
    );
    works(&mut client, set("8.0"));
    let again = server.reopened();
    let get = doc! { "getParameter": 1, "featureCompatibilityVersion": 1 };
    let shown = works(&mut again.client(1), get);
    assert_eq!(text(&shown, "featureCompatibilityVersion.version"), Some("8.0"));
}

/// No command of the table answers that it does not exist.
#[test]
fn every_command_is_known() {
    let server = Server::new();
    let mut client = server.client(1);
    // As in mongod, the audit log's command is unknown where there is no audit log.
    let left_out = ["shutdown", "logApplicationMessage"];
    for row in COMMANDS.iter().filter(|row| !left_out.contains(&row.name)) {
        let name = row.name;
        let reply = admin(&mut client, doc! { name: 1 });
        assert_ne!(code(&reply), 59, "{name}");
        works(&mut client, doc! { "setUserWriteBlockMode": 1, "global": false });
    }
}
