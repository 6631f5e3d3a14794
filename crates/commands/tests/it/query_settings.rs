//! Query settings: indexes for the requests of one shape, or their refusal, in every command and
//! after a restart.

use crate::{Client, Server, at, code, text};
use quire_document::{ArrayBuf, DocBuf, doc};

const REJECTED: i32 = 411;

fn orders(server: &Server) -> Client {
    let mut client = server.client(1);
    let documents = (0..50).map(|n| doc! { "_id": n, "a": n % 5, "b": n, "c": n % 7 });
    let documents: ArrayBuf = documents.collect::<Vec<DocBuf>>().iter().collect();
    client.works(doc! { "insert": "t", "documents": &documents, "$db": "test" });
    let index = |name: &str| doc! { "key": { "a": 1, name: 1 }, "name": &*format!("a_{name}") };
    let indexes = [&index("b"), &index("c")].into_iter().collect::<ArrayBuf>();
    client.works(doc! { "createIndexes": "t", "indexes": &indexes, "$db": "test" });
    let view = [&doc! { "$match": { "a": { "$gte": 0 } } }].into_iter().collect::<ArrayBuf>();
    client.works(doc! { "create": "v", "viewOn": "t", "pipeline": &view, "$db": "test" });
    client
}

/// A command with its `$db`.
fn on_test(command: &DocBuf) -> DocBuf {
    let mut command = command.clone();
    command.append("$db", "test");
    command
}

fn set(client: &mut Client, query: &DocBuf, settings: &DocBuf) -> DocBuf {
    client.run(doc! { "setQuerySettings": &on_test(query), "settings": settings, "$db": "admin" })
}

fn allow(index: &str) -> DocBuf {
    let hint = doc! { "ns": { "db": "test", "coll": "t" }, "allowedIndexes": [index] };
    doc! { "indexHints": [&hint] }
}

fn requests(collection: &str) -> [DocBuf; 3] {
    requests_by(collection, &doc! { "a": 3 })
}

fn requests_by(collection: &str, query: &DocBuf) -> [DocBuf; 3] {
    let matching = doc! { "$match": query };
    [
        doc! { "find": collection, "filter": query },
        doc! { "distinct": collection, "key": "a", "query": query },
        doc! { "aggregate": collection, "pipeline": [&matching], "cursor": {} },
    ]
}

/// Runs a request, which must succeed. The `ok` of a distinct on a view is an integer.
fn answers(client: &mut Client, request: &DocBuf) {
    let reply = client.run(on_test(request));
    assert!(reply.get("errmsg").is_none(), "{request:?}: {reply:?}");
}

/// Returns the index that an explained command reads, and the settings that explain shows.
fn explained(client: &mut Client, command: &DocBuf) -> (Option<String>, bool) {
    let explained =
        client.works(doc! { "explain": command, "verbosity": "queryPlanner", "$db": "test" });
    let planner = at(&explained, "queryPlanner").unwrap().as_document().unwrap().to_owned();
    let mut stage = planner.get("winningPlan").and_then(|plan| plan.as_document());
    let mut index = None;
    while let Some(node) = stage {
        index = node.get("indexName").and_then(|name| name.as_str()).map(str::to_owned).or(index);
        let inner = |name| node.get(name).and_then(|value| value.as_document());
        stage = inner("queryPlan").or_else(|| inner("inputStage"));
    }
    (index, planner.get("querySettings").is_some())
}

#[test]
fn index_hints_choose_the_index_for_every_command_and_overrule_hints() {
    let server = Server::new();
    let mut client = orders(&server);
    for request in &requests("t") {
        assert!(!explained(&mut client, request).1);
        for index in ["a_c", "a_b"] {
            assert_eq!(code(&set(&mut client, request, &allow(index))), 0);
            assert_eq!(explained(&mut client, request), (Some(index.to_owned()), true));
        }
    }
    let other = doc! { "find": "t", "filter": { "a": 9 }, "hint": "_id_" };
    assert_eq!(explained(&mut client, &other), (Some("a_b".to_owned()), true));
    let sorted = doc! { "find": "t", "filter": { "a": 9 }, "sort": { "b": 1 } };
    assert!(!explained(&mut client, &sorted).1, "a sort is part of the shape");
    assert_eq!(code(&set(&mut client, &requests("t")[0], &allow("$natural"))), 0);
    assert_eq!(explained(&mut client, &requests("t")[0]), (None, true));
    assert_eq!(code(&set(&mut client, &requests("t")[0], &allow("gone"))), 0);
    let (index, shown) = explained(&mut client, &requests("t")[0]);
    assert!(index.is_some() && shown, "settings without a usable index do not count");
}

#[test]
fn refused_requests_fail_everywhere_until_the_settings_are_removed() {
    let server = Server::new();
    let mut client = orders(&server);
    let reject = doc! { "reject": true };
    for collection in ["t", "v"] {
        let others = requests_by(collection, &doc! { "a": "text" });
        for (request, other) in requests(collection).iter().zip(&others) {
            let reply = set(&mut client, request, &reject);
            let hash = text(&reply, "queryShapeHash").unwrap().to_owned();
            assert_eq!(code(&client.run(on_test(request))), REJECTED, "{request:?}");
            let shown = client.works(doc! { "explain": request, "$db": "test" });
            assert_eq!(text(&shown, "queryShapeHash"), Some(&*hash), "{request:?}");
            answers(&mut client, other);
            let remove = doc! { "removeQuerySettings": &*hash.to_lowercase(), "$db": "admin" };
            client.works(remove.clone());
            answers(&mut client, request);
            client.works(remove);
        }
    }
}

#[test]
fn settings_are_kept_over_a_restart_and_restored_from_a_dump() {
    let server = Server::new();
    let mut client = orders(&server);
    let [find, ..] = requests("t");
    let set = set(&mut client, &find, &doc! { "reject": true, "comment": "why" });
    let stored = client.works(doc! { "find": "clusterParameters", "$db": "config" });
    let stored = at(&stored, "cursor.firstBatch.0").unwrap().as_document().unwrap().to_owned();
    let reopened = server.reopened();
    let mut client = reopened.client(1);
    assert_eq!(code(&client.run(on_test(&find))), REJECTED);
    let stage = doc! { "$querySettings": { "showDebugQueryShape": true } };
    let all = doc! { "aggregate": 1, "pipeline": [&stage], "cursor": {}, "$db": "admin" };
    let shown = client.works(all);
    let shown = at(&shown, "cursor.firstBatch.0").unwrap().as_document().unwrap().to_owned();
    for name in ["queryShapeHash", "representativeQuery", "settings"] {
        assert_eq!(format!("{:?}", shown.get(name)), format!("{:?}", set.get(name)));
    }
    assert_eq!(text(&shown, "debugQueryShape.filter.a.$eq"), Some("?number"));
    let delete = doc! { "q": {}, "limit": 0 };
    client.works(doc! { "delete": "clusterParameters", "deletes": [&delete], "$db": "config" });
    client.works(on_test(&find));
    client.works(doc! { "insert": "clusterParameters", "documents": [&stored], "$db": "config" });
    assert_eq!(code(&client.run(on_test(&find))), REJECTED);
}

/// The settings stayed when the collection that holds them was renamed, because the command runs in
/// another database.
#[test]
fn settings_go_and_come_with_the_collection_that_holds_them() {
    let server = Server::new();
    let mut client = orders(&server);
    let [find, ..] = requests("t");
    assert_eq!(code(&set(&mut client, &find, &doc! { "reject": true })), 0);
    let (own, other) = ("config.clusterParameters", "config.other");
    client.works(doc! { "renameCollection": own, "to": other, "$db": "admin" });
    client.works(on_test(&find));
    client.works(doc! { "renameCollection": other, "to": own, "$db": "admin" });
    assert_eq!(code(&client.run(on_test(&find))), REJECTED);
}

#[test]
fn settings_are_checked_and_merged() {
    let server = Server::new();
    let mut client = orders(&server);
    let [find, ..] = requests("t");
    let framework = doc! { "queryFramework": "classic" };
    assert_eq!(code(&set(&mut client, &find, &framework)), 0);
    let merged = set(&mut client, &find, &allow("a_b"));
    assert_eq!(text(&merged, "settings.queryFramework"), Some("classic"));
    let empty_hint = doc! { "ns": { "db": "test", "coll": "t" }, "allowedIndexes": [] };
    let other = doc! { "find": "t", "filter": { "x": 1 } };
    for (query, settings, expected) in [
        (&other, doc! {}, 8_727_502),
        (&other, doc! { "reject": false }, 7_746_604),
        (&other, doc! { "comment": "only" }, 7_746_604),
        (&other, doc! { "indexHints": [&empty_hint] }, 7_746_604),
        (&other, doc! { "indexHints": [&empty_hint, &empty_hint] }, 7_746_608),
        (&other, doc! { "reject": 1 }, 14),
        (&other, doc! { "bogus": 1 }, 40415),
        (&doc! { "find": "t", "filter": { "_id": 1 } }, doc! { "reject": true }, 7_746_606),
        (&doc! { "find": "t", "filter": { "$bogus": 1 } }, doc! { "reject": true }, 2),
        (&doc! { "find": "t", "bogus": 1 }, doc! { "reject": true }, 40415),
        (&doc! { "aggregate": "t", "pipeline": [{ "$bogus": 1 }] }, doc! { "reject": true }, 40324),
        (&doc! { "distinct": "t", "query": {} }, doc! { "reject": true }, 9),
        (&doc! { "count": "t" }, doc! { "reject": true }, 7_746_402),
    ] {
        assert_eq!(code(&set(&mut client, query, &settings)), expected, "{query:?} {settings:?}");
    }
}

#[test]
fn explain_profiler_and_current_op_show_the_same_hash() {
    let server = Server::new();
    let mut client = orders(&server);
    client.works(doc! { "profile": 2, "$db": "test" });
    for request in &requests("v") {
        answers(&mut client, request);
    }
    client.works(doc! { "profile": 0, "$db": "test" });
    let entries = client.works(doc! { "find": "system.profile", "$db": "test" });
    for (at_entry, request) in requests("v").iter().enumerate() {
        let shown = client.works(doc! { "explain": request, "$db": "test" });
        let path = format!("cursor.firstBatch.{at_entry}.queryShapeHash");
        assert!(text(&entries, &path).is_some(), "{entries:?}");
        assert_eq!(text(&entries, &path), text(&shown, "queryShapeHash"), "{request:?}");
    }
    let running = doc! { "aggregate": 1, "pipeline": [{ "$currentOp": {} }], "cursor": {} };
    let mut command = running.clone();
    command.append("$db", "admin");
    let rows = client.works(command);
    let shown = client.works(doc! { "explain": &running, "$db": "admin" });
    let hash = text(&rows, "cursor.firstBatch.0.queryShapeHash");
    assert!(hash.is_some());
    assert_eq!(hash, text(&shown, "queryShapeHash"));
}
