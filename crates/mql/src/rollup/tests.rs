//! Tests of roll-ups: a group that was changed equals one that is computed anew.

use super::*;
use quire_document::testing::Generator;
use quire_document::{DocBuf, doc};
use std::collections::BTreeMap;

fn rollup(matching: Option<DocBuf>, set: &DocBuf) -> Result<Rollup> {
    Rollup::parse(matching.as_ref().map(DocBuf::as_doc), set.as_doc())
}

fn every_accumulator() -> DocBuf {
    doc! {
        "count": { "$count": {} },
        "sum": { "$sum": "$x" },
        "avg": { "$avg": "$x" },
        "min": { "$min": "$x" },
        "max": { "$max": "$x" },
        "minN": { "$minN": { "input": "$x", "n": 2 } },
        "maxN": { "$maxN": { "input": "$x", "n": 2 } },
        "first": { "$first": "$y" },
        "last": { "$last": "$y" },
        "firstN": { "$firstN": { "input": "$y", "n": 3 } },
        "lastN": { "$lastN": { "input": "$y", "n": 3 } },
        "top": { "$top": { "sortBy": { "x": -1 }, "output": "$_id" } },
        "topN": { "$topN": { "n": 2, "sortBy": { "y": 1, "x": -1 }, "output": { "i": "$_id" } } },
        "bottom": { "$bottom": { "sortBy": { "x": 1 }, "output": "$y" } },
        "bottomN": { "$bottomN": { "n": 3, "sortBy": { "x": 1 }, "output": "$_id" } },
        "push": { "$push": "$y" },
        "set": { "$addToSet": "$y" },
        "stars.5": { "$sum": { "$cond": [{ "$eq": ["$y", 5] }, 1, 0] } }
    }
}

fn shown(group: &ChildGroup, rollup: &Rollup) -> DocBuf {
    DocBuf::build(|writer| {
        for (path, value) in group.results(rollup) {
            writer.append_some(path, value.as_ref().map(ValueBuf::as_value));
        }
    })
}

fn computed(rollup: &Rollup, children: &BTreeMap<i32, DocBuf>) -> ChildGroup {
    let mut group = ChildGroup::empty(rollup);
    // The order in which the children arrive must not matter.
    for child in children.values().rev() {
        if let Some(child) = rollup.contribution(child.as_doc()).unwrap() {
            group.add(rollup, &child).unwrap();
        }
    }
    group
}

fn drawn(random: &mut Generator, id: i32) -> DocBuf {
    let number = random.below(7) as i32;
    let x = match random.below(8) {
        0 => ValueBuf::new(Value::Null),
        1 => ValueBuf::new(f64::from(number)),
        2 => ValueBuf::new(f64::from(number) / 10.0),
        3 => ValueBuf::new(i64::from(number)),
        4 => ValueBuf::new("text"),
        5 => return doc! { "_id": id, "hidden": true, "y": number },
        6 => return doc! { "_id": id },
        _ => ValueBuf::new(number),
    };
    doc! { "_id": id, "x": &x, "y": random.below(6) as i32 }
}

/// Changes groups at random; returns how often an accumulator became stale.
fn changed_equals_computed(seed: u64, ids: u64, steps: usize) -> usize {
    let filter = Some(doc! { "hidden": { "$ne": true } });
    let rollup = rollup(filter, &every_accumulator()).unwrap();
    let mut random = Generator::new(seed);
    let (mut children, mut group, mut stale) = (BTreeMap::new(), ChildGroup::empty(&rollup), 0);
    for step in 0..steps {
        let id = random.below(ids) as i32;
        let old = children.get(&id).map(|old: &DocBuf| rollup.contribution(old.as_doc()).unwrap());
        // The last third only deletes.
        let new = match if step * 3 < steps * 2 { random.below(3) } else { 0 } {
            0 => children.remove(&id).and(None),
            _ => {
                let new = drawn(&mut random, id);
                children.insert(id, new.clone());
                rollup.contribution(new.as_doc()).unwrap()
            }
        };
        group.change(&rollup, old.flatten().as_ref(), new.as_ref()).unwrap();
        let fresh = computed(&rollup, &children);
        let wanted = shown(&fresh, &rollup);
        if group.is_stale() {
            stale += 1;
            group.refill(fresh);
        }
        assert_eq!(shown(&group, &rollup), wanted, "seed {seed}, step {step}");
        let saved = group.save();
        group = ChildGroup::load(&rollup, saved.as_doc()).expect("a group reads what it wrote");
        assert_eq!(group.save(), saved);
    }
    stale
}

#[test]
fn a_changed_group_equals_a_computed_one() {
    for seed in 0..6 {
        assert_eq!(changed_equals_computed(seed, 8, 60), 0, "all children fit into the lists");
    }
}

#[test]
fn lists_that_are_cut_are_seldom_computed_again() {
    let stale: usize = (0..2).map(|seed| changed_equals_computed(seed, 50, 300)).sum();
    assert!(stale > 0 && stale < 60, "{stale} of 600");
}

#[test]
fn the_last_child_takes_the_maximum_with_it() {
    let rollup = rollup(None, &doc! { "m": { "$max": "$x" }, "n": { "$count": {} } }).unwrap();
    let child = rollup.contribution(doc! { "_id": 1, "x": 5 }.as_doc()).unwrap();
    let mut group = ChildGroup::empty(&rollup);
    group.change(&rollup, None, child.as_ref()).unwrap();
    assert_eq!(shown(&group, &rollup), doc! { "m": 5, "n": 1 });
    group.change(&rollup, child.as_ref(), None).unwrap();
    assert!(!group.is_stale());
    assert_eq!(shown(&group, &rollup), doc! { "n": 0 });
}

#[test]
fn an_empty_group_has_zeros_and_empty_arrays_and_nothing_else() {
    let rollup = rollup(None, &every_accumulator()).unwrap();
    let empty: [i32; 0] = [];
    let array = || quire_document::ArrayBuf::from_iter(empty);
    let wanted = doc! {
        "count": 0, "sum": 0, "minN": &array(), "maxN": &array(), "firstN": &array(),
        "lastN": &array(), "topN": &array(), "bottomN": &array(), "push": &array(),
        "set": &array(), "stars.5": 0
    };
    assert_eq!(shown(&ChildGroup::empty(&rollup), &rollup), wanted);
}

#[test]
fn equal_values_of_other_types_do_not_depend_on_the_order() {
    let rollup = rollup(None, &doc! { "s": { "$addToSet": "$x" }, "m": { "$max": "$x" } }).unwrap();
    let (int, double) = (doc! { "_id": 1, "x": 3 }, doc! { "_id": 2, "x": 3.0 });
    let group = |children: [&DocBuf; 2]| {
        let mut group = ChildGroup::empty(&rollup);
        for child in children {
            let child = rollup.contribution(child.as_doc()).unwrap().unwrap();
            group.add(&rollup, &child).unwrap();
        }
        shown(&group, &rollup)
    };
    assert_eq!(group([&int, &double]), group([&double, &int]));
}

#[test]
fn a_group_without_state_is_stale_until_it_is_computed() {
    let rollup = rollup(None, &every_accumulator()).unwrap();
    let mut group = ChildGroup::stale(&rollup);
    assert!(group.is_stale());
    let saved = group.save();
    group = ChildGroup::load(&rollup, saved.as_doc()).unwrap();
    assert!(group.is_stale());
    group.refill(ChildGroup::empty(&rollup));
    assert!(!group.is_stale());
}

#[test]
fn large_accumulators_are_stored_as_stale() {
    let rollup = rollup(None, &doc! { "p": { "$push": "$x" }, "n": { "$count": {} } }).unwrap();
    let mut group = ChildGroup::empty(&rollup);
    let long = "x".repeat(1000);
    for id in 0..1100 {
        let child = doc! { "_id": id, "x": long.as_str() };
        group.add(&rollup, &rollup.contribution(child.as_doc()).unwrap().unwrap()).unwrap();
    }
    assert!(!group.is_stale());
    assert!(ChildGroup::load(&rollup, group.save().as_doc()).unwrap().is_stale());
}

#[test]
fn states_of_other_definitions_are_refused() {
    let one = rollup(None, &doc! { "a": { "$count": {} } }).unwrap();
    let two = rollup(None, &doc! { "a": { "$count": {} }, "b": { "$max": "$x" } }).unwrap();
    assert!(ChildGroup::load(&two, ChildGroup::empty(&one).save().as_doc()).is_none());
    assert!(ChildGroup::load(&one, doc! { "f": [7] }.as_doc()).is_none());
    assert!(ChildGroup::load(&one, DocBuf::new().as_doc()).is_none());
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let refused = |set: DocBuf| rollup(None, &set).unwrap_err();
    for set in [
        doc! {},
        doc! { "a": { "$stdDevPop": "$x" } },
        doc! { "a": { "$sum": { "$rand": {} } } },
        doc! { "a": { "$push": "$$USER_ROLES" } },
        doc! { "_id": { "$sum": 1 } },
        doc! { "a..b": { "$sum": 1 } },
        doc! { "a": { "$sum": 1 }, "a.b": { "$sum": 1 } },
    ] {
        assert_eq!(refused(set.clone()).code().number(), 2, "{set:?}");
    }
    assert_eq!(refused(doc! { "a": 1 }).code().number(), 40234);
    assert_eq!(refused(doc! { "a": { "$push": "$$NOW" } }).code().number(), 51144);
    let by_score = doc! { "n": 1, "sortBy": { "s": { "$meta": "textScore" } }, "output": 1 };
    assert_eq!(refused(doc! { "a": { "$topN": &by_score } }).code().number(), 40218);
    let where_ = doc! { "$where": "true" };
    assert!(rollup(Some(where_), &doc! { "a": { "$sum": 1 } }).is_err());
}
