//! Random writes through the engine, read back by a scan and by each index, compared with a map of
//! documents that `mql` changes one by one.

use std::collections::BTreeMap;

use super::*;
use bumpalo::Bump;
use quire_collections::check;
use quire_document::literal::print;
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, doc};
use quire_executor::modify::{
    DeleteRequest, InsertOptions, UpdateRequest, delete, insert_many, update,
};
use quire_executor::open;
use quire_mql::update::UpdateSpec;
use quire_mql::{EvalContext, Filter, ParseContext, Shared, Update};
use quire_planner::{FindRequest, Hint};

const NAME: &str = "d.model";
const STEPS: u64 = 1500;

type Model = BTreeMap<i32, DocBuf>;

/// Returns numbers of all forms in an index key: small, beyond 32 bits, fractions.
fn number(random: &mut Generator) -> ValueBuf {
    let small = random.below(6) as i32;
    match random.below(5) {
        0 => ValueBuf::new(1_000_000_000_000 + i64::from(small)),
        1 => ValueBuf::new(f64::from(small) / 10.0),
        2 => ValueBuf::new(-f64::from(small) / 2.0),
        _ => ValueBuf::new(small),
    }
}

fn array(random: &mut Generator, depth: u64) -> ArrayBuf {
    let item = |random: &mut Generator| match random.below(4) {
        0 if depth < 2 => ValueBuf::from(array(random, depth + 1)),
        _ => number(random),
    };
    let items: Vec<ValueBuf> = (0..random.below(3)).map(|_| item(random)).collect();
    items.iter().map(ValueBuf::as_value).collect()
}

fn value(random: &mut Generator) -> ValueBuf {
    match random.below(7) {
        0 => ValueBuf::new(Value::Null),
        1 => ValueBuf::new("text"),
        2 => ValueBuf::from(array(random, 0)),
        _ => number(random),
    }
}

fn filter(random: &mut Generator) -> DocBuf {
    let name = *random.pick(&["a", "b"]).unwrap();
    let (low, high) = (&number(random), &number(random));
    match random.below(10) {
        0 => doc! { "_id": random.below(40) as i32 },
        1 => doc! { (name): { "$gte": low } },
        2 => doc! { (name): { "$gt": low, "$lte": high } },
        3 => doc! { (name): { "$in": [low, high, Value::Null] } },
        4 => doc! { "$or": [{ "a": low }, { "b": { "$lt": low } }, { "a": { "$gt": high } }] },
        5 => doc! { (name): { "$ne": low } },
        6 => doc! { (name): { "$elemMatch": { "$gte": low } } },
        7 => doc! { (name): { "$elemMatch": { "$elemMatch": { "$gte": low } } } },
        8 => doc! { "b": { "$in": [low, high] }, "a": { "$gte": low, "$lt": high } },
        _ => doc! { (name): &value(random) },
    }
}

fn change(random: &mut Generator) -> ValueBuf {
    let (name, by) = (*random.pick(&["a", "b"]).unwrap(), random.below(4) as i32);
    let change = match random.below(9) {
        0 => doc! { "$set": { (name): &value(random) } },
        1 => doc! { "$unset": { (name): 1 } },
        2 => doc! { "$push": { (name): by } },
        3 => doc! { "$addToSet": { (name): by } },
        4 => doc! { "$max": { (name): by } },
        5 => doc! { "$rename": { "a": "b" } },
        6 => {
            let stage = doc! { "$set": { (name): { "$ifNull": ["$b", by] } } };
            return ValueBuf::from([&stage].into_iter().collect::<ArrayBuf>());
        }
        _ => doc! { "$inc": { (name): by } },
    };
    change.into()
}

/// Applies an update to the model. Returns the number of changed documents; `None` if it must fail.
fn update_model(model: &mut Model, filter: Doc<'_>, change: Value<'_>, multi: bool) -> Option<u64> {
    let context = ParseContext::default();
    let filter = Filter::parse(filter, &context).unwrap();
    let spec = UpdateSpec { update: change, array_filters: &[], multi };
    let compiled = Update::parse(spec, &context).unwrap();
    let (arena, shared) = (Bump::new(), Shared::default());
    let mut matched = 0;
    for doc in model.values_mut() {
        let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
        if !filter.matches(doc.as_doc(), &cx).unwrap() {
            continue;
        }
        let mut bytes = Vec::new();
        compiled.apply(doc.as_doc(), None, &cx, &mut bytes).ok()?;
        *doc = DocBuf::from_valid_bytes(bytes);
        matched += 1;
        if !multi {
            break;
        }
    }
    Some(matched)
}

/// Returns true for two arrays in one compound index.
fn is_parallel(doc: &DocBuf) -> bool {
    ["a", "b"].iter().all(|name| matches!(doc.get(name), Some(Value::Array(_))))
}

fn found(store: &Arc<Store>, filter: DocBuf, hint: Hint) -> Vec<DocBuf> {
    let request = FindRequest {
        namespace: NAME.into(),
        filter,
        hint: Some(hint),
        sort: doc! { "_id": 1 },
        ..FindRequest::default()
    };
    let views = FreshViews::new(store).unwrap();
    let mut execution = open(&request, &views, params()).unwrap();
    drain(store, &mut execution, 7)
}

fn stored(store: &Arc<Store>) -> Model {
    let docs = found(store, DocBuf::new(), Hint::Natural(true));
    let id = |doc: &DocBuf| doc.get("_id").and_then(|id| id.exact_i64()).unwrap() as i32;
    docs.into_iter().map(|doc| (id(&doc), doc)).collect()
}

fn assert_same(store: &Arc<Store>, model: &Model, filter: &DocBuf, step: u64) {
    let context = ParseContext::default();
    let compiled = Filter::parse(filter.as_doc(), &context).unwrap();
    let (arena, shared) = (Bump::new(), Shared::default());
    let matches = |doc: &&DocBuf| {
        let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
        compiled.matches(doc.as_doc(), &cx).unwrap()
    };
    let expected: Vec<&DocBuf> = model.values().filter(matches).collect();
    let shown = print(filter.as_doc());
    assert_eq!(stored(store).values().collect::<Vec<_>>(), model.values().collect::<Vec<_>>());
    for index in ["_id_", "a_1", "b_-1_a_1"] {
        let found = found(store, filter.clone(), Hint::Name(index.into()));
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{step}: {index} {shown}");
    }
}

/// Runs a random statement on the engine and on the model, and compares the results.
struct Run {
    store: Arc<Store>,
    model: Model,
    random: Generator,
    changed: u64,
    failed: u64,
}

impl Run {
    fn target(&self) -> Own<'_> {
        Own::new(&self.store)
    }

    fn insert(&mut self) {
        let id = self.random.below(40) as i32;
        let mut doc = doc! { "_id": id };
        for name in ["a", "b"] {
            if !self.random.one_in(4) {
                doc.append(name, &value(&mut self.random));
            }
        }
        let docs = [doc.as_doc()];
        let outcome = insert_many(
            &mut self.target(),
            &ns(NAME),
            &docs,
            InsertOptions::ORDERED,
            &Interrupt::new(),
        )
        .unwrap();
        let refused = is_parallel(&doc) || self.model.contains_key(&id);
        assert_eq!(outcome.errors.is_empty(), !refused, "{}", print(doc.as_doc()));
        if !refused {
            self.model.insert(id, doc);
        }
    }

    fn delete(&mut self, filter: &DocBuf) {
        let request = DeleteRequest {
            collation: Default::default(),
            namespace: ns(NAME),
            filter: filter.as_doc(),
            one: false,
            hint: None,
            let_vars: Doc::empty(),
        };
        let before = self.model.len();
        let compiled = Filter::parse(filter.as_doc(), &ParseContext::default()).unwrap();
        let (arena, shared) = (Bump::new(), Shared::default());
        self.model.retain(|_, doc| {
            let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
            !compiled.matches(doc.as_doc(), &cx).unwrap()
        });
        let outcome = delete(&mut self.target(), &request, &params()).unwrap();
        assert_eq!(outcome.deleted as usize, before - self.model.len());
    }

    fn update(&mut self, filter: &DocBuf) {
        let (change, multi) = (change(&mut self.random), !self.random.one_in(3));
        let by_id = doc! { "_id": 1 };
        let request = UpdateRequest {
            collation: Default::default(),
            namespace: ns(NAME),
            filter: filter.as_doc(),
            update: change.as_value(),
            array_filters: &[],
            multi,
            upsert: false,
            supplied: None,
            sort: if multi { Doc::empty() } else { by_id.as_doc() },
            hint: None,
            let_vars: Doc::empty(),
        };
        let mut next = self.model.clone();
        let expected = update_model(&mut next, filter.as_doc(), change.as_value(), multi)
            .filter(|_| !next.values().any(is_parallel));
        match (update(&mut self.target(), &request, &params()), expected) {
            (Ok(outcome), Some(matched)) => {
                assert_eq!(outcome.matched, matched);
                self.changed += outcome.modified;
                self.model = next;
            }
            (Err(_), None) => {
                self.failed += 1;
                // Changes of a statement before its error stay.
                self.model = stored(&self.store);
            }
            (outcome, expected) => panic!("{outcome:?} but {expected:?}"),
        }
    }
}

#[test]
fn writes_then_reads_agree_with_a_map() {
    let store = store();
    store.ensure_collection(&ns(NAME)).unwrap();
    let specs = [
        doc! { "key": { "a": 1 }, "name": "a_1" },
        doc! { "key": { "b": -1, "a": 1 }, "name": "b_-1_a_1" },
    ];
    create_indexes(&store, NAME, specs.iter().map(DocBuf::as_doc)).unwrap();
    let (model, random) = (Model::new(), Generator::new(6));
    let mut run = Run { store, model, random, changed: 0, failed: 0 };
    for step in 0..STEPS {
        let filter = filter(&mut run.random);
        match run.random.below(12) {
            0..=3 => run.insert(),
            4 => run.delete(&filter),
            _ => run.update(&filter),
        }
        assert_same(&run.store, &run.model, &filter, step);
    }
    assert!(run.changed > 500 && run.failed > 20, "{} changed, {} failed", run.changed, run.failed);
    let report = check(&run.store, false).unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
}
