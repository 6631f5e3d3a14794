//! Explain's plans and counters compared with the replies in `tests/cases/conformance/explain`.

use super::*;
use quire_document::literal::{parse_doc, print};
use quire_document::{Value, ValueBuf, doc};
use quire_executor::explain;
use quire_planner::{
    AggregateRequest, CountRequest, DistinctRequest, FindRequest, Hint, ReadRequest, Verbosity,
};
use std::path::Path;

/// Fields that differ between runs, and fields that only newer versions have.
const VOLATILE: &[&str] = &[
    "explainVersion",
    "indexFilterSet",
    "queryHash",
    "planCacheShapeHash",
    "planCacheKey",
    "optimizationTimeMillis",
    "maxIndexedOrSolutionsReached",
    "maxIndexedAndSolutionsReached",
    "maxScansToExplodeReached",
    "prunedSimilarIndexes",
    "isCached",
    "executionTimeMillis",
    "executionTimeMillisEstimate",
    "works",
    "advanced",
    "needTime",
    "needYield",
    "saveState",
    "restoreState",
    "ok",
    "spills",
    "allPlansExecution",
    "queryShapeHash",
];
const KEPT_ORDER: &[&str] =
    &["keyPattern", "indexBounds", "sortPattern", "filter", "parsedQuery", "transformBy"];

fn normal(value: Value<'_>, keep_order: bool) -> String {
    match value {
        Value::Document(doc) => {
            let mut fields: Vec<(&str, String)> = doc
                .fields()
                .filter(|(name, _)| keep_order || !VOLATILE.contains(name))
                .map(|(name, value)| {
                    (name, normal(value, keep_order || KEPT_ORDER.contains(&name)))
                })
                .collect();
            if !keep_order {
                fields.sort();
            }
            let fields: Vec<String> =
                fields.into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(array) => {
            let items: Vec<String> = array.iter().map(|value| normal(value, keep_order)).collect();
            format!("[{}]", items.join(", "))
        }
        other => print(&ValueBuf::new(other)),
    }
}

struct Case {
    store: Arc<Store>,
    usable: bool,
}

fn hint(value: Option<Value<'_>>) -> Option<Hint> {
    match value? {
        Value::String(name) => Some(Hint::Name(name.into())),
        Value::Document(doc) => match doc.get("$natural") {
            Some(Value::Int32(way)) => Some(Hint::Natural(way > 0)),
            _ => Some(Hint::Pattern(doc.to_owned())),
        },
        _ => None,
    }
}

fn part(command: Doc<'_>, name: &str) -> DocBuf {
    command.get(name).and_then(|v| v.as_document()).map_or(DocBuf::new(), Doc::to_owned)
}

fn number(command: Doc<'_>, name: &str) -> u64 {
    let found = command.get(name).and_then(|v| v.as_number()).and_then(|n| n.exact_i64());
    found.unwrap_or(0).unsigned_abs()
}

fn flag(command: Doc<'_>, name: &str) -> bool {
    command.get(name).and_then(|v| v.as_bool()).unwrap_or(false)
}

fn explained(case: &Case, command: Doc<'_>, verbosity: Verbosity) -> Option<Result<DocBuf>> {
    if command.contains("collation") {
        return None;
    }
    let first = command.first()?;
    let namespace = format!("db.{}", first.value().as_str()?);
    let mut views = FreshViews::new(&case.store).unwrap();
    let mut run =
        |what: ReadRequest<'_>| Some(explain(what, None, verbosity, &mut views, params()));
    match first.key() {
        "find" => run(ReadRequest::Find(&FindRequest {
            namespace,
            filter: part(command, "filter"),
            projection: part(command, "projection"),
            sort: part(command, "sort"),
            hint: hint(command.get("hint")),
            skip: number(command, "skip"),
            limit: number(command, "limit"),
            min: part(command, "min"),
            max: part(command, "max"),
            return_key: flag(command, "returnKey"),
            show_record_id: flag(command, "showRecordId"),
            let_vars: part(command, "let"),
            ..FindRequest::default()
        })),
        "count" => run(ReadRequest::Count(&CountRequest {
            collation: Default::default(),
            namespace,
            filter: part(command, "query"),
            hint: hint(command.get("hint")),
            skip: number(command, "skip"),
            limit: number(command, "limit"),
            comment: None,
        })),
        "distinct" => run(ReadRequest::Distinct(&DistinctRequest {
            collation: Default::default(),
            namespace,
            key: command.get("key")?.as_str()?.into(),
            filter: part(command, "query"),
            hint: hint(command.get("hint")),
            comment: None,
        })),
        "aggregate" => run(ReadRequest::Aggregate(&AggregateRequest {
            namespace,
            pipeline: documents(command.get("pipeline")?.as_array()?).map(Doc::to_owned).collect(),
            hint: hint(command.get("hint")),
            let_vars: part(command, "let"),
            ..AggregateRequest::default()
        })),
        _ => None,
    }
}

/// Runs one command. Returns the two texts if it was an explain that can be compared.
fn step(case: &mut Case, command: &DocBuf, expected: &DocBuf) -> Option<(String, String)> {
    let doc = command.as_doc();
    let first = doc.first()?;
    let namespace = format!("db.{}", first.value().as_str().unwrap_or(""));
    match first.key() {
        "createIndexes" => {
            let specs = doc.get("indexes")?.as_array()?;
            case.store.ensure_collection(&ns(&namespace)).unwrap();
            case.usable &= create_indexes(&case.store, &namespace, documents(specs)).is_ok();
        }
        "create" => match doc.count() {
            1 => drop(case.store.ensure_collection(&ns(&namespace)).unwrap()),
            _ => case.usable = false,
        },
        "insert" => {
            insert_all(&case.store, &namespace, documents(doc.get("documents")?.as_array()?))
        }
        "explain" if case.usable && !expected.as_doc().contains("errmsg") => {
            let verbosity = match doc.get("verbosity").and_then(|v| v.as_str()) {
                Some("queryPlanner") => Verbosity::QueryPlanner,
                Some("executionStats") => Verbosity::ExecutionStats,
                _ => Verbosity::AllPlansExecution,
            };
            let inner = first.value().as_document()?;
            let answer = match explained(case, inner, verbosity)? {
                Ok(answer) => normal(Value::from(&answer), false).replace("\"db.", "\"$db."),
                Err(error) => error.to_string(),
            };
            return Some((answer, normal(Value::from(expected), false)));
        }
        "explain" => {}
        "find" | "distinct" | "count" | "aggregate" => {}
        _ => case.usable = false,
    }
    None
}

#[test]
fn recorded_plans() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/conformance/explain");
    let Ok(files) = std::fs::read_dir(folder) else { return };
    let show = std::env::var("SHOW").unwrap_or_default();
    let (mut same, mut all) = (0, 0);
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (mut good, mut met) = (0, 0);
        for section in text.split("\n## ").skip(1) {
            let title = section.lines().next().unwrap_or("");
            if title.ends_with("[5.0]") {
                continue;
            }
            let mut case = Case { store: store(), usable: true };
            for (command, expected) in steps(section) {
                let Some((ours, theirs)) = step(&mut case, &command, &expected) else { continue };
                met += 1;
                if ours == theirs {
                    good += 1;
                } else if !show.is_empty() && name.contains(&show) {
                    println!("## {name}: {title}\n> {command:?}\n- {theirs}\n+ {ours}\n");
                }
            }
        }
        println!("{name}: {good} of {met}");
        same += good;
        all += met;
    }
    println!("explain: {same} of {all}");
    assert!(same * 100 >= all * 95, "{same} of {all}");
}

#[test]
fn the_stages_of_each_branch_tell_what_they_did() {
    let store = store();
    let docs: Vec<DocBuf> = (0..10).map(|id| doc! { "_id": id, "v": id % 3 }).collect();
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    let case = Case { store, usable: true };
    let command = parse_doc(
        "{aggregate: \"c\", pipeline: [{$facet: {top: [{$sort: {v: -1}}, {$limit: 2}],
          some: [{$project: {v: 1}}, {$match: {v: 1}}]}}]}",
    );
    let reply = explained(&case, command.unwrap().as_doc(), Verbosity::ExecutionStats);
    let reply = reply.unwrap().unwrap();
    let text = normal(reply.get("stages").unwrap(), false);
    let top = "top: [{$teeConsumer: {}, nReturned: 10}, \
        {$sort: {limit: 2, sortKey: {v: -1}}, nReturned: 2, \
        totalDataSizeSortedBytesEstimate: SIZE, usedDisk: false}]";
    let some = "some: [{$teeConsumer: {}, nReturned: 10}, \
        {$match: {v: {$eq: 1}}, nReturned: 3}, \
        {$project: {_id: true, v: true}, nReturned: 3}]";
    let text = text.replace("NumberLong(\"", "").replace("\")", "");
    let text = with_size(&text, "totalDataSizeSortedBytesEstimate: ");
    assert!(text.contains(top) && text.contains(some), "{text}");
}

/// Returns the text with `SIZE` in place of the value behind `name`.
fn with_size(text: &str, name: &str) -> String {
    let Some((before, behind)) = text.split_once(name) else { return text.to_owned() };
    let end = behind.find([',', '}']).unwrap_or(behind.len());
    format!("{before}{name}SIZE{}", &behind[end..])
}

/// Returns the commands with their replies.
fn steps(section: &str) -> Vec<(DocBuf, DocBuf)> {
    let mut out = Vec::new();
    let (mut command, mut reply) = (String::new(), String::new());
    let mut flush = |command: &mut String, reply: &mut String| {
        if !command.is_empty()
            && let (Ok(asked), Ok(answered)) = (parse_doc(command), parse_doc(reply))
        {
            out.push((asked, answered));
        }
        command.clear();
        reply.clear();
    };
    for line in section.lines() {
        if let Some(text) = line.strip_prefix("> ") {
            flush(&mut command, &mut reply);
            command.push_str(text);
        } else if let Some(text) = line.strip_prefix("< ") {
            reply.push_str(text);
            reply.push('\n');
        } else if line.starts_with("  ") && reply.is_empty() {
            command.push_str(line);
        }
    }
    flush(&mut command, &mut reply);
    out
}
