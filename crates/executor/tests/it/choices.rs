//! Which index a query uses, and the counters of explain: the equality-sort-range rule, skewed
//! data, the `$group` in the plan, and the result of an explained findAndModify.

use super::*;
use quire_document::{Value, doc};
use quire_executor::{explain, open};
use quire_planner::{AggregateRequest, FindRequest, ReadRequest, Verbosity, WriteKind};

const NAME: &str = "d.orders";

fn explained(store: &Arc<Store>, request: ReadRequest<'_>) -> DocBuf {
    let mut views = FreshViews::new(store).unwrap();
    explain(request, None, Verbosity::ExecutionStats, &mut views, params()).unwrap()
}

/// Returns the value at a path of documents.
fn at<'d>(doc: &'d DocBuf, path: &str) -> Option<Value<'d>> {
    let (mut steps, mut doc) = (path.split('.').peekable(), doc.as_doc());
    while let Some(step) = steps.next() {
        let value = doc.get(step)?;
        if steps.peek().is_none() {
            return Some(value);
        }
        doc = value.as_document()?;
    }
    None
}

fn number(doc: &DocBuf, path: &str) -> i64 {
    let found = at(doc, path).and_then(|value| value.as_number()).and_then(|n| n.exact_i64());
    found.unwrap_or_else(|| panic!("no number at {path} of {doc:?}"))
}

fn text<'d>(doc: &'d DocBuf, path: &str) -> &'d str {
    at(doc, path).and_then(|value| value.as_str()).unwrap_or_default()
}

/// Returns a store with 100,000 orders of 100 users in five states.
fn orders() -> Arc<Store> {
    let store = store();
    let states = ["active", "paid", "shipped", "done", "cancelled"];
    let docs: Vec<DocBuf> = (0..100_000_i32)
        .map(|id| {
            let user = format!("user{:03}", id % 100);
            let state = states[(id / 100 % 5) as usize];
            let created_at = Value::Date(1_735_689_600_000 + i64::from(id.wrapping_mul(7919) % 100_000) * 60_000);
            doc! { "_id": id, "user_id": user.as_str(), "status": state, "amount": id % 1009, "created_at": created_at }
        })
        .collect();
    for some in docs.chunks(10_000) {
        insert_all(&store, NAME, some.iter().map(DocBuf::as_doc));
    }
    store
}

#[test]
fn equality_sort_range_needs_no_sort_and_reads_only_its_results() {
    let store = orders();
    let request = FindRequest {
        namespace: NAME.into(),
        filter: doc! { "user_id": "user001", "status": "active", "amount": { "$gte": 500 } },
        sort: doc! { "created_at": -1 },
        ..FindRequest::default()
    };
    let plan_with = |name: &str, key: DocBuf| {
        let spec = doc! { "key": &key, "name": name };
        create_indexes(&store, NAME, [spec.as_doc()].into_iter()).unwrap();
        explained(&store, ReadRequest::Find(&request))
    };
    let figures = |plan: &DocBuf| {
        ["nReturned", "totalDocsExamined"]
            .map(|name| number(plan, &format!("executionStats.{name}")))
    };
    let ers = plan_with("ers", doc! { "user_id": 1, "status": 1, "amount": 1, "created_at": -1 });
    assert_eq!(text(&ers, "queryPlanner.winningPlan.inputStage.stage"), "SORT", "{ers:?}");
    let [returned, examined] = figures(&ers);
    assert!(returned > 80 && returned == examined, "{returned} {examined}");
    let esr = plan_with("esr", doc! { "user_id": 1, "status": 1, "created_at": -1, "amount": 1 });
    assert_eq!(text(&esr, "queryPlanner.winningPlan.stage"), "FETCH");
    assert_eq!(text(&esr, "queryPlanner.winningPlan.inputStage.indexName"), "esr");
    assert_eq!(figures(&esr), [returned, returned]);
    // 200 orders of the user are active; no key of another order is read.
    assert!(number(&esr, "executionStats.totalKeysExamined") <= 200 + 1);
}

#[test]
fn the_chosen_index_depends_on_the_values_of_the_filter() {
    // Nearly all documents are `done`, each with a zone of its own; few are `failed`, all in one
    // zone.
    let store = store();
    let docs: Vec<DocBuf> = (0..5000)
        .map(|id| match id % 500 {
            0 => doc! { "_id": id, "state": "failed", "zone": 7 },
            _ => doc! { "_id": id, "state": "done", "zone": id % 50 },
        })
        .collect();
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    let specs = [
        doc! { "key": { "state": 1 }, "name": "state" },
        doc! { "key": { "zone": 1 }, "name": "zone" },
    ];
    create_indexes(&store, NAME, specs.iter().map(DocBuf::as_doc)).unwrap();
    let chosen = |filter: DocBuf| {
        let request = FindRequest { namespace: NAME.into(), filter, ..FindRequest::default() };
        let plan = explained(&store, ReadRequest::Find(&request));
        let again = explained(&store, ReadRequest::Find(&request));
        let name =
            |plan: &DocBuf| text(plan, "queryPlanner.winningPlan.inputStage.indexName").to_owned();
        assert_eq!(name(&plan), name(&again));
        (name(&plan), number(&plan, "executionStats.totalDocsExamined"))
    };
    assert_eq!(chosen(doc! { "state": "failed", "zone": 7 }), ("state".into(), 10));
    assert_eq!(chosen(doc! { "state": "done", "zone": 8 }), ("zone".into(), 100));
    let range = doc! { "state": { "$in": ["failed", "lost"] }, "zone": { "$gte": 0 } };
    assert_eq!(chosen(range), ("state".into(), 10));
}

/// Returns a store with 20,000 documents, 200 for each value of `a`, `b` and `same`; `same` equals
/// `a`, and `tags` contains `b`.
fn crossed() -> Arc<Store> {
    let store = store();
    let docs: Vec<DocBuf> = (0..20_000_i32)
        .map(|id| {
            let (a, b) = (id % 100, id / 100 * 37 % 100);
            doc! { "_id": id, "a": a, "b": b, "same": a, "tags": [b, 1000 + a], "rare": id % 4000 }
        })
        .collect();
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    let names = ["a", "b", "same", "tags", "rare"];
    let specs: Vec<DocBuf> =
        names.iter().map(|name| doc! { "key": { (*name): 1 }, "name": *name }).collect();
    create_indexes(&store, NAME, specs.iter().map(DocBuf::as_doc)).unwrap();
    store
}

#[test]
fn an_intersection_is_read_where_it_saves_documents() {
    let store = crossed();
    let figures = |request: FindRequest| {
        let request = FindRequest { namespace: NAME.into(), ..request };
        let plan = explained(&store, ReadRequest::Find(&request));
        let inputs = at(&plan, "queryPlanner.winningPlan.inputStage.inputStages");
        let inputs = inputs
            .or_else(|| at(&plan, "queryPlanner.winningPlan.inputStage.inputStage.inputStages"));
        let examined = |name| number(&plan, &format!("executionStats.{name}"));
        assert!(examined("totalKeysExamined") <= 400);
        let both = inputs.is_some_and(|inputs| inputs.as_array().unwrap().count() == 2);
        (both, [examined("nReturned"), examined("totalDocsExamined")])
    };
    let of = |filter: DocBuf| FindRequest { filter, ..FindRequest::default() };
    let filter = doc! { "a": 5, "b": 74 };
    assert_eq!(figures(of(filter.clone())), (true, [2, 2]));
    assert_eq!(figures(of(doc! { "a": 5, "tags": 74 })), (true, [2, 2]));
    let sorted = FindRequest { sort: doc! { "_id": -1 }, ..of(filter.clone()) };
    assert_eq!(figures(sorted), (true, [2, 2]));
    // The estimate is wrong if one condition implies the other: the keys of the second index
    // exclude no document.
    assert_eq!(figures(of(doc! { "a": 5, "same": 5 })), (true, [200, 200]));
    // Reading five documents is cheaper than 200 keys.
    assert_eq!(figures(of(doc! { "a": 5, "rare": 5 })), (false, [5, 5]));
    // The records of a range are in no order.
    let range = doc! { "a": 5, "b": { "$gte": 74, "$lt": 75 } };
    assert_eq!(figures(of(range)), (false, [2, 200]));
    let limited = FindRequest { limit: 1, ..of(filter.clone()) };
    assert!(!figures(limited).0);
    // Its rows have the key of the better index.
    let keyed = FindRequest {
        namespace: NAME.into(),
        projection: doc! { "_id": 0, "key": { "$meta": "indexKey" }, "tags": 0 },
        ..of(filter)
    };
    assert!(figures(keyed.clone()).0);
    let mut execution = open(&keyed, &FreshViews::new(&store).unwrap(), params()).unwrap();
    let found = drain(&store, &mut execution, 10);
    let keys: Vec<i64> = found.iter().map(|doc| number(doc, "key.a")).collect();
    assert_eq!(keys, [5, 5]);
}

#[test]
fn a_group_is_in_the_plan_of_the_query() {
    let store = store();
    let docs: Vec<DocBuf> =
        (0..20).map(|id| doc! { "_id": id, "a": id % 4, "b": id % 2 }).collect();
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    let spec = doc! { "key": { "a": 1 }, "name": "a" };
    create_indexes(&store, NAME, [spec.as_doc()].into_iter()).unwrap();
    let plan = |stages: &[DocBuf]| {
        let namespace = NAME.into();
        let pipeline = stages.to_vec();
        let request = AggregateRequest { namespace, pipeline, ..AggregateRequest::default() };
        explained(&store, ReadRequest::Aggregate(&request))
    };
    let group = doc! { "$group": { "_id": "$b", "n": { "$sum": 1 } } };
    let scanned = plan(std::slice::from_ref(&group));
    let planned = "queryPlanner.winningPlan.queryPlan";
    let stage = |plan: &DocBuf, path: &str| text(plan, &format!("{path}.stage")).to_owned();
    assert_eq!(text(&scanned, "explainVersion"), "2");
    assert_eq!(stage(&scanned, planned), "GROUP");
    assert_eq!(stage(&scanned, &format!("{planned}.inputStage")), "COLLSCAN");
    assert!(at(&scanned, &format!("{planned}.inputStage.inputStage")).is_none());
    let counted = ["nReturned", "totalDocsExamined", "executionStages.inputStage.nReturned"]
        .map(|name| number(&scanned, &format!("executionStats.{name}")));
    assert_eq!(counted, [2, 20, 20]);
    let numbered =
        ["", ".inputStage"].map(|path| number(&scanned, &format!("{planned}{path}.planNodeId")));
    assert_eq!(numbered, [2, 1]);

    let matched = plan(&[doc! { "$match": { "a": 3 } }, group.clone()]);
    let stages = ["", ".inputStage", ".inputStage.inputStage"]
        .map(|path| stage(&matched, &format!("{planned}{path}")));
    assert_eq!(stages, ["GROUP", "FETCH", "IXSCAN"]);
    assert_eq!(number(&matched, "executionStats.totalDocsExamined"), 5);

    let sorted = plan(&[group, doc! { "$sort": { "n": 1 } }]);
    let stages: Vec<DocBuf> =
        documents(at(&sorted, "stages").unwrap().as_array().unwrap()).map(Doc::to_owned).collect();
    assert_eq!(stages.len(), 2, "{sorted:?}");
    assert_eq!(stage(&stages[0], &format!("$cursor.{planned}")), "GROUP");
    assert_eq!(number(&stages[0], "$cursor.executionStats.nReturned"), 2);
    assert_eq!(number(&stages[1], "$sort.sortKey.n"), 1);
    assert_eq!(number(&stages[1], "nReturned"), 2);
}

#[test]
fn an_explained_find_and_modify_counts_the_document_that_it_returns() {
    let store = store();
    let docs = [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1 }];
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    let figures = |a: i32, kind: WriteKind| {
        let filter = doc! { "a": a };
        let request =
            FindRequest { namespace: NAME.into(), filter, limit: 1, ..FindRequest::default() };
        let plan = explained(&store, ReadRequest::Write(&request, kind));
        let stage = "executionStats.executionStages";
        assert_eq!(
            number(&plan, "executionStats.nReturned"),
            number(&plan, &format!("{stage}.nReturned"))
        );
        let counter = if kind.removes() { "nWouldDelete" } else { "nWouldUpsert" };
        (number(&plan, "executionStats.nReturned"), number(&plan, &format!("{stage}.{counter}")))
    };
    let asked = |remove, upsert, new| WriteKind::FindAndModify { remove, upsert, new };
    assert_eq!(figures(1, asked(false, false, false)), (1, 0));
    assert_eq!(figures(1, asked(true, false, false)), (1, 1));
    assert_eq!(figures(9, asked(false, false, true)), (0, 0));
    assert_eq!(figures(9, asked(false, true, false)), (0, 1));
    assert_eq!(figures(9, asked(false, true, true)), (1, 1));
    assert_eq!(figures(9, WriteKind::Update { multi: true, upsert: true }), (0, 1));
    assert_eq!(figures(1, WriteKind::Update { multi: true, upsert: true }), (0, 0));
}
