//! P11: many sparse fields of one type beside each other, which are filtered or indexed one by one.

use crate::findings::input::{key, types};
use crate::findings::mongosh::{self, collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::{PathProfile, can_be_named};

/// The smallest number of sparse siblings of one type.
const SIBLINGS_MIN: usize = 6;
/// A field is sparse if fewer objects have it.
const PRESENCE_MAX: f64 = 0.2;
/// The smallest number of them that are filtered or indexed.
const USED_MIN: usize = 3;

pub(super) const RULE: Rule = Rule {
    id: "P11",
    title: Text {
        en: "Many sparse fields are searched one by one", zh: "大量稀疏字段被逐个查询"
    },
    advice: Text {
        en: "Each needs an index of its own. An array of { k, v } needs one index on k and v for all of them; a \
             wildcard index serves them without a change of the documents.",
        zh: "每个字段都需要自己的索引。{ k, v } 数组只需在 k 和 v 上建一个索引；通配符索引则无需修改文档。",
    },
    effects: Text {
        en: "A filter becomes $elemMatch. A sort by one attribute is not served by the index.",
        zh: "过滤改为 $elemMatch；按某个属性排序无法使用该索引。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        found.extend(finding(input, &source.name, "", profile.root()));
        profile.for_each_path(&mut |path, values, _| {
            if !path.contains("[]") && values.names().is_none() {
                found.extend(finding(input, &source.name, path, values));
            }
        });
    }
}

fn finding(input: &Input<'_>, name: &str, path: &str, values: &PathProfile) -> Option<Finding> {
    let (source, _) = input.collection(name)?;
    let objects = values.of_type("object").max(1) as f64;
    let full =
        |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
    let mut best: Vec<String> = Vec::new();
    for kind in ["string", "number", "bool"] {
        let sparse = values.fields().filter(|(name, field)| {
            let types = types(field);
            can_be_named(name)
                && (field.present() as f64) < objects * PRESENCE_MAX
                && matches!(types.as_slice(), [(found, _)] if *found == kind)
        });
        let sparse: Vec<String> = sparse.map(|(field, _)| full(field)).collect();
        if sparse.len() > best.len() {
            best = sparse;
        }
    }
    let indexed = best.iter().filter(|path| {
        let mut keys = source.indexes.iter().filter_map(key);
        keys.any(|key| key.count() == 1 && key.first().is_some_and(|first| first.key() == **path))
    });
    let filtered =
        best.iter().filter(|path| input.statements(name).iter().any(|one| one.uses(path)));
    let (indexed, filtered) = (indexed.count(), filtered.count());
    if best.len() < SIBLINGS_MIN || indexed.max(filtered) < USED_MIN {
        return None;
    }
    let uses = |one: &&crate::findings::Statement<'_>| best.iter().any(|path| one.uses(path));
    let mut now = Cost::default();
    for one in input.statements(name).iter().filter(uses) {
        now.docs_examined += one.cost().docs_examined;
        now.bytes_read += one.cost().bytes_read;
    }
    let useful: f64 =
        input.statements(name).iter().filter(uses).map(|one| one.useful_per_second()).sum();
    let share = (useful / now.docs_examined.max(useful).max(1e-9)).min(1.0);
    let after = Cost {
        docs_examined: now.docs_examined * share,
        bytes_read: now.bytes_read * share,
        ..now
    };
    let cost = input.seconds.map(|_| (now, after));
    let (apply, undo) = wildcard(name, path);
    Some(Finding {
        rule: "P11",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence: vec![
            ("sparseFields", Value::Count(best.len() as f64)),
            ("indexedOfThem", Value::Count(indexed as f64)),
            ("filteredOfThem", Value::Count(filtered as f64)),
        ],
        cost,
        confidence: input.confidence(name),
        apply,
        undo,
    })
}

fn wildcard(name: &str, path: &str) -> (Vec<String>, Vec<String>) {
    let key = if path.is_empty() { "$**".to_owned() } else { format!("{path}.$**") };
    let (create, drop) = mongosh::create_index(name, &mongosh::key([(key.as_str(), 1)]));
    (vec![create], vec![drop])
}

/// Returns the commands that make an array of names and values of an object, and that undo it.
pub(super) fn pairs(name: &str, path: &str) -> (Vec<String>, Vec<String>) {
    let coll = collection(name);
    let (field, value) = (string(path), string(&format!("${path}")));
    let (create, drop) = mongosh::create_index(
        name,
        &mongosh::key([(format!("{path}.k").as_str(), 1), (format!("{path}.v").as_str(), 1)]),
    );
    let filter = format!("{{{field}: {{$type: \"object\"}}}}");
    (
        vec![
            format!(
                "{coll}.updateMany({filter}, [{{$set: {{{field}: {{$objectToArray: {value}}}}}}}])"
            ),
            create,
        ],
        vec![
            drop,
            format!(
                "{coll}.updateMany({{{field}: {{$type: \"array\"}}}}, [{{$set: {{{field}: {{$arrayToObject: {value}}}}}}}])"
            ),
        ],
    )
}
