//! A9: a path has values of several types, and is filtered, sorted or indexed.

use crate::findings::input::{key, types};
use crate::findings::mongosh::{collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::PathProfile;

/// The smallest share of the second type: fewer values are a slip.
const SHARE_MIN: f64 = 0.01;

pub(super) const RULE: Rule = Rule {
    id: "A9",
    title: Text {
        en: "Values of several types under one name", zh: "同一字段存在多种类型"
    },
    advice: Text {
        en: "A filter finds values of its own type only, and a sort puts all numbers before all texts: answers are \
             incomplete and nobody sees it. Convert the values, then let a validator refuse the other type.",
        zh: "过滤只能找到同类型的值，排序会把所有数字排在所有文本之前：结果不完整却无人察觉。请转换这些值，再用验证器拒绝另一种类型。",
    },
    effects: Text {
        en: "A value that cannot be converted stays as it is: look at these first.",
        zh: "无法转换的值保持不变：请先检查它们。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        profile.for_each_path(&mut |path, values, _| {
            if path != "_id" && !path.contains('*') {
                found.extend(finding(input, &source.name, path, values));
            }
        });
    }
}

fn finding(input: &Input<'_>, name: &str, path: &str, values: &PathProfile) -> Option<Finding> {
    let types = types(values);
    let total: u64 = types.iter().map(|(_, count)| count).sum();
    let [(first, _), (second, count), ..] = types.as_slice() else { return None };
    if (*count as f64) < total as f64 * SHARE_MIN {
        return None;
    }
    // One value or a list of them, and an object or its absence, are forms that queries know.
    if [*first, *second].iter().any(|kind| ["array", "object"].contains(kind)) {
        return None;
    }
    let queried = path.replace("[]", "");
    let (source, _) = input.collection(name)?;
    let indexed = source.indexes.iter().filter_map(key).any(|key| key.contains(&queried));
    let statements = input.statements(name).iter().filter(|one| one.uses(&queried));
    let rate: f64 = statements.map(|one| one.per_second).sum();
    if !indexed && rate == 0.0 {
        return None;
    }
    let documents = *count as f64 * input.scale(name);
    let cost = Cost { storage: 0.0, ..Cost::default() };
    let bson = if *first == "number" { "double" } else { first };
    let set = string(&queried);
    let value = string(&format!("${queried}"));
    let convertible = ["string", "double", "date", "bool", "objectId"].contains(&bson);
    let apply = match convertible && !path.contains("[]") {
        true => vec![format!(
            "{}.updateMany({{{set}: {{$type: {}}}}}, [{{$set: {{{set}: {{$convert: {{input: {value}, to: {}, \
             onError: {value}}}}}}}}}])",
            collection(name),
            string(second),
            string(bson),
        )],
        false => {
            vec![format!("{}.find({{{set}: {{$type: {}}}}})", collection(name), string(second))]
        }
    };
    Some(Finding {
        rule: "A9",
        severity: Severity::Medium,
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence: vec![
            ("mainType", Value::Name((*first).to_owned())),
            ("otherType", Value::Name((*second).to_owned())),
            ("shareOfOther", input.share(name, *count as f64, total as f64)),
            ("valuesOfOther", Value::Count(documents)),
            ("statements", Value::PerSecond(rate)),
        ],
        cost: Some((cost, cost)),
        confidence: input.confidence(name),
        apply,
        undo: vec![format!(
            "// keep a copy first: {}.aggregate([{{$match: {{{set}: {{$type: {}}}}}}}, {{$out: {}}}])",
            collection(name),
            string(second),
            string(&format!("{name}_before")),
        )],
    })
}
