//! P7: the same totals are computed again and again over data that hardly changes.

use crate::findings::mongosh::{collection, object, string};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Statement, Text, Value};
use quire_document::Doc;

/// The documents examined for each result from which a total is worth storing.
const EXAMINED_MIN: f64 = 100.0;
/// The statements that were recorded at least.
const COUNT_MIN: u64 = 20;
/// Reads for each write of a document at least.
const READS_MIN: f64 = 0.01;

pub(super) const RULE: Rule = Rule {
    id: "P7",
    title: Text {
        en: "The same totals are computed again and again", zh: "反复计算相同的汇总"
    },
    advice: Text {
        en: "Each statement reads many documents to return a few totals. Store the totals: in a field of the parent \
             that changes with each write, or in a collection that $merge brings up to date.",
        zh: "每条语句都要读取许多文档才能返回几个汇总值。请存储汇总：放在父文档的字段中随写入更新，或用 $merge 定期刷新到一个集合。",
    },
    effects: Text {
        en: "Each write of a child also changes the total. Between two runs of $merge totals are old.",
        zh: "每次写入子文档也要修改汇总。两次 $merge 之间的汇总是旧的。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, _) in input.collections() {
        let writes = input.writes(&source.name);
        for one in input.statements(&source.name) {
            let Some(group) = group(one) else { continue };
            let enough = one.used.measures.count >= COUNT_MIN
                && one.examined_for_each() >= EXAMINED_MIN
                && one.per_second * input.documents(&source.name) > writes
                && one.per_second >= writes * READS_MIN;
            if enough {
                found.push(finding(input, &source.name, one, (group, writes)));
            }
        }
    }
}

/// Returns the `$group` of a shape.
fn group<'s>(one: &'s Statement<'_>) -> Option<Doc<'s>> {
    let stages = one.used.shape.get("pipeline")?.as_array()?;
    let mut stages = stages.iter().filter_map(|stage| stage.as_document());
    stages.find_map(|stage| stage.get("$group")?.as_document())
}

fn finding(
    input: &Input<'_>,
    name: &str,
    one: &Statement<'_>,
    (group, writes): (Doc<'_>, f64),
) -> Finding {
    let now = one.cost();
    let results = one.useful_per_second();
    let after = Cost {
        docs_examined: results,
        bytes_read: results * 200.0,
        bytes_written: writes * 200.0,
        ..Cost::default()
    };
    let cost = Some((now, after));
    let into = format!("{name}_totals");
    Finding {
        rule: "P7",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path: group.get("_id").and_then(|id| id.as_str()).unwrap_or_default().replace('$', ""),
        evidence: vec![
            ("statements", Value::PerSecond(one.per_second)),
            ("examinedForEach", Value::Count(one.examined_for_each())),
            ("returned", Value::Count(one.used.measures.returned.mean(one.used.measures.count))),
            ("writes", Value::PerSecond(writes)),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply: vec![format!(
            "{}.aggregate([{{$group: {}}}, {{$merge: {{into: {}}}}}])",
            collection(name),
            object(group),
            string(&into)
        )],
        undo: vec![format!("{}.drop()", collection(&into))],
    }
}
