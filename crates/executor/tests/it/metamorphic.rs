//! Every plan has the result of a collection scan: random documents, indexes and queries with
//! sorts, skips and limits. A cursor continues on a newer view after each batch, and between two
//! batches a writer changes documents that the query does not match.

use super::*;
use quire_document::literal::print;
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, compare, doc};
use quire_error::ErrorCode;
use quire_executor::modify::{UpdateRequest, update};
use quire_executor::{count, open};
use quire_planner::{CountRequest, FindRequest, Hint};

const NAME: &str = "d.metamorphic";
/// The number of collections, each with its own indexes; `QUIRE_METAMORPHIC_SEEDS` sets more.
const SEEDS: u64 = 12;
const QUERIES: u64 = 40;
const DOCUMENTS: i32 = 120;
/// Documents with an `_id` above this match no query; writers change them.
const NOISE: i32 = 1000;

/// Returns one index of each kind, and of each option that decides which queries it serves.
fn each_kind() -> Vec<DocBuf> {
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

/// Returns between two and six indexes, most of them compound, some of a kind of [`each_kind`].
fn indexes(random: &mut Generator) -> Vec<DocBuf> {
    let (mut specs, mut keys): (Vec<DocBuf>, Vec<DocBuf>) = (Vec::new(), Vec::new());
    let kinds = each_kind();
    for number in 0..2 + random.below(5) {
        if random.one_in(4) {
            let kind = random.pick(&kinds).unwrap();
            if !specs.contains(kind) {
                specs.push(kind.clone());
            }
            continue;
        }
        let mut key = DocBuf::new();
        for _ in 0..1 + random.below(3) {
            let path = *random.pick(&["a", "a.b", "a.b.c", "a.0", "c", "c.b", "k", "_id"]).unwrap();
            if !key.as_doc().contains(path) {
                key.append(path, if random.one_in(2) { 1 } else { -1 });
            }
        }
        if keys.contains(&key) || key.as_doc().first().is_some_and(|first| first.key() == "_id") {
            continue;
        }
        keys.push(key.clone());
        let mut spec = doc! { "key": &key, "name": format!("generated{number}").as_str() };
        match random.below(8) {
            0 => drop(spec.append("sparse", true)),
            1 => drop(spec.append("partialFilterExpression", &doc! { "k": { "$gte": 1 } })),
            2 => drop(spec.append("partialFilterExpression", &doc! { "a": { "$exists": true } })),
            _ => {}
        }
        specs.push(spec);
    }
    specs
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
    let test = match random.below(19) {
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
        12 => doc! { "$nin": [low, high] },
        13 => doc! { "$not": { "$gt": low } },
        14 => doc! { "$all": [low, high] },
        15 => doc! { "$mod": [2, 1] },
        16 => doc! { "$in": [low, high, Value::Null] },
        _ => return value(random, 1),
    };
    test.into()
}

const PATHS: &[&str] = &["a", "a.b", "a.0", "a.0.b", "a.b.c", "a.b.0", "c", "c.b", "k"];

fn filter(random: &mut Generator) -> DocBuf {
    let one = |random: &mut Generator| {
        let path = *random.pick(PATHS).unwrap();
        doc! { (path): &test(random) }
    };
    let (first, second, third) = (&one(random), &one(random), &one(random));
    match random.below(9) {
        0 => doc! { "$or": [first, second] },
        1 => {
            let path = *random.pick(&["$a.b", "$a.0", "$a", "$k"]).unwrap();
            let operator = *random.pick(&["$gt", "$lte", "$eq", "$ne"]).unwrap();
            doc! { "$expr": { (operator): [path, &scalar(random)] } }
        }
        2 => first.clone(),
        3 => doc! { "$nor": [first, second] },
        4 => doc! { "$or": [first, { "$and": [second, third] }] },
        5 => doc! { "$and": [first, { "$or": [second, third] }] },
        _ => doc! { "$and": [first, second] },
    }
}

/// Returns a query of documents below [`NOISE`]. Half of the queries have a total order; the others
/// request the sort key of each document, because documents with equal keys may come in either
/// order.
fn request(random: &mut Generator) -> FindRequest {
    let filter = filter(random);
    let mut sort = DocBuf::new();
    for _ in 0..random.below(3) {
        let path = *random.pick(&["a", "a.b", "a.0", "k", "c"]).unwrap();
        if !sort.as_doc().contains(path) {
            sort.append(path, if random.one_in(2) { 1 } else { -1 });
        }
    }
    let is_total = sort.as_doc().is_empty() || random.one_in(2);
    if is_total {
        sort.append("_id", 1);
    }
    let projection = match is_total {
        false => doc! { "_id": 1, "key": { "$meta": "sortKey" } },
        true if random.one_in(3) => doc! { "_id": 0, "k": 1, "a.b": 1 },
        true => DocBuf::new(),
    };
    FindRequest {
        namespace: NAME.into(),
        filter: doc! { "$and": [&filter, { "_id": { "$lt": NOISE } }] },
        sort,
        projection,
        skip: if random.one_in(4) { random.below(6) } else { 0 },
        limit: if random.one_in(2) { 0 } else { 1 + random.below(9) },
        ..FindRequest::default()
    }
}

/// A collection whose documents a writer changes.
struct Disturbed {
    store: Arc<Store>,
    random: Generator,
    /// The number of a candidate plan to run instead of the chosen one.
    considered: Option<usize>,
}

impl Disturbed {
    /// Adds documents that all indexes accept.
    fn add(&mut self, ids: std::ops::Range<i32>) {
        let collection = self.store.ensure_collection(&ns(NAME)).unwrap();
        for id in ids {
            let (doc, mut buffer) = (document(&mut self.random, id), Vec::new());
            let doc = prepare_insert(&self.store, doc.as_doc(), &mut buffer).unwrap().to_owned();
            let written =
                self.store.write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
                    writer.insert(&collection, doc.as_doc()).map(|_| ())
                });
            if let Err(error) = written {
                assert!(refuses_document(error.code()), "{error}");
            }
        }
    }

    /// Gives a document that no query matches new values, also arrays at new paths.
    fn disturb(&mut self) {
        let id = doc! { "_id": NOISE + self.random.below(20) as i32 };
        let (a, c) = (&value(&mut self.random, 0), &value(&mut self.random, 0));
        let change = doc! { "$set": { "a": a, "c": c } };
        let request = UpdateRequest {
            collation: Default::default(),
            namespace: ns(NAME),
            filter: id.as_doc(),
            update: Value::Document(change.as_doc()),
            array_filters: &[],
            multi: false,
            upsert: true,
            supplied: None,
            sort: Doc::empty(),
            hint: None,
            let_vars: Doc::empty(),
        };
        if let Err(error) = update(&mut Own::new(&self.store), &request, &params()) {
            assert!(refuses_document(error.code()), "{error}");
        }
    }

    /// Returns the result of the plan in batches of five documents; `None` if the hinted index
    /// cannot serve the query. If a new array ends the plan, it is started again.
    fn answer(&mut self, request: &FindRequest) -> Result<Option<Vec<DocBuf>>> {
        loop {
            let store = Arc::clone(&self.store);
            let views = FreshViews::new(&store).unwrap();
            let params = ExecParams { considered: self.considered, ..params() };
            let mut execution = match open(request, &views, params) {
                Ok(execution) => execution,
                Err(error) if error.code() == ErrorCode::NoQueryExecutionPlans => return Ok(None),
                Err(error) => return Err(error),
            };
            drop(views);
            match self.read_all(&mut execution) {
                Ok(found) => return Ok(Some(found)),
                Err(error) if error.code() == ErrorCode::QueryPlanKilled => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn read_all(&mut self, execution: &mut Execution) -> Result<Vec<DocBuf>> {
        let store = Arc::clone(&self.store);
        drain_between(&store, execution, 5, || self.disturb())
    }

    fn counted(&self, request: &FindRequest) -> Option<u64> {
        let request = CountRequest {
            namespace: NAME.into(),
            filter: request.filter.clone(),
            hint: request.hint.clone(),
            ..CountRequest::default()
        };
        let mut views = FreshViews::new(&self.store).unwrap();
        let params = ExecParams { considered: self.considered, ..params() };
        match count(&request, &mut views, params) {
            Ok((counted, _)) => Some(counted),
            Err(error) if error.code() == ErrorCode::NoQueryExecutionPlans => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns true for the error of an index about a document that it cannot hold: two arrays in one
/// key, an array in a hashed field, an array with a numeric field name inside.
fn refuses_document(code: ErrorCode) -> bool {
    matches!(code.number(), 171 | 16746 | 16766)
}

/// Compares two results: whole documents if the order is total, else sort keys.
fn assert_same(found: &[DocBuf], expected: &[DocBuf], request: &FindRequest, told: &str) {
    let shown = || {
        let request = FindRequest { namespace: String::new(), ..request.clone() };
        format!("{told}: {} {request:?}", print(request.filter.as_doc()))
    };
    if !request.projection.as_doc().contains("key") {
        assert_eq!(found, expected, "{}", shown());
        return;
    }
    assert_eq!(found.len(), expected.len(), "{}", shown());
    for (ours, theirs) in found.iter().zip(expected) {
        let (ours, theirs) = (ours.get("key").unwrap(), theirs.get("key").unwrap());
        assert!(compare(ours, theirs, None).is_eq(), "{ours:?} {theirs:?} {}", shown());
    }
    if request.limit == 0 && request.skip == 0 {
        let ids = |docs: &[DocBuf]| {
            let mut ids: Vec<String> =
                docs.iter().map(|doc| format!("{:?}", doc.get("_id"))).collect();
            ids.sort();
            ids
        };
        assert_eq!(ids(found), ids(expected), "{}", shown());
    }
}

/// Compares the plan of each index, the chosen plan and the other candidates with a collection
/// scan. Returns how many results of chosen plans and of the others were compared.
fn compare_plans(seed: u64, specs: &[DocBuf]) -> (u64, u64) {
    let told = format!("seed {seed}, indexes {specs:?}");
    let mut collection =
        Disturbed { store: store(), random: Generator::new(seed), considered: None };
    collection.store.ensure_collection(&ns(NAME)).unwrap();
    create_indexes(&collection.store, NAME, specs.iter().map(DocBuf::as_doc)).unwrap();
    let (mut compared, mut others) = (0, 0);
    for round in 0..4 {
        // Arrays are added to the indexes step by step.
        collection.add(round * DOCUMENTS..(round + 1) * DOCUMENTS);
        for _ in 0..QUERIES / 4 {
            let mut request = request(&mut collection.random);
            request.hint = Some(Hint::Natural(true));
            let expected = match collection.answer(&request) {
                Ok(expected) => expected.unwrap(),
                // The sort meets two arrays in one document, or an array that has a field `0`
                // inside.
                Err(error) if matches!(error.code().number(), 2 | 16746) => continue,
                Err(error) => panic!("{error} {request:?}"),
            };
            let matching = collection.counted(&request);
            // An index without all documents has a result for those that it holds.
            let whole = specs.iter().filter(|spec| {
                !spec.as_doc().contains("sparse")
                    && !spec.as_doc().contains("partialFilterExpression")
            });
            let names = whole.filter_map(|spec| spec.get("name")?.as_str());
            let hints =
                std::iter::once(None).chain(names.map(|name| Some(Hint::Name(name.into()))));
            for hint in hints {
                request.hint = hint;
                let answer = collection.answer(&request);
                let Some(found) = answer.unwrap_or_else(|error| panic!("{error} {request:?}"))
                else {
                    continue;
                };
                assert_same(&found, &expected, &request, &told);
                let counted = collection.counted(&request);
                assert_eq!(counted, matching, "{told}: {request:?}");
                compared += 1;
            }
            request.hint = None;
            for at in 0.. {
                collection.considered = Some(at);
                let answer = collection.answer(&request);
                let Some(found) = answer.unwrap_or_else(|error| panic!("{error} {request:?}"))
                else {
                    break;
                };
                assert_same(&found, &expected, &request, &format!("{told}, considered {at}"));
                // A count has no sort, and so fewer candidates.
                if let Some(counted) = collection.counted(&request) {
                    assert_eq!(Some(counted), matching, "{told}, considered {at}: {request:?}");
                }
                others += 1;
            }
            collection.considered = None;
        }
    }
    let report = quire_collections::check(&collection.store, false).unwrap();
    assert!(report.is_clean(), "{told}: {:#?}", report.findings);
    (compared, others)
}

fn sum(counts: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[test]
fn every_kind_of_index_answers_as_a_collection_scan() {
    let (compared, others) = sum((0..5).map(|seed| compare_plans(16 + seed, &each_kind())));
    assert!(compared > 900 && others > 100, "{compared}, {others}");
}

#[test]
fn every_plan_answers_as_a_collection_scan() {
    let asked = std::env::var("QUIRE_METAMORPHIC_SEEDS").ok();
    let seeds = asked.map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let indexes = |seed| indexes(&mut Generator::new(1000 + seed));
    let (compared, others) = sum((0..seeds).map(|seed| compare_plans(seed, &indexes(seed))));
    assert!(compared > seeds * 60 && others > seeds * 10, "{compared}, {others}");
}
