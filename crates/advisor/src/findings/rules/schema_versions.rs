//! P13: documents of two forms, the newer of which has replaced the older.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::{CollectionProfile, FieldSet, can_be_named, path_of};

/// The smallest share of the documents that each form has.
const SHARE_MIN: f64 = 0.1;

pub(super) const RULE: Rule = Rule {
    id: "P13",
    title: Text { en: "Two forms of one document", zh: "同一种文档有两种结构" },
    advice: Text {
        en: "Documents up to a day have other fields than those after it, and every reader must know both. Add a field \
             with the version, and bring the old documents to the new form in the background.",
        zh: "某天之前的文档与之后的文档字段不同，每个读取方都要同时支持两种。请添加版本字段，并在后台把旧文档升级到新结构。",
    },
    effects: Text {
        en: "A program that knows only the old form must be replaced first.",
        zh: "只认识旧结构的程序必须先更新。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        found.extend(finding(input, &source.name, profile));
    }
}

fn finding(input: &Input<'_>, name: &str, profile: &CollectionProfile) -> Option<Finding> {
    let (sets, _) = profile.field_sets();
    let read = profile.documents() as f64;
    let mut large = sets.iter().filter(|set| set.1 as f64 >= read * SHARE_MIN);
    let (first, second) = (large.next()?, large.next()?);
    let (old, new) = match (profile.born(first.0)?, profile.born(second.0)?) {
        (left, right) if left.1 < right.0 => (first, second),
        (left, right) if right.1 < left.0 => (second, first),
        _ => return None,
    };
    let only = |one: &FieldSet<'_>, other: &FieldSet<'_>| {
        let fields = one.0.iter().filter(|field| !other.0.contains(field));
        fields.map(ToString::to_string).collect::<Vec<_>>()
    };
    let (lost, gained) = (only(old, new), only(new, old));
    // A field that was only added needs no reader of two forms; a version names the form.
    let has_version = new.0.iter().any(|field| field.to_lowercase().contains("version"));
    if lost.is_empty() || gained.is_empty() || has_version {
        return None;
    }
    let documents = old.1 as f64 * input.scale(name);
    let written = documents * input.mean_bytes(name);
    let named = lost.iter().find(|name| can_be_named(name)).or(lost.first());
    let field = &path_of(named.map(String::as_str).unwrap_or_default());
    Some(Finding {
        rule: "P13",
        severity: Severity::Low,
        collection: name.to_owned(),
        path: field.clone(),
        evidence: vec![
            ("oldFields", Value::Name(lost.join(", "))),
            ("newFields", Value::Name(gained.join(", "))),
            ("shareOfOld", input.share(name, old.1 as f64, read)),
            ("documentsOfOld", Value::Count(documents)),
            ("bytesToWrite", Value::Bytes(written)),
        ],
        cost: Some((Cost::default(), Cost::default())),
        confidence: input.confidence(name),
        apply: vec![format!(
            "{}.updateMany({{{}: {{$exists: true}}}}, [{{$set: {{schemaVersion: 1}}}}])",
            collection(name),
            string(field)
        )],
        undo: vec![format!(
            "{}.updateMany({{}}, {{$unset: {{schemaVersion: \"\"}}}})",
            collection(name)
        )],
    })
}
