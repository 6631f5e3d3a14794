//! P9: many small measurements, one document each.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::CollectionProfile;
use crate::source::SourceCollection;
use crate::workload::Kind;

/// Larger documents are no single measurements.
const BYTES_MAX: f64 = 250.0;
/// Fewer documents take little.
const DOCUMENTS_MIN: f64 = 10_000.0;
/// The different values of the source of the measurements, for all documents, at most.
const SOURCES_MAX: f64 = 0.02;
/// The bytes of a measurement in a time-series bucket, for each byte of a document: an assumption.
const PACKED: f64 = 0.25;

pub(super) const RULE: Rule = Rule {
    id: "P9",
    title: Text {
        en: "Many small measurements, one document each",
        zh: "大量小测量值各占一个文档",
    },
    advice: Text {
        en: "Field names, ids and index entries take more than the values. A time-series collection packs the \
             measurements of a source into columns.",
        zh: "字段名、id 和索引项占用的空间比数值还多。时间序列集合会把同一来源的测量值按列打包。",
    },
    effects: Text {
        en: "A measurement can no longer be changed alone. Change streams and transactions do not cover time-series \
             collections.",
        zh: "单个测量值不能再单独修改。变更流和事务不支持时间序列集合。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        let is_series = source.options.get("timeseries").is_some();
        let changes = input.statements(&source.name).iter();
        let changes =
            changes.filter(|one| matches!(one.used.kind, Kind::Update | Kind::FindAndModify));
        if !is_series && changes.count() == 0 {
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
    let (documents, mean) = (input.documents(name), input.mean_bytes(name));
    if documents < DOCUMENTS_MIN || mean > BYTES_MAX {
        return None;
    }
    let read = profile.documents() as f64;
    let always = |present: u64| present as f64 >= read * 0.99;
    let fields = || profile.root().fields();
    let time = fields().find(|(_, values)| {
        always(values.of_type("date")) && values.distinct() as f64 > read * 0.2
    });
    let key = fields().find(|(field, values)| {
        let distinct = values.distinct() as f64;
        *field != "_id"
            && always(values.scalars())
            && values.of_type("double") == 0
            && (2.0..=(read * SOURCES_MAX).max(2.0)).contains(&distinct)
            && (values.of_type("string") > 0 || values.of_type("objectId") > 0 || is_key(field))
    });
    let number = fields().any(|(_, values)| {
        always(
            values.of_type("double")
                + values.of_type("int")
                + values.of_type("long")
                + values.of_type("decimal"),
        )
    });
    let ((time, _), (key, keys), true) = (time?, key?, number) else { return None };
    let index_bytes = index_bytes(source, documents);
    let bytes = documents * mean;
    let cost = (
        Cost { storage: bytes + index_bytes, ..Cost::default() },
        Cost { storage: bytes * PACKED, ..Cost::default() },
    );
    let into = format!("{name}_series");
    let create = format!(
        "db.createCollection({}, {{timeseries: {{timeField: {}, metaField: {}, granularity: \"minutes\"}}}})",
        string(&into),
        string(time),
        string(key)
    );
    Some(Finding {
        rule: "P9",
        severity: Severity::Low,
        collection: name.clone(),
        path: key.to_owned(),
        evidence: vec![
            ("documents", Value::Count(documents)),
            ("documentBytes", Value::Bytes(mean)),
            ("indexBytes", Value::Bytes(index_bytes)),
            ("sources", Value::Count(keys.distinct() as f64)),
            ("inserts", Value::PerSecond(input.inserts(name))),
        ],
        cost: Some(cost),
        confidence: Confidence::Modelled,
        apply: vec![
            create,
            format!(
                "// then: mongodump and mongorestore, or insert the documents of {} in batches",
                string(name)
            ),
        ],
        undo: vec![format!("{}.drop()", collection(&into))],
    })
}

/// Returns true for a name of a source of measurements.
fn is_key(field: &str) -> bool {
    let field = field.to_lowercase();
    ["sensor", "device", "host", "meter", "station"].iter().any(|name| field.contains(name))
}

fn index_bytes(source: &SourceCollection, documents: f64) -> f64 {
    let known: u64 = source.uses.iter().filter_map(|used| used.bytes).sum();
    match known {
        0 => documents * 40.0 * source.indexes.len().max(1) as f64,
        known => known as f64,
    }
}
