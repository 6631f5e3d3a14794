//! N1: a statement whose only condition is a negation.

use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Statement, Text, Value};
use crate::workload::Test;

/// The documents examined for each result from which the form matters.
const EXAMINED_MIN: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: "N1",
    title: Text { en: "A condition that only excludes", zh: "只有否定条件的查询" },
    advice: Text {
        en: "$ne, $nin and $not match nearly everything, so that an index saves nothing. Name the wanted values with \
             $in, or mark the few documents that are wanted with a field and a partial index on it.",
        zh: "$ne、$nin 和 $not 几乎匹配所有文档，索引没有帮助。请用 $in 列出想要的值，或给少数需要的文档加上标记字段并建部分索引。",
    },
    effects: Text {
        en: "A value that is added later must be added to the $in.",
        zh: "以后新增的值必须加入 $in。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for name in input.asked() {
        for one in input.statements(name) {
            let tests = &one.parts.filtered;
            let negative = !tests.is_empty()
                && tests.iter().all(|test| test.is_optional || test.test == Test::Other);
            let excludes = shape_excludes(one);
            if negative && excludes && one.examined_for_each() >= EXAMINED_MIN {
                let path = tests.first().map(|test| test.path.clone()).unwrap_or_default();
                found.push(finding(input, name, path, one));
            }
        }
    }
}

/// Returns true if the shape has `$ne`, `$nin` or `$not`.
fn shape_excludes(one: &Statement<'_>) -> bool {
    let filter = ["filter", "query"].into_iter().find_map(|name| one.used.shape.get(name));
    let text = filter.map(|filter| quire_document::extjson::print(filter, Default::default()));
    let text = text.unwrap_or_default();
    ["\"$ne\"", "\"$nin\"", "\"$not\""].iter().any(|operator| text.contains(operator))
}

fn finding(input: &Input<'_>, name: &str, path: String, one: &Statement<'_>) -> Finding {
    let now = one.cost();
    let results = one.useful_per_second().max(one.per_second).min(now.docs_examined);
    let share = results / now.docs_examined.max(1e-9);
    let after = Cost { docs_examined: results, bytes_read: now.bytes_read * share, ..now };
    let cost = Some((now, after));
    Finding {
        rule: "N1",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path,
        evidence: vec![
            ("statements", Value::PerSecond(one.per_second)),
            ("examinedForEach", Value::Count(one.examined_for_each())),
            ("returned", Value::Count(one.used.measures.returned.mean(one.used.measures.count))),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply: vec!["// in the application: name the wanted values with $in".to_owned()],
        undo: Vec::new(),
    }
}
