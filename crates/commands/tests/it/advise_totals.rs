//! The totals that rule P7 proposes are run: what they answer must be what the recorded pipeline answers.

use crate::{Client, Server, at, text};
use quire_advisor::findings::totals::Totals;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, array, doc};

fn insert(client: &mut Client, collection: &str, documents: &[DocBuf]) {
    let documents: ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": collection, "documents": &documents, "$db": "test" });
}

/// Returns the results of a pipeline, in an order of their own.
fn results(client: &mut Client, collection: &str, stages: &[DocBuf]) -> Vec<DocBuf> {
    let stages: ArrayBuf = stages.iter().collect();
    let reply = client.works(doc! {
        "aggregate": collection, "pipeline": &stages, "cursor": { "batchSize": 10_000 }, "$db": "test",
    });
    let found = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
    let mut found: Vec<DocBuf> =
        found.iter().map(|one| one.as_document().unwrap().to_owned()).collect();
    found.sort_by(|left, right| left.as_bytes().cmp(right.as_bytes()));
    found
}

/// Makes the totals, and returns the results that they have for the pipeline.
fn answer(client: &mut Client, collection: &str, totals: &Totals<'_>) -> Vec<DocBuf> {
    let mut keep = totals.keep();
    keep.push(doc! { "$out": "totals" });
    assert!(results(client, collection, &keep).is_empty());
    results(client, "totals", &totals.ask())
}

/// Texts, numbers, null and missing values; an array only on a path that no total has in its key.
fn documents() -> Vec<DocBuf> {
    let document = |n: i32| {
        DocBuf::build(|out| {
            out.append("_id", n).append("day", format!("2026-01-{:02}", n % 7).as_str());
            match n % 5 {
                0 => {}
                1 => _ = out.append("status", Value::Null),
                kind => _ = out.append("status", format!("s{kind}").as_str()),
            }
            match n % 3 {
                0 => out.append("shop", &doc! { "id": n % 4 }),
                1 => out.append("shop", &doc! { "id": Value::Null }),
                _ => out.append("shop", &doc! {}),
            };
            out.append("lines", &array![n % 2, n % 11]);
            if n % 13 > 0 {
                out.append("amount", (n * 31) % 97);
            }
        })
    };
    (0..240).map(document).collect()
}

fn filters() -> Vec<DocBuf> {
    vec![
        doc! {},
        doc! { "day": "2026-01-05" },
        doc! { "day": { "$in": ["2026-01-05", "2026-01-06", "none"] } },
        doc! { "day": { "$eq": "2026-01-01" }, "shop.id": 2 },
        doc! { "$and": [{ "day": "2026-01-02" }, { "shop.id": { "$in": [0, 1, 2.0] } }] },
        doc! { "$and": [{ "shop.id": { "$in": [0, 1] } }, { "shop.id": { "$in": [1, 2] } }] },
        doc! { "shop.id": Value::Null },
        doc! { "status": { "$in": [Value::Null, "s2"] } },
        doc! { "day": "none" },
        // These cannot be asked of totals.
        doc! { "day": { "$gte": "2026-01-04" } },
        doc! { "$or": [{ "day": "2026-01-05" }, { "status": "s2" }] },
        doc! { "status": { "$regex": "2" } },
    ]
}

fn groups() -> Vec<DocBuf> {
    let ids = [
        doc! { "_id": Value::Null },
        doc! { "_id": "$status" },
        doc! { "_id": "$shop.id" },
        doc! { "_id": { "status": "$status", "shop": "$shop.id" } },
        doc! { "_id": { "$substrBytes": ["$day", 9, 1] } },
    ];
    let totals = [
        doc! { "n": { "$sum": "$amount" }, "count": { "$sum": 1 }, "all": { "$count": {} } },
        doc! { "least": { "$min": "$amount" }, "most": { "$max": "$amount" } },
        doc! { "mean": { "$avg": "$amount" }, "spread": { "$stdDevPop": "$amount" } },
        doc! { "list": { "$push": "$amount" } },
    ];
    let both = |id: &DocBuf, totals: &DocBuf| {
        DocBuf::build(|out| _ = out.append_all(id.as_doc()).append_all(totals.as_doc()))
    };
    ids.iter().flat_map(|id| totals.iter().map(|totals| both(id, totals))).collect()
}

/// A proposal that left out the filter was marked as the most important one of a report.
#[test]
fn totals_have_the_results_of_the_pipeline_from_which_they_were_made() {
    let server = Server::new();
    let mut client = server.client(1);
    insert(&mut client, "t", &documents());
    let (mut same, mut none) = (0, 0);
    for filter in filters() {
        for group in groups() {
            for unwound in [false, true] {
                let mut stages = vec![doc! { "$match": &filter }, doc! { "$group": &group }];
                if unwound {
                    stages.insert(1, doc! { "$unwind": "$lines" });
                }
                let pipeline: ArrayBuf = stages.iter().collect();
                let Some(totals) = Totals::of(pipeline.as_array()) else {
                    none += 1;
                    continue;
                };
                let expected = results(&mut client, "t", &stages);
                assert_eq!(answer(&mut client, "t", &totals), expected, "{pipeline:?}");
                same += 1;
            }
        }
    }
    assert!(same > 200 && none > 100, "{same} are answered, {none} are not");
}

/// 300 times the totals of a day: the finding keeps the day, and its commands answer.
#[test]
fn the_finding_for_the_totals_of_a_day_keeps_the_day() {
    let server = Server::new();
    let mut client = server.client(1);
    let orders = (0..3000_i32).map(|n| {
        let day = format!("2026-01-{:02}", n % 30);
        let status = if n % 7 < 4 { "paid" } else { "sent" };
        doc! { "_id": n, "day": day.as_str(), "status": status, "amount": n % 90 }
    });
    insert(&mut client, "orders", &orders.collect::<Vec<DocBuf>>());
    client.works(doc! { "quireRecorder": "reset", "$db": "admin" });
    let stages = [
        doc! { "$match": { "day": "2026-01-05" } },
        doc! { "$group": { "_id": "$status", "n": { "$sum": "$amount" } } },
    ];
    let expected = results(&mut client, "orders", &stages);
    (0..40).for_each(|_| assert_eq!(results(&mut client, "orders", &stages), expected));
    let advice = client.works(doc! { "adviseSchema": 1, "tryIndexes": false, "$db": "test" });
    let findings = at(&advice, "findings").unwrap().as_array().unwrap();
    let findings: Vec<Doc<'_>> = findings.iter().map(|one| one.as_document().unwrap()).collect();
    let found = findings.iter().find(|one| one.get("rule").unwrap().as_str() == Some("P7"));
    let found = Doc::to_owned(*found.unwrap_or_else(|| panic!("{advice:?}")));
    let kept = r#"{"_id":{"day":"$day","group":"$status"},"n":{"$sum":"$amount"}}"#;
    assert!(text(&found, "apply.0").unwrap().contains(kept), "{found:?}");
    assert_eq!(text(&found, "apply.1"), Some(r#"db.orders_totals.createIndex({"_id.day":1})"#));
    let pipeline: ArrayBuf = stages.iter().collect();
    let totals = Totals::of(pipeline.as_array()).unwrap();
    assert_eq!(answer(&mut client, "orders", &totals), expected);
}
