//! Every index gives the answer of a collection scan: random documents, filters, sorts and limits,
//! while writers change documents that the query does not match.

use super::*;
use quire_document::literal::print;
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, doc};
use quire_error::ErrorCode;
use quire_executor::modify::{UpdateRequest, update};
use quire_executor::open;
use quire_planner::{FindRequest, Hint};

const NAME: &str = "d.metamorphic";
const QUERIES: u64 = 400;
const DOCUMENTS: i32 = 120;
/// Documents beyond this `_id` match no query; writers change them.
const NOISE: i32 = 1000;

fn indexes() -> Vec<DocBuf> {
    vec![
        doc! { "key": { "a": 1 }, "name": "a_1" },
        doc! { "key": { "a.b": -1, "k": 1 }, "name": "a.b_-1_k_1" },
        doc! { "key": { "c": 1 }, "name": "sparse", "sparse": true },
        doc! { "key": { "k": 1, "c": 1 }, "name": "partial", "partialFilterExpression": { "k": { "$gt": 1 } } },
        doc! { "key": { "k": "hashed" }, "name": "hashed" },
        doc! { "key": { "$**": 1 }, "name": "wild" },
        doc! { "key": { "$**": -1 }, "name": "wild_but", "wildcardProjection": { "a.b": 0, "c": 0 } },
        doc! { "key": { "a.$**": 1 }, "name": "wild_below" },
        doc! { "key": { "k": 1, "a.$**": 1 }, "name": "k_wild" },
        doc! { "key": { "$**": 1, "k": -1 }, "name": "wild_k", "wildcardProjection": { "a": 1 } },
        doc! { "key": { "c.$**": 1 }, "name": "collated", "collation": { "locale": "en", "strength": 2 } },
    ]
}

fn scalar(random: &mut Generator) -> ValueBuf {
    match random.below(9) {
        0 => ValueBuf::new(Value::Null),
        1 => ValueBuf::new("text"),
        2 => ValueBuf::new("Text"),
        3 => ValueBuf::new(true),
        4 => ValueBuf::new(random.below(6) as f64 / 2.0),
        _ => ValueBuf::new(random.below(5) as i32),
    }
}

fn value(random: &mut Generator, depth: u64) -> ValueBuf {
    match random.below(8) {
        0 if depth < 3 => {
            let items: Vec<ValueBuf> =
                (0..random.below(3)).map(|_| value(random, depth + 1)).collect();
            ValueBuf::from(items.iter().map(ValueBuf::as_value).collect::<ArrayBuf>())
        }
        1..=3 if depth < 3 => {
            let mut fields = DocBuf::new();
            for name in ["b", "0", "c"] {
                if random.one_in(2) {
                    fields.append(name, &value(random, depth + 1));
                }
            }
            ValueBuf::from(fields)
        }
        _ => scalar(random),
    }
}

fn document(random: &mut Generator, id: i32) -> DocBuf {
    let mut doc = doc! { "_id": id };
    if !random.one_in(5) {
        doc.append("k", &scalar(random));
    }
    for name in ["a", "c"] {
        if !random.one_in(4) {
            doc.append(name, &value(random, 0));
        }
    }
    doc
}

fn test(random: &mut Generator) -> ValueBuf {
    let (low, high) = (&scalar(random), &scalar(random));
    let test = match random.below(14) {
        0 => doc! { "$gt": low },
        1 => doc! { "$gte": low, "$lt": high },
        2 => doc! { "$in": [low, high] },
        3 => doc! { "$exists": true },
        4 => doc! { "$exists": false },
        5 => doc! { "$ne": low },
        6 => doc! { "$type": "object" },
        7 => doc! { "$type": ["string", "array"] },
        8 => doc! { "$elemMatch": { "$gte": low } },
        9 => doc! { "$elemMatch": { "b": low } },
        10 => doc! { "$regex": "^te" },
        11 => doc! { "$lte": low },
        _ => return value(random, 1),
    };
    test.into()
}

fn filter(random: &mut Generator) -> DocBuf {
    let paths = ["a", "a.b", "a.0", "a.0.b", "a.b.c", "a.b.0", "c", "c.b", "k"];
    let one = |random: &mut Generator| {
        let path = *random.pick(&paths).unwrap();
        doc! { (path): &test(random) }
    };
    let (first, second) = (&one(random), &one(random));
    match random.below(5) {
        0 => doc! { "$or": [first, second] },
        1 => doc! { "$expr": { "$gt": ["$a.b", &scalar(random)] } },
        2 => first.clone(),
        _ => doc! { "$and": [first, second] },
    }
}

fn request(random: &mut Generator) -> FindRequest {
    let filter = filter(random);
    let mut sort = DocBuf::new();
    if random.one_in(2) {
        let path = *random.pick(&["a", "a.b", "k", "c"]).unwrap();
        sort.append(path, if random.one_in(2) { 1 } else { -1 });
    }
    sort.append("_id", 1);
    FindRequest {
        namespace: NAME.into(),
        filter: doc! { "$and": [&filter, { "_id": { "$lt": NOISE } }] },
        sort,
        limit: if random.one_in(2) { 0 } else { 1 + random.below(9) },
        ..FindRequest::default()
    }
}

/// Gives a document that no query matches other values, among them arrays at new paths.
fn disturb(store: &Arc<Store>, random: &mut Generator) {
    let id = doc! { "_id": NOISE + random.below(20) as i32 };
    let change = doc! { "$set": { "a": &value(random, 0), "c": &value(random, 0) } };
    let request = UpdateRequest {
        collation: Default::default(),
        namespace: ns(NAME),
        filter: id.as_doc(),
        update: Value::Document(change.as_doc()),
        array_filters: &[],
        multi: false,
        upsert: true,
        sort: Doc::empty(),
        hint: None,
        let_vars: Doc::empty(),
    };
    update(&mut Own::new(store), &request, &params()).unwrap();
}

/// The answer by an index, a few documents at a time; `None` if it can't serve the query. A plan
/// that a new array has ended begins anew.
fn answer(
    store: &Arc<Store>,
    request: &FindRequest,
    random: &mut Generator,
) -> Option<Vec<DocBuf>> {
    loop {
        let views = FreshViews::new(store).unwrap();
        let mut execution = match open(request, &views, params()) {
            Ok(execution) => execution,
            Err(error) if error.code() == ErrorCode::NoQueryExecutionPlans => return None,
            Err(error) => panic!("{error}"),
        };
        drop(views);
        disturb(store, random);
        match try_drain(store, &mut execution, 5) {
            Ok(found) => return Some(found),
            Err(error) if error.code() == ErrorCode::QueryPlanKilled => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn every_index_answers_as_a_collection_scan() {
    let (store, mut random) = (store(), Generator::new(16));
    store.ensure_collection(&ns(NAME)).unwrap();
    let specs = indexes();
    create_indexes(&store, NAME, specs.iter().map(DocBuf::as_doc)).unwrap();
    let (mut by_index, mut compared) = (0, 0);
    for round in 0..4 {
        let first = round * DOCUMENTS;
        let docs: Vec<DocBuf> =
            (first..first + DOCUMENTS).map(|id| document(&mut random, id)).collect();
        // Arrays come into the indexes little by little.
        insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc).filter(is_indexable));
        for _ in 0..QUERIES / 4 {
            let mut request = request(&mut random);
            request.hint = Some(Hint::Natural(true));
            let expected = answer(&store, &request, &mut random).unwrap();
            let names = specs.iter().filter_map(|spec| spec.get("name")?.as_str());
            for hint in std::iter::once(None).chain(names.map(|name| Some(Hint::Name(name.into()))))
            {
                if matches!(&hint, Some(Hint::Name(name)) if name == "sparse" || name == "partial")
                {
                    continue;
                }
                request.hint = hint;
                let Some(found) = answer(&store, &request, &mut random) else { continue };
                let shown = print(request.filter.as_doc());
                assert_eq!(found, expected, "{:?} {shown} {}", request.hint, request.limit);
                by_index += u64::from(request.hint.is_some());
                compared += found.len();
            }
        }
    }
    assert!(by_index > 1500 && compared > 20_000, "{by_index} {compared}");
    let report = quire_collections::check(&store, false).unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
}

/// The regular field of a compound wildcard index and of a hashed one takes no array, and two
/// fields of one ordinary index do not meet two arrays.
fn is_indexable(doc: &Doc<'_>) -> bool {
    !matches!(doc.get("k"), Some(Value::Array(_)))
}
