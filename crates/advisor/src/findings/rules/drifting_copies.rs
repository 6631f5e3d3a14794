//! A12C: copies that an application keeps by hand, and that differ from their originals.

use crate::copies::Copy;
use crate::findings::mongosh::{collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};

pub(super) const RULE: Rule = Rule {
    id: "A12C",
    title: Text { en: "Copies differ from their originals", zh: "冗余副本与原值不一致" },
    advice: Text {
        en: "Nearly all values are equal, so the field is meant to be a copy; some were forgotten when the original \
             changed. Bring them up to date with the command, and change both in one transaction from now on. If old \
             values are kept on purpose, silence the finding.",
        zh: "几乎所有值都相等，说明该字段是副本；原值变化时有些被遗漏。请用命令更新它们，以后在同一事务中修改两处。如果有意保留旧值，请屏蔽此发现。",
    },
    effects: Text {
        en: "The old values are lost: look at them first if they are meant to show a state of the past.",
        zh: "旧值会丢失：如果它们用于显示过去的状态，请先检查。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    let drifting = input.profile.copies.iter().filter(|copy| copy.equal < copy.compared);
    found.extend(drifting.map(|copy| finding(input, copy)));
}

fn finding(input: &Input<'_>, copy: &Copy) -> Finding {
    let Copy { from, path, through, to, field, compared, equal } = copy;
    let differ = (compared - equal) as f64 / (*compared).max(1) as f64;
    let half = 1.96 * (differ * (1.0 - differ) / (*compared).max(1) as f64).sqrt();
    let documents = input.documents(from);
    let whole = (*compared as f64) >= documents;
    let key = "_id";
    let pipeline = format!(
        "[{{$lookup: {{from: {}, localField: {}, foreignField: {}, as: \"original\"}}}}, {{$set: {{original: {{$first: \
         \"$original\"}}}}}}, {{$match: {{$expr: {{$ne: [{}, {}]}}}}}}, {{$project: {{{}: {}}}}}, {{$merge: {{into: {}, \
         on: \"{key}\", whenMatched: \"merge\", whenNotMatched: \"discard\"}}}}]",
        string(to),
        string(through),
        string(&original_key(input, copy)),
        string(&format!("${path}")),
        string(&format!("$original.{field}")),
        string(path),
        string(&format!("$original.{field}")),
        string(from),
    );
    Finding {
        rule: "A12C",
        severity: Severity::Medium,
        collection: from.clone(),
        path: path.clone(),
        evidence: vec![
            ("copyOf", Value::Name(format!("{to}.{field}"))),
            ("compared", Value::Count(*compared as f64)),
            (
                "differ",
                match whole {
                    true => Value::Share(differ),
                    false => {
                        Value::Interval(differ, (differ - half).max(0.0), (differ + half).min(1.0))
                    }
                },
            ),
            ("documentsThatDiffer", Value::Count(differ * documents)),
        ],
        cost: Some((Cost::default(), Cost::default())),
        confidence: input.confidence(from),
        apply: vec![format!("{}.aggregate({pipeline})", collection(from))],
        undo: vec![format!(
            "// keep a copy first: {}.aggregate([{{$project: {{{}: 1}}}}, {{$out: {}}}])",
            collection(from),
            string(path),
            string(&format!("{from}_before")),
        )],
    }
}

/// Returns the field by which the original is found.
fn original_key(input: &Input<'_>, copy: &Copy) -> String {
    let references = input.profile.references.iter();
    let mut of_this = references
        .filter(|one| one.from == copy.from && one.path == copy.through && one.to == copy.to);
    of_this.next().map_or("_id".to_owned(), |one| one.field.clone())
}
