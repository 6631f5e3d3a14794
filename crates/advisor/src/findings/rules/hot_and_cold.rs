//! P6: most bytes of the documents are in fields that hardly any read asks for.

use super::bloated_documents::{bytes_read, heaviest, split};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::CollectionProfile;

/// The smallest ratio of cold to hot bytes (the bound of MongoDB's agent skills).
const RATIO_MIN: f64 = 10.0;
/// Smaller documents are read in one page of the storage.
const BYTES_MIN: f64 = 2_048.0;
/// A field is cold if a smaller share of the reads asks for it.
const READS_MAX: f64 = 0.1;

pub(super) const RULE: Rule = Rule {
    id: "P6",
    title: Text { en: "Most bytes are hardly ever read", zh: "大部分字节很少被读取" },
    advice: Text {
        en: "The cold field takes memory and reads from the fields that every page needs. Move it to a collection of \
             details with the same _id.",
        zh: "冷字段占用了每个页面都需要的热字段的内存和读取。请把它移到 _id 相同的明细集合。",
    },
    effects: Text {
        en: "The few reads of the field need a second read by _id. Both parts must be deleted together.",
        zh: "少数需要该字段的读取要按 _id 再读一次；两部分必须一起删除。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        found.extend(finding(input, &source.name, profile));
    }
}

fn finding(input: &Input<'_>, name: &str, profile: &CollectionProfile) -> Option<Finding> {
    let (path, share) = heaviest(profile)?;
    // Large documents are A4's.
    if input.mean_bytes(name) < BYTES_MIN || profile.size_at(0.5) >= 200_000.0 {
        return None;
    }
    let statements = input.statements(name).iter().filter(|one| one.reads());
    let total: f64 = statements.clone().map(|one| one.per_second).sum();
    let with: f64 = statements.filter(|one| one.returns(&path)).map(|one| one.per_second).sum();
    if total == 0.0 || share < (1.0 - share) * RATIO_MIN || with > total * READS_MAX {
        return None;
    }
    let now = Cost { bytes_read: bytes_read(input, name), ..Cost::default() };
    let kept = 1.0 - share + share * with / total;
    let cost = Some((now, Cost { bytes_read: now.bytes_read * kept, ..now }));
    let (apply, undo) = split(name, &path);
    Some(Finding {
        rule: "P6",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path,
        evidence: vec![
            ("shareOfBytes", Value::Share(share)),
            ("documentMedian", Value::Bytes(profile.size_at(0.5))),
            ("reads", Value::PerSecond(total)),
            ("readsOfPath", Value::PerSecond(with)),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply,
        undo,
    })
}
