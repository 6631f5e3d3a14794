//! P10: a few documents have lists that are far longer than all others.

use super::growing_arrays::commands;
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::PathProfile;

/// The smallest ratio of the longest list to the median.
const RATIO_MIN: f64 = 100.0;
/// Lists that are long for nearly all documents are no outliers.
const USUAL_MAX: f64 = 10.0;
/// Shorter lists are read quickly.
const LENGTH_MIN: f64 = 1_000.0;

pub(super) const RULE: Rule = Rule {
    id: "P10",
    title: Text {
        en: "A few documents have far longer lists", zh: "少数文档的列表特别长"
    },
    advice: Text {
        en: "The form fits all documents but a few, and these few near the limit first. Keep the list in the \
             document up to a length, and put the rest into documents of overflow with a mark.",
        zh: "这种结构适合绝大多数文档，而少数文档会最先接近上限。请限制文档内列表的长度，其余放入带标记的溢出文档。",
    },
    effects: Text {
        en: "Reads of a marked document need a second query.",
        zh: "读取带标记的文档需要第二次查询。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        profile.for_each_path(&mut |path, values, _| {
            if !path.contains("[]") {
                found.extend(finding(input, &source.name, path, values));
            }
        });
    }
}

fn finding(input: &Input<'_>, name: &str, path: &str, values: &PathProfile) -> Option<Finding> {
    let lengths = values.lengths()?;
    let (median, usual, most) = (lengths.at(0.5).max(1.0), lengths.at(0.95), lengths.at(1.0));
    if most < LENGTH_MIN || most < median * RATIO_MIN || usual > median * USUAL_MAX {
        return None;
    }
    // A list that grows is A1's.
    if lengths.growth().is_some_and(|growth| growth.per_day > 0.0 && growth.correlation >= 0.5) {
        return None;
    }
    let arrays = values.of_type("array").max(1) as f64;
    let element = values.bytes() as f64 / (lengths.mean() * arrays).max(1.0);
    let now = Cost { bytes_read: input.reads(name) * lengths.mean() * element, ..Cost::default() };
    let after = Cost { bytes_read: input.reads(name) * usual * element, ..Cost::default() };
    let cost = input.seconds.map(|_| (now, after));
    let (apply, undo) = commands(name, path);
    Some(Finding {
        rule: "P10",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence: vec![
            ("elementsMedian", Value::Count(median)),
            ("elements95", Value::Count(usual)),
            ("elementsMax", Value::Count(most)),
            ("largestDocument", Value::Bytes(input.collection(name)?.1.size_at(1.0))),
        ],
        cost,
        confidence: input.confidence(name),
        apply,
        undo,
    })
}
