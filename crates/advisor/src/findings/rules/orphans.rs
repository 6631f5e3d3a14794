//! A12: references to documents that do not exist.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::references::Reference;

/// With fewer orphans the documents may have been deleted while they were read.
const ORPHANS_MIN: f64 = 0.005;

pub(super) const RULE: Rule = Rule {
    id: "A12",
    title: Text {
        en: "References to documents that do not exist", zh: "引用了不存在的文档"
    },
    advice: Text {
        en: "The referred documents were deleted and the references stayed, or they never existed. Find them with the \
             first command, then delete them or restore the target; delete parent and children in one transaction \
             from now on.",
        zh: "被引用的文档已删除而引用仍在，或从未存在。请用第一条命令找出它们，再删除引用或恢复目标；以后在同一事务中删除父子文档。",
    },
    effects: Text {
        en: "Joins no longer return empty lists for these documents.",
        zh: "这些文档的连接不再返回空列表。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for reference in &input.profile.references {
        if reference.orphans() >= ORPHANS_MIN && reference.looked_up > reference.found {
            found.push(finding(input, reference));
        }
    }
}

fn finding(input: &Input<'_>, reference: &Reference) -> Finding {
    let Reference { from, path, to, field, looked_up, found, .. } = reference;
    let missing = (looked_up - found) as f64;
    let values = distinct(input, from, path).max(*looked_up as f64);
    let lost = values * reference.orphans();
    let mean = input.mean_bytes(from);
    let cost = (Cost { storage: lost * mean, ..Cost::default() }, Cost::default());
    let pipeline = format!(
        "[{{$lookup: {{from: {}, localField: {}, foreignField: {}, as: \"found\"}}}}, {{$match: {{found: [], {}: {{$ne: \
         null}}}}}}, {{$project: {{{}: 1}}}}]",
        string(to),
        string(path),
        string(field),
        string(path),
        string(path),
    );
    Finding {
        rule: "A12",
        severity: if reference.orphans() > 0.05 { Severity::High } else { Severity::Medium },
        collection: from.clone(),
        path: path.clone(),
        evidence: vec![
            ("refersTo", Value::Name(format!("{to}.{field}"))),
            ("valuesLookedUp", Value::Count(*looked_up as f64)),
            ("orphans", share(missing, *looked_up as f64, values)),
            ("missingValues", Value::Count(lost)),
        ],
        cost: Some(cost),
        confidence: input.confidence(from),
        apply: vec![format!("{}.aggregate({pipeline})", collection(from))],
        undo: Vec::new(),
    }
}

/// Returns the share with its interval, unless every value was looked up.
fn share(count: f64, of: f64, all: f64) -> Value {
    let share = count / of.max(1.0);
    if of >= all {
        return Value::Share(share);
    }
    let half = 1.96 * (share * (1.0 - share) / of.max(1.0)).sqrt();
    Value::Interval(share, (share - half).max(0.0), (share + half).min(1.0))
}

/// Returns the number of distinct values of a path in the form of queries.
fn distinct(input: &Input<'_>, name: &str, path: &str) -> f64 {
    let mut distinct = 0;
    if let Some((_, profile)) = input.collection(name) {
        profile.for_each_path(&mut |known, values, _| {
            if known.replace("[]", "") == path {
                distinct = distinct.max(values.distinct());
            }
        });
    }
    distinct as f64
}
