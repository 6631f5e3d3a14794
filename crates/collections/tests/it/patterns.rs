//! Patterns below the commands: what two commits beside each other may not both do.

use super::*;
use quire_catalog::patterns::PatternChange;
use quire_collections::{Deferred, Failure, Stepped, build_pattern, derive_step};
use quire_document::{ArrayBuf, Value};

/// Declares a pattern on a collection, and builds it.
fn declare(store: &Arc<Store>, owner: &str, pattern: &DocBuf) {
    let patterns = ArrayBuf::build(|out| {
        out.push(pattern);
    });
    let changes = PatternChange::parse_all("collMod", patterns.as_array()).unwrap();
    let (namespace, stop, options) = (ns(owner), Interrupt::new(), CommitOptions::buffered());
    collection(store, owner);
    store.create_pattern_indexes(&namespace, &changes, &stop, &options).unwrap();
    store.change_patterns(&namespace, &changes, &options).unwrap();
    let owner = collection(store, owner);
    let name = pattern.get("name").unwrap().as_str().unwrap();
    build_pattern(store, (&owner, owner.patterns.named(name).unwrap()), &stop).unwrap();
}

/// A store with the parent 1 and a roll-up whose tasks are all left to jobs.
fn deferring() -> Arc<Store> {
    let store = store();
    insert(&store, "d.parents", &doc! { "_id": 1 }).unwrap();
    let pattern = doc! {
        "name": "children", "type": "rollup", "from": "children", "foreignField": "parent",
        "maxFanout": 0, "set": {
            "count": { "$count": {} }, "best": { "$max": "$n" }, "ids": { "$push": "$_id" }
        }
    };
    declare(&store, "d.parents", &pattern);
    store
}

fn child(id: i32, n: i32) -> DocBuf {
    doc! { "_id": id, "parent": 1, "n": n }
}

/// Returns the tasks that commits have left to jobs.
fn tasks(store: &Arc<Store>) -> Vec<Deferred> {
    let jobs = store.jobs(|key| panic!("damaged: {key:?}")).unwrap();
    let derived = jobs.iter().filter(|job| job.id.kind == "derived");
    derived.map(|job| Deferred::decode(job.parameters.as_doc()).unwrap()).collect()
}

fn run_all(store: &Arc<Store>) {
    for mut job in store.jobs(|key| panic!("damaged: {key:?}")).unwrap() {
        let stop = Interrupt::new();
        let stepped = store.step_job(&mut job, &mut true, &stop, derive_step).unwrap();
        assert_eq!(stepped, Stepped::Ended);
    }
}

/// Runs a task with a writer that has begun before `change`, and whose commit comes after it. Returns
/// the outcome of the commit.
fn commits_beside(store: &Arc<Store>, task: &Deferred, change: impl FnOnce()) -> bool {
    let mut late = store.writer(WriterMode::Statement).unwrap();
    late.run_deferred(task).unwrap();
    assert!(!late.is_empty(), "the task has something to write");
    change();
    match late.commit(CommitOptions::buffered()) {
        Ok(_) => true,
        Err(Failure::Conflict(_)) => false,
        Err(Failure::Error(error)) => panic!("{error}"),
    }
}

fn parent(store: &Arc<Store>) -> DocBuf {
    all(store, "d.parents").remove(0)
}

/// A job had computed a parent from the children of its snapshot, and committed after a newer change
/// of a child whose own task had already run: the parent kept the older values for ever.
#[test]
fn a_deferred_task_does_not_commit_what_a_child_has_changed_meanwhile() {
    for is_stale in [true, false] {
        let store = deferring();
        insert(&store, "d.children", &child(1, 5)).unwrap();
        if !is_stale {
            // The stored group is complete from here on, and the late task reads only that.
            run_all(&store);
        }
        insert(&store, "d.children", &child(2, 9)).unwrap();
        let task = tasks(&store).pop().unwrap();
        let committed = commits_beside(&store, &task, || {
            delete(&store, "d.children", 2).unwrap();
            // Both tasks run, so no other one follows that would mend the parent.
            run_all(&store);
        });
        assert!(!committed, "stale: {is_stale}");
        assert!(tasks(&store).is_empty());
        let expected =
            doc! { "_id": 1, "count": 1, "best": 5, "ids": Value::Array(ids(&[1]).as_array()) };
        assert_eq!(parent(&store), expected, "stale: {is_stale}");
        assert_clean(&store);
    }
}

fn ids(ids: &[i32]) -> ArrayBuf {
    ArrayBuf::build(|out| {
        for id in ids {
            out.push(*id);
        }
    })
}

/// A task depends on the children of its own value only.
#[test]
fn a_deferred_task_does_not_conflict_with_other_parents() {
    let store = deferring();
    insert(&store, "d.parents", &doc! { "_id": 2 }).unwrap();
    insert(&store, "d.children", &child(1, 5)).unwrap();
    let task = tasks(&store).pop().unwrap();
    let other = doc! { "_id": 9, "parent": 2, "n": 1 };
    assert!(commits_beside(&store, &task, || insert(&store, "d.children", &other).unwrap()));
    run_all(&store);
    let best = |parent: &DocBuf| parent.get("best").and_then(|best| best.exact_i64());
    assert_eq!(all(&store, "d.parents").iter().map(best).collect::<Vec<_>>(), [Some(5), Some(1)]);
}

/// A drop had looked for references before a document with one was committed, and committed after it.
#[test]
fn a_reference_that_comes_beside_a_drop_is_never_without_its_document() {
    let store = store();
    insert(&store, "d.customers", &doc! { "_id": 1 }).unwrap();
    let pattern = doc! {
        "name": "customer", "type": "reference", "from": "customers", "localField": "customer"
    };
    declare(&store, "d.orders", &pattern);
    let orders = collection(&store, "d.orders");
    let mut late = store.writer(WriterMode::Statement).unwrap();
    late.insert(&orders, doc! { "_id": 1, "customer": 1 }.as_doc()).unwrap();
    store.drop_collection(&ns("d.customers"), &CommitOptions::buffered()).unwrap().unwrap();
    let failed = late.commit(CommitOptions::buffered()).unwrap_err();
    assert!(matches!(failed, Failure::Conflict(_)));
    // The other order: the reference is there first.
    insert(&store, "d.customers", &doc! { "_id": 1 }).unwrap();
    insert(&store, "d.orders", &doc! { "_id": 1, "customer": 1 }).unwrap();
    let dropped = store.drop_collection(&ns("d.customers"), &CommitOptions::buffered());
    assert_eq!(dropped.unwrap_err().code().number(), 20);
}
