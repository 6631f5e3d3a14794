//! A statement that reads several collections reads one state of them, although its batches take new
//! views: a commit that changes both sides of a join is visible completely or not at all.

use super::*;
use quire_document::{Value, doc};
use quire_executor::open;
use quire_planner::AggregateRequest;
use std::time::Duration;

const DOCS: i32 = 40;

/// Two collections with the same documents `{_id, v: 0}`.
struct Sides(Arc<Store>);

const NAMES: [&str; 2] = ["db.local", "db.foreign"];

impl Sides {
    fn new() -> Self {
        let store = store();
        let docs: Vec<DocBuf> = (0..DOCS).map(|id| doc! { "_id": id, "v": 0 }).collect();
        NAMES.iter().for_each(|name| insert_all(&store, name, docs.iter().map(DocBuf::as_doc)));
        Sides(store)
    }

    /// Sets `v` in all documents of both collections, in one commit.
    fn set(&self, v: i32) {
        let collections = NAMES.map(|name| self.0.ensure_collection(&ns(name)).unwrap());
        let replace = |writer: &mut Writer| {
            for collection in &collections {
                for id in 0..DOCS {
                    let found = writer.view().get_by_id(collection, Value::Int32(id))?.unwrap();
                    let new = doc! { "_id": id, "v": v };
                    writer.replace(collection, found.id, found.doc.as_doc(), new.as_doc())?;
                }
            }
            Ok(())
        };
        self.0.write(&CommitOptions::buffered(), &Interrupt::new(), replace).unwrap();
    }

    /// Returns the documents of a pipeline over the local side in batches of `batch`; a commit changes both
    /// sides before each batch.
    fn read(&self, stage: DocBuf, batch: usize, params: ExecParams) -> Vec<DocBuf> {
        let namespace = "db.local".into();
        let request =
            AggregateRequest { namespace, pipeline: vec![stage], ..AggregateRequest::default() };
        let views = FreshViews::new(&self.0).unwrap();
        let mut execution = open(&request, &views, params).unwrap();
        let mut v = 0;
        drain_between(&self.0, &mut execution, batch, || {
            v += 1;
            self.set(v);
        })
        .unwrap()
    }
}

fn lookup(field: &str) -> DocBuf {
    doc! { "$lookup": { "from": "foreign", "localField": "_id", "foreignField": field, "as": "j" } }
}

/// Returns `v` of a document and of each document that it is joined with.
fn versions(doc: &DocBuf) -> Vec<i32> {
    let found = doc.get("j").and_then(|found| found.as_array()).unwrap();
    let v = |doc: Doc<'_>| match doc.get("v") {
        Some(Value::Int32(v)) => v,
        other => panic!("v is {other:?}"),
    };
    std::iter::once(v(doc.as_doc())).chain(documents(found).map(v)).collect()
}

#[test]
fn a_join_reads_one_state_of_both_sides() {
    for (field, bytes) in [("_id", 4 << 10), ("_id", 64 << 20), ("v", 64 << 20)] {
        let sides = Sides::new();
        let params = ExecParams { stage_bytes_max: bytes, ..params() };
        let docs = sides.read(lookup(field), 3, params);
        assert_eq!(docs.len(), DOCS as usize);
        for doc in docs {
            assert!(versions(&doc).iter().all(|v| *v == 0), "{field} {bytes}: {doc:?}");
        }
    }
}

#[test]
fn a_union_finds_both_sides_of_one_state() {
    let sides = Sides::new();
    let union = doc! { "$unionWith": { "coll": "foreign" } };
    let docs = sides.read(union, 7, params());
    assert_eq!(docs.len(), 2 * DOCS as usize);
    assert!(docs.iter().all(|doc| matches!(doc.get("v"), Some(Value::Int32(0)))), "{docs:?}");
}

/// It used to be so for every cursor: it must not fail when its state is gone.
#[test]
fn a_join_goes_on_with_the_newest_state_when_its_own_is_not_kept() {
    let sides = Sides::new();
    sides.0.engine().keep_history(Duration::ZERO);
    let params = ExecParams { stage_bytes_max: 4 << 10, ..params() };
    let docs = sides.read(lookup("_id"), 1, params);
    assert_eq!(docs.len(), DOCS as usize);
    let last = versions(docs.last().unwrap());
    assert!(last.iter().all(|v| *v > 1), "{last:?}");
}

/// A count below a `$unionWith` may be answered by the counters, which are those of the newest state.
#[test]
fn a_count_inside_of_a_union_counts_the_state_of_the_statement() {
    let sides = Sides::new();
    let request = AggregateRequest {
        namespace: "db.local".into(),
        pipeline: vec![
            doc! { "$unionWith": { "coll": "foreign", "pipeline": [{ "$count": "n" }] } },
        ],
        ..AggregateRequest::default()
    };
    let views = FreshViews::new(&sides.0).unwrap();
    let mut execution = open(&request, &views, params()).unwrap();
    let mut batch = 0;
    let docs = drain_between(&sides.0, &mut execution, 10, || {
        batch += 1;
        let more: Vec<DocBuf> = (0..3).map(|at| doc! { "_id": 100 * batch + at }).collect();
        insert_all(&sides.0, "db.foreign", more.iter().map(DocBuf::as_doc));
    });
    let docs = docs.unwrap();
    assert_eq!(docs.len(), DOCS as usize + 1);
    let n = docs.last().unwrap().get("n").map(quire_document::literal::print);
    assert_eq!(n.as_deref(), Some("40"));
}
