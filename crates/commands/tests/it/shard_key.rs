//! `analyzeShardKey`: the characteristics of a key equal those of a count of all documents, sampled
//! queries are routed by hand-made examples, and wrong arguments are refused.

use crate::{Client, Server, Topology, at, code, flag, number, text};
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, DocBuf, doc};
use std::collections::BTreeMap;

const ADMIN: &str = "admin";

fn analyze(key: &DocBuf) -> DocBuf {
    doc! { "analyzeShardKey": "test.t", "key": key, "$db": ADMIN }
}

fn with(mut command: DocBuf, options: &DocBuf) -> DocBuf {
    options.as_doc().fields().for_each(|(name, value)| {
        command.append(name, value);
    });
    command
}

fn insert(client: &mut Client, documents: &[DocBuf]) {
    let documents: ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": "t", "documents": &documents, "$db": "test" });
}

fn index(client: &mut Client, key: &DocBuf, name: &str) {
    let spec = doc! { "key": key, "name": name };
    client.works(doc! { "createIndexes": "t", "indexes": [&spec], "$db": "test" });
}

/// 400 documents: `few` has 4 values and is missing in some, `rising` rises, `mixed` does not.
fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    let documents: Vec<DocBuf> = (0..400)
        .map(|at| {
            let mut document =
                doc! { "_id": at, "rising": at / 2, "mixed": at * 7919 % 401, "in": { "b": at % 8 } };
            if at % 10 > 0 {
                document.append("few", if at % 10 < 6 { "a" } else { ["b", "c", "d"][at as usize % 3] });
            }
            document
        })
        .collect();
    insert(&mut client, &documents);
    index(&mut client, &doc! { "few": 1 }, "few");
    index(&mut client, &doc! { "rising": 1, "few": 1 }, "rising");
    index(&mut client, &doc! { "mixed": 1 }, "mixed");
    index(&mut client, &doc! { "in.b": "hashed" }, "hashed");
    client
}

#[test]
fn the_characteristics_are_those_of_the_documents() {
    let server = Server::new();
    let mut client = filled(&server);
    let mut of = |key: DocBuf| {
        let only = doc! { "readWriteDistribution": false };
        client.works(with(analyze(&key), &only))
    };
    let part = |name: &str| format!("keyCharacteristics.{name}");
    let id = of(doc! { "_id": 1 });
    assert_eq!(number(&id, &part("numDocsTotal")), Some(400));
    assert_eq!(number(&id, &part("numDocsSampled")), Some(400));
    assert_eq!(flag(&id, &part("isUnique")), Some(true));
    assert_eq!(number(&id, &part("numDistinctValues")), Some(400));
    assert_eq!(number(&id, &part("mostCommonValues.4.frequency")), Some(1));
    assert_eq!(text(&id, &part("monotonicity.type")), Some("monotonic"));
    assert!(at(&id, "readDistribution").is_none());
    let bytes = number(&id, &part("avgDocSizeBytes")).unwrap();
    assert!((60..90).contains(&bytes), "{bytes}");
    let few = of(doc! { "few": 1 });
    // A missing field is null.
    assert_eq!(number(&few, &part("numDistinctValues")), Some(5));
    assert_eq!(text(&few, &part("mostCommonValues.0.value.few")), Some("a"));
    assert_eq!(number(&few, &part("mostCommonValues.0.frequency")), Some(200));
    assert_eq!(flag(&few, &part("isUnique")), Some(false));
    let sum: i64 = (0..5)
        .map(|one| number(&few, &part(&format!("mostCommonValues.{one}.frequency"))).unwrap())
        .sum();
    assert_eq!(sum, 400);
    let kind = |reply: &DocBuf| text(reply, &part("monotonicity.type")).map(str::to_owned);
    assert_eq!(kind(&of(doc! { "rising": 1 })).as_deref(), Some("monotonic"));
    let mixed = of(doc! { "mixed": 1 });
    assert_eq!(kind(&mixed).as_deref(), Some("not monotonic"));
    let coefficient = at(&mixed, &part("monotonicity.recordIdCorrelationCoefficient")).unwrap();
    assert!(coefficient.as_number().unwrap().to_f64().abs() < 0.7);
    let hashed = of(doc! { "in.b": "hashed" });
    assert_eq!(number(&hashed, &part("numDistinctValues")), Some(8));
    assert_eq!(number(&hashed, &part("mostCommonValues.0.frequency")), Some(50));
    assert!(at(&hashed, &part("mostCommonValues.0.value")).is_some());
    assert_eq!(kind(&hashed).as_deref(), Some("not monotonic"));
    // No index begins with this key.
    let none = of(doc! { "few": 1, "rising": 1 });
    assert!(at(&none, "keyCharacteristics").is_none(), "{none:?}");
}

/// Random documents, counted one by one.
#[test]
fn cardinality_and_frequency_equal_a_count_of_all() {
    for seed in 0..4 {
        let mut random = Generator::new(seed);
        let server = Server::new();
        let mut client = server.client(1);
        let values = 3 + random.below(90);
        let mut counted: BTreeMap<(i32, i32), i64> = BTreeMap::new();
        let documents: Vec<DocBuf> = (0..300)
            .map(|at| {
                // Small values are more frequent.
                let a = random.below(1 + random.clone().below(values)) as i32;
                let b = random.below(3) as i32;
                *counted.entry((a, b)).or_default() += 1;
                doc! { "_id": at, "a": a, "b": b }
            })
            .collect();
        insert(&mut client, &documents);
        index(&mut client, &doc! { "a": 1, "b": 1 }, "ab");
        let reply = client.works(analyze(&doc! { "a": 1, "b": 1 }));
        let distinct = number(&reply, "keyCharacteristics.numDistinctValues");
        assert_eq!(distinct, Some(counted.len() as i64), "seed {seed}");
        let mut frequencies: Vec<i64> = counted.values().copied().collect();
        frequencies.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        for (place, frequency) in frequencies.iter().take(5).enumerate() {
            let one = |part: &str| {
                number(&reply, &format!("keyCharacteristics.mostCommonValues.{place}.{part}"))
                    .unwrap()
            };
            assert_eq!(one("frequency"), *frequency, "seed {seed}: {reply:?}");
            let value = (one("value.a") as i32, one("value.b") as i32);
            assert_eq!(counted[&value], *frequency, "seed {seed}");
        }
        let half = doc! { "sampleRate": 0.5, "readWriteDistribution": false };
        let sampled = client.works(with(analyze(&doc! { "a": 1, "b": 1 }), &half));
        let sampled = number(&sampled, "keyCharacteristics.numDocsSampled").unwrap();
        assert!((50..250).contains(&sampled), "{sampled}");
    }
}

#[test]
fn sampled_queries_are_routed_by_the_key() {
    let server = Server::new();
    let mut client = filled(&server);
    let none = client.works(analyze(&doc! { "mixed": 1 }));
    assert_eq!(number(&none, "readDistribution.sampleSize.total"), Some(0));
    assert!(at(&none, "readDistribution.percentageOfSingleShardReads").is_none());
    client.works(doc! {
        "configureQueryAnalyzer": "test.t", "mode": "full", "samplesPerSecond": 50.0, "$db": ADMIN,
    });
    let matched = quire_document::array![{ "$match": { "mixed": 7 } }];
    let update = |filter: DocBuf, change: DocBuf, multi: bool| {
        let statement = doc! { "q": &filter, "u": &change, "multi": multi };
        doc! { "update": "t", "updates": [&statement] }
    };
    for mut command in [
        doc! { "find": "t", "filter": { "mixed": 5 } },
        doc! { "find": "t", "filter": { "mixed": { "$gte": 100, "$lt": 120 } } },
        doc! { "find": "t", "filter": { "few": "a" } },
        doc! { "count": "t", "query": { "mixed": { "$in": [1, 300] } } },
        doc! { "aggregate": "t", "pipeline": &matched, "cursor": {} },
        update(doc! { "mixed": 5 }, doc! { "$set": { "mixed": 6 } }, false),
        update(doc! { "few": "none" }, doc! { "$set": { "other": 6 } }, true),
        doc! { "delete": "t", "deletes": [{ "q": { "few": "none" }, "limit": 1 }] },
        doc! { "findAndModify": "t", "query": { "mixed": 9 }, "update": { "$set": { "other": 1 } } },
    ] {
        command.append("$db", "test");
        client.works(command);
    }
    let only = doc! { "keyCharacteristics": false };
    let reply = client.works(with(analyze(&doc! { "mixed": 1 }), &only));
    assert!(at(&reply, "keyCharacteristics").is_none());
    let share = |reply: &DocBuf, path: &str| {
        at(reply, path).unwrap_or_else(|| panic!("{path}: {reply:?}")).as_number().unwrap().to_f64()
    };
    for (path, expected) in [
        ("readDistribution.sampleSize.total", 5.0),
        ("readDistribution.sampleSize.find", 3.0),
        ("readDistribution.sampleSize.count", 1.0),
        ("readDistribution.sampleSize.distinct", 0.0),
        ("readDistribution.percentageOfSingleShardReads", 40.0),
        ("readDistribution.percentageOfMultiShardReads", 40.0),
        ("readDistribution.percentageOfScatterGatherReads", 20.0),
        ("writeDistribution.sampleSize.total", 4.0),
        ("writeDistribution.sampleSize.findAndModify", 1.0),
        ("writeDistribution.percentageOfSingleShardWrites", 50.0),
        ("writeDistribution.percentageOfMultiShardWrites", 0.0),
        ("writeDistribution.percentageOfScatterGatherWrites", 50.0),
        ("writeDistribution.percentageOfShardKeyUpdates", 25.0),
        ("writeDistribution.percentageOfSingleWritesWithoutShardKey", 25.0),
        ("writeDistribution.percentageOfMultiWritesWithoutShardKey", 25.0),
    ] {
        assert_eq!(share(&reply, path), expected, "{path}: {reply:?}");
    }
    // 400 values in 100 ranges: the range of 20 values meets about 5 of them, a value one, all all.
    let ranges = at(&reply, "readDistribution.numReadsByRange").unwrap().as_array().unwrap();
    let ranges: Vec<i64> = ranges.iter().map(|count| count.exact_i64().unwrap()).collect();
    assert_eq!(ranges.len(), 100);
    assert!(ranges.iter().all(|count| *count >= 1));
    let more: i64 = ranges.iter().map(|count| count - 1).sum();
    assert!((8..=11).contains(&more), "1 + 1 + 2 values and a range: {ranges:?}");
    // A hashed key finds values, but no ranges.
    let hashed = client.works(with(analyze(&doc! { "mixed": "hashed" }), &only));
    assert_eq!(share(&hashed, "readDistribution.percentageOfSingleShardReads"), 40.0);
    assert_eq!(share(&hashed, "readDistribution.percentageOfScatterGatherReads"), 40.0);
    // The first field alone is a range of a key with two fields.
    let two = client.works(with(analyze(&doc! { "mixed": 1, "few": 1 }), &only));
    assert_eq!(share(&two, "readDistribution.percentageOfSingleShardReads"), 0.0);
    assert_eq!(share(&two, "readDistribution.percentageOfMultiShardReads"), 80.0);
}

#[test]
fn wrong_keys_and_namespaces_are_refused() {
    let server = Server::new();
    let mut client = filled(&server);
    for command in [
        doc! { "create": "v", "viewOn": "t", "pipeline": [] },
        doc! { "create": "ts", "timeseries": { "timeField": "t" } },
        doc! { "create": "empty" },
    ] {
        client.works(with(command, &doc! { "$db": "test" }));
    }
    let of = |name: &str| doc! { "analyzeShardKey": name, "key": { "_id": 1 }, "$db": ADMIN };
    let option = |options: DocBuf| with(analyze(&doc! { "few": 1 }), &options);
    for (command, expected) in [
        (of("test.none"), 26),
        (of("test.v"), 166),
        (of("test.ts"), 20),
        (of("test.empty"), 20),
        (of("config.x"), 20),
        (of("test.system.views"), 20),
        (of("test"), 73),
        (doc! { "analyzeShardKey": 1, "key": { "_id": 1 }, "$db": ADMIN }, 14),
        (doc! { "analyzeShardKey": "test.t", "$db": ADMIN }, 40414),
        (doc! { "analyzeShardKey": "test.t", "key": 1, "$db": ADMIN }, 14),
        (analyze(&doc! {}), 2),
        (analyze(&doc! { "a": -1 }), 2),
        (analyze(&doc! { "a": "text" }), 2),
        (analyze(&doc! { "a": "hashed", "b": "hashed" }), 2),
        (option(doc! { "sampleRate": 0.0 }), 2),
        (option(doc! { "sampleRate": 1.5 }), 2),
        (option(doc! { "sampleRate": "x" }), 14),
        (option(doc! { "sampleSize": 0 }), 2),
        (option(doc! { "sampleSize": 5, "sampleRate": 0.5 }), 72),
        (option(doc! { "keyCharacteristics": false, "readWriteDistribution": false }), 72),
        (option(doc! { "keyCharacteristics": false, "sampleSize": 5 }), 72),
        (option(doc! { "other": 1 }), 40415),
    ] {
        let reply = client.run(command.clone());
        assert_eq!(code(&reply), expected, "{command:?}: {reply:?}");
    }
    let standalone = Server::of(Topology::Standalone);
    let mut client = standalone.client(1);
    assert_eq!(code(&client.run(of("test.t"))), 20);
}
