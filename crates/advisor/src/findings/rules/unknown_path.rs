//! A11Q: a statement filters or sorts by a path that no document has.

use super::dead_index_key::{is_there, meant, paths};
use crate::findings::mongosh::{collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};

/// Fewer documents can miss a rare field.
const READ_MIN: u64 = 100;

pub(super) const RULE: Rule = Rule {
    id: "A11Q",
    title: Text {
        en: "A query names a field that no document has",
        zh: "查询使用了任何文档都没有的字段",
    },
    advice: Text {
        en: "The condition is true for no document, or for all of them: the answer is not what its author meant. \
             Mostly the name is misspelt.",
        zh: "该条件对所有文档要么都不成立，要么都成立：结果不是作者想要的。多半是名称拼错。",
    },
    effects: Text { en: "The statement gives other results.", zh: "语句的结果会改变。" },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        if profile.documents() < READ_MIN || profile.left_out() > 0 {
            continue;
        }
        let paths = paths(profile);
        for one in input.statements(&source.name) {
            let tested =
                one.parts.filtered.iter().filter(|test| {
                    test.test != crate::workload::Test::Existence && !test.is_optional
                });
            let mut named = tested.map(|test| &test.path);
            let Some(path) = named.find(|path| !is_there(path, &paths)) else { continue };
            // Without a name that it resembles, it can be a field that is still to come.
            let Some(meant) = meant(path, &paths) else { continue };
            if found
                .iter()
                .any(|one| one.rule == "A11Q" && one.collection == source.name && one.path == *path)
            {
                continue;
            }
            let now = one.cost();
            let cost = Some((now, Cost::default()));
            found.push(Finding {
                rule: "A11Q",
                severity: input.severity(cost, Severity::Medium),
                collection: source.name.clone(),
                path: path.clone(),
                evidence: vec![
                    ("statements", Value::PerSecond(one.per_second)),
                    ("meant", Value::Name(meant.to_owned())),
                    ("presence", Value::Share(0.0)),
                    ("returned", Value::Count(one.used.measures.returned.mean(one.used.measures.count))),
                ],
                cost,
                confidence: input.confidence(&source.name),
                apply: vec![format!(
                    "// in the application: {} in place of {}; look with {}.find({{{}: {{$exists: true}}}}).limit(3)",
                    string(meant),
                    string(path),
                    collection(&source.name),
                    string(meant),
                )],
                undo: Vec::new(),
            });
        }
    }
}
