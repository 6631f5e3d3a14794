//! `$setWindowFields` compared with a naive evaluation: each result is computed again from the
//! documents of its window.

use super::*;
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, compare, doc};
use quire_error::ErrorCode;
use quire_executor::open;
use quire_planner::AggregateRequest;

/// Runs a pipeline over `db.c`.
fn aggregate(
    store: &Arc<Store>,
    pipeline: Vec<DocBuf>,
    params: ExecParams,
    batch: usize,
) -> Result<Vec<DocBuf>> {
    let request = AggregateRequest {
        namespace: "db.c".into(),
        pipeline,
        allow_disk_use: Some(true),
        ..AggregateRequest::default()
    };
    try_drain(store, &mut open(&request, &FreshViews::new(store)?, params)?, batch)
}

fn text(value: &str) -> ValueBuf {
    ValueBuf::new(value)
}

/// Returns functions with the same result in a `$group` over the documents of the window.
fn functions() -> Vec<(&'static str, ValueBuf)> {
    let by = doc! { "n": -1, "_id": 1 };
    let input = |n: i32| ValueBuf::new(&doc! { "input": "$n", "n": n });
    vec![
        ("$sum", text("$n")),
        ("$avg", text("$n")),
        ("$min", text("$v")),
        ("$max", text("$n")),
        ("$first", text("$v")),
        ("$last", text("$v")),
        ("$push", text("$v")),
        ("$stdDevPop", text("$n")),
        ("$stdDevSamp", text("$n")),
        ("$count", ValueBuf::new(&doc! {})),
        ("$minN", input(2)),
        ("$maxN", input(3)),
        ("$firstN", input(2)),
        ("$lastN", input(2)),
        ("$top", ValueBuf::new(&doc! { "sortBy": &by, "output": "$_id" })),
        ("$bottom", ValueBuf::new(&doc! { "sortBy": &by, "output": "$_id" })),
        ("$topN", ValueBuf::new(&doc! { "sortBy": &by, "output": "$_id", "n": 2 })),
        ("$bottomN", ValueBuf::new(&doc! { "sortBy": &by, "output": "$_id", "n": 2 })),
        ("$median", ValueBuf::new(&doc! { "input": "$n", "method": "approximate" })),
        (
            "$percentile",
            ValueBuf::new(&doc! {
                "input": "$n", "p": [0.1, 0.5, 0.9], "method": "continuous"
            }),
        ),
        ("$concatArrays", text("$list")),
    ]
}

fn documents(random: &mut Generator, count: usize) -> Vec<DocBuf> {
    (0..count)
        .map(|n| {
            let id = n as i32;
            let mut doc =
                doc! { "_id": id, "p": random.below(3) as i32, "at": random.below(30) as i32 };
            match random.below(6) {
                0 => {}
                1 => {
                    doc.append("n", random.below(9) as f64 / 4.0);
                }
                2 => {
                    doc.append("n", "no number");
                }
                3 => {
                    doc.append("n", random.below(5) as i64);
                }
                _ => {
                    doc.append("n", random.below(20) as i32);
                }
            }
            if !random.one_in(4) {
                doc.append("v", random.below(6) as i32);
            }
            let list: ArrayBuf = (0..random.below(3)).map(|n| n as i32 + id).collect();
            doc.append("list", &list);
            doc
        })
        .collect()
}

/// Returns true if the window of the document at the first position contains the second position.
type Has = Box<dyn Fn(&[DocBuf], usize, usize) -> bool>;

/// Bounds, and the documents that they select.
struct Window {
    bounds: DocBuf,
    has: Has,
}

fn number(doc: &DocBuf, field: &str) -> i64 {
    match doc.get(field) {
        Some(Value::Int32(number)) => number.into(),
        other => panic!("{other:?}"),
    }
}

fn window(random: &mut Generator) -> Window {
    let end = |random: &mut Generator| match random.below(4) {
        0 => None,
        1 => Some(0),
        _ => Some(random.below(9) as i64 - 4),
    };
    let (mut low, mut high) = (end(random), end(random));
    if let (Some(a), Some(b)) = (low, high)
        && a > b
    {
        (low, high) = (Some(b), Some(a));
    }
    let shown = |bound: Option<i64>| bound.map_or(text("unbounded"), |n| ValueBuf::new(n as i32));
    let (shown_low, shown_high) = (shown(low), shown(high));
    if random.one_in(2) {
        let has = move |_: &[DocBuf], at: usize, other: usize| {
            let offset = other as i64 - at as i64;
            low.is_none_or(|low| offset >= low) && high.is_none_or(|high| offset <= high)
        };
        let bounds = doc! { "documents": [&shown_low, &shown_high] };
        return Window { bounds, has: Box::new(has) };
    }
    let has = move |sorted: &[DocBuf], at: usize, other: usize| {
        let offset = number(&sorted[other], "at") - number(&sorted[at], "at");
        low.is_none_or(|low| offset >= low) && high.is_none_or(|high| offset <= high)
    };
    Window { bounds: doc! { "range": [&shown_low, &shown_high] }, has: Box::new(has) }
}

/// Returns true if the values are equal except for the last digits of doubles.
fn close(a: Option<Value<'_>>, b: Option<Value<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => match (a, b) {
            (Value::Double(a), Value::Double(b)) => {
                a.to_bits() == b.to_bits() || (a - b).abs() <= 1e-6 * a.abs().max(1.0)
            }
            // A sum is an int if it fits, also one of longs (tests/cases/language/windows.mql).
            (Value::Int64(a), Value::Int32(b)) | (Value::Int32(b), Value::Int64(a)) => {
                a == i64::from(b)
            }
            // The deviation of a single number is an int if numbers leave the window.
            (Value::Double(a), Value::Int32(b)) | (Value::Int32(b), Value::Double(a)) => {
                a == f64::from(b)
            }
            (a, b) => ValueBuf::new(a) == ValueBuf::new(b),
        },
        (None, None) => true,
        _ => false,
    }
}

/// Returns the result of a function over some documents, by a `$group` of a collection of only
/// these.
fn naive(name: &str, argument: &ValueBuf, docs: &[&DocBuf]) -> DocBuf {
    let store = store();
    insert_all(&store, "db.c", docs.iter().map(|doc| doc.as_doc()));
    if docs.is_empty() {
        return doc! {};
    }
    let pipeline = vec![
        doc! { "$sort": { "place": 1 } },
        doc! { "$group": { "_id": Value::Null, "r": { (name): argument } } },
    ];
    aggregate(&store, pipeline, params(), 10).unwrap().remove(0)
}

#[test]
fn windows_agree_with_a_naive_evaluation() {
    let random = &mut Generator::new(2024);
    let functions = functions();
    for round in 0..60 {
        let store = store();
        let docs = documents(random, 12);
        insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
        let (name, argument) = &functions[round % functions.len()];
        let Window { bounds, has } = window(random);
        let stage = doc! { "$setWindowFields": {
            "partitionBy": "$p", "sortBy": { "at": 1 },
            "output": { "r": { (*name): argument, "window": &bounds } }
        } };
        let mut small = params();
        small.stage_bytes_max = 1024;
        let found = aggregate(&store, vec![stage.clone()], params(), 100).unwrap();
        assert_eq!(found, aggregate(&store, vec![stage.clone()], small, 1).unwrap());
        assert_eq!(found.len(), docs.len());
        for partition in found.chunk_by(|a, b| number(a, "p") == number(b, "p")) {
            let placed = |(place, doc): (usize, &DocBuf)| {
                DocBuf::build(|writer| {
                    writer.append_all(doc.as_doc());
                    writer.append("place", place as i32);
                })
            };
            let sorted: Vec<DocBuf> = partition.iter().enumerate().map(placed).collect();
            for (at, doc) in partition.iter().enumerate() {
                let inside = (0..sorted.len()).filter(|other| has(&sorted, at, *other));
                let inside: Vec<&DocBuf> = inside.map(|other| &sorted[other]).collect();
                if inside.is_empty() {
                    continue;
                }
                let wanted = naive(name, argument, &inside);
                assert!(
                    close(doc.get("r"), wanted.get("r")),
                    "{name} over {bounds:?}: {doc:?} should have {wanted:?}"
                );
            }
        }
    }
}

/// A sliding window costs the same for each document, whatever its width.
#[test]
fn a_wide_window_is_as_fast_as_a_narrow_one() {
    let store = store();
    let docs: Vec<DocBuf> = (0..20_000).map(|n| doc! { "_id": n, "v": n % 97 }).collect();
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    let timed = |width: i32| {
        let window = doc! { "documents": [-width, 0] };
        let field = |argument: &ValueBuf, name: &str| doc! { (name): argument, "window": &window };
        let stage = doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": {
            "a": &field(&text("$v"), "$avg"), "b": &field(&text("$v"), "$max"),
            "c": &field(&text("$v"), "$stdDevPop"),
            "d": &field(&ValueBuf::new(&doc! { "input": "$v", "n": 3 }), "$minN"),
            "e": &field(&ValueBuf::new(&doc! { "input": "$v", "method": "approximate" }), "$median")
        } } };
        let begun = std::time::Instant::now();
        assert_eq!(aggregate(&store, vec![stage], params(), 1000).unwrap().len(), docs.len());
        begun.elapsed()
    };
    let (narrow, wide) = (timed(10), timed(10_000));
    assert!(wide < narrow * 20, "{wide:?} instead of {narrow:?}");
}

#[test]
fn without_a_disk_documents_that_wait_end_it() {
    let store = store();
    let docs = documents(&mut Generator::new(5), 200);
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    let mut small = params();
    (small.stage_bytes_max, small.spill_directory) = (4096, None);
    let stage = doc! { "$setWindowFields": { "output": { "r": { "$sum": "$n" } } } };
    let error = aggregate(&store, vec![stage], small, 10).unwrap_err();
    assert_eq!(error.code(), ErrorCode::location(5643011));
}

#[test]
fn documents_keep_their_order_and_every_field() {
    let store = store();
    let docs = documents(&mut Generator::new(6), 50);
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    let stage = doc! { "$setWindowFields": {
        "partitionBy": { "$mod": ["$at", 4] }, "sortBy": { "_id": -1 },
        "output": { "x.rank": { "$documentNumber": {} } }
    } };
    let found = aggregate(&store, vec![stage], params(), 7).unwrap();
    let key = |doc: &DocBuf| (number(doc, "at") % 4, -number(doc, "_id"));
    assert!(found.is_sorted_by_key(key));
    for doc in &found {
        let original =
            docs.iter().find(|other| number(other, "_id") == number(doc, "_id")).unwrap();
        for (name, value) in original.as_doc().fields() {
            assert!(compare(doc.get(name).unwrap(), value, None).is_eq());
        }
        assert!(doc.get("x").is_some() && doc.as_doc().count() == original.as_doc().count() + 1);
    }
}
