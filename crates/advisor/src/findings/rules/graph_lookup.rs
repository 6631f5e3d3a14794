//! P15: a tree is walked level by level.

use crate::findings::mongosh::{self, collection, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};

pub(super) const RULE: Rule = Rule {
    id: "P15",
    title: Text { en: "A tree is walked level by level", zh: "逐层遍历树结构" },
    advice: Text {
        en: "$graphLookup runs one query for each level. Store the ancestors of each document in an array with an \
             index: a whole subtree is then one query.",
        zh: "$graphLookup 每层执行一次查询。请在每个文档中用带索引的数组存储祖先：整棵子树只需一次查询。",
    },
    effects: Text {
        en: "A document that moves to another parent changes the ancestors of all below it.",
        zh: "移动一个文档到别的父节点时，要修改其下所有文档的祖先数组。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        let name = &source.name;
        let has_ancestors = profile.root().fields().any(|(field, values)| {
            values.lengths().is_some() && ["ancestors", "path"].contains(&field)
        });
        for one in input.statements(name).iter().filter(|_| !has_ancestors) {
            let mut joined = one.parts.joined.iter();
            let walk = joined.find(|joined| joined.stage == "$graphLookup" && joined.from == *name);
            let Some(walk) = walk else { continue };
            let now = one.cost();
            let results = one.useful_per_second().max(one.per_second);
            let share = (results / now.docs_examined.max(1e-9)).min(1.0);
            let after = Cost {
                docs_examined: results.min(now.docs_examined),
                bytes_read: now.bytes_read * share,
                ..now
            };
            let cost = Some((now, after));
            let parent = walk.local.clone().or_else(|| walk.foreign.clone()).unwrap_or_default();
            let (create, drop) = mongosh::create_index(name, &mongosh::key([("ancestors", 1)]));
            let walk = format!(
                "[{{$graphLookup: {{from: {}, startWith: {}, connectFromField: {}, connectToField: \"_id\", as: \
                 \"ancestors\"}}}}, {{$set: {{ancestors: \"$ancestors._id\"}}}}, {{$merge: {{into: {}, whenMatched: \
                 \"merge\"}}}}]",
                string(name),
                string(&format!("${parent}")),
                string(&parent),
                string(name),
            );
            found.push(Finding {
                rule: "P15",
                severity: input.severity(cost, Severity::Low),
                collection: name.clone(),
                path: parent,
                evidence: vec![
                    ("statements", Value::PerSecond(one.per_second)),
                    ("examinedForEach", Value::Count(one.examined_for_each())),
                    ("documents", Value::Count(input.documents(name))),
                ],
                cost,
                confidence: Confidence::Modelled,
                apply: vec![format!("{}.aggregate({walk})", collection(name)), create],
                undo: vec![
                    drop,
                    format!(
                        "{}.updateMany({{}}, {{$unset: {{ancestors: \"\"}}}})",
                        collection(name)
                    ),
                ],
            });
        }
    }
}
