//! I1: statements read the whole collection for a few documents.

use crate::findings::{Confidence, Cost, Finding, Input, Rule, Severity, Statement, Text, Value};
use crate::findings::{input, mongosh};
use crate::workload::Test;

/// The documents examined for each result from which an index pays.
const EXAMINED_MIN: f64 = 10.0;
/// The fields of an index at most.
const FIELDS_MAX: usize = 5;

pub(super) const RULE: Rule = Rule {
    id: "I1",
    title: Text { en: "Statements without an index", zh: "语句没有可用的索引" },
    advice: Text {
        en: "The statements examine many documents for each that they return. An index with the fields of equality \
             first, then those of the sort, then those of ranges, serves them. adviseIndexes builds the candidate \
             over a sample and runs the statement before you decide.",
        zh: "语句为返回一个文档要检查许多文档。索引按“等值、排序、范围”的顺序排列字段即可服务。adviseIndexes 会先在样本上建索引并执行语句。",
    },
    effects: Text {
        en: "Each insert, and each change of a field of the key, writes an index entry.",
        zh: "每次插入和键字段的修改都会写入一个索引项。",
    },
    check,
};

/// A statement that reads the whole collection for a few documents.
#[derive(Clone, Debug)]
pub(in crate::findings) struct Unserved {
    /// The position in the statements of its collection.
    pub(in crate::findings) statement: usize,
    /// The name of the index that would serve it, which is the path of the finding.
    pub(in crate::findings) path: String,
    key: quire_document::DocBuf,
}

/// Returns the statements on a collection that need an index.
pub(in crate::findings) fn unserved(input: &Input<'_>, name: &str) -> Vec<Unserved> {
    let all = input.statements(name).iter().enumerate();
    let needing = all.filter_map(|(statement, one)| {
        let scans = one.used.measures.collection_scans * 2 >= one.used.measures.count.max(1);
        if !scans || one.examined_for_each() < EXAMINED_MIN {
            return None;
        }
        let key = candidate(input, name, one)?;
        Some(Unserved { statement, path: mongosh::index_name(key.as_doc()), key })
    });
    needing.collect()
}

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for name in input.asked() {
        for Unserved { statement, path, key } in unserved(input, name) {
            let Some(one) = input.statements(name).get(statement) else { continue };
            let known = found
                .iter_mut()
                .find(|known| known.rule == "I1" && known.collection == name && known.path == path);
            let new = finding(input, name, path, one, &key);
            match known {
                Some(known) => add(input, known, &new),
                None => found.push(new),
            }
        }
    }
}

/// Returns the key of an index by equality, sort, range; `None` if no such index helps.
fn candidate(input: &Input<'_>, name: &str, one: &Statement<'_>) -> Option<quire_document::DocBuf> {
    let tests = || one.parts.filtered.iter().filter(|test| !test.is_optional);
    let equal = |test: Test| matches!(test, Test::Equality | Test::Membership);
    let mut fields: Vec<(&str, i32)> = Vec::new();
    let mut add = |path, direction| {
        if !fields.iter().any(|(known, _)| *known == path) {
            fields.push((path, direction));
        }
    };
    tests().filter(|one| equal(one.test)).for_each(|test| add(&*test.path, 1));
    let sorted = &one.parts.sorted;
    sorted.iter().for_each(|(path, descending)| add(path, if *descending { -1 } else { 1 }));
    tests().filter(|one| one.test == Test::Range).for_each(|test| add(&*test.path, 1));
    fields.truncate(FIELDS_MAX);
    let (first, _) = fields.first()?;
    let is_reference = fields.len() == 1
        && input.profile.references.iter().any(|one| one.from == name && one.path == *first);
    let is_there = input.collection(name).is_some_and(|(source, _)| {
        source.indexes.iter().filter_map(input::key).any(|key| {
            let known: Vec<&str> = key.fields().map(|(path, _)| path).collect();
            let wanted: Vec<&str> = fields.iter().map(|(path, _)| *path).collect();
            known.starts_with(&wanted)
        })
    });
    // Rule A13 answers for a reference, rule A11Q for a name that does not exist.
    let has_paths = fields.iter().all(|(path, _)| path_exists(input, name, path));
    (!is_reference && !is_there && has_paths && *first != "_id")
        .then(|| mongosh::key(fields.iter().copied()))
}

/// Returns true if documents of the collection have the path, or if none is known.
pub(in crate::findings) fn path_exists(input: &Input<'_>, name: &str, path: &str) -> bool {
    // Without its documents, a statement is believed.
    let Some((_, profile)) = input.collection(name) else { return true };
    super::dead_index_key::is_there(path, &super::dead_index_key::paths(profile))
}

fn finding(
    input: &Input<'_>,
    name: &str,
    path: String,
    one: &Statement<'_>,
    key: &quire_document::DocBuf,
) -> Finding {
    let now = one.cost();
    let results = one.useful_per_second().max(one.per_second).min(now.docs_examined);
    let share = results / now.docs_examined.max(1e-9);
    let documents = input.documents(name);
    let after = Cost {
        docs_examined: results,
        bytes_read: now.bytes_read * share,
        bytes_written: input.inserts(name) * 40.0,
        storage: documents * 40.0,
    };
    let cost = Some((now, after));
    let (create, drop) = mongosh::create_index(name, key);
    Finding {
        rule: "I1",
        severity: input.severity(cost, Severity::Low),
        collection: name.to_owned(),
        path,
        evidence: vec![
            ("statements", Value::PerSecond(one.per_second)),
            ("examinedForEach", Value::Count(one.examined_for_each())),
            (
                "collectionScans",
                Value::Share(
                    one.used.measures.collection_scans as f64
                        / one.used.measures.count.max(1) as f64,
                ),
            ),
            (
                "sortsInMemory",
                Value::Share(
                    one.used.measures.sorts as f64 / one.used.measures.count.max(1) as f64,
                ),
            ),
        ],
        cost,
        confidence: Confidence::Modelled,
        apply: vec![create],
        undo: vec![drop],
    }
}

/// Adds the cost of another shape that the same index serves.
fn add(input: &Input<'_>, known: &mut Finding, other: &Finding) {
    if let (Some((now, after)), Some((more, less))) = (&mut known.cost, other.cost) {
        now.docs_examined += more.docs_examined;
        now.bytes_read += more.bytes_read;
        after.docs_examined += less.docs_examined;
        after.bytes_read += less.bytes_read;
    }
    known.severity = input.severity(known.cost, Severity::Low);
}
