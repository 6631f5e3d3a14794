//! P7: the same totals are computed again and again over data that hardly changes.

use crate::findings::mongosh::{collection, key, object, string};
use crate::findings::totals::Totals;
use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Statement, Text, Value};
use crate::profile::{CollectionProfile, PathProfile};
use quire_document::{DocBuf, Value as Bson};

/// The documents examined for each result from which a total is worth storing.
const EXAMINED_MIN: f64 = 100.0;
/// The statements that were recorded at least.
const COUNT_MIN: u64 = 20;
/// The documents for which a total stands at least.
const DOCUMENTS_OF_TOTAL_MIN: f64 = 5.0;
/// Reads for each write of a document at least.
const READS_MIN: f64 = 0.01;

pub(super) const RULE: Rule = Rule {
    id: "P7",
    title: Text {
        en: "The same totals are computed again and again", zh: "反复计算相同的汇总"
    },
    advice: Text {
        en: "Each statement reads many documents to return a few totals. Store the totals: in a field of the parent \
             that changes with each write, or in a collection that $merge brings up to date. The paths that the \
             statement filters are in the key of the totals.",
        zh: "每条语句都要读取许多文档才能返回几个汇总值。请存储汇总：放在父文档的字段中随写入更新，或用 $merge 定期刷新到一个集合。语句过滤的路径是汇总键的一部分。",
    },
    effects: Text {
        en: "Each write of a child also changes the total. Between two runs of $merge totals are old.",
        zh: "每次写入子文档也要修改汇总。两次 $merge 之间的汇总是旧的。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        let writes = input.writes(&source.name);
        let mut count = 0;
        for one in input.statements(&source.name) {
            let Some(totals) = totals(one) else { continue };
            let Some(kept) = kept(profile, one, &totals) else { continue };
            let documents = input.documents(&source.name);
            let enough = one.used.measures.count >= COUNT_MIN
                && one.examined_for_each() >= EXAMINED_MIN
                && kept * DOCUMENTS_OF_TOTAL_MIN <= documents
                && one.per_second * documents > writes
                && one.per_second >= writes * READS_MIN;
            if enough {
                count += 1;
                let into = match count {
                    1 => format!("{}_totals", source.name),
                    count => format!("{}_totals_{count}", source.name),
                };
                found.push(finding(input, (&source.name, &into), one, (&totals, kept, writes)));
            }
        }
    }
}

/// Returns the totals that answer a statement. The commands of the advice have no collation and no
/// variables.
fn totals<'s>(one: &Statement<'s>) -> Option<Totals<'s>> {
    let shape = one.used.shape.as_doc();
    if shape.contains("let") || shape.contains("collation") {
        return None;
    }
    Totals::of(shape.get("pipeline")?.as_array()?)
}

/// Returns how many totals there are at most. `None` if the filter tests a path that documents do not
/// have, or that has arrays, which are no keys.
fn kept(profile: &CollectionProfile, one: &Statement<'_>, totals: &Totals<'_>) -> Option<f64> {
    let distinct = |path: &str| at(profile, path).map(|values| values.distinct().max(1) as f64);
    let measures = &one.used.measures;
    let returned = measures.returned.mean(measures.count).max(1.0);
    let of_path = |value: Bson<'_>| distinct(value.as_str()?.strip_prefix('$')?);
    let groups = match totals.group_key() {
        None => Some(1.0),
        Some(Bson::Document(fields)) => fields.fields().map(|(_, value)| of_path(value)).product(),
        Some(path) => of_path(path),
    };
    let keys: Option<f64> = totals.paths().into_iter().map(distinct).product();
    Some(keys? * groups.unwrap_or(returned))
}

/// Returns what is known of a path; `None` if there are arrays on it.
fn at<'p>(profile: &'p CollectionProfile, path: &str) -> Option<&'p PathProfile> {
    let mut found = profile.root();
    for name in path.split('.') {
        found = found.fields().find(|(field, _)| *field == name)?.1;
        if found.of_type("array") > 0 {
            return None;
        }
    }
    Some(found)
}

fn finding(
    input: &Input<'_>,
    (name, into): (&str, &str),
    one: &Statement<'_>,
    (totals, kept, writes): (&Totals<'_>, f64, f64),
) -> Finding {
    let now = one.cost();
    let listed = one.used.measures.list.quantile(0.5).unwrap_or(1).max(1) as f64;
    let read = one.useful_per_second() * listed;
    let after = Cost {
        docs_examined: read,
        bytes_read: read * 200.0,
        bytes_written: writes * 200.0,
        ..Cost::default()
    };
    let cost = Some((now, after));
    let path = totals.group_key().and_then(|id| id.as_str().map(|id| id.replace('$', "")));
    Finding {
        rule: "P7",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path: path.unwrap_or_default(),
        evidence: vec![
            ("statements", Value::PerSecond(one.per_second)),
            ("examinedForEach", Value::Count(one.examined_for_each())),
            ("returned", Value::Count(one.used.measures.returned.mean(one.used.measures.count))),
            ("totals", Value::Count(kept)),
            ("writes", Value::PerSecond(writes)),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply: commands(name, into, totals),
        undo: vec![format!("{}.drop()", collection(into))],
    }
}

/// Returns the commands that store the totals, and in a remark the one that reads them.
fn commands(name: &str, into: &str, totals: &Totals<'_>) -> Vec<String> {
    let list = |stages: &[DocBuf]| {
        stages.iter().map(|stage| object(stage.as_doc())).collect::<Vec<_>>().join(", ")
    };
    let mut commands = vec![format!(
        "{}.aggregate([{}, {{$merge: {{into: {}}}}}])",
        collection(name),
        list(&totals.keep()),
        string(into)
    )];
    if totals.assumes_one() {
        commands.push(
            "// a sum of a constant is taken for a sum of 1: requests are kept without values"
                .to_owned(),
        );
    }
    let ask = totals.ask();
    if !ask.is_empty() {
        let tested = totals.tested();
        let index = key(tested.iter().map(|path| (path.as_str(), 1)));
        commands.push(format!("{}.createIndex({})", collection(into), object(index.as_doc())));
        commands.push(format!(
            "// in place of the stages up to $group: {}.aggregate([{}])",
            collection(into),
            list(&ask)
        ));
    }
    commands
}
