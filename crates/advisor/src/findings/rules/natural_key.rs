//! P18: small documents have a generated `_id` that nothing uses beside a key of their own.

use crate::findings::input::{is_true, key};
use crate::findings::mongosh::{collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::{CollectionProfile, can_be_named};
use crate::source::SourceCollection;

/// Larger documents save little by a shorter key.
const BYTES_MAX: f64 = 200.0;
/// Fewer documents save little.
const DOCUMENTS_MIN: f64 = 10_000.0;
/// The bytes of the field `_id` with an ObjectId, and of an entry of its index.
const ID_BYTES: f64 = 17.0 + 28.0;

pub(super) const RULE: Rule = Rule {
    id: "P18",
    title: Text {
        en: "A generated _id beside a natural key", zh: "自然键之外又有生成的 _id"
    },
    advice: Text {
        en: "The documents are small, no statement asks for _id, and another field is unique: with that field as _id \
             the ObjectId and one index go.",
        zh: "文档很小，没有语句使用 _id，且另一个字段唯一：用该字段作为 _id 可省去 ObjectId 和一个索引。",
    },
    effects: Text {
        en: "The key can no longer change. Documents are no longer in the order of insertion by _id.",
        zh: "键不能再修改；文档不再按 _id 的插入顺序排列。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        if input.seconds.is_some() && input.mean_bytes(&source.name) <= BYTES_MAX {
            found.extend(finding(input, source, profile));
        }
    }
}

fn finding(
    input: &Input<'_>,
    source: &SourceCollection,
    profile: &CollectionProfile,
) -> Option<Finding> {
    let name = &source.name;
    let documents = input.documents(name);
    let (_, ids) = profile.root().fields().find(|(field, _)| *field == "_id")?;
    let statements = input.statements(name);
    let reads = statements.iter().filter(|one| one.reads()).count();
    let uses_id = statements.iter().any(|one| one.uses("_id"));
    let referred = input.profile.references.iter().any(|one| one.to == *name && one.field == "_id");
    if documents < DOCUMENTS_MIN
        || ids.of_type("objectId") != ids.present()
        || reads == 0
        || uses_id
        || referred
    {
        return None;
    }
    let unique = source.indexes.iter().filter(|index| is_true(index, "unique"));
    let natural = unique.filter_map(key).find(|key| key.count() == 1)?.first()?.key();
    // A key with a dot is the path of a subdocument, not the name of a field.
    if !can_be_named(natural) {
        return None;
    }
    let (_, values) = profile.root().fields().find(|(field, _)| *field == natural)?;
    if values.present() != profile.documents() {
        return None;
    }
    let now = documents * (input.mean_bytes(name) + ID_BYTES);
    let cost = (
        Cost { storage: now, ..Cost::default() },
        Cost { storage: now - documents * ID_BYTES, ..Cost::default() },
    );
    let into = format!("{name}_by_key");
    Some(Finding {
        rule: "P18",
        severity: Severity::Low,
        collection: name.clone(),
        path: natural.to_owned(),
        evidence: vec![
            ("documents", Value::Count(documents)),
            ("documentBytes", Value::Bytes(input.mean_bytes(name))),
            ("bytesOfId", Value::Bytes(ID_BYTES * documents)),
        ],
        cost: Some(cost),
        confidence: input.confidence(name),
        apply: vec![format!(
            "{}.aggregate([{{$set: {{_id: {}}}}}, {{$unset: {}}}, {{$out: {}}}])",
            collection(name),
            string(&format!("${natural}")),
            string(natural),
            string(&into)
        )],
        undo: vec![format!("{}.drop()", collection(&into))],
    })
}
