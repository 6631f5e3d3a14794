//! A3P: an index whose key is the beginning of another's.

use super::unused_index::{can_go, upkeep};
use crate::findings::input::{is_true, key, text};
use crate::findings::mongosh::{collection, string};
use crate::findings::{Confidence, Finding, Input, Rule, Severity, Text, Value};
use quire_document::DocBuf;

pub(super) const RULE: Rule = Rule {
    id: "A3P",
    title: Text {
        en: "An index is the beginning of another", zh: "索引是另一个索引的前缀"
    },
    advice: Text {
        en: "The longer index serves every query of the shorter one. Hide the shorter one, then drop it.",
        zh: "较长的索引可以服务较短索引的所有查询。请先隐藏较短的索引，再删除。",
    },
    effects: Text {
        en: "The entries of the longer index are larger, so that scans of many entries read a little more.",
        zh: "较长索引的条目更大，扫描大量条目时会多读一些数据。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, _) in input.collections() {
        for index in source.indexes.iter().filter(|index| can_go(index) && is_plain(index)) {
            let longer = source.indexes.iter().find(|other| serves(other, index));
            let Some(longer) = longer else { continue };
            let name = text(index, "name");
            let used = source.use_of(name);
            let (cost, written) = upkeep(input, &source.name, used.and_then(|used| used.bytes));
            found.push(Finding {
                rule: "A3P",
                severity: input.severity(Some(cost), Severity::Low),
                collection: source.name.clone(),
                path: name.to_owned(),
                evidence: vec![
                    ("longerIndex", Value::Name(text(longer, "name").to_owned())),
                    ("indexBytes", Value::Bytes(cost.0.storage)),
                    ("entriesWritten", Value::PerSecond(written)),
                ],
                cost: Some(cost),
                confidence: Confidence::Measured,
                apply: vec![format!("{}.hideIndex({})", collection(&source.name), string(name))],
                undo: vec![format!("{}.unhideIndex({})", collection(&source.name), string(name))],
            });
        }
    }
}

/// Returns true for an index of all documents that is not hidden.
fn is_plain(index: &DocBuf) -> bool {
    let ordered = |key: quire_document::Doc<'_>| key.fields().all(|(_, value)| value.is_number());
    !is_true(index, "hidden")
        && !is_true(index, "sparse")
        && index.get("partialFilterExpression").is_none()
        && key(index).is_some_and(ordered)
}

/// Returns true if `longer` begins with the key of `index`, in the same or in the opposite directions.
fn serves(longer: &DocBuf, index: &DocBuf) -> bool {
    let (Some(short), Some(long)) = (key(index), key(longer)) else { return false };
    if !is_plain(longer) || long.count() <= short.count() {
        return false;
    }
    let collation = |index: &DocBuf| {
        index
            .get("collation")
            .and_then(|collation| collation.as_document())
            .map(|doc| doc.to_owned())
    };
    if collation(longer) != collation(index) {
        return false;
    }
    let is_descending = |value: quire_document::Value<'_>| value.exact_i64().unwrap_or(1) < 0;
    let pairs: Vec<_> = short.fields().zip(long.fields()).collect();
    let same_names = pairs.iter().all(|((left, _), (right, _))| left == right);
    let turned: Vec<bool> = pairs
        .iter()
        .map(|((_, left), (_, right))| is_descending(*left) != is_descending(*right))
        .collect();
    same_names && (turned.iter().all(|turned| *turned) || turned.iter().all(|turned| !turned))
}
