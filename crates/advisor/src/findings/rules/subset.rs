//! P5: a long list makes most of each document, and reads need a part of it.

use super::bloated_documents::bytes_read;
use super::growing_arrays::commands;
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::{CollectionProfile, PathProfile, path_of};

/// The smallest share of the bytes that the list has.
const SHARE_MIN: f64 = 0.9;
/// Smaller documents are read in one page of the storage.
const BYTES_MIN: f64 = 16_384.0;
/// The elements that a document keeps.
const KEPT: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: "P5",
    title: Text { en: "A list is most of each document", zh: "列表占了文档的大部分" },
    advice: Text {
        en: "Each read brings the whole list into memory, also where a page shows a few elements or none. Keep the \
             elements that pages show, and move all of them to a collection of their own.",
        zh: "每次读取都会把整个列表载入内存，即使页面只显示几个元素甚至不显示。请在文档中保留页面显示的元素，把完整列表移到单独的集合。",
    },
    effects: Text {
        en: "A deleted or changed element of the short list must be refilled from the collection.",
        zh: "短列表中的元素被删除或修改时，必须从集合中补充。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        if profile.bytes() / (profile.documents().max(1) as f64) < BYTES_MIN {
            continue;
        }
        for (path, values) in profile.root().fields() {
            found.extend(finding(input, &source.name, &path_of(path), (profile, values)));
        }
    }
}

fn finding(
    input: &Input<'_>,
    name: &str,
    path: &str,
    (profile, values): (&CollectionProfile, &PathProfile),
) -> Option<Finding> {
    let lengths = values.lengths()?;
    let share = values.bytes() as f64 / profile.bytes().max(1.0);
    let growing = lengths.growth().is_some_and(|growth| {
        growth.per_day > 0.0 && growth.correlation >= 0.5 && lengths.at(1.0) >= 250.0
    });
    // A list that grows is A1's.
    if share < SHARE_MIN || lengths.at(0.5) < 2.0 * KEPT || growing {
        return None;
    }
    let statements = input.statements(name).iter().filter(|one| one.reads());
    let total: f64 = statements.clone().map(|one| one.per_second).sum();
    let without: f64 = statements.filter(|one| !one.returns(path)).map(|one| one.per_second).sum();
    if without * 2.0 < total || total == 0.0 {
        return None;
    }
    let kept = 1.0 - share + share * (KEPT / lengths.mean().max(KEPT));
    let now = Cost { bytes_read: bytes_read(input, name), ..Cost::default() };
    let cost = Some((now, Cost { bytes_read: now.bytes_read * kept, ..now }));
    let (apply, undo) = commands(name, path);
    Some(Finding {
        rule: "P5",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence: vec![
            ("elementsMedian", Value::Count(lengths.at(0.5))),
            ("elementsMax", Value::Count(lengths.at(1.0))),
            ("shareOfBytes", Value::Share(share)),
            ("reads", Value::PerSecond(total)),
            ("readsWithoutPath", Value::PerSecond(without)),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply,
        undo,
    })
}
