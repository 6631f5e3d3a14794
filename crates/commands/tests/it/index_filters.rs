//! Index filters apply to all requests of their shape, whichever command sends them.

use crate::{Client, Server, code, number};
use quire_document::{ArrayBuf, DocBuf, doc};

fn orders(server: &Server) -> Client {
    let mut client = server.client(1);
    let documents = (0..50).map(|n| doc! { "_id": n, "a": n % 5, "b": n, "c": n % 7 });
    let documents: ArrayBuf = documents.collect::<Vec<DocBuf>>().iter().collect();
    client.works(doc! { "insert": "t", "documents": &documents, "$db": "test" });
    let index = |name: &str| doc! { "key": { "a": 1, name: 1 }, "name": &*format!("a_{name}") };
    let indexes = [&index("b"), &index("c")].into_iter().collect::<ArrayBuf>();
    client.works(doc! { "createIndexes": "t", "indexes": &indexes, "$db": "test" });
    client
}

/// Returns the index that an explained command reads, and true if a filter chose it.
fn chosen(client: &mut Client, command: &DocBuf) -> (Option<String>, bool) {
    let explained =
        client.works(doc! { "explain": command, "verbosity": "queryPlanner", "$db": "test" });
    let planner =
        explained.get("queryPlanner").and_then(|value| value.as_document()).unwrap_or_default();
    let set = planner.get("indexFilterSet").and_then(|set| set.as_bool()) == Some(true);
    let mut stage = planner.get("winningPlan").and_then(|value| value.as_document());
    while let Some(node) = stage {
        if let Some(name) = node.get("indexName") {
            return (name.as_str().map(str::to_owned), set);
        }
        let inner = |name| node.get(name).and_then(|value| value.as_document());
        stage = inner("queryPlan").or_else(|| inner("inputStage"));
    }
    (None, set)
}

fn readers() -> [DocBuf; 7] {
    let query = doc! { "a": 3 };
    let matching = doc! { "$match": &query };
    let update = doc! { "q": &query, "u": { "$set": { "x": 1 } } };
    let delete = doc! { "q": &query, "limit": 0 };
    [
        doc! { "find": "t", "filter": &query },
        doc! { "count": "t", "query": &query },
        doc! { "distinct": "t", "key": "a", "query": &query },
        doc! { "aggregate": "t", "pipeline": [&matching], "cursor": {} },
        doc! { "update": "t", "updates": [&update] },
        doc! { "delete": "t", "deletes": [&delete] },
        doc! { "findAndModify": "t", "query": &query, "remove": true },
    ]
}

fn set(indexes: &ArrayBuf) -> DocBuf {
    doc! { "planCacheSetFilter": "t", "query": { "a": 1 }, "indexes": indexes, "$db": "test" }
}

#[test]
fn every_command_of_the_shape_takes_the_index_and_no_hint_overrules_it() {
    let server = Server::new();
    let mut client = orders(&server);
    for name in ["b", "c"] {
        let pattern = doc! { "a": 1, name: 1 };
        client.works(set(&[&pattern].into_iter().collect()));
        let expected = (Some(format!("a_{name}")), true);
        for command in &readers() {
            assert_eq!(chosen(&mut client, command), expected, "{command:?}");
        }
        let hinted = doc! { "find": "t", "filter": { "a": 3 }, "hint": "_id_" };
        assert_eq!(chosen(&mut client, &hinted), expected);
    }
    let other = doc! { "find": "t", "filter": { "a": { "$gt": 3 } } };
    assert!(!chosen(&mut client, &other).1, "a filter is for its shape only");
    let sorted = doc! { "find": "t", "filter": { "a": 3 }, "sort": { "b": 1 } };
    assert!(!chosen(&mut client, &sorted).1, "a sort is part of the shape");
}

#[test]
fn without_a_usable_index_the_collection_is_scanned_and_answers_stay() {
    let server = Server::new();
    let mut client = orders(&server);
    let count = doc! { "count": "t", "query": { "a": 3 }, "$db": "test" };
    let before = number(&client.works(count.clone()), "n");
    client.works(set(&["no_such_index"].into_iter().collect()));
    assert_eq!(chosen(&mut client, &readers()[0]), (None, true));
    assert_eq!(number(&client.works(count), "n"), before);
    client.works(doc! { "planCacheClearFilters": "t", "query": { "a": 9 }, "$db": "test" });
    let (index, filtered) = chosen(&mut client, &readers()[0]);
    assert!(index.is_some() && !filtered);
}

#[test]
fn filters_go_with_the_collection_and_stay_when_it_is_renamed() {
    let server = Server::new();
    let mut client = orders(&server);
    client.works(set(&["a_b"].into_iter().collect()));
    let listed = |client: &mut Client, name: &str| {
        let reply = client.works(doc! { "planCacheListFilters": name, "$db": "test" });
        reply.get("filters").and_then(|filters| filters.as_array()).map(|filters| filters.count())
    };
    let rename = doc! { "renameCollection": "test.t", "to": "test.u", "$db": "admin" };
    client.works(rename);
    assert_eq!((listed(&mut client, "t"), listed(&mut client, "u")), (Some(0), Some(1)));
    client.works(doc! { "drop": "u", "$db": "test" });
    client.works(doc! { "create": "u", "$db": "test" });
    assert_eq!(listed(&mut client, "u"), Some(0));
}

#[test]
fn the_number_of_filters_of_a_collection_is_bounded() {
    let server = Server::new();
    let mut client = orders(&server);
    let filter = |at: usize| {
        let mut query = DocBuf::new();
        query.append(&format!("field{at}"), 1);
        doc! { "planCacheSetFilter": "t", "query": &query, "indexes": ["a_b"], "$db": "test" }
    };
    for at in 0..1000 {
        client.works(filter(at));
    }
    assert_eq!(code(&client.run(filter(1000))), 2);
    client.works(filter(999));
    let big = "x".repeat(15 << 20);
    client.works(doc! { "planCacheClearFilters": "t", "$db": "test" });
    client.works(doc! { "planCacheSetFilter": "t", "query": { "a": &*big }, "indexes": ["i"], "$db": "test" });
    let second = doc! { "planCacheSetFilter": "t", "query": { "b": &*big }, "indexes": ["i"], "$db": "test" };
    assert_eq!(code(&client.run(second)), 2);
}

#[test]
fn a_view_has_no_filters() {
    let server = Server::new();
    let mut client = orders(&server);
    client.works(doc! { "create": "v", "viewOn": "t", "pipeline": [], "$db": "test" });
    for name in ["planCacheListFilters", "planCacheClearFilters", "planCacheClear"] {
        assert_eq!(code(&client.run(doc! { name: "v", "$db": "test" })), 166, "{name}");
    }
    // A read through the view uses the filter of the collection.
    client.works(set(&["a_c"].into_iter().collect()));
    let find = doc! { "find": "v", "filter": { "a": 3 } };
    assert_eq!(chosen(&mut client, &find), (Some("a_c".to_owned()), true));
}
