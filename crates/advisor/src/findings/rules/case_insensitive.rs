//! A6: a regular expression that no index serves.

use crate::findings::mongosh::{collection, object, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Statement, Text, Value};
use crate::workload::Test;
use quire_document::{Doc, doc};

/// The documents or keys examined for each result from which an index does not serve the request.
const EXAMINED_MIN: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: "A6",
    title: Text {
        en: "A regular expression that no index serves", zh: "索引无法服务的正则表达式"
    },
    advice: Text {
        en: "A pattern with the option i, or without ^ at its beginning, is compared with every value. To compare \
             without regard to case, use an index with a collation of strength 2 and an equality with the same \
             collation; to search for a beginning, write ^ and no option.",
        zh: "带 i 选项或不以 ^ 开头的模式要与每个值比较。若要忽略大小写，请使用强度为 2 的排序规则索引，并用相同排序规则做等值查询；\
             若要查找开头，请以 ^ 开头且不带选项。",
    },
    effects: Text {
        en: "The request must name the collation. One more index is written with each change.",
        zh: "请求必须指定排序规则；每次修改要多写一个索引。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for name in input.asked() {
        for one in input.statements(name) {
            let pattern = one.parts.filtered.iter().find(|test| test.test == Test::Pattern);
            if let Some(pattern) = pattern.filter(|_| examined(one) >= EXAMINED_MIN) {
                found.push(finding(input, name, &pattern.path, one));
            }
        }
    }
}

/// Returns the larger of documents and keys examined, for each result.
fn examined(one: &Statement<'_>) -> f64 {
    let measures = &one.used.measures;
    let results = measures.returned.sum.max(measures.count).max(1) as f64;
    measures.docs_examined.sum.max(measures.keys_examined.sum) as f64 / results
}

fn finding(input: &Input<'_>, name: &str, path: &str, one: &Statement<'_>) -> Finding {
    let now = one.cost();
    let results = one.useful_per_second().max(one.per_second);
    let share = results / now.docs_examined.max(results);
    let after = Cost {
        docs_examined: results.min(now.docs_examined),
        bytes_read: now.bytes_read * share,
        ..now
    };
    let cost = Some((now, after));
    let key = doc! { path: 1 };
    let options = doc! { "collation": { "locale": "en", "strength": 2 }, "name": format!("{path}_ci").as_str() };
    let written = |document: Doc<'_>| object(document);
    Finding {
        rule: "A6",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence: vec![
            ("statements", Value::PerSecond(one.per_second)),
            ("examinedForEach", Value::Count(examined(one))),
            (
                "collectionScans",
                Value::Share(
                    one.used.measures.collection_scans as f64
                        / one.used.measures.count.max(1) as f64,
                ),
            ),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply: vec![format!(
            "{}.createIndex({}, {})",
            collection(name),
            written(key.as_doc()),
            written(options.as_doc())
        )],
        undo: vec![format!("{}.dropIndex({})", collection(name), string(&format!("{path}_ci")))],
    }
}
