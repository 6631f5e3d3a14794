//! `allPlansExecution`: the statistics of each candidate after its trial.

use super::*;
use quire_document::{Value, doc};
use quire_executor::explain;
use quire_planner::{FindRequest, ReadRequest, Verbosity};

#[test]
fn every_considered_plan_is_tried() {
    let store = store();
    let docs: Vec<DocBuf> =
        (0..300).map(|id| doc! { "_id": id, "a": 1, "b": id, "c": id % 2 }).collect();
    insert_all(&store, "d.t", docs.iter().map(DocBuf::as_doc));
    let specs = [doc! { "key": { "a": 1 }, "name": "a" }, doc! { "key": { "b": 1 }, "name": "b" }];
    create_indexes(&store, "d.t", specs.iter().map(DocBuf::as_doc)).unwrap();
    let trials = |filter: DocBuf| {
        let request = FindRequest { namespace: "d.t".into(), filter, ..FindRequest::default() };
        let mut views = FreshViews::new(&store).unwrap();
        let what = ReadRequest::Find(&request);
        let shown =
            explain(what, None, Verbosity::AllPlansExecution, &mut views, params()).unwrap();
        let stats = shown.get("executionStats").unwrap().as_document().unwrap().to_owned();
        let all = stats.get("allPlansExecution").unwrap().as_array().unwrap();
        documents(all).map(Doc::to_owned).collect::<Vec<DocBuf>>()
    };
    assert!(trials(doc! { "a": 1 }).is_empty());
    let both = trials(doc! { "a": 1, "b": { "$gte": 10 } });
    let index = |trial: &DocBuf| {
        let stages = trial.get("executionStages").unwrap().as_document().unwrap();
        let input = stages.get("inputStage").unwrap().as_document().unwrap();
        input.get("indexName").unwrap().as_str().unwrap().to_owned()
    };
    assert_eq!(both.iter().map(index).collect::<Vec<_>>(), ["b", "a"]);
    for trial in &both {
        assert!(matches!(trial.get("nReturned"), Some(Value::Int32(101))), "{trial:?}");
        assert!(trial.get("score").is_some());
    }
}
