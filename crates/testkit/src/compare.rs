//! Makes replies comparable: values that differ between runs are removed or replaced by a word, and
//! differences without meaning are normalised. The rules are those of tests/cases/FORMAT.md.

use crate::node::Node;
use quire_document::{Value, ValueBuf};
use std::collections::{BTreeMap, BTreeSet};

/// Fields of a reply (not of user data) that differ between runs.
const VOLATILE: &[&str] = &[
    "$clusterTime",
    "operationTime",
    "electionId",
    "opTime",
    "topologyVersion",
    "connectionId",
    "localTime",
    "serverInfo",
    "serverParameters",
    "executionTimeMillis",
    "executionTimeMillisEstimate",
    "executionTimeMicros",
    "executionTimeNanos",
    "optimizationTimeMillis",
    "explainVersion",
    "queryHash",
    "planCacheKey",
    "queryShapeHash",
    "planCacheShapeHash",
    "command",
    "slotBasedPlan",
    "stageDebugInfo",
    "indexFilterSet",
    "maxIndexedOrSolutionsReached",
    "maxIndexedAndSolutionsReached",
    "maxScansToExplodeReached",
    "prunedSimilarIndexes",
    "isCached",
    "saveState",
    "restoreState",
    "works",
    "needTime",
    "needYield",
    "advanced",
    "userId",
    "millis",
    "retriedStmtIds",
    "retriedStmtId",
];

/// Fields of a plan in which the order of keys is significant.
const ORDERED: &[&str] = &[
    "keyPattern",
    "keyValue",
    "indexBounds",
    "sortPattern",
    "filter",
    "parsedQuery",
    "transformBy",
    "projection",
];

/// The ids in the replies of a case so far.
#[derive(Default)]
pub struct Seen {
    /// The ids of cursors in replies.
    pub cursors: BTreeSet<i64>,
    /// The newest cursor id.
    pub cursor: Option<i64>,
    /// Session ids by name.
    pub sessions: BTreeMap<String, [u8; 16]>,
}

/// Returns the reply without values that differ between runs.
pub fn scrub(reply: &Node, seen: &mut Seen) -> Node {
    scrub_at(reply, seen, &mut Vec::new())
}

fn scrub_at(node: &Node, seen: &mut Seen, path: &mut Vec<String>) -> Node {
    if let Some(word) = made_word(node, seen) {
        return Node::text(&word);
    }
    match node {
        Node::Leaf(_) => node.clone(),
        Node::Array(items) => {
            let mut shown = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                path.push(at.to_string());
                shown.push(scrub_at(item, seen, path));
                path.pop();
            }
            Node::Array(shown)
        }
        Node::Doc(fields) => {
            let data = path
                .iter()
                .any(|step| matches!(step.as_str(), "firstBatch" | "nextBatch" | "value"));
            let parent = path.last().cloned().unwrap_or_default();
            let mut shown = Vec::with_capacity(fields.len());
            for (name, value) in fields {
                if !data && VOLATILE.contains(&name.as_str()) || name == "uuid" && parent == "info"
                {
                    continue;
                }
                let id = value.as_leaf();
                if name == "id"
                    && parent == "cursor"
                    && let Some(Value::Int64(id)) = id
                    && id != 0
                {
                    seen.cursor = Some(id);
                    seen.cursors.insert(id);
                    shown.push((name.clone(), Node::text("$cursor")));
                } else if name == "id" && parent == "id" && matches!(id, Some(Value::Binary(_))) {
                    shown.push((name.clone(), Node::text("$uuid")));
                } else {
                    path.push(name.clone());
                    shown.push((name.clone(), scrub_at(value, seen, path)));
                    path.pop();
                }
            }
            Node::Doc(shown)
        }
    }
}

/// Returns the word for a value that comes from the server's clock or a counter.
fn made_word(node: &Node, seen: &Seen) -> Option<String> {
    let word = match node {
        Node::Doc(_) => {
            let token = node.get("_data")?.as_str()?;
            let hex = token.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
            (token.starts_with('8') && hex).then_some("$token")
        }
        Node::Array(_) => None,
        Node::Leaf(value) => match value.as_value() {
            Value::Date(ms) if near(ms) => Some("$date"),
            Value::Timestamp(time) if near(i64::from(time.seconds) * 1000) => Some("$timestamp"),
            Value::ObjectId(id) if near(i64::from(id.seconds()) * 1000) => Some("$objectId"),
            Value::Int64(id) if seen.cursors.contains(&id) => Some("$cursor"),
            Value::Binary(binary) if binary.subtype == 4 => {
                let known = seen.sessions.iter().find(|(_, uuid)| uuid[..] == *binary.bytes);
                return known.map(|(name, _)| format!("$session {name}"));
            }
            _ => None,
        },
    };
    word.map(str::to_owned)
}

/// Returns true for a time within a day of now.
fn near(ms: i64) -> bool {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (ms - now.as_millis() as i64).abs() < 86_400_000
}

/// Returns the reply with differences without meaning normalised.
pub fn alike(reply: &Node) -> Node {
    let Node::Doc(_) = reply else { return rename_codes(reply) };
    let mut reply = rename_codes(reply);
    if let Some(ok) = reply.get("ok").and_then(|ok| number(ok.as_leaf()?)) {
        reply.set("ok", Node::Leaf(ValueBuf::new(ok)));
    }
    for name in ["cursor", "writeConcernError"] {
        if let Some(inner) = reply.get_mut(name) {
            sort_fields(inner);
        }
    }
    if let Some(Node::Array(errors)) = reply.get_mut("writeErrors") {
        errors.iter_mut().for_each(sort_fields);
    }
    if reply.get("queryPlanner").is_some() || reply.get("stages").is_some() {
        reply = plan(&reply);
    }
    sort_fields(&mut reply);
    reply
}

fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(number),
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number as f64),
        _ => None,
    }
}

fn sort_fields(node: &mut Node) {
    if let Node::Doc(fields) = node {
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
}

/// Replaces names of codes that changed between versions, and the version of a collation.
fn rename_codes(node: &Node) -> Node {
    match node {
        Node::Leaf(_) => node.clone(),
        Node::Array(items) => Node::Array(items.iter().map(rename_codes).collect()),
        Node::Doc(fields) => {
            let mut doc = Node::Doc(
                fields.iter().map(|(name, value)| (name.clone(), rename_codes(value))).collect(),
            );
            let code =
                doc.get("code").and_then(|code| number(code.as_leaf()?)).unwrap_or(0.0) as i32;
            let name = match code {
                40413 => Some("IDLDuplicateField"),
                40414 => Some("IDLFailedToParse"),
                40415 => Some("IDLUnknownField"),
                50768 => Some("NotARetryableWriteCommand"),
                _ => None,
            };
            if let Some(name) = name
                && doc.get("codeName").is_some()
            {
                doc.set("codeName", Node::text(name));
            }
            if ["locale", "strength", "version"].iter().all(|name| doc.get(name).is_some()) {
                doc.set("version", Node::text("57.1"));
            }
            doc
        }
    }
}

/// Sorts the fields of a plan, whose order has no meaning.
fn plan(node: &Node) -> Node {
    match node {
        Node::Leaf(_) => node.clone(),
        Node::Array(items) => Node::Array(items.iter().map(plan).collect()),
        Node::Doc(fields) => {
            let mut doc = Node::Doc(
                fields
                    .iter()
                    .map(|(name, value)| {
                        let keep = ORDERED.contains(&name.as_str());
                        (name.clone(), if keep { value.clone() } else { plan(value) })
                    })
                    .collect(),
            );
            sort_fields(&mut doc);
            doc
        }
    }
}

/// Returns the tree with every `errmsg` replaced by an empty text.
pub fn without_messages(node: &Node) -> Node {
    match node {
        Node::Leaf(_) => node.clone(),
        Node::Array(items) => Node::Array(items.iter().map(without_messages).collect()),
        Node::Doc(fields) => Node::Doc(
            fields
                .iter()
                .map(|(name, value)| {
                    let blank = name == "errmsg" && value.as_str().is_some();
                    (name.clone(), if blank { Node::text("…") } else { without_messages(value) })
                })
                .collect(),
        ),
    }
}
