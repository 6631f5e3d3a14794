//! P9: many small measurements, one document each.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::{CollectionProfile, can_be_named};
use crate::source::SourceCollection;
use crate::workload::Kind;

/// Larger documents are no single measurements.
const BYTES_MAX: f64 = 250.0;
/// Fewer documents take little.
const DOCUMENTS_MIN: f64 = 10_000.0;
/// The different values of the source of the measurements, for all documents, at most.
const SOURCES_MAX: f64 = 0.02;
/// The bytes of a measurement in a document of many, for each byte of a document: an assumption.
const PACKED: f64 = 0.25;

pub(super) const RULE: Rule = Rule {
    id: "P9",
    title: Text {
        en: "Many small measurements, one document each",
        zh: "大量小测量值各占一个文档",
    },
    advice: Text {
        en: "Ids, index entries and the fields that name the source take more than the values. Put the measurements \
             of a source in an hour into one document; where the server has time-series collections, they do so by \
             themselves.",
        zh: "id、索引项和标识来源的字段占用的空间比数值还多。请把同一来源一小时内的测量值放入一个文档；支持时间序列集合的服务器会自动这样做。",
    },
    effects: Text {
        en: "A new measurement is pushed to the document of its source and hour, with an upsert. A question for single \
             measurements begins with $unwind.",
        zh: "新测量值以 upsert 方式追加到对应来源和小时的文档；查询单个测量值要先用 $unwind 展开。",
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
    let fields = || profile.root().fields().filter(|(name, _)| can_be_named(name));
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
    let into = format!("{name}_by_hour");
    let series = format!(
        "// where the server has time-series collections: db.createCollection({}, {{timeseries: {{timeField: {}, \
         metaField: {}}}}})",
        string(&format!("{name}_series")),
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
        apply: vec![by_hour(profile, name, (time, key), &into), series],
        undo: vec![format!("{}.drop()", collection(&into))],
    })
}

/// Returns the command that puts the measurements of a source in an hour into one document.
fn by_hour(
    profile: &CollectionProfile,
    name: &str,
    (time, key): (&str, &str),
    into: &str,
) -> String {
    let value = |field: &str| string(&format!("${field}"));
    let measured = || profile.root().fields().map(|(field, _)| field);
    // What no path can name stays within the whole document.
    let item = match measured().all(can_be_named) {
        true => {
            let fields = measured().filter(|field| !["_id", key].contains(field));
            let fields = fields.map(|field| format!("{}: {}", string(field), value(field)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        false => string("$$ROOT"),
    };
    format!(
        "{}.aggregate([{{$group: {{_id: {{source: {}, hour: {{$dateTrunc: {{date: {}, unit: \"hour\"}}}}}}, \
         measurements: {{$push: {item}}}}}}}, {{$merge: {{into: {}}}}}])",
        collection(name),
        value(key),
        value(time),
        string(into),
    )
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
