//! A1: an array that grows with the age of its document, without end.

use crate::findings::mongosh::{self, collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::{CollectionProfile, PathProfile};
use crate::source::SourceCollection;

/// The smallest correlation of length and age.
const CORRELATION_MIN: f64 = 0.5;
/// Shorter arrays are moved and read quickly, however they grow (the bound of MongoDB Compass).
const LENGTH_MIN: f64 = 250.0;
/// The largest document.
const DOCUMENT_BYTES: f64 = 16_777_216.0;
/// The elements that a document keeps after the change.
const KEPT: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: "A1",
    title: Text { en: "An array grows without end", zh: "数组无限增长" },
    advice: Text {
        en: "Each read and each push moves the whole document, and at 16 MB writes fail. Move the elements to a \
             collection of their own with a reference to the parent and an index on it; keep the newest few in \
             the document if the page shows them.",
        zh: "每次读取和追加都要移动整个文档，达到 16 MB 后写入会失败。请把元素移到单独的集合，并用带索引的字段引用父文档；\
             如果页面需要，可在文档中保留最新的几个元素。",
    },
    effects: Text {
        en: "Reads of the whole list need a second query. A push becomes an insert. The old array is removed \
             only after the application reads the new collection.",
        zh: "读取完整列表需要第二次查询；追加变为插入。应用改读新集合之后才能删除旧数组。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        profile.for_each_path(&mut |path, values, _| {
            if !path.contains("[]") {
                found.extend(finding(input, (source, profile), path, values));
            }
        });
    }
}

fn finding(
    input: &Input<'_>,
    (source, profile): (&SourceCollection, &CollectionProfile),
    path: &str,
    values: &PathProfile,
) -> Option<Finding> {
    let lengths = values.lengths()?;
    let growth = lengths.growth().filter(|growth| growth.per_day > 0.0)?;
    if growth.correlation < CORRELATION_MIN || lengths.at(1.0) < LENGTH_MIN {
        return None;
    }
    let name = &source.name;
    let arrays = values.of_type("array").max(1) as f64;
    let bytes = values.bytes() as f64 / arrays;
    let element = bytes / lengths.mean().max(1.0);
    let left = (DOCUMENT_BYTES - profile.size_at(1.0)).max(0.0);
    let days = left / (growth.per_day * element).max(1e-9);
    let kept = element * KEPT.min(lengths.mean());
    let pushes: f64 = pushes(input, name, path);
    let reads = input.reads(name);
    let cost = input.seconds.map(|_| {
        let now = Cost {
            bytes_read: reads * bytes,
            bytes_written: pushes * input.mean_bytes(name),
            ..Cost::default()
        };
        let after =
            Cost { bytes_read: reads * kept, bytes_written: pushes * element, ..Cost::default() };
        (now, after)
    });
    let least = if days < 365.0 { Severity::High } else { Severity::Medium };
    let (apply, undo) = commands(name, path);
    Some(Finding {
        rule: "A1",
        severity: input.severity(cost, least),
        collection: name.clone(),
        path: path.to_owned(),
        evidence: vec![
            ("elementsMedian", Value::Count(lengths.at(0.5))),
            ("elementsMax", Value::Count(lengths.at(1.0))),
            ("growth", Value::PerDay(growth.per_day)),
            ("correlation", Value::Share(growth.correlation)),
            ("bytesOfArray", Value::Bytes(bytes)),
            ("largestDocument", Value::Bytes(profile.size_at(1.0))),
            ("daysToLimit", Value::Days(days)),
        ],
        cost,
        confidence: input.confidence(name),
        apply,
        undo,
    })
}

fn pushes(input: &Input<'_>, name: &str, path: &str) -> f64 {
    let pushes = input.statements(name).iter().filter(|one| {
        let mut written = one.parts.written.iter();
        written.any(|one| one.path == path && ["$push", "$addToSet"].contains(&&*one.operator))
    });
    pushes.map(|one| one.per_second).sum()
}

/// Returns the commands that copy the elements to a collection of their own, and that remove it.
pub(super) fn commands(name: &str, path: &str) -> (Vec<String>, Vec<String>) {
    let into = format!("{name}_{}", path.replace(['.', '$'], "_"));
    let parent = format!("{name}_id");
    let field = string(&format!("${path}"));
    let (create, _) = mongosh::create_index(&into, &mongosh::key([(parent.as_str(), 1)]));
    let apply = vec![
        format!(
            "{}.aggregate([{{$unwind: {field}}}, {{$project: {{_id: 0, {}: \"$_id\", item: {field}}}}}, \
             {{$merge: {{into: {}}}}}])",
            collection(name),
            string(&parent),
            string(&into),
        ),
        create,
    ];
    (apply, vec![format!("{}.drop()", collection(&into))])
}
