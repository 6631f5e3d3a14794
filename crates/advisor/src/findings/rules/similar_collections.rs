//! P12: collections of one form that are read together.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use std::collections::BTreeSet;

/// The smallest share of common field names.
const COMMON_MIN: f64 = 0.6;

pub(super) const RULE: Rule = Rule {
    id: "P12",
    title: Text {
        en: "Collections of one form are read together", zh: "结构相似的集合被一起读取"
    },
    advice: Text {
        en: "A question over both runs twice and cannot use one index for its sort. Put the documents into one \
             collection with a field for their kind.",
        zh: "跨两个集合的查询要执行两遍，也无法用一个索引排序。请合并为一个集合，并用字段区分类型。",
    },
    effects: Text {
        en: "Filters name the kind. Indexes for one kind become partial ones.",
        zh: "过滤条件要指定类型；只用于一种类型的索引改为部分索引。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, _) in input.collections() {
        for one in input.statements(&source.name) {
            let union = one.parts.joined.iter().find(|joined| joined.stage == "$unionWith");
            let Some(other) = union.map(|joined| &joined.from) else { continue };
            let common = common(input, &source.name, other);
            if common < COMMON_MIN || *other == source.name {
                continue;
            }
            let now = one.cost();
            let results = one.useful_per_second().min(now.docs_examined);
            let after = Cost { docs_examined: results, ..now };
            let cost = Some((now, after));
            found.push(Finding {
                rule: "P12",
                severity: input.severity(cost, Severity::Low),
                collection: source.name.clone(),
                path: other.clone(),
                evidence: vec![
                    ("sameFields", Value::Share(common)),
                    ("statements", Value::PerSecond(one.per_second)),
                    ("examinedForEach", Value::Count(one.examined_for_each())),
                ],
                cost,
                confidence: Confidence::Modelled,
                apply: vec![format!(
                    "{}.aggregate([{{$set: {{kind: {}}}}}, {{$merge: {{into: {}}}}}])",
                    collection(other),
                    string(other),
                    string(&source.name)
                )],
                undo: vec![format!(
                    "{}.deleteMany({{kind: {}}})",
                    collection(&source.name),
                    string(other)
                )],
            });
        }
    }
}

fn common(input: &Input<'_>, left: &str, right: &str) -> f64 {
    let names = |name: &str| -> BTreeSet<String> {
        let found = input.collection(name).map(|(_, found)| found.root());
        found.into_iter().flat_map(|root| root.fields()).map(|(name, _)| name.to_owned()).collect()
    };
    let (left, right) = (names(left), names(right));
    left.intersection(&right).count() as f64 / left.union(&right).count().max(1) as f64
}
