//! Tests of workloads: their coding, how they merge, and what shapes say.

use super::*;
use quire_document::testing::Generator;
use quire_document::{DocBuf, doc};

fn find(shape: DocBuf) -> ShapeUse {
    ShapeUse {
        namespace: "shop.orders".to_owned(),
        kind: Kind::Find,
        cause: Cause::Client,
        shape,
        samples: Vec::new(),
        measures: Measures::default(),
    }
}

fn measured(seed: u64) -> Measures {
    let mut random = Generator::new(seed);
    let mut measures = Measures::default();
    for at in 0..50_u64 {
        measures.count += 1;
        measures.first_ms = measures.first_ms.min(1_000 + at as i64);
        measures.last_ms = 1_000 + at as i64;
        let micros = random.below(1 << 20);
        measures.latency.note(micros);
        measures.micros.note(micros);
        measures.keys_examined.note(random.below(100));
        measures.limit.note(20);
        measures.sorts += random.below(2);
        measures.note_plan("COLLSCAN", "", 1);
    }
    measures
}

fn workload(shapes: Vec<ShapeUse>) -> Workload {
    let forgotten = Forgotten { shapes: 1, statements: 7 };
    Workload { begins_ms: 1_000, ends_ms: 2_000, shapes, forgotten }
}

#[test]
fn a_workload_is_read_back_from_bson_and_json() {
    let filter = doc! { "a": { "$regex": "?string", "$options": "?string" } };
    let shape = doc! { "command": "find", "filter": &filter };
    let mut used = find(shape);
    used.measures = measured(7);
    used.samples.push(doc! { "find": "orders", "filter": { "a": 5 } });
    let before = workload(vec![used]);
    let document = before.to_document();
    assert_eq!(Workload::from_document(document.as_doc()).unwrap(), before);
    assert_eq!(Workload::from_json(&before.to_json()).unwrap(), before);
}

#[test]
fn another_version_and_a_damaged_document_are_refused() {
    let refused = |doc: DocBuf| Workload::from_document(doc.as_doc()).unwrap_err();
    assert_eq!(refused(doc! { "a": 1 }), coding::CodingError::Version(None));
    assert_eq!(refused(doc! { "quireWorkload": 2 }), coding::CodingError::Version(Some(2)));
    let mut damaged = workload(vec![find(doc! { "command": "find" })]).to_document();
    assert!(Workload::from_document(damaged.as_doc()).is_ok());
    damaged = DocBuf::build(|out| {
        for element in damaged.as_doc().iter().filter(|element| element.key() != "shapes") {
            out.append_element(element);
        }
    });
    assert_eq!(refused(damaged), coding::CodingError::Field("shapes"));
    let text = Workload::from_json("{\"quireWorkload\"").unwrap_err();
    assert_eq!(text, coding::CodingError::Json);
}

#[test]
fn merged_workloads_count_as_one() {
    let shapes = |seed| {
        let mut used = find(doc! { "command": "find", "filter": { "a": { "$eq": "?number" } } });
        used.measures = measured(seed);
        used
    };
    let other = ShapeUse { shape: doc! { "command": "find", "filter": {} }, ..shapes(3) };
    let mut merged = workload(vec![shapes(1)]);
    merged.merge(workload(vec![other.clone(), shapes(2)]));
    let mut expected = measured(1);
    expected.merge(&measured(2));
    assert_eq!(merged.shapes.len(), 2);
    assert_eq!(merged.shapes[0].measures, expected);
    assert_eq!(merged.shapes[1], other);
    assert_eq!(merged.forgotten, Forgotten { shapes: 2, statements: 14 });
    assert_eq!(merged.statements(), 150 + 14);
}

#[test]
fn quantiles_are_within_a_quarter() {
    let mut random = Generator::new(11);
    let mut numbers: Vec<u64> = (0..5000).map(|_| 1 << random.below(38)).collect();
    numbers.extend((0..5000).map(|_| random.below(1_000_000)));
    let mut histogram = Histogram::default();
    numbers.iter().for_each(|number| histogram.note(*number));
    numbers.sort_unstable();
    for share in [0.0, 0.01, 0.5, 0.9, 0.99, 1.0] {
        let rank = ((share * numbers.len() as f64).ceil() as usize).max(1);
        let (exact, found) = (numbers[rank - 1], histogram.quantile(share).unwrap());
        assert!(found >= exact && found <= exact + exact / 4, "{share}: {exact}, {found}");
    }
    assert_eq!(Histogram::default().quantile(0.5), None);
}

#[test]
fn buckets_follow_each_other() {
    for bucket in 0..150 {
        assert_eq!(figures::greatest(bucket) + 1, figures::least(bucket + 1));
        let mut histogram = Histogram::default();
        histogram.note(figures::least(bucket));
        histogram.note(figures::greatest(bucket));
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(bucket, 2)]);
    }
    let mut histogram = Histogram::default();
    histogram.note(u64::MAX);
    histogram.note(1 << 40);
    assert_eq!(histogram.buckets().count(), 1);
}

#[test]
fn a_measure_has_at_most_so_many_plans() {
    let mut measures = Measures::default();
    for at in 0..PLANS_MAX as u64 + 3 {
        measures.note_plan("IXSCAN { a: 1 }", &format!("a_{at}"), 1);
    }
    measures.note_plan("IXSCAN { a: 1 }", "a_0", 5);
    assert_eq!(measures.plans.len(), PLANS_MAX);
    assert_eq!(measures.plans[0].count, 6);
}

#[test]
fn a_find_names_its_parts() {
    let used = find(doc! {
        "command": "find",
        "filter": { "$and": [
            { "user": { "$eq": "?string" } },
            { "n": { "$gte": "?number" } },
            { "tags": { "$in": "?array<?string>" } },
            { "$or": [{ "a": { "$eq": "?number" } }, { "b": { "$exists": "?bool" } }] },
            { "items": { "$elemMatch": { "$and": [
                { "sku": { "$eq": "?string" } }, { "n": { "$gt": "?number" } },
            ] } } },
            { "marks": { "$elemMatch": { "$gt": "?number", "$lt": "?number" } } },
            { "left": { "$not": { "$eq": "?number" } } },
        ] },
        "sort": { "created": -1, "n": 1 },
        "projection": { "user": true, "_id": true },
    });
    let parts = used.parts();
    let filtered: Vec<(&str, Test, bool)> =
        parts.filtered.iter().map(|one| (one.path.as_str(), one.test, one.is_optional)).collect();
    let expected = [
        ("user", Test::Equality, false),
        ("n", Test::Range, false),
        ("tags", Test::Membership, false),
        ("a", Test::Equality, true),
        ("b", Test::Existence, true),
        ("items.sku", Test::Equality, false),
        ("items.n", Test::Range, false),
        ("marks", Test::Range, false),
        ("marks", Test::Range, false),
        ("left", Test::Equality, true),
    ];
    assert_eq!(filtered, expected);
    assert_eq!(parts.sorted, [("created".to_owned(), true), ("n".to_owned(), false)]);
    assert_eq!(parts.projected, ["user", "_id"]);
}

#[test]
fn an_aggregate_names_what_it_reads_and_joins() {
    let used = ShapeUse {
        kind: Kind::Aggregate,
        ..find(doc! { "command": "aggregate", "pipeline": [
            { "$match": { "day": { "$gte": "?date" } } },
            { "$lookup": { "from": "users", "localField": "user", "foreignField": "_id", "as": "u" } },
            { "$group": { "_id": "$user", "n": { "$sum": "$amount" } } },
            { "$match": { "n": { "$gt": "?number" } } },
            { "$sort": { "n": -1 } },
        ] })
    };
    let parts = used.parts();
    assert_eq!(parts.filtered.len(), 1);
    assert_eq!(parts.sorted, []);
    assert_eq!(parts.projected, ["user", "amount"]);
    let joined = Joined {
        stage: "$lookup".to_owned(),
        from: "users".to_owned(),
        local: Some("user".to_owned()),
        foreign: Some("_id".to_owned()),
    };
    assert_eq!(parts.joined, [joined]);
}

#[test]
fn an_update_names_what_it_writes() {
    let update = |update: DocBuf| {
        let parts = ShapeUse { kind: Kind::Update, ..find(update) }.parts();
        let written = parts.written.into_iter();
        written.map(|one| format!("{} {}", one.operator, one.path)).collect::<Vec<_>>()
    };
    let operators =
        doc! { "update": { "$set": { "a.b": "?number" }, "$push": { "c": "?object" } } };
    assert_eq!(update(operators), ["$set a.b", "$push c"]);
    assert_eq!(update(doc! { "update": "?object" }), ["replace "]);
    let pipeline = doc! { "update": [{ "$set": { "a": "$b" } }, { "$unset": "c" }] };
    assert_eq!(update(pipeline), ["$set a", "$unset c"]);
}

#[test]
fn a_representative_has_a_value_for_each_type() {
    let used = find(doc! {
        "cmdNs": { "db": "shop", "coll": "orders" },
        "command": "find",
        "filter": { "$and": [
            { "a": { "$in": "?array<?number>" } }, { "b": { "$regex": "?string", "$options": "?string" } },
            { "c": { "$eq": "?date" } },
        ] },
        "limit": "?number",
    });
    let expected = doc! {
        "find": "orders",
        "filter": { "$and": [
            { "a": { "$in": [1, 1] } }, { "b": { "$regex": "string", "$options": "i" } },
            { "c": { "$eq": quire_document::Value::Date(0) } },
        ] },
        "limit": 1,
    };
    assert_eq!(used.representative().unwrap(), expected);
    assert_eq!(ShapeUse { kind: Kind::Update, ..used }.representative(), None);
}
