//! A7: pages are reached by a large skip.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Statement, Text, Value};

/// Smaller skips cost little.
const SKIP_MIN: u64 = 1_000;

pub(super) const RULE: Rule = Rule {
    id: "A7",
    title: Text { en: "Pages are reached by a large skip", zh: "用很大的 skip 翻页" },
    advice: Text {
        en: "A skip reads what it leaves out, so that each page costs more than the one before. Remember the sort key \
             of the last document and begin the next page after it: filter { key: { $lt: last } }, with the same sort \
             and limit.",
        zh: "skip 仍要读取被跳过的内容，因此每一页都比前一页更贵。请记住上一页最后一个文档的排序键，下一页从它之后开始：\
             filter { key: { $lt: last } }，排序和 limit 不变。",
    },
    effects: Text {
        en: "A reader can go to the next page, not to page 500. The sort key must be unique: add _id.",
        zh: "读者只能翻到下一页，不能直接跳到第 500 页。排序键必须唯一：请加上 _id。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for name in input.asked() {
        for one in input.statements(name) {
            let skip = &one.used.measures.skip;
            let p90 = skip.quantile(0.9).unwrap_or(0);
            if p90 >= SKIP_MIN {
                found.push(finding(input, name, one, p90));
            }
        }
    }
}

fn finding(input: &Input<'_>, name: &str, one: &Statement<'_>, p90: u64) -> Finding {
    let measures = &one.used.measures;
    let now = one.cost();
    let keys = measures.keys_examined.sum as f64 / input.seconds.unwrap_or(1.0);
    let now = Cost { docs_examined: now.docs_examined.max(keys), ..now };
    let results = one.useful_per_second();
    let share = results / now.docs_examined.max(results).max(1e-9);
    let after = Cost { docs_examined: results, bytes_read: now.bytes_read * share, ..now };
    let cost = Some((now, after));
    let path = one.parts.sorted.first().map_or("_id", |(path, _)| path);
    Finding {
        rule: "A7",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence: vec![
            ("statements", Value::PerSecond(one.per_second)),
            ("skipMedian", Value::Count(measures.skip.quantile(0.5).unwrap_or(0) as f64)),
            ("skip90", Value::Count(p90 as f64)),
            ("returned", Value::Count(measures.returned.mean(measures.count))),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply: vec![format!(
            "// the next page: {}.find({{ {path}: {{ $lt: last }} }}).sort(...).limit(...)",
            collection(name),
            path = string(path),
        )],
        undo: Vec::new(),
    }
}
