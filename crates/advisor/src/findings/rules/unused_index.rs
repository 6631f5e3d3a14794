//! A3: an index that no statement uses.

use crate::findings::input::{is_true, text};
use crate::findings::mongosh::{collection, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::source::{IndexUse, SourceCollection};
use quire_document::DocBuf;

/// The uses must have been counted for so long that weekly work has run.
const SECONDS_MIN: f64 = 7.0 * 86_400.0;
/// The bytes of an index entry, where the size of the index is not known.
const ENTRY_BYTES: f64 = 40.0;

pub(super) const RULE: Rule = Rule {
    id: "A3",
    title: Text { en: "An index that nothing uses", zh: "从未使用的索引" },
    advice: Text {
        en: "Each insert and each change of the key writes an entry, and the index takes memory from data that is \
             read. Hide it first: a hidden index is kept up to date but serves no query. Drop it when nothing has \
             become slower.",
        zh: "每次插入和键的修改都要写入索引项，索引还会挤占数据的内存。请先隐藏：隐藏的索引仍会维护，但不服务查询。确认没有变慢后再删除。",
    },
    effects: Text {
        en: "A query that runs less often than the counted time may need it.",
        zh: "执行周期比统计时间更长的查询可能仍需要它。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, _) in input.collections() {
        for index in &source.indexes {
            let name = text(index, "name");
            if let Some(used) = source.use_of(name).filter(|_| can_go(index)) {
                found.extend(finding(input, source, name, used));
            }
        }
    }
}

/// Returns true unless the index does more than serve queries.
pub(super) fn can_go(index: &DocBuf) -> bool {
    text(index, "name") != "_id_"
        && !is_true(index, "unique")
        && index.get("expireAfterSeconds").is_none()
}

fn finding(
    input: &Input<'_>,
    source: &SourceCollection,
    index: &str,
    used: &IndexUse,
) -> Option<Finding> {
    if used.uses != Some(0) || used.seconds < SECONDS_MIN {
        return None;
    }
    let (cost, written) = upkeep(input, &source.name, used.bytes);
    Some(Finding {
        rule: "A3",
        severity: input.severity(Some(cost), Severity::Low),
        collection: source.name.clone(),
        path: index.to_owned(),
        evidence: vec![
            ("uses", Value::Count(0.0)),
            ("counted", Value::Days(used.seconds / 86_400.0)),
            ("indexBytes", Value::Bytes(cost.0.storage)),
            ("entriesWritten", Value::PerSecond(written)),
        ],
        cost: Some(cost),
        confidence: Confidence::Measured,
        apply: vec![format!("{}.hideIndex({})", collection(&source.name), string(index))],
        undo: vec![format!("{}.unhideIndex({})", collection(&source.name), string(index))],
    })
}

/// Returns what an index costs now, and nothing after; and the entries that are written each second.
pub(super) fn upkeep(input: &Input<'_>, name: &str, bytes: Option<u64>) -> ((Cost, Cost), f64) {
    let documents = input.documents(name);
    let storage = bytes.map_or(documents * ENTRY_BYTES, |bytes| bytes as f64);
    let entry = storage / documents.max(1.0);
    let written = input.inserts(name);
    let now = Cost { storage, bytes_written: written * entry, ..Cost::default() };
    ((now, Cost::default()), written)
}
