//! A11: the key of an index is a path that no document has.

use crate::findings::input::{key, text};
use crate::findings::mongosh::{collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value, input, mongosh};
use crate::profile::CollectionProfile;
use quire_document::DocBuf;

/// Fewer documents can miss a rare field.
const READ_MIN: u64 = 100;
/// The similarity (Jaro-Winkler, 0 to 1) from which a name may be a misspelling.
const CLOSE: f64 = 0.85;

pub(super) const RULE: Rule = Rule {
    id: "A11",
    title: Text {
        en: "An index on a field that no document has",
        zh: "索引的字段在任何文档中都不存在",
    },
    advice: Text {
        en: "All its entries are null, so that it serves nothing and is written with each insert. Mostly the name is \
             misspelt: create the index on the right name, then drop this one.",
        zh: "它的所有条目都是 null，什么也服务不了，却随每次插入写入。多半是名称拼错：请在正确的名称上建索引，再删除它。",
    },
    effects: Text {
        en: "None, unless documents with the field come later.",
        zh: "没有影响，除非以后出现带有该字段的文档。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        if profile.documents() < READ_MIN || profile.left_out() > 0 {
            continue;
        }
        let paths = paths(profile);
        for index in &source.indexes {
            // Other kinds of index have keys that are not paths.
            let fields = key(index).into_iter().flat_map(|key| key.fields());
            let dead = fields
                .filter(|(path, value)| value.is_number() && !path.contains('$'))
                .find(|(path, _)| !is_there(path, &paths));
            if let Some((path, _)) = dead {
                found.push(finding(input, &source.name, index, path, &paths));
            }
        }
    }
}

/// Returns the paths in the form of queries.
pub(super) fn paths(profile: &CollectionProfile) -> Vec<String> {
    let mut paths = Vec::new();
    profile.for_each_path(&mut |path, _, _| paths.push(path.replace("[]", "")));
    paths
}

/// Returns true if some document may have the path: it does, or names that are data stand for it.
pub(super) fn is_there(path: &str, paths: &[String]) -> bool {
    let has_star = |known: &&String| {
        known.strip_suffix('*').is_some_and(|above| path.starts_with(above))
            || known.split_once(".*").is_some_and(|(above, _)| path.starts_with(above))
    };
    // An element of an array can be named by its number.
    let plain: Vec<&str> = path.split('.').filter(|part| part.parse::<u32>().is_err()).collect();
    let plain = plain.join(".");
    paths.iter().any(|known| *known == path || *known == plain)
        || paths.iter().any(|known| has_star(&known))
}

/// Returns the path that a misspelt one is closest to.
pub(super) fn meant<'p>(path: &str, paths: &'p [String]) -> Option<&'p str> {
    let similar = paths.iter().map(|known| (strsim::jaro_winkler(path, known), known));
    let best = similar.max_by(|left, right| left.0.total_cmp(&right.0))?;
    (best.0 >= CLOSE).then_some(best.1)
}

fn finding(input: &Input<'_>, name: &str, index: &DocBuf, path: &str, paths: &[String]) -> Finding {
    let shown = text(index, "name");
    let used = input.collection(name).and_then(|(source, _)| source.use_of(shown));
    let (cost, written) =
        super::unused_index::upkeep(input, name, used.and_then(|used| used.bytes));
    let meant = meant(path, paths);
    let mut apply = Vec::new();
    let mut undo = Vec::new();
    let mut evidence = vec![
        ("index", Value::Name(shown.to_owned())),
        ("presence", Value::Share(0.0)),
        ("indexBytes", Value::Bytes(cost.0.storage)),
        ("entriesWritten", Value::PerSecond(written)),
    ];
    if let (Some(meant), Some(key)) = (meant, key(index)) {
        evidence.push(("meant", Value::Name(meant.to_owned())));
        let mended = DocBuf::build(|writer| {
            for (known, value) in key.fields() {
                writer.append(if known == path { meant } else { known }, value);
            }
        });
        let known = input.collection(name).is_some_and(|(source, _)| {
            source
                .indexes
                .iter()
                .filter_map(input::key)
                .any(|key| key.as_bytes() == mended.as_bytes())
        });
        if !known {
            let (create, drop) = mongosh::create_index(name, &mended);
            apply.push(create);
            undo.push(drop);
        }
    }
    apply.push(format!("{}.hideIndex({})", collection(name), string(shown)));
    undo.push(format!("{}.unhideIndex({})", collection(name), string(shown)));
    let cost = Some((cost.0, Cost::default()));
    Finding {
        rule: "A11",
        severity: input.severity(cost, Severity::Medium),
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence,
        cost,
        confidence: input.confidence(name),
        apply,
        undo,
    }
}
