//! The progress of an index build: `currentOp`, `listIndexes`, `$indexStats`, `collStats` and
//! `serverStatus`.

use crate::{Client, Server, at, code, number, text};
use quire_catalog::{Namespace, collection_key};
use quire_collections::CatalogChange;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, doc};
use quire_storage::{Bytes, Mode, Space, Txn, begin};
use std::sync::{Arc, Mutex, Once};
use std::thread;

const DOCS: i32 = 1500;

fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    let documents = (0..DOCS).map(|n| doc! { "_id": n, "a": n });
    let documents: ArrayBuf = documents.collect::<Vec<_>>().iter().collect();
    client.works(doc! { "insert": "c", "documents": &documents, "$db": "test" });
    client
}

/// The lock that a build waits for.
type Held = Arc<Mutex<Option<Txn>>>;

/// Makes the next build wait before it hands the index over to writers, because it needs the lock
/// of the collection's record. Dropping the returned lock lets it continue.
fn hold(server: &Server) -> Held {
    let store = server.0.store();
    let namespace = Namespace::parse("test.c").unwrap();
    let key = collection_key(store.catalog().lookup(&namespace).unwrap().id);
    let (held, engine) = (Arc::new(Mutex::new(None)), Arc::clone(store.engine()));
    let (first, lock) = (Once::new(), Arc::clone(&held));
    store
        .observe_catalog(Box::new(move |changes| {
            let starts = |change: &CatalogChange| matches!(change, CatalogChange::IndexStarted(..));
            if changes.iter().any(starts) {
                first.call_once(|| {
                    let mut holder = begin(&engine, Mode::Transaction).unwrap();
                    holder.put(Space::Meta, Bytes::copy_from_slice(&key), Bytes::new()).unwrap();
                    holder.push().unwrap();
                    *lock.lock().unwrap() = Some(holder);
                });
            }
        }))
        .unwrap();
    held
}

/// Builds `a_1`, and calls `look` meanwhile with the lock that the build waits for. Returns the
/// reply to `createIndexes`.
fn build(server: &Server, look: impl FnOnce(&Held)) -> DocBuf {
    let (store, held) = (server.0.store(), hold(server));
    thread::scope(|scope| {
        let building = scope.spawn(|| {
            let index = doc! { "key": { "a": 1 }, "name": "a_1", "unique": true };
            server.client(2).run(doc! { "createIndexes": "c", "indexes": [&index], "$db": "test" })
        });
        while store.index_builds().iter().all(|build| build.progress().0 < DOCS as u64) {
            thread::yield_now();
        }
        look(&held);
        held.lock().unwrap().take();
        building.join().unwrap()
    })
}

fn batch(client: &mut Client, command: DocBuf) -> Vec<DocBuf> {
    let reply = client.works(command);
    let rows = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
    rows.iter().map(|row| row.as_document().unwrap().to_owned()).collect()
}

/// Runs `listIndexes` with an option.
fn listed(client: &mut Client, option: &str) -> Vec<DocBuf> {
    batch(client, doc! { "listIndexes": "c", option: true, "$db": "test" })
}

fn stats(client: &mut Client) -> [Option<i64>; 4] {
    let status = client.works(doc! { "serverStatus": 1, "$db": "admin" });
    let phases = ["scanCollection", "processConstraintsViolatonTableOnCommit", "commit"];
    let [scan, settle, commit] =
        phases.map(|name| number(&status, &format!("indexBuilds.phases.{name}")));
    [number(&status, "indexBuilds.total"), scan, settle, commit]
}

fn building(client: &mut Client) -> Vec<DocBuf> {
    let filter = doc! { "$regex": "^Index Build" };
    let reply = client.works(doc! { "currentOp": 1, "msg": &filter, "$db": "admin" });
    let rows = at(&reply, "inprog").unwrap().as_array().unwrap();
    rows.iter().map(|row| row.as_document().unwrap().to_owned()).collect()
}

fn look_on(client: &mut Client) {
    let [operation] = &building(client)[..] else { panic!("one build") };
    assert_eq!(
        (text(operation, "ns"), text(operation, "command.createIndexes")),
        (Some("test.c"), Some("c"))
    );
    let [done, total] = ["progress.done", "progress.total"].map(|name| number(operation, name));
    assert_eq!((done, total), (Some(1500), Some(1500)));
    let what = "Index Build: scanning collection";
    assert_eq!(text(operation, "msg"), Some(format!("{what} {what}: 1500/1500 100%").as_str()));

    let plain = listed(client, "isTimeseriesNamespace");
    assert_eq!(
        plain.iter().map(|row| text(row, "name")).collect::<Vec<_>>(),
        [Some("_id_"), Some("a_1")]
    );
    let by_uuid = listed(client, "includeBuildUUIDs");
    assert_eq!(by_uuid[0], plain[0]);
    let spec =
        |row: &DocBuf| at(row, "spec").and_then(|spec| spec.as_document()).map(Doc::to_owned);
    assert_eq!(spec(&by_uuid[1]).as_ref(), Some(&plain[1]));
    let uuid = at(&by_uuid[1], "buildUUID").unwrap();
    assert!(matches!(uuid, Value::Binary(uuid) if uuid.subtype == 4 && uuid.bytes.len() == 16));
    let info = listed(client, "includeIndexBuildInfo");
    assert_eq!((spec(&info[0]).as_ref(), info[0].as_doc().count()), (Some(&plain[0]), 1));
    assert_eq!(spec(&info[1]).as_ref(), Some(&plain[1]));
    let expected = doc! {
        "buildUUID": uuid, "method": "Hybrid", "phase": 1, "phaseStr": "collection scan",
        "opid": at(operation, "opid").unwrap(), "resumable": false,
        "replicationState": { "state": "In progress" },
    };
    let told = at(&info[1], "indexBuildInfo").and_then(|info| info.as_document());
    assert_eq!(told.map(Doc::to_owned), Some(expected));

    let stats = client.works(doc! { "collStats": "c", "$db": "test" });
    assert_eq!(text(&stats, "indexBuilds.0"), Some("a_1"));
    let pipeline = doc! { "$indexStats": {} };
    let rows = batch(
        client,
        doc! { "aggregate": "c", "pipeline": [&pipeline], "cursor": {}, "$db": "test" },
    );
    let flags = rows.iter().map(|row| (text(row, "name"), at(row, "building").is_some()));
    assert_eq!(flags.collect::<Vec<_>>(), [(Some("_id_"), false), (Some("a_1"), true)]);
}

#[test]
fn a_build_reports_its_progress() {
    let server = Server::new();
    let mut client = filled(&server);
    let built = build(&server, |_| {
        look_on(&mut client);
        assert_eq!(stats(&mut client), [Some(1), Some(1), Some(0), Some(0)]);
    });
    assert_eq!(code(&built), 0);
    assert!(building(&mut client).is_empty());
    let rows = listed(&mut client, "includeIndexBuildInfo");
    assert_eq!((rows.len(), rows[1].as_doc().count()), (2, 1));
    let counts = client.works(doc! { "collStats": "c", "$db": "test" });
    assert!(at(&counts, "indexBuilds.0").is_none());
    assert_eq!(stats(&mut client), [Some(1), Some(1), Some(1), Some(1)]);
}

#[test]
fn a_build_that_is_stopped_is_forgotten() {
    let server = Server::new();
    let mut client = filled(&server);
    let mut uuid = String::new();
    let built = build(&server, |held| {
        uuid = server.0.store().index_builds()[0].uuid.to_string();
        let operation = building(&mut client).remove(0);
        client.works(doc! { "killOp": 1, "op": at(&operation, "opid").unwrap(), "$db": "admin" });
        // The build removes its index, which changes the same record.
        held.lock().unwrap().take();
        while !server.0.store().index_builds().is_empty() {
            thread::yield_now();
        }
    });
    assert_eq!(code(&built), 11601, "{built:?}");
    assert!(text(&built, "errmsg").unwrap().contains(&uuid), "{built:?}");
    assert_eq!(listed(&mut client, "includeBuildUUIDs").len(), 1);
    assert_eq!(stats(&mut client), [Some(1), Some(1), Some(0), Some(0)]);
}

#[test]
fn a_collection_keeps_its_name_while_an_index_is_being_built() {
    let server = Server::new();
    let mut client = filled(&server);
    let mut rename = |to: &str| {
        let command = doc! { "renameCollection": "test.c", "to": to, "$db": "admin" };
        code(&client.run(command))
    };
    let built = build(&server, |_| {
        assert_eq!(rename("test.d"), 12587);
        assert_eq!(rename("other.c"), 12587);
    });
    assert_eq!(number(&built, "numIndexesAfter"), Some(2));
    assert_eq!(rename("test.d"), 0);
}

/// A client that creates an index which another client is building gets its reply after that build,
/// also if it creates one more index.
#[test]
fn an_index_that_is_being_built_is_waited_for() {
    let server = Server::new();
    filled(&server);
    thread::scope(|scope| {
        let mut second = None;
        let built = build(&server, |_| {
            let other = scope.spawn(|| {
                let wanted = [
                    doc! { "key": { "a": 1 }, "name": "a_1", "unique": true },
                    doc! { "key": { "b": 1 }, "name": "b_1" },
                ];
                let wanted: ArrayBuf = wanted.iter().collect();
                let create = doc! { "createIndexes": "c", "indexes": &wanted, "$db": "test" };
                server.client(3).run(create)
            });
            thread::sleep(std::time::Duration::from_millis(50));
            assert!(!other.is_finished());
            second = Some(other);
        });
        assert_eq!(number(&built, "numIndexesAfter"), Some(2));
        let second = second.unwrap().join().unwrap();
        assert_eq!(number(&second, "numIndexesAfter"), Some(3));
    });
}
