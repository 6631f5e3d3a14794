//! The plan cache changes how fast a plan is found, never an answer; and it is left when its plan has
//! become bad.

use crate::{Client, Lines, Server, at, number, text};
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, DocBuf, Value, doc};

fn cached(client: &mut Client) -> Vec<DocBuf> {
    let pipeline = doc! { "$planCacheStats": {} };
    let command = doc! { "aggregate": "t", "pipeline": [&pipeline], "cursor": {}, "$db": "test" };
    documents(&client.works(command))
}

fn documents(reply: &DocBuf) -> Vec<DocBuf> {
    let batch = at(reply, "cursor.firstBatch").unwrap().as_array().unwrap();
    batch.iter().map(|found| found.as_document().unwrap().to_owned()).collect()
}

fn index(client: &mut Client, field: &str) {
    let index = doc! { "key": { field: 1 }, "name": field };
    client.works(doc! { "createIndexes": "t", "indexes": [&index], "$db": "test" });
}

fn insert(client: &mut Client, collection: &str, documents: &[DocBuf]) {
    let documents: ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": collection, "documents": &documents, "$db": "test" });
}

fn find(collection: &str, filter: &DocBuf) -> DocBuf {
    doc! { "find": collection, "filter": filter, "batchSize": 10_000, "$db": "test" }
}

/// A collection in which `a` is the better index for small values, `b` for large ones.
fn skewed(client: &mut Client) {
    let documents: Vec<DocBuf> = (0..3000)
        .map(|n| doc! { "_id": n, "a": if n < 300 { n } else { 1000 }, "b": n % 10 })
        .collect();
    insert(client, "t", &documents);
    index(client, "a");
    index(client, "b");
}

#[test]
fn an_entry_is_made_by_the_first_request_of_a_shape_and_used_by_the_third() {
    let lines = Lines::default();
    let server = Server::logging(&lines);
    let mut client = server.client(1);
    skewed(&mut client);
    client.works(doc! { "profile": 0, "slowms": -1, "$db": "test" });
    let mut active = Vec::new();
    for a in [5, 17, 29, 31] {
        client.works(find("t", &doc! { "a": a, "b": { "$gte": 0 } }));
        let entries = cached(&mut client);
        assert_eq!(entries.len(), 1);
        active.push(at(&entries[0], "isActive").unwrap().as_bool().unwrap());
    }
    assert_eq!(active, [false, true, true, true]);
    let entry = &cached(&mut client)[0];
    assert_eq!(number(entry, "works"), Some(2));
    assert_eq!(text(entry, "cachedPlan.inputStage.indexName"), Some("a"));
    assert_eq!(number(entry, "createdFromQuery.query.a"), Some(17));
    let command = find("t", &doc! { "a": 1, "b": { "$gte": 0 } });
    let explained = client.works(doc! { "explain": &command, "$db": "test" });
    for name in ["planCacheShapeHash", "planCacheKey"] {
        let path = format!("queryPlanner.{name}");
        assert_eq!(text(entry, name), text(&explained, &path), "{name}");
        assert!(text(entry, name).is_some());
    }
    let mut hinted = command.clone();
    hinted.append("hint", "a");
    let hinted = client.works(doc! { "explain": &hinted, "$db": "test" });
    assert_ne!(text(entry, "planCacheKey"), text(&hinted, "queryPlanner.planCacheKey"));
    assert_eq!(text(&explained, "queryShapeHash"), text(&hinted, "queryShapeHash"));
    let finds: Vec<DocBuf> = lines
        .slow()
        .into_iter()
        .map(|(_, line)| line)
        .filter(|line| text(line, "command.find").is_some())
        .collect();
    let from_cache: Vec<bool> =
        finds.iter().map(|line| at(line, "fromPlanCache").is_some()).collect();
    assert_eq!(from_cache, [false, false, true, true]);
    for line in &finds {
        assert_eq!(text(line, "planCacheKey"), text(entry, "planCacheKey"));
        assert_eq!(text(line, "planCacheShapeHash"), text(entry, "planCacheShapeHash"));
        assert_eq!(text(line, "queryShapeHash"), text(&explained, "queryShapeHash"));
        assert!(text(line, "queryShapeHash").is_some());
    }
}

#[test]
fn a_plan_gone_bad_is_replaced_before_it_runs() {
    let lines = Lines::default();
    let server = Server::logging(&lines);
    let mut client = server.client(1);
    skewed(&mut client);
    for a in [5, 17, 29] {
        client.works(find("t", &doc! { "a": a, "b": 3 }));
    }
    client.works(doc! { "profile": 0, "slowms": -1, "$db": "test" });
    // By the cached index it would visit 2700 keys, by the other one 300.
    let reply = client.works(find("t", &doc! { "a": 1000, "b": 3 }));
    assert_eq!(documents(&reply).len(), 270);
    let (_, line) =
        lines.slow().into_iter().find(|(_, line)| text(line, "command.find").is_some()).unwrap();
    assert!(at(&line, "fromPlanCache").is_none());
    assert!(number(&line, "keysExamined").unwrap() <= 300, "{line:?}");
    let entry = &cached(&mut client)[0];
    assert_eq!(text(entry, "cachedPlan.inputStage.indexName"), Some("b"));
    assert_eq!(at(entry, "isActive").unwrap().as_bool(), Some(false));
}

#[test]
fn entries_are_removed_by_commands_and_by_changes_of_indexes() {
    let server = Server::new();
    let mut client = server.client(1);
    skewed(&mut client);
    let fill = |client: &mut Client| {
        client.works(find("t", &doc! { "a": 1, "b": 3 }));
        client.works(find("t", &doc! { "a": 1, "b": { "$lt": 3 } }));
        assert_eq!(cached(client).len(), 2);
    };
    fill(&mut client);
    client.works(doc! { "planCacheClear": "t", "query": { "b": 1, "a": "x" }, "$db": "test" });
    assert_eq!(cached(&mut client).len(), 1);
    client.works(doc! { "planCacheClear": "t", "$db": "test" });
    assert_eq!(cached(&mut client).len(), 0);
    let filter = doc! { "planCacheSetFilter": "t", "query": { "a": 1, "b": 1 }, "indexes": ["b"], "$db": "test" };
    let hide = |hidden: bool| doc! { "collMod": "t", "index": { "name": "b", "hidden": hidden }, "$db": "test" };
    for (change, left) in [
        (
            doc! { "createIndexes": "t", "indexes": [{ "key": { "c": 1 }, "name": "c" }], "$db": "test" },
            0,
        ),
        (doc! { "dropIndexes": "t", "index": "c", "$db": "test" }, 0),
        (hide(true), 0),
        (hide(false), 0),
        (filter, 1),
    ] {
        if left == 0
            && at(&change, "index.hidden").and_then(|hidden| hidden.as_bool()) == Some(false)
        {
            client.works(change);
            continue;
        }
        fill(&mut client);
        client.works(change.clone());
        assert_eq!(cached(&mut client).len(), left, "{change:?}");
    }
}

/// Runs the same random requests of a few shapes on `t`, whose plans are cached and whose indexes
/// change, and on `u`, which has no index.
#[test]
fn cached_plans_never_change_an_answer() {
    let server = Server::new();
    let mut client = server.client(1);
    let mut random = Generator::new(29);
    let mut next_id = 0;
    let mut used = 0;
    for name in ["a", "b", "c"] {
        index(&mut client, name);
    }
    for round in 0..600 {
        if round % 10 == 0 {
            let documents: Vec<DocBuf> =
                (0..20).map(|_| document(&mut random, &mut next_id, round > 300)).collect();
            insert(&mut client, "t", &documents);
            insert(&mut client, "u", &documents);
        }
        if random.one_in(12) {
            change(&mut client, &mut random);
        }
        let filter = filter(&mut random);
        let mut answers = ["t", "u"].map(|name| {
            let mut found = documents(&client.works(find(name, &filter)));
            found.sort_by_key(|found| number(found, "_id"));
            found
        });
        let [cached_answer, fresh] = &mut answers;
        assert_eq!(cached_answer, fresh, "round {round}: {filter:?}");
        used += usize::from(
            cached(&mut client)
                .iter()
                .any(|entry| at(entry, "isActive").unwrap().as_bool() == Some(true)),
        );
    }
    assert!(used > 100, "entries were active in {used} rounds only");
}

fn document(random: &mut Generator, next_id: &mut i32, arrays: bool) -> DocBuf {
    *next_id += 1;
    let value = |random: &mut Generator| i32::try_from(random.below(1 + 40)).unwrap_or(0);
    let (a, b, c) = (value(random), value(random), value(random));
    match random.below(6) {
        0 if arrays => doc! { "_id": *next_id, "a": [a, b], "b": b, "c": c },
        1 => doc! { "_id": *next_id, "b": b, "c": Value::Null },
        2 => doc! { "_id": *next_id, "a": "text", "b": b },
        _ => doc! { "_id": *next_id, "a": a, "b": b % 3, "c": c },
    }
}

fn filter(random: &mut Generator) -> DocBuf {
    let number = i32::try_from(random.below(41)).unwrap_or(0);
    let other = i32::try_from(random.below(41)).unwrap_or(0);
    match random.below(7) {
        0 | 1 => doc! { "a": number, "b": other % 3 },
        2 => doc! { "a": { "$gt": number }, "b": other % 3, "c": { "$lt": other } },
        3 => doc! { "a": Value::Null, "b": other % 3 },
        4 => doc! { "a": "text", "b": { "$gte": number } },
        5 => doc! { "a": { "$in": [number, other] }, "c": other },
        _ => doc! { "$or": [{ "a": number, "b": other % 3 }, { "c": number, "b": 1 }] },
    }
}

/// Drops, creates, hides or shows one of the indexes.
fn change(client: &mut Client, random: &mut Generator) {
    let name = *random.pick(&["a", "b", "c"]).unwrap_or(&"a");
    let options: &[fn(&str) -> DocBuf] = &[
        |name| doc! { "dropIndexes": "t", "index": name, "$db": "test" },
        |name| doc! { "createIndexes": "t", "indexes": [{ "key": { name: 1 }, "name": name }], "$db": "test" },
        |name| doc! { "createIndexes": "t", "indexes": [{ "key": { name: 1 }, "name": name, "sparse": true }], "$db": "test" },
        |name| doc! { "collMod": "t", "index": { "name": name, "hidden": true }, "$db": "test" },
        |name| doc! { "collMod": "t", "index": { "name": name, "hidden": false }, "$db": "test" },
    ];
    if let Some(make) = random.pick(options) {
        // It fails if the index exists already, or no longer.
        client.run(make(name));
    }
}
