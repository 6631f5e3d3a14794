//! A4: statements read large documents and use a small part of them.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Statement, Text, Value};
use crate::profile::{CollectionProfile, path_of};
use crate::source::SourceCollection;

/// Smaller documents are read in one page of the storage.
const BYTES_MIN: f64 = 200_000.0;
/// The smallest share of the bytes that the heaviest path has.
const SHARE_MIN: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    id: "A4",
    title: Text {
        en: "Documents are large because of one field", zh: "某个字段使文档过大"
    },
    advice: Text {
        en: "A server reads whole documents. Move the heavy field to a collection of details with the same _id, \
             and read it only where it is shown.",
        zh: "服务器总是读取整个文档。请把这个大字段移到 _id 相同的明细集合，只在需要显示时读取。",
    },
    effects: Text {
        en: "Pages that show the field need a second read by _id. Both parts must be deleted together.",
        zh: "需要该字段的页面要按 _id 再读一次；两部分必须一起删除。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        if profile.size_at(0.5) >= BYTES_MIN {
            found.extend(finding(input, source, profile));
        }
    }
}

/// Returns the path of the first level that is no array and has most of the bytes.
pub(super) fn heaviest(profile: &CollectionProfile) -> Option<(String, f64)> {
    let fields = profile.root().fields().filter(|(_, values)| values.lengths().is_none());
    let heaviest = fields.max_by_key(|(_, values)| values.bytes())?;
    let share = heaviest.1.bytes() as f64 / profile.bytes().max(1.0);
    Some((path_of(heaviest.0), share))
}

/// Returns the commands that copy a field to a collection of details, and that remove it.
pub(super) fn split(name: &str, path: &str) -> (Vec<String>, Vec<String>) {
    let into = format!("{name}_details");
    let apply = vec![format!(
        "{}.aggregate([{{$project: {{{}: 1}}}}, {{$merge: {{into: {}}}}}])",
        collection(name),
        string(path),
        string(&into)
    )];
    (apply, vec![format!("{}.drop()", collection(&into))])
}

fn finding(
    input: &Input<'_>,
    source: &SourceCollection,
    profile: &CollectionProfile,
) -> Option<Finding> {
    let (path, share) = heaviest(profile).filter(|(_, share)| *share >= SHARE_MIN)?;
    let name = &source.name;
    let reads = |one: &&Statement<'_>| one.reads();
    let total: f64 = input.statements(name).iter().filter(reads).map(|one| one.per_second).sum();
    let needs = |one: &&Statement<'_>| one.reads() && one.returns(&path);
    let with: f64 = input.statements(name).iter().filter(needs).map(|one| one.per_second).sum();
    let now = Cost { bytes_read: bytes_read(input, name), ..Cost::default() };
    let kept = 1.0 - share + share * with / total.max(1e-9);
    let cost = input.seconds.map(|_| (now, Cost { bytes_read: now.bytes_read * kept, ..now }));
    let (apply, undo) = split(name, &path);
    Some(Finding {
        rule: "A4",
        severity: input.severity(cost, Severity::Medium),
        collection: name.clone(),
        path: path.clone(),
        evidence: vec![
            ("documentMedian", Value::Bytes(profile.size_at(0.5))),
            ("documentMax", Value::Bytes(profile.size_at(1.0))),
            ("shareOfBytes", input.share(name, share * profile.bytes(), profile.bytes())),
            ("reads", Value::PerSecond(total)),
            ("readsOfPath", Value::PerSecond(with)),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply,
        undo,
    })
}

/// Returns the bytes of documents that the reading statements read each second.
pub(super) fn bytes_read(input: &Input<'_>, name: &str) -> f64 {
    let reads = input.statements(name).iter().filter(|one| one.reads());
    reads.map(|one| one.cost().bytes_read).sum()
}
