//! P17: documents that have expired are still there.

use crate::findings::mongosh::{collection, object, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::{PathProfile, path_of};
use crate::source::SourceCollection;
use quire_document::{Value as Bson, doc};

/// The smallest share of expired documents.
const EXPIRED_MIN: f64 = 0.3;

pub(super) const RULE: Rule = Rule {
    id: "P17",
    title: Text { en: "Expired documents are still there", zh: "过期文档仍然存在" },
    advice: Text {
        en: "They take memory and disk, and each scan reads them. A TTL index deletes each document at its date.",
        zh: "它们占用内存和磁盘，每次扫描都会读取。TTL 索引会在到期时删除文档。",
    },
    effects: Text {
        en: "The documents are deleted for good: export them first if they are needed.",
        zh: "文档会被永久删除：如果需要，请先导出。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        let has_ttl = source.indexes.iter().any(|index| index.get("expireAfterSeconds").is_some());
        if has_ttl {
            continue;
        }
        for (field, values) in profile.root().fields() {
            if is_end(field) {
                found.extend(finding(input, source, field, values));
            }
        }
    }
}

/// Returns true for a name that says when a document ends.
fn is_end(field: &str) -> bool {
    let plain: String = field.chars().filter(|letter| letter.is_alphanumeric()).collect();
    let plain = plain.to_lowercase();
    ["expir", "validuntil", "validto", "deleteat", "purgeat", "ttl"]
        .iter()
        .any(|name| plain.contains(name))
}

fn finding(
    input: &Input<'_>,
    source: &SourceCollection,
    field: &str,
    values: &PathProfile,
) -> Option<Finding> {
    if values.of_type("date") * 10 < values.present() * 9 {
        return None;
    }
    let (mut past, mut all) = (0_u64, 0_u64);
    for (value, count) in values.sample() {
        if let Bson::Date(end) = value.as_value() {
            all += count;
            past += if end < input.now_ms { count } else { 0 };
        }
    }
    if all == 0 || (past as f64) < all as f64 * EXPIRED_MIN {
        return None;
    }
    let name = &source.name;
    let share = past as f64 / all as f64;
    let documents = input.documents(name);
    let bytes = documents * input.mean_bytes(name);
    let cost = (
        Cost { storage: bytes, ..Cost::default() },
        Cost { storage: bytes * (1.0 - share), ..Cost::default() },
    );
    let key = doc! { field: 1 };
    let options = doc! { "expireAfterSeconds": 0, "name": format!("{field}_ttl").as_str() };
    Some(Finding {
        rule: "P17",
        severity: Severity::Low,
        collection: name.clone(),
        path: path_of(field),
        evidence: vec![
            ("expired", input.share(name, past as f64, all as f64)),
            ("documents", Value::Count(documents)),
            ("bytes", Value::Bytes(bytes * share)),
        ],
        cost: Some(cost),
        confidence: input.confidence(name),
        apply: vec![format!(
            "{}.createIndex({}, {})",
            collection(name),
            object(key.as_doc()),
            object(options.as_doc())
        )],
        undo: vec![format!("{}.dropIndex({})", collection(name), string(&format!("{field}_ttl")))],
    })
}
