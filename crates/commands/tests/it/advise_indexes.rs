//! `adviseIndexes`: the index that each request needs is found from the request alone, what it says is
//! true after its commands have run, and it proposes nothing that does not pay.

use crate::{Client, Server, at, code, flag, number, text};
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, array, doc};
use quire_storage::Interrupt;

/// Returns a server whose laboratory makes no pauses.
fn unpaced() -> Server {
    Server::with(&[("quireLaboratoryCorePercent", "100")])
}

fn insert(client: &mut Client, collection: &str, documents: &[DocBuf]) {
    for chunk in documents.chunks(1000) {
        let chunk: ArrayBuf = chunk.iter().collect();
        client.works(doc! { "insert": collection, "documents": &chunk, "$db": "test" });
    }
}

fn create(client: &mut Client, collection: &str, specs: ArrayBuf) {
    client.works(doc! { "createIndexes": collection, "indexes": &specs, "$db": "test" });
}

/// Returns the advice about the first collection of the reply.
fn advise(client: &mut Client, collection: &str, commands: &ArrayBuf) -> DocBuf {
    let workload = doc! { "commands": commands };
    let reply = client.works(doc! {
        "adviseIndexes": collection, "workload": &workload, "seed": 1_i64, "$db": "test",
    });
    assert_eq!(number(&reply, "version"), Some(1));
    at(&reply, "collections.0").unwrap().as_document().unwrap().to_owned()
}

fn list<'a>(advice: &'a DocBuf, name: &str) -> Vec<Doc<'a>> {
    let list = at(advice, name).unwrap().as_array().unwrap();
    list.iter().map(|one| one.as_document().unwrap()).collect()
}

fn names(advice: &DocBuf, name: &str) -> Vec<String> {
    let named = list(advice, name).into_iter();
    named.map(|one| one.get("name").unwrap().as_str().unwrap().to_owned()).collect()
}

/// Runs a command of the advice.
fn apply(client: &mut Client, advised: Doc<'_>, name: &str) {
    let mut command = advised.get(name).unwrap().as_document().unwrap().to_owned();
    command.append("$db", "test");
    client.works(command);
}

fn orders(client: &mut Client, count: u64) {
    let mut random = Generator::new(15);
    let statuses = ["active", "paid", "sent", "done", "lost"];
    let documents: Vec<DocBuf> = (0..count)
        .map(|n| {
            doc! {
                "_id": n as i64, "user_id": format!("user{:03}", random.below(50)).as_str(),
                "status": statuses[random.below(5) as usize], "amount": random.below(1000) as i32,
                "created_at": Value::Date(random.below(1 << 40) as i64),
            }
        })
        .collect();
    insert(client, "orders", &documents);
}

fn order_query() -> DocBuf {
    doc! {
        "find": "orders",
        "filter": { "user_id": "user001", "status": "active", "amount": { "$gte": 100 } },
        "sort": { "created_at": -1 },
    }
}

#[test]
fn equality_sort_range_is_found_from_the_query_alone() {
    let server = unpaced();
    let mut client = server.client(1);
    orders(&mut client, 6000);
    let advice = advise(&mut client, "orders", &array![&order_query()]);
    let created = list(&advice, "create");
    assert_eq!(created.len(), 1, "{advice:?}");
    let key = doc! { "user_id": 1, "status": 1, "created_at": -1, "amount": 1 };
    let found = created[0].get("key").unwrap().as_document().unwrap().to_owned();
    assert_eq!(found, key, "{advice:?}");
    let request = list(&advice, "requests")[0].to_owned();
    assert_eq!(flag(&request, "before.scansCollection"), Some(true));
    assert_eq!(flag(&request, "after.sorts"), Some(false));
    apply(&mut client, created[0], "apply");
    let explain = doc! { "explain": &order_query(), "verbosity": "executionStats", "$db": "test" };
    let explained = client.works(explain);
    let statistic = |name: &str| number(&explained, &format!("executionStats.{name}"));
    assert_eq!(statistic("totalDocsExamined"), statistic("nReturned"));
    // The whole collection was copied, so that the numbers are these.
    assert_eq!(statistic("totalDocsExamined"), number(&request, "after.documentsExamined.high"));
    assert_eq!(statistic("totalKeysExamined"), number(&request, "after.keysExamined.estimate"));
    let again = advise(&mut client, "orders", &array![&order_query()]);
    assert_eq!(flag(&again, "alreadyRight"), Some(true), "{again:?}");
    apply(&mut client, created[0], "undo");
    let indexes = client.works(doc! { "listIndexes": "orders", "$db": "test" });
    assert_eq!(at(&indexes, "cursor.firstBatch").unwrap().as_array().unwrap().count(), 1);
}

#[test]
fn a_key_that_no_document_has_is_named_with_the_field_that_was_meant() {
    let server = unpaced();
    let mut client = server.client(1);
    let documents: Vec<DocBuf> =
        (0..100).map(|n| doc! { "_id": n, "sensor_od": "SENSOR-1", "created_time": n }).collect();
    insert(&mut client, "sensor", &documents);
    let key = doc! { "sensor_id": 1, "created_time": 1 };
    create(&mut client, "sensor", array![{ "key": &key, "name": "by_sensor" }]);
    let advice = advise(&mut client, "sensor", &array![]);
    let removed = list(&advice, "remove");
    assert_eq!(removed.len(), 1);
    let told = "index key `sensor_id` exists in 0 documents; did you mean `sensor_od`?";
    assert_eq!(removed[0].get("text").unwrap().as_str(), Some(told));
    apply(&mut client, removed[0], "apply");
    let hidden = advise(&mut client, "sensor", &array![]);
    assert_eq!(names(&hidden, "remove"), ["by_sensor"]);
    apply(&mut client, removed[0], "undo");
    apply(&mut client, removed[0], "then");
}

#[test]
fn what_goes_makes_no_request_slower() {
    let server = unpaced();
    let mut client = server.client(1);
    orders(&mut client, 2000);
    let specs = array![
        { "key": { "user_id": 1 }, "name": "user" },
        { "key": { "user_id": 1, "status": 1 }, "name": "user_status" },
        { "key": { "amount": 1 }, "name": "amount" },
        { "key": { "created_at": 1 }, "name": "created", "expireAfterSeconds": 1_000_000_000 },
        { "key": { "status": 1, "amount": 1 }, "name": "unique", "unique": false },
    ];
    create(&mut client, "orders", specs);
    let find = doc! { "find": "orders", "filter": { "user_id": "user001" } };
    let by_amount = doc! { "find": "orders", "filter": { "amount": 7 } };
    let advice = advise(&mut client, "orders", &array![&find, &by_amount]);
    assert_eq!(names(&advice, "remove"), ["user", "unique"], "{advice:?}");
    let reasons: Vec<Option<&str>> =
        list(&advice, "remove").iter().map(|one| one.get("reason")?.as_str()).collect();
    assert_eq!(reasons, [Some("prefix"), Some("unused")]);
    assert_eq!(names(&advice, "keep"), ["_id_", "user_status", "amount", "created"]);
    for removed in list(&advice, "remove") {
        assert!(removed.get("noRequestIsSlower").unwrap().as_bool().unwrap());
        apply(&mut client, removed, "apply");
    }
    for command in [&find, &by_amount] {
        let explain = doc! { "explain": command, "verbosity": "executionStats", "$db": "test" };
        let plan =
            text(&client.works(explain), "queryPlanner.winningPlan.stage").map(str::to_owned);
        assert_eq!(plan.as_deref(), Some("FETCH"), "no collection is scanned");
    }
}

#[test]
fn budgets_and_the_cost_of_writes_decide() {
    let server = unpaced();
    let mut client = server.client(1);
    orders(&mut client, 2000);
    let rare = doc! { "find": "orders", "filter": { "amount": 7 } };
    let often = doc! {
        "command": { "find": "orders", "filter": { "user_id": "user001" } }, "count": 50,
    };
    let both = advise(&mut client, "orders", &array![&rare, &often]);
    assert_eq!(names(&both, "create"), ["user_id_1", "amount_1"], "{both:?}");
    let workload = doc! { "commands": [&rare, &often] };
    let budget = doc! { "maxIndexes": 2, "maxBytes": "1GB" };
    let one = client.works(doc! {
        "adviseIndexes": 1, "workload": &workload, "budget": &budget, "seed": 1, "$db": "test",
    });
    let one = at(&one, "collections.0").unwrap().as_document().unwrap().to_owned();
    assert_eq!(names(&one, "create"), ["user_id_1"]);
    let inserts = doc! { "command": { "insert": "orders", "documents": [{}] }, "count": 100_000 };
    let none = advise(&mut client, "orders", &array![&rare, &inserts]);
    assert!(names(&none, "create").is_empty(), "{none:?}");
    let update = doc! {
        "command": {
            "update": "orders",
            "updates": [{ "q": { "_id": 5 }, "u": { "$set": { "amount": 1 } } }],
        },
        "count": 100_000,
    };
    let status = doc! { "find": "orders", "filter": { "user_id": "user002" } };
    let some = advise(&mut client, "orders", &array![&rare, &status, &update]);
    assert_eq!(names(&some, "create"), ["user_id_1"], "the update does not touch this path");
}

#[test]
fn the_field_by_which_a_pipeline_looks_up_gets_an_index() {
    let server = unpaced();
    let mut client = server.client(1);
    let parents: Vec<DocBuf> = (0..40).map(|n| doc! { "_id": n, "k": n }).collect();
    insert(&mut client, "parents", &parents);
    let children: Vec<DocBuf> = (0..3000).map(|n| doc! { "_id": n, "parent": n % 1000 }).collect();
    insert(&mut client, "children", &children);
    let lookup =
        doc! { "from": "children", "localField": "k", "foreignField": "parent", "as": "c" };
    let join = doc! {
        "aggregate": "parents",
        "pipeline": [{ "$match": { "_id": 3 } }, { "$lookup": &lookup }], "cursor": {},
    };
    let advice = advise(&mut client, "children", &array![&join]);
    assert_eq!(names(&advice, "create"), ["parent_1"], "{advice:?}");
    let request = list(&advice, "requests")[0].to_owned();
    let joined = |run: &str| number(&request, &format!("{run}.joined")).unwrap();
    assert!(joined("after") < 20 && joined("before") >= 3000, "{request:?}");
}

#[test]
fn arguments_are_checked_and_a_kill_ends_it() {
    let server = unpaced();
    let mut client = server.client(1);
    orders(&mut client, 10);
    client.works(doc! { "create": "seen", "viewOn": "orders", "pipeline": [], "$db": "test" });
    let workload = doc! { "commands": [] };
    for (command, expected) in [
        (doc! { "adviseIndexes": "orders" }, 40414),
        (doc! { "adviseIndexes": "none", "workload": &workload }, 26),
        (doc! { "adviseIndexes": "seen", "workload": &workload }, 166),
        (doc! { "adviseIndexes": "system.views", "workload": &workload }, 73),
        (
            doc! {
                "adviseIndexes": 1,
                "workload": { "commands": [{ "command": { "find": "orders" }, "count": 0.0 }] },
            },
            2,
        ),
        (doc! { "adviseIndexes": 1, "workload": { "commands": [{ "nix": 1 }] } }, 59),
        (
            doc! { "adviseIndexes": 1, "workload": { "commands": [{ "command": { "ping": 1 } }] } },
            2,
        ),
        (doc! { "adviseIndexes": 2, "workload": &workload }, 14),
        (doc! { "adviseIndexes": 1, "workload": { "commands": [1] } }, 14),
        (doc! { "adviseIndexes": 1, "workload": &workload, "budget": { "maxBytes": "many" } }, 2),
        (doc! { "adviseIndexes": 1, "workload": &workload, "more": 1 }, 40415),
    ] {
        let mut command = command;
        command.append("$db", "test");
        let reply = client.run(command.clone());
        assert_eq!(code(&reply), expected, "{command:?}: {reply:?}");
    }
    let killed = Interrupt::new();
    killed.kill(quire_storage::Interruption::Killed);
    let command = doc! { "adviseIndexes": "orders", "workload": &workload, "$db": "test" };
    assert_eq!(code(&client.exchange(&command, killed).0), 11601);
    assert_eq!(server.0.memory().used(), 0);
}

#[test]
fn the_recorded_workload_of_the_last_day_is_enough() {
    let server = unpaced();
    let mut client = server.client(1);
    orders(&mut client, 2000);
    for n in 0..20 {
        let mut find = order_query();
        find.append("comment", n).append("$db", "test");
        client.works(find);
    }
    let reply = client.works(doc! {
        "adviseIndexes": 1, "workload": { "last": "24h" }, "seed": 1_i64, "$db": "test",
    });
    assert_eq!(text(&reply, "workload.source"), Some("recorder"));
    let advice = at(&reply, "collections.0").unwrap().as_document().unwrap().to_owned();
    assert_eq!(
        names(&advice, "create"),
        ["user_id_1_status_1_created_at_-1_amount_1"],
        "{advice:?}"
    );
    let bad = doc! { "adviseIndexes": 1, "workload": { "last": "long" }, "$db": "test" };
    assert_eq!(code(&client.run(bad)), 2);
}

/// With a value that no document has, two indexes cost the same and the planner takes the older one. The
/// advice removed that one and showed that requests use it, and that no request uses the one that stays.
#[test]
fn what_goes_serves_no_request_in_the_end() {
    let server = unpaced();
    let mut client = server.client(1);
    orders(&mut client, 2000);
    let both = doc! { "user_id": 1, "status": 1 };
    let specs = array![
        { "key": { "user_id": 1 }, "name": "user_id_1" },
        { "key": &both, "name": "user_id_1_status_1" },
    ];
    create(&mut client, "orders", specs);
    let find = doc! { "find": "orders", "filter": { "user_id": "nobody", "status": "active" } };
    let advice = advise(&mut client, "orders", &array![&find]);
    assert_eq!(names(&advice, "remove"), ["user_id_1"], "{advice:?}");
    let request = list(&advice, "requests")[0].to_owned();
    assert_eq!(text(&request, "after.indexes.0"), Some("user_id_1_status_1"), "{advice:?}");
    let kept = list(&advice, "keep");
    let kept = kept.iter().find(|one| one.get("name").unwrap().as_str() != Some("_id_")).unwrap();
    assert_eq!(kept.get("requests").unwrap().as_array().unwrap().count(), 1, "{advice:?}");
}

#[test]
fn a_hidden_index_serves_no_request() {
    let server = unpaced();
    let mut client = server.client(1);
    orders(&mut client, 500);
    create(
        &mut client,
        "orders",
        array![{ "key": { "user_id": 1 }, "name": "by_user", "hidden": true }],
    );
    let find = doc! { "find": "orders", "filter": { "user_id": "user001" } };
    let advice = advise(&mut client, "orders", &array![&find]);
    let request = list(&advice, "requests")[0].to_owned();
    assert_eq!(flag(&request, "before.scansCollection"), Some(true), "{advice:?}");
    assert_eq!(names(&advice, "remove"), [] as [&str; 0]);
    // It is what the request needs: it is shown, not built a second time.
    assert_eq!(names(&advice, "create"), ["by_user"]);
    let shown = list(&advice, "create")[0].to_owned();
    assert_eq!(flag(&shown, "apply.index.hidden"), Some(false), "{shown:?}");
    assert_eq!(text(&shown, "apply.collMod"), Some("orders"));
    assert_eq!(flag(&request, "after.scansCollection"), Some(false), "{advice:?}");
    let other = doc! { "find": "orders", "filter": { "status": "paid" } };
    let advice = advise(&mut client, "orders", &array![&other]);
    assert_eq!(names(&advice, "remove"), ["by_user"]);
}
