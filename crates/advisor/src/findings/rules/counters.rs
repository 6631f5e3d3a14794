//! P8: a counter takes most of the writes of a collection.

use crate::findings::mongosh::string;
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Statement, Text, Value};

/// The smallest rate of writes.
const RATE_MIN: f64 = 100.0;
/// The smallest share of the collection's writes.
const SHARE_MIN: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    id: "P8",
    title: Text { en: "A counter takes most of the writes", zh: "计数器占了大部分写入" },
    advice: Text {
        en: "Each $inc writes the whole document again, and writers of one document wait for each other. Count in the \
             application and write the sum each second, or write one time in N and add N.",
        zh: "每次 $inc 都要重写整个文档，同一文档的写入者互相等待。请在应用中计数、每秒写入一次总和，或每 N 次写一次并加 N。",
    },
    effects: Text {
        en: "The number is behind by a second, or right on average.",
        zh: "数值会滞后一秒，或只在平均意义上准确。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for name in input.asked() {
        let writes = input.writes(name);
        for one in input.statements(name) {
            if let Some(path) = counter(one)
                && one.per_second >= RATE_MIN
                && one.per_second >= writes * SHARE_MIN
            {
                found.push(finding(input, name, path, one, writes));
            }
        }
    }
}

/// Returns the path of an update that only adds to one number.
fn counter<'s>(one: &'s Statement<'_>) -> Option<&'s str> {
    match one.parts.written.as_slice() {
        [only] if only.operator == "$inc" => Some(&only.path),
        _ => None,
    }
}

fn finding(input: &Input<'_>, name: &str, path: &str, one: &Statement<'_>, writes: f64) -> Finding {
    let bytes = input.mean_bytes(name);
    // One write a second for each document that is counted, at most a hundredth of the present.
    let after = one.per_second / 100.0;
    let cost = Some((
        Cost {
            bytes_written: one.per_second * bytes,
            docs_examined: one.per_second,
            ..Cost::default()
        },
        Cost { bytes_written: after * bytes, docs_examined: after, ..Cost::default() },
    ));
    Finding {
        rule: "P8",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence: vec![
            ("increments", Value::PerSecond(one.per_second)),
            ("shareOfWrites", Value::Share((one.per_second / writes.max(1e-9)).min(1.0))),
            ("documentBytes", Value::Bytes(bytes)),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply: vec![format!(
            "// in the application: add to {} once a second, with the sum",
            string(path)
        )],
        undo: Vec::new(),
    }
}
