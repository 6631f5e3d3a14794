//! A8: names of fields are data.

use super::attributes::pairs;
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::PathProfile;

/// Fewer names can be a form that somebody designed.
const NAMES_MIN: u64 = 20;
/// The share of the names that look like data: with digits, or as long as a hash.
const DATA_MIN: f64 = 0.8;
/// The share of objects that have a name of this kind at most.
const PRESENCE_MAX: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    id: "A8",
    title: Text { en: "Names of fields are data", zh: "字段名中存放了数据" },
    advice: Text {
        en: "No index serves a question over names that are not known, and each new name is a new path. Store an \
             array of { k, v } with an index on k and v.",
        zh: "名称不固定时没有索引可用，每个新名称都是新路径。请改为 { k, v } 的数组，并在 k 和 v 上建索引。",
    },
    effects: Text {
        en: "A filter on one name becomes $elemMatch. Updates of one value need arrayFilters.",
        zh: "对单个名称的过滤改为 $elemMatch；更新单个值需要 arrayFilters。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        profile.for_each_path(&mut |path, values, _| {
            let names = names(values);
            if let Some(names) = names.filter(|_| !path.contains("[]") && !path.contains('*')) {
                found.push(finding(input, &source.name, path, values, names));
            }
        });
    }
}

/// Returns the number of names that are data.
fn names(values: &PathProfile) -> Option<u64> {
    if let Some(names) = values.names() {
        return Some(names);
    }
    let fields: Vec<_> = values.fields().collect();
    let objects = values.of_type("object").max(1) as f64;
    let count = fields.len() as u64;
    if count < NAMES_MIN {
        return None;
    }
    let looks_like_data = |name: &str| {
        let digits = name.chars().filter(char::is_ascii_digit).count();
        digits * 3 >= name.len() || (name.len() >= 16 && digits > 3)
    };
    let data = fields.iter().filter(|(name, values)| {
        looks_like_data(name) && (values.present() as f64) < objects * PRESENCE_MAX
    });
    (data.count() as f64 >= count as f64 * DATA_MIN).then_some(count)
}

fn finding(input: &Input<'_>, name: &str, path: &str, values: &PathProfile, names: u64) -> Finding {
    let objects = values.of_type("object").max(1) as f64;
    let entries: u64 = values.fields().map(|(_, field)| field.present()).sum();
    let storage = values.bytes() as f64 * input.scale(name);
    let cost = Some((Cost { storage, ..Cost::default() }, Cost { storage, ..Cost::default() }));
    let (apply, undo) = pairs(name, path);
    Finding {
        rule: "A8",
        severity: Severity::Medium,
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence: vec![
            ("names", Value::Count(names as f64)),
            ("namesInOne", Value::Count(entries as f64 / objects)),
            ("bytes", Value::Bytes(storage)),
            ("filters", Value::PerSecond(filters(input, name, path))),
        ],
        cost,
        confidence: if input.seconds.is_some() {
            input.confidence(name)
        } else {
            Confidence::Modelled
        },
        apply,
        undo,
    }
}

fn filters(input: &Input<'_>, name: &str, path: &str) -> f64 {
    let below = format!("{path}.");
    let statements = input.statements(name).iter();
    let filters = statements
        .filter(|one| one.parts.filtered.iter().any(|test| test.path.starts_with(&below)));
    filters.map(|one| one.per_second).sum()
}
