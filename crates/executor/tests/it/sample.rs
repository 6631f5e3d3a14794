//! `$sample` of a large collection draws documents and reads no others.

use std::collections::HashMap;

use super::*;
use quire_document::{Value, doc};
use quire_executor::{explain, open};
use quire_planner::{AggregateRequest, ReadRequest, Verbosity};

const DOCS: i32 = 1000;

/// Returns a collection from which some documents were deleted.
fn store_without(gone: impl Fn(i32) -> bool) -> Arc<Store> {
    let store = store();
    let docs: Vec<DocBuf> = (0..DOCS).map(|n| doc! { "_id": n, "v": n }).collect();
    insert_all(&store, "db.t", docs.iter().map(DocBuf::as_doc));
    let collection = store.catalog().lookup(&ns("db.t")).unwrap().clone();
    store
        .write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
            for n in (0..DOCS).filter(|n| gone(*n)) {
                let found = writer.view().get_by_id(&collection, Value::Int32(n))?.unwrap();
                writer.delete(&collection, found.id, found.doc.as_doc())?;
            }
            Ok(())
        })
        .unwrap();
    store
}

/// Returns the `_id`s of a pipeline's documents, and how many documents it examined.
fn run(store: &Arc<Store>, pipeline: Vec<DocBuf>) -> (Vec<i32>, u64) {
    let request =
        AggregateRequest { namespace: "db.t".into(), pipeline, ..AggregateRequest::default() };
    let views = FreshViews::new(store).unwrap();
    let mut execution = open(&request, &views, params()).unwrap();
    let docs = drain(store, &mut execution, 7);
    let id = |doc: &DocBuf| match doc.get("_id") {
        Some(Value::Int32(id)) => id,
        other => panic!("{other:?}"),
    };
    (docs.iter().map(id).collect(), execution.examined().counters.docs_examined)
}

fn sample(size: i32) -> DocBuf {
    doc! { "$sample": { "size": size } }
}

#[test]
fn each_document_is_as_likely_as_any_other() {
    // A gap at the head, one in the middle and many small ones.
    let gone = |n: i32| n < 50 || (400..600).contains(&n) || n % 7 == 0;
    let store = store_without(gone);
    let left = (0..DOCS).filter(|n| !gone(*n)).count();
    let (size, rounds) = (20, 2000);
    let mut met: HashMap<i32, u64> = HashMap::new();
    for _ in 0..rounds {
        let (mut ids, examined) = run(&store, vec![sample(size)]);
        assert_eq!((ids.len(), examined), (20, 20));
        for id in &ids {
            assert!(!gone(*id));
            *met.entry(*id).or_default() += 1;
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 20, "a document came twice");
    }
    let expected = f64::from(size * rounds) / left as f64;
    let off = |n: i32| met.get(&n).copied().unwrap_or(0) as f64 - expected;
    let chi_square: f64 = (0..DOCS).filter(|n| !gone(*n)).map(|n| off(n).powi(2) / expected).sum();
    let freedom = left as f64 - 1.0;
    let far = (chi_square - freedom).abs() / (2.0 * freedom).sqrt();
    assert!(far < 6.0, "chi-square {chi_square} with {freedom} degrees of freedom");
}

#[test]
fn a_sample_that_is_not_drawn_reads_all_documents() {
    let all = u64::try_from(DOCS).unwrap();
    let store = store_without(|_| false);
    let examined = |pipeline| run(&store, pipeline).1;
    assert_eq!(examined(vec![sample(49)]), 49);
    assert_eq!(examined(vec![sample(50)]), all, "5 % of all");
    assert_eq!(examined(vec![sample(5), sample(3)]), 5);
    let filter = doc! { "$match": { "v": { "$gte": 0 } } };
    assert_eq!(examined(vec![filter, sample(5)]), all);
    assert_eq!(examined(vec![doc! { "$project": { "v": 1 } }, sample(5)]), all);
    let unwound = vec![sample(5), doc! { "$unwind": "$v" }, doc! { "$project": { "v": 1 } }];
    assert_eq!(examined(unwound), 5);
    let few = store_without(|n| n >= 100);
    assert_eq!(run(&few, vec![sample(3)]).1, 100, "a small collection");
    let sparse = store_without(|n| n % 8 != 0);
    assert_eq!(run(&sparse, vec![sample(5)]).1, 125, "most record ids are missing");
    assert_eq!(run(&sparse, vec![sample(200)]).0.len(), 125, "all there are");
}

/// Returns the stage of the plan, the first stage of the pipeline, and the examined documents.
fn explained(store: &Arc<Store>, size: i32) -> (String, String, i64) {
    let request = AggregateRequest {
        namespace: "db.t".into(),
        pipeline: vec![sample(size), doc! { "$set": { "w": 1 } }],
        ..AggregateRequest::default()
    };
    let mut views = FreshViews::new(store).unwrap();
    let what = ReadRequest::Aggregate(&request);
    let plan = explain(what, None, Verbosity::ExecutionStats, &mut views, params()).unwrap();
    let stages = plan.get("stages").and_then(|stages| stages.as_array()).unwrap().to_vec();
    let at = |stage: usize, path: &str| {
        let found = quire_document::Path::new(path).get(stages[stage].as_document().unwrap());
        found.unwrap_or_else(|| panic!("{path} of {plan:?}"))
    };
    let number = |stage, path: &str| at(stage, path).as_number().and_then(|n| n.exact_i64());
    let name = stages[1].as_document().unwrap().first().unwrap().key();
    assert_eq!(number(1, &format!("{name}.size")), Some(i64::from(size)));
    assert_eq!(number(1, "nReturned"), Some(i64::from(size.min(DOCS))));
    assert_eq!(number(2, "nReturned"), Some(i64::from(size.min(DOCS))));
    let stage = at(0, "$cursor.queryPlanner.winningPlan.stage").as_str().unwrap().to_owned();
    let examined = number(0, "$cursor.executionStats.totalDocsExamined").unwrap();
    (stage, name.to_owned(), examined)
}

#[test]
fn explain_distinguishes_a_drawn_sample_from_one_that_reads_all() {
    let store = store_without(|_| false);
    let drawn = ("MULTI_ITERATOR".to_owned(), "$sampleFromRandomCursor".to_owned(), 5);
    assert_eq!(explained(&store, 5), drawn);
    let read = ("COLLSCAN".to_owned(), "$sample".to_owned(), i64::from(DOCS));
    assert_eq!(explained(&store, 50), read);
    assert_eq!(explained(&store, 5000), read);
}
