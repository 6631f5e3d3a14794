//! P9: many small measurements, one document each.

use crate::findings::input::is_true;
use crate::findings::mongosh::{collection, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::{CollectionProfile, PathProfile, can_be_named};
use crate::source::SourceCollection;
use crate::workload::Kind;
use quire_document::{Value as Bson, ValueBuf, compare};
use std::cmp::Ordering;

/// Larger documents are no single measurements.
const BYTES_MAX: f64 = 250.0;
/// Fewer documents take little.
const DOCUMENTS_MIN: f64 = 10_000.0;
/// The different values of the source of the measurements, for all documents, at most.
const SOURCES_MAX: f64 = 0.02;
/// The documents of a sample whose source another one has, at least: fewer do not tell whether a source
/// comes again.
const AGAIN_MIN: usize = 10;
/// The documents of a sample at least that tell whether sources are in the order of time.
const ORDERED_MIN: usize = 20;
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
             of a source in an hour into one document, or use a time-series collection, which is made for them.",
        zh: "id、索引项和标识来源的字段占用的空间比数值还多。请把同一来源一小时内的测量值放入一个文档，或使用专门为此设计的时间序列集合。",
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
    let (time, times) = time?;
    let key = fields().find(|(field, values)| {
        let distinct = values.distinct() as f64;
        *field != "_id"
            && always(values.scalars())
            && values.of_type("double") == 0
            && (2.0..=(read * SOURCES_MAX).max(2.0)).contains(&distinct)
            && (values.of_type("string") > 0 || values.of_type("objectId") > 0 || is_key(field))
            && !follows_time(profile, field, time)
    });
    let number = fields().any(|(_, values)| {
        always(
            values.of_type("double")
                + values.of_type("int")
                + values.of_type("long")
                + values.of_type("decimal"),
        )
    });
    let ((key, keys), true) = (key?, number) else { return None };
    let index_bytes = index_bytes(source, documents);
    let bytes = documents * mean;
    let cost = (
        Cost { storage: bytes + index_bytes, ..Cost::default() },
        Cost { storage: bytes * PACKED, ..Cost::default() },
    );
    let into = format!("{name}_by_hour");
    let mut apply = vec![by_hour(profile, name, (time, key), &into)];
    let mut undo = vec![format!("{}.drop()", collection(&into))];
    // A time-series collection has no unique indexes.
    if !source.indexes.iter().any(|index| is_true(index, "unique")) {
        let granularity = granularity(times, documents / keys.distinct().max(1) as f64);
        let series = Series { name: format!("{name}_series"), time, key, granularity };
        apply.extend(series.apply(input.database, name));
        undo.push(format!("{}.drop()", collection(&series.name)));
    }
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
        apply,
        undo,
    })
}

/// A time-series collection for the measurements.
struct Series<'f> {
    name: String,
    time: &'f str,
    key: &'f str,
    granularity: &'static str,
}

impl Series<'_> {
    /// Returns the commands that create it and fill it from another collection.
    fn apply(&self, database: &str, from: &str) -> [String; 3] {
        let options = format!(
            "{{timeField: {}, metaField: {}, granularity: {}}}",
            string(self.time),
            string(self.key),
            string(self.granularity)
        );
        let name = string(&self.name);
        [
            "// or, as a time-series collection:".to_owned(),
            format!("db.createCollection({name}, {{timeseries: {options}}})"),
            format!(
                "{}.aggregate([{{$out: {{db: {}, coll: {name}, timeseries: {options}}}}}])",
                collection(from),
                string(database)
            ),
        ]
    }
}

/// Returns the granularity for the time between two measurements of a source, of which there are
/// `of_source`.
fn granularity(times: &PathProfile, of_source: f64) -> &'static str {
    let millis = |value: &ValueBuf| match value.as_value() {
        Bson::Date(millis) => Some(millis as f64),
        _ => None,
    };
    let span = times.extremes().and_then(|(first, last)| Some(millis(last)? - millis(first)?));
    match span.unwrap_or(0.0) / of_source.max(1.0) {
        spacing if spacing < 60_000.0 => "seconds",
        spacing if spacing < 3_600_000.0 => "minutes",
        _ => "hours",
    }
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

/// Returns true if the values of a field follow from the time: each has a span of the time that no other
/// one has a part of, as a day or a month that is stored as a text.
fn follows_time(profile: &CollectionProfile, field: &str, time: &str) -> bool {
    let seen = profile.examples().filter_map(|document| match document.get(time) {
        Some(Bson::Date(at)) => Some((at, document.get(field)?)),
        _ => None,
    });
    let mut seen: Vec<(i64, Bson<'_>)> = seen.collect();
    let order = |left: Bson<'_>, right: Bson<'_>| compare(left, right, None);
    seen.sort_by(|left, right| left.0.cmp(&right.0).then_with(|| order(left.1, right.1)));
    let steps = |seen: &[(i64, Bson<'_>)], wanted: Ordering| {
        let pairs = seen.iter().zip(seen.iter().skip(1));
        pairs.filter(|(left, right)| order(left.1, right.1) == wanted).count()
    };
    let (up, down) = (steps(&seen, Ordering::Less), steps(&seen, Ordering::Greater));
    let count = seen.len();
    seen.sort_by(|left, right| order(left.1, right.1));
    let distinct = 1 + steps(&seen, Ordering::Less);
    // A value whose span is left comes again.
    let again = count.saturating_sub(distinct);
    let returns = (1 + up + down).saturating_sub(distinct);
    match again >= AGAIN_MIN {
        true => returns * 10 <= distinct,
        false => count >= ORDERED_MIN && (up == 0 || down == 0),
    }
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
