//! A14: a collection that only links two others, as a table of a relational database does.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::references::Reference;

pub(super) const RULE: Rule = Rule {
    id: "A14",
    title: Text {
        en: "A collection that only links two others", zh: "只用于连接两个集合的关联表"
    },
    advice: Text {
        en: "Each question over the link reads two collections more than it needs. Put an array of the ids into the \
             side that has fewer of them, with an index on it.",
        zh: "每次经过关联的查询都要多读两个集合。请把 id 数组放到数量较少的一侧，并在其上建索引。",
    },
    effects: Text {
        en: "A link is added with $addToSet and removed with $pull. A very long list stays a collection.",
        zh: "用 $addToSet 添加关联，用 $pull 删除。很长的列表仍应保留为集合。",
    },
    check,
};

/// Longer lists of ids do not belong into a document.
const LIST_MAX: u64 = 1_000;

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        let fields: Vec<&str> =
            profile.root().fields().map(|(name, _)| name).filter(|name| *name != "_id").collect();
        let of_this = |one: &&Reference| one.from == source.name && !one.in_array;
        let mut links: Vec<&Reference> = Vec::new();
        for one in input.profile.references.iter().filter(of_this) {
            if fields.contains(&&*one.path) && links.iter().all(|known| known.path != one.path) {
                links.push(one);
            }
        }
        if let ([left, right], 2) = (links.as_slice(), fields.len()) {
            found.extend(finding(input, &source.name, left, right));
        }
    }
}

fn finding(input: &Input<'_>, name: &str, left: &Reference, right: &Reference) -> Option<Finding> {
    let most = |one: &Reference| one.fan_out.last().copied().unwrap_or(0);
    let (owner, other) = if most(left) <= most(right) { (left, right) } else { (right, left) };
    if most(owner) > LIST_MAX {
        return None;
    }
    let documents = input.documents(name);
    let bytes = documents * input.mean_bytes(name);
    let rate = input.reads(name);
    let now = Cost {
        storage: bytes + documents * 120.0,
        docs_examined: input.statements(name).iter().map(|one| one.cost().docs_examined).sum(),
        ..Cost::default()
    };
    let after = Cost { storage: documents * 20.0, ..Cost::default() };
    let field = format!("{}_ids", other.to);
    let pipeline = format!(
        "[{{$group: {{_id: {}, ids: {{$push: {}}}}}}}, {{$project: {{{}: \"$ids\"}}}}, {{$merge: {{into: {}, \
         whenMatched: \"merge\", whenNotMatched: \"discard\"}}}}]",
        string(&format!("${}", owner.path)),
        string(&format!("${}", other.path)),
        string(&field),
        string(&owner.to),
    );
    Some(Finding {
        rule: "A14",
        severity: input.severity(Some((now, after)), Severity::Medium),
        collection: name.to_owned(),
        path: String::new(),
        evidence: vec![
            ("links", Value::Name(format!("{} - {}", left.to, right.to))),
            ("documents", Value::Count(documents)),
            ("idsMax", Value::Count(most(owner) as f64)),
            ("reads", Value::PerSecond(rate)),
        ],
        cost: Some((now, after)),
        confidence: input.confidence(name),
        apply: vec![format!("{}.aggregate({pipeline})", collection(name))],
        undo: vec![format!(
            "{}.updateMany({{}}, {{$unset: {{{}: \"\"}}}})",
            collection(&owner.to),
            string(&field)
        )],
    })
}
