//! Writes: chunks, races, upserts, the Halloween problem, transactions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quire_catalog::{Collection, IndexSpec, Namespace};
use quire_collections::{
    CollectionCursor, CreateIndexes, Store, StoreOptions, Writer, WriterMode, check,
};
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::Result;
use quire_executor::modify::{
    DeleteRequest, FindAndModifyRequest, FoundChange, InsertOptions, InsertOutcome, UpdateOutcome,
    UpdateRequest, delete, find_and_modify, insert_many, update, write_results,
};
use quire_executor::{ExecParams, FreshViews, UnitOfWork, open};
use quire_mql::collation::AskedCollation;
use quire_planner::AggregateRequest;
use quire_storage::{CommitOptions, Direction, Interrupt};

use super::{InTransaction, Own};

struct World {
    store: Arc<Store>,
    ns: Namespace,
}

fn params() -> ExecParams {
    ExecParams::new(Interrupt::new(), 1_000_000)
}

impl World {
    fn new() -> Self {
        let options = StoreOptions { random_seed: 3, ..StoreOptions::default() };
        let store = Store::open(quire_storage::open_memory().unwrap(), options).unwrap();
        World { store, ns: Namespace::parse("d.t").unwrap() }
    }

    fn target(&self) -> Own<'_> {
        Own::new(&self.store)
    }

    fn insert(&self, docs: &[DocBuf], ordered: bool) -> InsertOutcome {
        let docs: Vec<Doc<'_>> = docs.iter().map(DocBuf::as_doc).collect();
        let options = InsertOptions { ordered, ..InsertOptions::ORDERED };
        insert_many(&mut self.target(), &self.ns, &docs, options, &Interrupt::new()).unwrap()
    }

    fn index(&self, spec: &DocBuf) {
        let specs = vec![IndexSpec::parse(spec.as_doc(), false).unwrap()];
        let request = CreateIndexes { namespace: self.ns.clone(), specs };
        self.store.create_indexes(&request, &Interrupt::new(), &CommitOptions::buffered()).unwrap();
    }

    fn update(
        &self,
        filter: &DocBuf,
        change: &DocBuf,
        multi: bool,
        upsert: bool,
    ) -> Result<UpdateOutcome> {
        self.update_in(&mut self.target(), filter, change, multi, upsert)
    }

    fn update_in(
        &self,
        unit: &mut dyn UnitOfWork,
        filter: &DocBuf,
        change: &DocBuf,
        multi: bool,
        upsert: bool,
    ) -> Result<UpdateOutcome> {
        let request = UpdateRequest {
            collation: Default::default(),
            namespace: self.ns.clone(),
            filter: filter.as_doc(),
            update: Value::Document(change.as_doc()),
            array_filters: &[],
            multi,
            upsert,
            supplied: None,
            sort: Doc::empty(),
            hint: None,
            let_vars: Doc::empty(),
        };
        update(unit, &request, &params())
    }

    fn delete(&self, filter: &DocBuf, one: bool) -> u64 {
        let request = DeleteRequest {
            collation: Default::default(),
            namespace: self.ns.clone(),
            filter: filter.as_doc(),
            one,
            hint: None,
            let_vars: Doc::empty(),
        };
        delete(&mut self.target(), &request, &params()).unwrap().deleted
    }

    fn collection(&self) -> Arc<Collection> {
        self.store.catalog().lookup(&self.ns).cloned().unwrap()
    }

    fn all(&self) -> Vec<DocBuf> {
        let view = self.store.read_view().unwrap();
        let Some(collection) = view.catalog().lookup(&self.ns).cloned() else { return Vec::new() };
        let mut cursor = CollectionCursor::new(&collection, Direction::Forward);
        let mut out = Vec::new();
        while cursor.next_page(&view.view(), &collection, 500, 1 << 20, &mut out).unwrap() {}
        out.iter().map(|record| record.doc.as_doc().to_owned()).collect()
    }

    fn assert_clean(&self) {
        let report = check(&self.store, false).unwrap();
        assert!(report.is_clean(), "{:#?}", report.findings);
    }
}

fn numbers(range: std::ops::Range<i32>) -> Vec<DocBuf> {
    range.map(|n| doc! { "_id": n, "a": n }).collect()
}

#[test]
fn inserts_stop_or_go_on_after_an_error() {
    let world = World::new();
    let docs = [doc! { "_id": 1 }, doc! { "_id": 1 }, doc! { "_id": [1] }, doc! { "_id": 2 }];
    let outcome = world.insert(&docs, true);
    assert_eq!((outcome.inserted, outcome.errors.len(), outcome.errors[0].0), (1, 1, 1));
    let outcome = world.insert(&docs, false);
    let failed: Vec<_> = outcome.errors.iter().map(|(at, e)| (*at, e.code().number())).collect();
    assert_eq!((outcome.inserted, failed), (1, vec![(0, 11000), (1, 11000), (2, 53)]));
    assert_eq!(world.insert(&numbers(10..3010), true).inserted, 3000);
    world.assert_clean();
}

#[test]
fn an_index_scan_does_not_return_a_moved_document_again() {
    let world = World::new();
    world.insert(&numbers(1..3000), true);
    world.index(&doc! { "key": { "a": 1 }, "name": "a" });
    let change = doc! { "$inc": { "a": 5000 } };
    let outcome = world.update(&doc! { "a": { "$gte": 0 } }, &change, true, false).unwrap();
    assert_eq!((outcome.matched, outcome.modified), (2999, 2999));
    let found = world.all();
    assert!(found.iter().all(|doc| match (doc.get("_id"), doc.get("a")) {
        (Some(Value::Int32(id)), Some(Value::Int32(a))) => a == id + 5000,
        _ => false,
    }));
    assert_eq!(world.delete(&doc! { "a": { "$lt": 5100 } }, false), 99);
    assert_eq!(world.delete(&doc! { "a": { "$lt": 5200 } }, true), 1);
    world.assert_clean();
}

#[test]
fn matched_is_not_modified() {
    let world = World::new();
    world.insert(&numbers(0..10), true);
    let set = doc! { "$set": { "a": 3 } };
    let outcome = world.update(&doc! { "a": { "$gte": 3 } }, &set, true, false).unwrap();
    assert_eq!((outcome.matched, outcome.modified), (7, 6));
    let outcome = world.update(&doc! { "_id": 3 }, &set, false, false).unwrap();
    assert_eq!((outcome.matched, outcome.modified), (1, 0));
    assert_eq!(world.update(&doc! { "_id": 99 }, &set, false, false).unwrap().matched, 0);
}

#[test]
fn upserts_race_and_one_inserts() {
    let world = World::new();
    world.index(&doc! { "key": { "k": 1 }, "name": "k", "unique": true });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..50 {
                    let filter = doc! { "k": round % 10 };
                    let change = doc! { "$inc": { "n": 1 } };
                    world.update(&filter, &change, false, true).unwrap();
                    let filter = doc! { "_id": 100 + round % 10, "k": 100 + round % 10 };
                    world.update(&filter, &change, false, true).unwrap();
                }
            });
        }
    });
    let found = world.all();
    assert_eq!(found.len(), 20);
    assert!(found.iter().all(|doc| doc.get("n").is_some_and(|n| matches!(n, Value::Int32(20)))));
    let clash = world.update(&doc! { "k": 3, "z": 1 }, &doc! { "$set": { "y": 1 } }, false, true);
    assert_eq!(clash.unwrap_err().code().number(), 11000);
    world.assert_clean();
}

#[test]
fn a_queue_gives_each_item_once() {
    let world = World::new();
    world.insert(&numbers(0..400), true);
    world.index(&doc! { "key": { "a": 1 }, "name": "a" });
    let taken = parking_lot::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let (filter, sort) = (doc! { "a": { "$gte": 0 } }, doc! { "a": 1 });
                    let request = FindAndModifyRequest {
                        collation: Default::default(),
                        namespace: world.ns.clone(),
                        filter: filter.as_doc(),
                        sort: sort.as_doc(),
                        change: FoundChange::Remove,
                        hint: None,
                        let_vars: Doc::empty(),
                        answers_after: false,
                    };
                    let outcome =
                        find_and_modify(&mut world.target(), &request, &params()).unwrap();
                    let Some(before) = outcome.before else { break };
                    let Some(Value::Int32(id)) = before.get("_id") else { panic!() };
                    taken.lock().push(id);
                }
            });
        }
    });
    let mut taken = taken.into_inner();
    taken.sort_unstable();
    assert_eq!(taken, (0..400).collect::<Vec<_>>());
    assert_eq!(world.store.counts(&world.collection()).documents, 0);
    world.assert_clean();
}

#[test]
fn find_and_modify_returns_the_document_before_or_after() {
    let world = World::new();
    world.insert(&numbers(0..3), true);
    let (filter, change) = (doc! { "_id": 1 }, doc! { "$set": { "a": 9 } });
    let mut request = FindAndModifyRequest {
        collation: Default::default(),
        namespace: world.ns.clone(),
        filter: filter.as_doc(),
        sort: Doc::empty(),
        change: FoundChange::Update {
            update: Value::Document(change.as_doc()),
            array_filters: &[],
            upsert: true,
        },
        hint: None,
        let_vars: Doc::empty(),
        answers_after: false,
    };
    let outcome = find_and_modify(&mut world.target(), &request, &params()).unwrap();
    assert_eq!(outcome.before.unwrap().as_bytes(), doc! { "_id": 1, "a": 1 }.as_bytes());
    assert_eq!(outcome.after.unwrap().as_bytes(), doc! { "_id": 1, "a": 9 }.as_bytes());
    let other = doc! { "_id": 7 };
    request.filter = other.as_doc();
    let outcome = find_and_modify(&mut world.target(), &request, &params()).unwrap();
    assert!(outcome.before.is_none() && outcome.upserted.is_some());
    assert_eq!(outcome.after.unwrap().as_bytes(), doc! { "_id": 7, "a": 9 }.as_bytes());
}

#[test]
fn a_transaction_sees_its_writes_and_others_do_not() {
    let world = World::new();
    world.insert(&numbers(0..5), true);
    let mut writer: Writer = world.store.writer(WriterMode::Transaction).unwrap();
    let change = doc! { "$inc": { "a": 100 } };
    let mut target = InTransaction(&mut writer);
    let outcome = world.update_in(&mut target, &doc! {}, &change, true, false).unwrap();
    assert_eq!(outcome.modified, 5);
    let over = doc! { "a": { "$gte": 100 } };
    let outcome = world.update_in(&mut target, &over, &change, true, false).unwrap();
    assert_eq!(outcome.modified, 5);
    assert!(world.all().iter().all(|doc| matches!(doc.get("a"), Some(Value::Int32(0..5)))));
    let mut other = world.store.writer(WriterMode::Transaction).unwrap();
    let mut rival = InTransaction(&mut other);
    let clash = world.update_in(&mut rival, &doc! { "_id": 1 }, &change, false, false);
    assert_eq!(clash.unwrap_err().code().number(), 112);
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| world.update(&doc! { "_id": 1 }, &change, false, false));
        writer.commit(CommitOptions::buffered()).unwrap();
        waiting.join().unwrap()
    });
    assert_eq!(waiting.unwrap().modified, 1);
    assert!(matches!(world.all()[1].get("a"), Some(Value::Int32(301))));
    world.assert_clean();
}

/// Documents without an `_id` are inserted, and the pipeline reads what it writes.
#[test]
fn a_merge_does_not_read_its_own_writes() {
    let world = World::new();
    let docs: Vec<DocBuf> = (0..1500).map(|id| doc! { "_id": id, "a": id }).collect();
    world.insert(&docs, true);
    let one = Namespace::parse("d.one").unwrap();
    let single = doc! { "_id": 1 };
    let (docs, options) = ([single.as_doc()], InsertOptions::ORDERED);
    insert_many(&mut world.target(), &one, &docs, options, &Interrupt::new()).unwrap();
    let without_id = doc! { "$project": { "_id": 0, "a": 1 } };
    let merge = doc! { "$merge": { "into": "t" } };
    let joined = doc! { "$lookup": { "from": "t", "pipeline": [], "as": "all" } };
    let unwind = doc! { "$unwind": "$all" };
    let root = doc! { "$replaceWith": "$all" };
    let union = doc! { "$unionWith": "t" };
    let facet = doc! { "$facet": { "all": [&union] } };
    // The source, the stages, and the number of documents besides those of the target.
    let ways: [(&str, Vec<&DocBuf>, usize); 4] = [
        ("t", vec![], 0),
        ("one", vec![&union], 1),
        ("one", vec![&joined, &unwind, &root], 0),
        ("one", vec![&facet, &unwind, &root], 1),
    ];
    for (from, stages, besides) in ways {
        let before = world.all().len();
        let stages = stages.into_iter().chain([&without_id, &merge]);
        let request = AggregateRequest {
            namespace: format!("d.{from}"),
            pipeline: stages.cloned().collect(),
            ..AggregateRequest::default()
        };
        let mut views = FreshViews::new(&world.store).unwrap();
        let mut execution = open(&request, &views, params()).unwrap();
        let interrupt = Interrupt::new();
        interrupt.set_deadline(Some(Instant::now() + Duration::from_secs(30)));
        let commit = CommitOptions::buffered();
        let mut unit = world.target();
        write_results(&mut execution, &mut views, &mut unit, &commit, &interrupt).unwrap();
        assert_eq!(world.all().len(), 2 * before + besides, "{request:?}");
    }
}

/// A `whenMatched` pipeline reads the variables of the request's `let` and its own, which hide
/// those of the same name.
#[test]
fn a_merge_reads_the_variables_of_the_request() {
    let world = World::new();
    world.insert(&[doc! { "_id": 1, "a": 5 }], true);
    let merge = doc! { "$merge": {
        "into": "t",
        "let": { "own": "$a", "hidden": "inner" },
        "whenMatched": [
            { "$set": { "given": "$$given", "own": "$$own", "hidden": "$$hidden" } },
            { "$unset": "a" },
        ],
    } };
    let request = AggregateRequest {
        namespace: "d.t".to_owned(),
        pipeline: vec![merge],
        let_vars: doc! { "given": { "$add": [1, 2] }, "hidden": "outer" },
        ..AggregateRequest::default()
    };
    let mut views = FreshViews::new(&world.store).unwrap();
    let mut execution = open(&request, &views, params()).unwrap();
    let commit = CommitOptions::buffered();
    let mut unit = world.target();
    write_results(&mut execution, &mut views, &mut unit, &commit, &Interrupt::new()).unwrap();
    let changed = doc! { "_id": 1, "given": 3, "own": 5, "hidden": "inner" };
    assert_eq!(world.all(), [changed]);
}

/// The collection that the first document creates has the simple collation, and the next look-up of
/// an index on `on` refused that: 51183 for a `$merge` with a collation into a new collection.
#[test]
fn a_merge_with_a_collation_can_create_its_collection() {
    let world = World::new();
    world.insert(&[doc! { "_id": 1 }, doc! { "_id": 2 }], true);
    let english = doc! { "locale": "en", "strength": 2 };
    let request = AggregateRequest {
        namespace: "d.t".to_owned(),
        pipeline: vec![doc! { "$merge": { "into": "made", "on": "_id" } }],
        collation: AskedCollation::parse(english.as_doc()).unwrap(),
        ..AggregateRequest::default()
    };
    let mut views = FreshViews::new(&world.store).unwrap();
    let mut execution = open(&request, &views, params()).unwrap();
    let (interrupt, commit) = (Interrupt::new(), CommitOptions::buffered());
    let mut unit = world.target();
    write_results(&mut execution, &mut views, &mut unit, &commit, &interrupt).unwrap();
}
