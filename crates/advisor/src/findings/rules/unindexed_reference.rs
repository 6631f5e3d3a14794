//! A13: the children of a parent are looked up without an index.

use crate::findings::mongosh;
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::references::Reference;

/// Smaller collections are read in one page.
const DOCUMENTS_MIN: f64 = 1_000.0;

pub(super) const RULE: Rule = Rule {
    id: "A13",
    title: Text { en: "A reference without an index", zh: "引用字段没有索引" },
    advice: Text {
        en: "Each look-up of the documents that refer to one parent reads the whole collection, and so does each \
             document of a $lookup. Create an index on the reference.",
        zh: "查找引用同一父文档的子文档时，每次都要读取整个集合，$lookup 的每个文档也是如此。请在引用字段上建索引。",
    },
    effects: Text {
        en: "Each insert, and each change of the reference, writes an index entry.",
        zh: "每次插入和引用的修改都会写入一个索引项。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for one in &input.profile.references {
        let seen = found.iter().any(|known| {
            known.rule == "A13" && known.collection == one.from && known.path == one.path
        });
        let is_known = input.is_indexed(&one.from, &one.path);
        // A list of indexes that may not be shown says nothing.
        let listed =
            input.collection(&one.from).is_some_and(|(source, _)| !source.indexes.is_empty());
        if !seen && !is_known && listed && input.documents(&one.from) >= DOCUMENTS_MIN {
            found.extend(finding(input, one));
        }
    }
}

fn finding(input: &Input<'_>, one: &Reference) -> Option<Finding> {
    let documents = input.documents(&one.from);
    let mean = input.mean_bytes(&one.from);
    let lookups = lookups(input, one);
    if input.seconds.is_some() && lookups.per_second == 0.0 {
        return None;
    }
    let children = documents / input.documents(&one.to).max(1.0);
    let measured = lookups.documents > 0.0;
    let now = match measured {
        true => lookups.documents,
        false => lookups.per_second.max(1.0) * documents,
    };
    let wanted = lookups.per_second.max(1.0) * children;
    let cost = Some((
        Cost { docs_examined: now, bytes_read: now * mean, ..Cost::default() },
        Cost {
            docs_examined: wanted.min(now),
            bytes_read: wanted.min(now) * mean,
            storage: documents * 40.0,
            ..Cost::default()
        },
    ));
    let (create, drop) = mongosh::create_index(&one.from, &mongosh::key([(one.path.as_str(), 1)]));
    Some(Finding {
        rule: "A13",
        severity: input.severity(cost, Severity::Medium),
        collection: one.from.clone(),
        path: one.path.clone(),
        evidence: vec![
            ("refersTo", Value::Name(format!("{}.{}", one.to, one.field))),
            ("documents", Value::Count(documents)),
            ("childrenOfParent", Value::Count(children)),
            ("lookups", Value::PerSecond(lookups.per_second)),
        ],
        cost,
        confidence: if measured { Confidence::Measured } else { Confidence::Modelled },
        apply: vec![create],
        undo: vec![drop],
    })
}

struct Lookups {
    per_second: f64,
    /// The documents that they examined each second, as far as it was counted.
    documents: f64,
}

/// Returns the look-ups by the reference: filters on it, and joins from the parents to it.
fn lookups(input: &Input<'_>, one: &Reference) -> Lookups {
    let mut lookups = Lookups { per_second: 0.0, documents: 0.0 };
    for statement in input.statements(&one.from) {
        let [test] = statement.parts.filtered.as_slice() else { continue };
        if test.path == one.path && !test.is_optional {
            lookups.per_second += statement.per_second;
            lookups.documents += statement.cost().docs_examined;
        }
    }
    for statement in input.statements(&one.to) {
        let mut joined = statement.parts.joined.iter();
        if joined.any(|join| join.from == one.from && join.foreign.as_deref() == Some(&*one.path)) {
            let results = statement.useful_per_second().max(statement.per_second);
            lookups.per_second += results;
            lookups.documents += statement.cost().docs_examined;
        }
    }
    lookups
}
