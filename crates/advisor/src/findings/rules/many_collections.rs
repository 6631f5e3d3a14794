//! A2: one collection for each day, month or tenant.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Fewer collections of one form are few enough to be on purpose.
const COLLECTIONS_MIN: usize = 10;
/// The share of field names that all must have in common.
const COMMON_MIN: f64 = 0.8;
/// The smallest file of an index and of a collection (MongoDB's manual: each index takes at least
/// 8 KB).
const FILE_BYTES: f64 = 8_192.0;

pub(super) const RULE: Rule = Rule {
    id: "A2",
    title: Text {
        en: "One collection for each day or tenant", zh: "按日期或租户拆分出大量集合"
    },
    advice: Text {
        en: "Each collection and each of its indexes costs a file, memory and a place in the catalog, and a query \
             over several needs $unionWith. Put the documents in one collection with the part of the name as a \
             field; for measurements use a time-series collection.",
        zh: "每个集合及其索引都占用文件、内存和目录项，跨集合查询需要 $unionWith。请合并为一个集合，把名称中的变量部分存为字段；\
             测量数据请使用时间序列集合。",
    },
    effects: Text {
        en: "Queries must name the new field. Dropping old data becomes a TTL index or a delete.",
        zh: "查询必须指定新字段。删除旧数据改为 TTL 索引或删除操作。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (source, _) in input.collections() {
        if let Some(form) = form(&source.name) {
            groups.entry(form).or_default().push(&source.name);
        }
    }
    for (form, names) in groups {
        if names.len() >= COLLECTIONS_MIN && common(input, &names) >= COMMON_MIN {
            found.push(finding(input, &form, &names));
        }
    }
}

/// Returns the name with a hash sign for its runs of digits; `None` without a number after a letter.
fn form(name: &str) -> Option<String> {
    let mut form = String::new();
    for letter in name.chars() {
        match letter.is_ascii_digit() {
            true if form.ends_with('#') => {}
            true => form.push('#'),
            false => form.push(letter),
        }
    }
    (form.contains('#') && !form.starts_with('#')).then_some(form)
}

/// Returns the share of the first level's field names that all collections have.
fn common(input: &Input<'_>, names: &[&str]) -> f64 {
    let fields = |name: &&str| -> BTreeSet<String> {
        let found = input.collection(name).map(|(_, found)| found.root());
        found.into_iter().flat_map(|root| root.fields()).map(|(name, _)| name.to_owned()).collect()
    };
    let mut sets = names.iter().map(fields);
    let Some(first) = sets.next() else { return 0.0 };
    let (mut all, mut shared) = (first.clone(), first);
    for set in sets {
        shared.retain(|name| set.contains(name));
        all.extend(set);
    }
    shared.len() as f64 / all.len().max(1) as f64
}

fn finding(input: &Input<'_>, form: &str, names: &[&str]) -> Finding {
    let sources = names.iter().filter_map(|name| input.collection(name));
    let indexes: usize = sources.map(|(source, _)| source.indexes.len().max(1)).sum();
    let files = (names.len() + indexes) as f64;
    let documents: f64 = names.iter().map(|name| input.documents(name)).sum();
    let first = names.first().copied().unwrap_or_default();
    let of_one = input.collection(first).map_or(1, |(source, _)| source.indexes.len().max(1));
    let cost = (
        Cost { storage: files * FILE_BYTES, ..Cost::default() },
        Cost { storage: (1 + of_one) as f64 * FILE_BYTES, ..Cost::default() },
    );
    let into = form.trim_end_matches(['#', '_', '-', '.']).replace('#', "");
    let stage = format!(
        "[{{$set: {{source: {}}}}}, {{$merge: {{into: {}}}}}]",
        string(first),
        string(&into)
    );
    Finding {
        rule: "A2",
        severity: Severity::Medium,
        collection: form.to_owned(),
        path: String::new(),
        evidence: vec![
            ("collections", Value::Count(names.len() as f64)),
            ("indexes", Value::Count(indexes as f64)),
            ("documents", Value::Count(documents)),
            ("sameFields", Value::Share(common(input, names))),
        ],
        cost: Some(cost),
        confidence: Confidence::Measured,
        apply: vec![
            format!("{}.aggregate({stage})", collection(first)),
            "// the same for each of the other collections".to_owned(),
        ],
        undo: vec![format!("{}.drop()", collection(&into))],
    }
}
