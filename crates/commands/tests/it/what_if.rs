//! `explain` with `whatIf`: what it says of an index that does not exist is what is true after it was
//! really built; what it says from a sample contains the truth.

use crate::access::guarded;
use crate::{Client, Server, at, code, flag, number, text};
use quire_access::Mechanism;
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, Doc, DocBuf, ValueBuf, doc};
use quire_storage::Interrupt;

/// The variable with the number of random schemas of each test here.
const SEEDS: &str = "QUIRE_WHAT_IF_SEEDS";
const FIELDS: [&str; 5] = ["a", "b", "c", "d", "e"];

pub fn seeds(few: u64) -> u64 {
    std::env::var(SEEDS).ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(few)
}

/// Returns a server whose laboratory makes no pauses.
pub fn unpaced() -> Server {
    Server::with(&[("quireLaboratoryCorePercent", "100")])
}

pub fn insert(client: &mut Client, documents: &[DocBuf]) {
    for chunk in documents.chunks(1000) {
        let chunk: ArrayBuf = chunk.iter().collect();
        client.works(doc! { "insert": "t", "documents": &chunk, "$db": "test" });
    }
}

pub fn create(client: &mut Client, specs: &ArrayBuf) -> i32 {
    code(&client.run(doc! { "createIndexes": "t", "indexes": specs, "$db": "test" }))
}

/// The shape of random data: for each field how many values it has, and whether some are arrays or
/// missing.
pub struct Schema(Vec<(u64, bool, bool)>);

impl Schema {
    pub fn new(random: &mut Generator) -> Schema {
        let field = |_: &&str| {
            let values = [2, 10, 60, 100_000][random.below(4) as usize];
            (values, random.one_in(6), random.one_in(4))
        };
        Schema(FIELDS.iter().map(field).collect())
    }

    pub fn documents(&self, count: i32, random: &mut Generator) -> Vec<DocBuf> {
        let one = |id| {
            DocBuf::build(|out| {
                out.append("_id", id);
                for (name, (values, has_arrays, is_rare)) in FIELDS.iter().zip(&self.0) {
                    let value = random.below(*values) as i32;
                    if *is_rare && random.one_in(3) {
                        continue;
                    }
                    if *has_arrays && random.one_in(3) {
                        let other = random.below(*values) as i32;
                        out.array(name).push(value).push(other);
                    } else {
                        out.append(name, value);
                    }
                }
            })
        };
        (0..count).map(one).collect()
    }

    /// Returns a random query: conditions, perhaps a sort, a limit and a projection.
    pub fn command(&self, random: &mut Generator) -> DocBuf {
        let filter = DocBuf::build(|out| {
            for (name, (values, _, _)) in FIELDS.iter().zip(&self.0) {
                let value = random.below(*values) as i32;
                match random.below(6) {
                    0 => drop(out.append(name, value)),
                    1 => drop(out.append(name, &doc! { "$gte": value })),
                    2 if *values < 100 => {
                        let other = random.below(*values) as i32;
                        out.append(name, &doc! { "$in": [value, other] });
                    }
                    _ => {}
                }
            }
        });
        let sorted = FIELDS[random.below(5) as usize];
        let sort = doc! { sorted: if random.one_in(2) { 1 } else { -1 } };
        match random.below(6) {
            0 => doc! { "count": "t", "query": &filter },
            1 => doc! { "distinct": "t", "key": sorted, "query": &filter },
            2 => doc! { "delete": "t", "deletes": [{ "q": &filter, "limit": 0 }] },
            3 => doc! { "find": "t", "filter": &filter, "sort": &sort },
            4 => doc! { "find": "t", "filter": &filter, "sort": &sort, "limit": 7 },
            _ => doc! { "find": "t", "filter": &filter, "projection": { "_id": 0, sorted: 1 } },
        }
    }

    pub fn indexes(&self, random: &mut Generator) -> ArrayBuf {
        let mut specs = Vec::new();
        for at in 0..1 + random.below(2) {
            let mut key = DocBuf::new();
            for _ in 0..1 + random.below(3) {
                let field = FIELDS[random.below(5) as usize];
                if !key.as_doc().contains(field) {
                    key.append(field, if random.one_in(4) { -1 } else { 1 });
                }
            }
            let name = format!("new{at}_{}", random.below(1 << 30));
            specs.push(doc! { "key": &key, "name": name.as_str() });
        }
        specs.iter().collect()
    }
}

pub fn explain(client: &mut Client, command: &DocBuf, what_if: Option<&DocBuf>) -> DocBuf {
    let mut explain = doc! { "explain": command, "verbosity": "executionStats", "$db": "test" };
    if let Some(what_if) = what_if {
        explain.append("whatIf", what_if);
    }
    client.run(explain)
}

/// Returns the plan and what it examined.
fn told(explained: Doc<'_>) -> Vec<Option<ValueBuf>> {
    let part = |doc: Doc<'_>, name: &str| Some(doc.get(name)?.as_document()?.to_owned());
    let statistics = part(explained, "executionStats").unwrap_or_default();
    let counters = ["totalDocsExamined", "totalKeysExamined", "nReturned"];
    let planner = part(explained, "queryPlanner").unwrap_or_default();
    let plan = planner.get("winningPlan").map(ValueBuf::new);
    let counters = counters.into_iter().map(|name| statistics.get(name).map(ValueBuf::new));
    std::iter::once(plan).chain(counters).collect()
}

#[test]
fn with_a_whole_copy_it_says_what_is_true_after_the_build() {
    let mut compared = 0;
    for seed in 0..seeds(12) {
        let mut random = Generator::new(seed);
        let server = unpaced();
        let mut client = server.client(1);
        let schema = Schema::new(&mut random);
        insert(&mut client, &schema.documents(700, &mut random));
        create(&mut client, &schema.indexes(&mut random));
        let new = schema.indexes(&mut random);
        let commands: Vec<DocBuf> = (0..12).map(|_| schema.command(&mut random)).collect();
        let what_if = doc! { "create": &new };
        let before: Vec<DocBuf> =
            commands.iter().map(|command| explain(&mut client, command, Some(&what_if))).collect();
        // Arrays can make a compound index impossible: then both fail alike.
        let built = create(&mut client, &new);
        for (command, before) in commands.iter().zip(&before) {
            if built != 0 {
                assert_eq!(code(before), built, "seed {seed}, {command:?}: {before:?}");
                continue;
            }
            assert_eq!(code(before), 0, "seed {seed}, {command:?}: {before:?}");
            assert_eq!(flag(before, "whatIf.copies.0.isWhole"), Some(true));
            let tried = at(before, "whatIf.explanation").unwrap().as_document().unwrap();
            let after = explain(&mut client, command, None);
            assert_eq!(told(tried), told(after.as_doc()), "seed {seed}, {command:?}, {new:?}");
            let exact = number(before, "whatIf.examined.documents.low");
            assert_eq!(exact, number(before, "whatIf.examined.documents.high"));
            assert_eq!(exact, number(&after, "executionStats.totalDocsExamined"));
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn intervals_from_samples_contain_the_truth() {
    let (mut intervals, mut missed) = (0, Vec::new());
    for seed in 0..seeds(6) {
        let mut random = Generator::new(1000 + seed);
        let server = unpaced();
        let mut client = server.client(1);
        let schema = Schema::new(&mut random);
        insert(&mut client, &schema.documents(3000, &mut random));
        for round in 0..10_i64 {
            let (command, new) = (schema.command(&mut random), schema.indexes(&mut random));
            let sampled = doc! { "create": &new, "sampleSize": 250, "seed": round };
            let tried = explain(&mut client, &command, Some(&sampled));
            if code(&tried) != 0 || create(&mut client, &new) != 0 {
                continue;
            }
            assert_eq!(flag(&tried, "whatIf.copies.0.isWhole"), Some(false));
            let after = explain(&mut client, &command, None);
            for (part, counter) in [
                ("documents", "totalDocsExamined"),
                ("keys", "totalKeysExamined"),
                ("returned", "nReturned"),
            ] {
                let end = |end: &str| number(&tried, &format!("whatIf.examined.{part}.{end}"));
                let Some(truth) = number(&after, &format!("executionStats.{counter}")) else {
                    continue;
                };
                let (Some(low), Some(high)) = (end("low"), end("high")) else { continue };
                let is_count = command.get("count").is_some() || command.get("delete").is_some();
                if is_count && part == "returned" {
                    continue;
                }
                intervals += 1;
                if !(low..=high).contains(&truth) {
                    missed.push(format!(
                        "{part} {truth} not in {low}..{high}: {seed} {command:?} {new:?}"
                    ));
                }
            }
            let dropped = doc! { "dropIndexes": "t", "index": "*", "$db": "test" };
            client.works(dropped);
        }
    }
    let share = 1.0 - missed.len() as f64 / f64::from(intervals);
    assert!(intervals > 60 && share >= 0.95, "{share} of {intervals}: {missed:#?}");
}

#[test]
fn hidden_indexes_are_not_used_and_nothing_is_built() {
    let server = unpaced();
    let mut client = server.client(1);
    let documents: Vec<DocBuf> = (0..200).map(|n| doc! { "_id": n, "a": n % 10 }).collect();
    insert(&mut client, &documents);
    create(&mut client, &quire_document::array![{ "key": { "a": 1 }, "name": "a_1" }]);
    let find = doc! { "find": "t", "filter": { "a": 3 } };
    let hidden = explain(&mut client, &find, Some(&doc! { "hide": ["a_1"] }));
    let plan = "whatIf.explanation.queryPlanner.winningPlan.stage";
    assert_eq!(text(&hidden, plan), Some("COLLSCAN"));
    assert_eq!(text(&hidden, "queryPlanner.winningPlan.stage"), Some("FETCH"));
    assert_eq!(number(&hidden, "whatIf.examined.documents.measured"), Some(200));
    let existing = explain(&mut client, &find, Some(&doc! { "create": [{ "key": { "a": 1 } }] }));
    assert_eq!(at(&existing, "whatIf.create").unwrap().as_array().unwrap().count(), 0);
    let planned = doc! {
        "explain": &find, "verbosity": "queryPlanner", "$db": "test",
        "whatIf": { "create": [{ "key": { "b": 1 } }] },
    };
    let planned = client.works(planned);
    assert!(at(&planned, "whatIf.explanation.queryPlanner").is_some());
    assert!(at(&planned, "whatIf.examined").is_none());
    let indexes = client.works(doc! { "listIndexes": "t", "$db": "test" });
    assert_eq!(at(&indexes, "cursor.firstBatch").unwrap().as_array().unwrap().count(), 2);
}

#[test]
fn views_and_joined_collections_are_copied_too() {
    let server = unpaced();
    let mut client = server.client(1);
    let documents: Vec<DocBuf> = (0..300).map(|n| doc! { "_id": n, "a": n % 30, "k": n }).collect();
    insert(&mut client, &documents);
    let documents: ArrayBuf =
        (0..300).map(|n| doc! { "_id": n, "k": n }).collect::<Vec<_>>().iter().collect();
    client.works(doc! { "insert": "other", "documents": &documents, "$db": "test" });
    client.works(doc! { "create": "seen", "viewOn": "other", "pipeline": [{ "$match": { "k": { "$gte": 5 } } }], "$db": "test" });
    client.works(doc! { "create": "v", "viewOn": "t", "pipeline": [{ "$match": { "a": 7 } }], "$db": "test" });
    let lookup = doc! { "from": "seen", "localField": "k", "foreignField": "k", "as": "found" };
    let join = doc! { "aggregate": "v", "pipeline": [{ "$lookup": &lookup }], "cursor": {} };
    let what_if = doc! { "create": [{ "key": { "a": 1 } }] };
    let tried = explain(&mut client, &join, Some(&what_if));
    assert_eq!(code(&tried), 0, "{tried:?}");
    assert_eq!(number(&tried, "whatIf.examined.documents.measured"), Some(10));
    assert_eq!(text(&tried, "whatIf.copies.1.collection"), Some("test.other"));
    assert!(number(&tried, "whatIf.examined.joined.measured").is_some_and(|joined| joined > 0));
}

#[test]
fn errors_are_those_of_create_indexes_and_coll_mod() {
    let server = unpaced();
    let mut client = server.client(1);
    let documents: Vec<DocBuf> = (0..20).map(|n| doc! { "_id": n, "a": 1, "b": n }).collect();
    insert(&mut client, &documents);
    create(&mut client, &quire_document::array![{ "key": { "b": 1 }, "name": "b" }]);
    let find = doc! { "find": "t", "filter": {} };
    for (what_if, expected) in [
        (doc! { "create": [{ "key": { "a": 1 }, "unique": true }] }, 11000),
        (doc! { "create": [{ "key": { "a": 1 }, "uniq": true }] }, 197),
        (doc! { "create": [{ "key": { "a": 0 } }] }, 67),
        (doc! { "create": [{ "key": { "a": 1 }, "name": "b" }] }, 86),
        (doc! { "create": [1] }, 14),
        (doc! { "hide": ["none"] }, 27),
        (doc! { "hide": ["_id_"] }, 2),
        (doc! { "sampleSize": 0 }, 2),
        (doc! { "creates": [] }, 40415),
    ] {
        let reply = explain(&mut client, &find, Some(&what_if));
        assert_eq!(code(&reply), expected, "{what_if:?}: {reply:?}");
    }
    let none = doc! { "find": "none", "filter": {} };
    assert_eq!(code(&explain(&mut client, &none, Some(&doc! {}))), 26);
    let strict = doc! {
        "explain": &find, "whatIf": {}, "apiVersion": "1", "apiStrict": true, "$db": "test",
    };
    assert_eq!(code(&client.run(strict)), 323);
    let killed = Interrupt::new();
    killed.kill(quire_storage::Interruption::Killed);
    let what_if = doc! { "explain": &find, "whatIf": {}, "$db": "test" };
    assert_eq!(code(&client.exchange(&what_if, killed).0), 11601);
    client.works(what_if);
}

#[test]
fn a_small_laboratory_takes_a_sample_and_gives_its_memory_back() {
    let server = Server::with(&[
        ("quireLaboratoryMemoryMegabytes", "1"),
        ("quireLaboratoryCorePercent", "100"),
    ]);
    let mut client = server.client(1);
    let filler = "x".repeat(500);
    let documents: Vec<DocBuf> =
        (0..4000).map(|n| doc! { "_id": n, "a": n, "f": filler.as_str() }).collect();
    insert(&mut client, &documents);
    let find = doc! { "find": "t", "filter": { "a": { "$gte": 1000 } } };
    let what_if = doc! { "create": [{ "key": { "a": 1 } }, { "key": { "f": 1 } }], "seed": 1 };
    let tried = explain(&mut client, &find, Some(&what_if));
    assert_eq!(code(&tried), 0, "{tried:?}");
    let copied = number(&tried, "whatIf.copies.0.documents").unwrap();
    assert!((100..2000).contains(&copied), "{copied}");
    assert_eq!(number(&tried, "whatIf.copies.0.documentsInCollection"), Some(4000));
    let memory = |name: &str| number(&tried, &format!("whatIf.memory.{name}")).unwrap();
    assert!(memory("bytes") <= memory("bytesMax"), "{tried:?}");
    let end = |end: &str| number(&tried, &format!("whatIf.examined.documents.{end}")).unwrap();
    assert!((end("low")..=end("high")).contains(&3000), "{tried:?}");
    assert_eq!(server.0.memory().used(), 0);
}

/// A client who may read a view could ask for a unique index, or for a partial one and its size, and so
/// learn what fields have that the view leaves out.
#[test]
fn a_view_does_not_show_what_it_hides() {
    let (server, mut root) = guarded();
    let hidden = |id: i32| doc! { "_id": id, "salary": 5000, "name": "n" };
    let staff = doc! { "insert": "staff", "documents": [&hidden(1), &hidden(2)], "$db": "shop" };
    root.works(staff);
    let names = doc! { "$project": { "name": 1 } };
    root.works(doc! { "create": "names", "viewOn": "staff", "pipeline": [&names], "$db": "shop" });
    let privileges = |collections: &[&str]| -> ArrayBuf {
        let privilege = |name: &&str| {
            let actions = quire_document::array!["find", "collStats", "listIndexes", "indexStats"];
            let resource = doc! { "db": "shop", "collection": *name };
            doc! { "resource": &resource, "actions": &actions }
        };
        collections.iter().map(privilege).collect::<Vec<DocBuf>>().iter().collect()
    };
    let few = privileges(&["names", "orders"]);
    root.works(doc! { "createRole": "few", "roles": [], "privileges": &few, "$db": "shop" });
    root.works(doc! { "createUser": "u", "pwd": "p", "roles": ["few"], "$db": "shop" });
    let mut client = server.client(2);
    assert_eq!(client.log_in("shop", "u", "p", Mechanism::Sha256), 0);
    let lookup = doc! { "from": "names", "localField": "a", "foreignField": "_id", "as": "b" };
    let join = doc! { "aggregate": "orders", "pipeline": [{ "$lookup": &lookup }], "cursor": {} };
    let find = doc! { "find": "names", "filter": {} };
    let unique = doc! { "create": [{ "key": { "salary": 1 }, "unique": true }] };
    let partial = doc! { "create": [
        { "key": { "name": 1 }, "partialFilterExpression": { "salary": { "$gt": 1000 } } },
    ] };
    let asked = [
        (&find, &unique, 11000),
        (&find, &partial, 0),
        (&find, &doc! { "hide": ["none"] }, 27),
        (&join, &doc! {}, 0),
    ];
    let ask = |client: &mut Client, command: &DocBuf, what_if: &DocBuf| {
        let explain = doc! { "explain": command, "whatIf": what_if, "$db": "shop" };
        code(&client.run(explain))
    };
    let advise = doc! {
        "adviseIndexes": "orders", "workload": { "commands": [&join] }, "$db": "shop",
    };
    client.works(doc! { "find": "names", "$db": "shop" });
    for (command, what_if, _) in asked {
        assert_eq!(ask(&mut client, command, what_if), 13, "{command:?}, {what_if:?}");
    }
    client.works(advise.clone());
    let joins_hidden =
        doc! { "from": "staff", "localField": "a", "foreignField": "_id", "as": "b" };
    let hidden_join =
        doc! { "aggregate": "orders", "pipeline": [{ "$lookup": &joins_hidden }], "cursor": {} };
    let advise_hidden = doc! {
        "adviseIndexes": "orders", "workload": { "commands": [&hidden_join] }, "$db": "shop",
    };
    assert_eq!(code(&client.run(advise_hidden)), 13);
    let more = privileges(&["names", "orders", "staff"]);
    root.works(doc! { "updateRole": "few", "privileges": &more, "$db": "shop" });
    for (command, what_if, expected) in asked {
        assert_eq!(ask(&mut client, command, what_if), expected, "{command:?}, {what_if:?}");
    }
}
