//! A5: data that is read together stands apart: the relations for which another form is cheaper.

use crate::findings::mongosh::{collection, string};
use crate::findings::relations::{Relation, RelationForm, decide};
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::can_be_named;

pub(super) const RULE: Rule = Rule {
    id: "A5",
    title: Text {
        en: "Data that is read together stands apart", zh: "一起读取的数据被分开存放"
    },
    advice: Text {
        en: "The reads of this relation join each time. With the measured rates another form costs at least a fifth \
             less: all inputs of the formula are printed with the relation.",
        zh: "这个关系的读取每次都要连接。按测得的速率，另一种形式至少便宜五分之一；公式的所有输入都列在关系中。",
    },
    effects: Text {
        en: "Embedded data is written through its parent. Copied fields must be updated with their original, or \
             stay as they were on purpose.",
        zh: "内嵌的数据通过父文档写入。复制的字段必须随原文更新，或有意保持原值。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    let relations = decide(input).into_iter();
    // What is embedded is not apart: rules A1, P5 and P10 speak of arrays.
    let apart = relations.filter(|one| one.present != RelationForm::Embed);
    let wrong = apart.filter(|one| one.best != one.present && !one.is_tie && one.joins > 0.0);
    found.extend(wrong.map(|relation| finding(input, &relation)));
}

fn finding(input: &Input<'_>, relation: &Relation) -> Finding {
    let cost = |form: RelationForm| {
        let bytes = relation.cost_of(form).unwrap_or(0.0);
        Cost { bytes_read: bytes, ..Cost::default() }
    };
    let costs = Some((cost(relation.present), cost(relation.best)));
    let (apply, undo) = match relation.best {
        RelationForm::Embed => embed(relation),
        _ => copy(input, relation),
    };
    let mut evidence = vec![
        ("presentForm", Value::Name(relation.present.name().to_owned())),
        ("bestForm", Value::Name(relation.best.name().to_owned())),
        ("joins", Value::PerSecond(relation.joins)),
    ];
    evidence.extend(relation.inputs.iter().cloned());
    Finding {
        rule: "A5",
        severity: input.severity(costs, Severity::Low),
        collection: relation.from.clone(),
        path: relation.path.clone(),
        evidence,
        cost: costs,
        confidence: Confidence::Modelled,
        apply,
        undo,
    }
}

fn embed(relation: &Relation) -> (Vec<String>, Vec<String>) {
    let parents = collection(&relation.to);
    let pipeline = format!(
        "[{{$lookup: {{from: {}, localField: {}, foreignField: {}, as: {}}}}}, {{$merge: {{into: {}, \
         whenMatched: \"merge\"}}}}]",
        string(&relation.from),
        string(&relation.field),
        string(&relation.path),
        string(&relation.from),
        string(&relation.to),
    );
    let undo =
        format!("{parents}.updateMany({{}}, {{$unset: {{{}: \"\"}}}})", string(&relation.from));
    (vec![format!("{parents}.aggregate({pipeline})")], vec![undo])
}

/// Copies the small fields of the referred document beside the reference.
fn copy(input: &Input<'_>, relation: &Relation) -> (Vec<String>, Vec<String>) {
    let children = collection(&relation.from);
    let copied = format!("{}_copy", relation.path);
    let fields = input.collection(&relation.to).map(|(_, found)| {
        let small = found.root().fields().filter(|(name, values)| {
            *name != "_id"
                && can_be_named(name)
                && values.scalars() > 0
                && values.bytes() < values.present() * 64
        });
        small.take(5).map(|(name, _)| format!("{}: 1", string(name))).collect::<Vec<_>>().join(", ")
    });
    let pipeline = format!(
        "[{{$lookup: {{from: {}, localField: {}, foreignField: {}, pipeline: [{{$project: {{{}}}}}], as: {copied}}}}}, \
         {{$set: {{{copied}: {{$first: {}}}}}}}, {{$merge: {{into: {}, whenMatched: \"merge\"}}}}]",
        string(&relation.to),
        string(&relation.path),
        string(&relation.field),
        fields.filter(|fields| !fields.is_empty()).unwrap_or_else(|| "_id: 1".to_owned()),
        string(&format!("${}_copy", relation.path)),
        string(&relation.from),
        copied = string(&copied),
    );
    let undo = format!("{children}.updateMany({{}}, {{$unset: {{{}: \"\"}}}})", string(&copied));
    (vec![format!("{children}.aggregate({pipeline})")], vec![undo])
}
