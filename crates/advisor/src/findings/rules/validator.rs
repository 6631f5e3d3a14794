//! A15: a stable form that nothing protects.

use crate::findings::input::types;
use crate::findings::mongosh::{object, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::json_schema::{Form, json_schema};
use crate::profile::{CollectionProfile, PathProfile};
use crate::source::SourceCollection;

/// The smallest share of documents with exactly the same fields.
const SHARE_MIN: f64 = 0.99;
/// Fewer documents do not show that a form is stable.
const DOCUMENTS_MIN: u64 = 500;

pub(super) const RULE: Rule = Rule {
    id: "A15",
    title: Text { en: "A stable form without a validator", zh: "结构稳定却没有验证器" },
    advice: Text {
        en: "All documents have the same form, and the next mistake of a program would change that unseen. The \
             command lets the server refuse other documents; with validationAction \"warn\" it only logs them.",
        zh: "所有文档结构相同，而程序的下一个错误会悄悄破坏它。此命令让服务器拒绝其他结构的文档；validationAction 为 \"warn\" 时只记录日志。",
    },
    effects: Text {
        en: "Writes of another form fail with code 121. A new field must be added to the validator first if you \
             forbid unknown ones.",
        zh: "写入其他结构会失败（错误码 121）。如果禁止未知字段，新字段须先加入验证器。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        let options = &source.options;
        let has_validator = options.get("validator").is_some();
        if !has_validator && options.get("timeseries").is_none() {
            found.extend(finding(input, source, profile));
        }
    }
}

fn finding(
    input: &Input<'_>,
    source: &SourceCollection,
    profile: &CollectionProfile,
) -> Option<Finding> {
    let (sets, _) = profile.field_sets();
    let (fields, count) = sets.first()?;
    let read = profile.documents();
    if read < DOCUMENTS_MIN || (*count as f64) < read as f64 * SHARE_MIN || fields.len() < 3 {
        return None;
    }
    if !profile.root().fields().all(|(_, values)| is_of_one_type(values)) {
        return None;
    }
    let schema = json_schema(profile, Form::Validator);
    Some(Finding {
        rule: "A15",
        severity: Severity::Low,
        collection: source.name.clone(),
        path: String::new(),
        evidence: vec![
            ("documents", Value::Count(input.documents(&source.name))),
            ("sameFields", input.share(&source.name, *count as f64, read as f64)),
            ("fields", Value::Count(fields.len() as f64)),
        ],
        cost: Some((Cost::default(), Cost::default())),
        confidence: input.confidence(&source.name),
        apply: vec![format!(
            "db.runCommand({{collMod: {}, validator: {{$jsonSchema: {}}}, validationLevel: \"moderate\"}})",
            string(&source.name),
            object(schema.as_doc())
        )],
        undo: vec![format!(
            "db.runCommand({{collMod: {}, validator: {{}}}})",
            string(&source.name)
        )],
    })
}

fn is_of_one_type(values: &PathProfile) -> bool {
    types(values).len() <= 1
}
