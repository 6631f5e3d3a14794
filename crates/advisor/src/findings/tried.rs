//! Rule I1 by execution: where `adviseIndexes` can run, its measurements replace the estimate of the
//! rule. An index that did not help in the laboratory is no finding.

use super::rules::missing_index::{self, Unserved};
use super::{
    Advice, Confidence, Cost, Finding, Input, Severity, Silenced, Statement, Value, mongosh,
};
use crate::indexes::{ENTRY_BYTES, IndexDefinition, IndexRequest, instances};
use quire_document::{Doc, DocBuf, Value as Bson};

/// The collections for which indexes are tried at most: those with the most expensive findings.
pub const TRIALS_MAX: usize = 10;
/// The shapes of a collection that are run at most: those that examine or write the most documents.
const SHAPES_MAX: usize = 100;

/// A collection with statements that read all of it, whose statements are to be run with indexes.
pub struct Trial<'a> {
    /// The name of the collection.
    pub collection: String,
    statements: Vec<&'a Statement<'a>>,
    unserved: Vec<Unserved>,
}

/// The commands that stand for the statements of a collection.
pub struct TrialRequests {
    /// The commands with how often each ran.
    pub requests: Vec<IndexRequest>,
    /// For each command, the position of its statement.
    statements: Vec<usize>,
}

/// A command that the laboratory has run, or could not run.
struct Tried {
    statement: usize,
    count: f64,
    before: Option<Run>,
    after: Option<Run>,
}

/// The numbers of a command on the whole collection, from those on the copy.
struct Run {
    documents: f64,
    low: f64,
    high: f64,
    growth: f64,
}

/// Returns the collections about which rule I1 has said something, the most expensive first.
pub fn trials<'a>(input: &'a Input<'a>, advice: &Advice) -> Vec<Trial<'a>> {
    let mut found: Vec<Trial<'a>> = Vec::new();
    // The findings are in the order of what they cost.
    for finding in advice.findings.iter().filter(|finding| finding.rule == "I1") {
        if found.len() == TRIALS_MAX {
            break;
        }
        if found.iter().any(|trial| trial.collection == finding.collection) {
            continue;
        }
        let name = finding.collection.clone();
        let unserved = missing_index::unserved(input, &name);
        let is_unserved = |at: usize| unserved.iter().any(|one| one.statement == at);
        let mut order: Vec<usize> = (0..input.statements(&name).len()).collect();
        let work = |at: &usize| {
            let measures = input.statements(&name).get(*at).map(|one| &one.used.measures);
            measures.map_or(0, |one| one.docs_examined.sum + one.inserted + one.modified.sum)
        };
        order.sort_by_key(|at| (!is_unserved(*at), std::cmp::Reverse(work(at))));
        order.truncate(SHAPES_MAX);
        let place = |one: &Unserved| {
            let statement = order.iter().position(|at| *at == one.statement)?;
            let mut moved = one.clone();
            moved.statement = statement;
            Some(moved)
        };
        let unserved = unserved.iter().filter_map(place).collect();
        let statements = order.iter().filter_map(|at| input.statements(&name).get(*at));
        found.push(Trial { statements: statements.collect(), unserved, collection: name });
    }
    found
}

impl Trial<'_> {
    /// Returns the commands to run. `documents` are some documents of the collection, which give
    /// values to the conditions.
    pub fn requests(&self, documents: &[DocBuf]) -> TrialRequests {
        let mut all = TrialRequests { requests: Vec::new(), statements: Vec::new() };
        for (at, statement) in self.statements.iter().enumerate() {
            for request in instances(statement.used, documents) {
                all.requests.push(request);
                all.statements.push(at);
            }
        }
        all
    }

    /// Replaces the findings of rule I1 about this collection by what was measured. `advised` is the
    /// advice of `adviseIndexes` about the collection for these commands, in the form of
    /// docs/advise-indexes.md.
    pub fn confirm(
        &self,
        input: &Input<'_>,
        requests: &TrialRequests,
        advised: Doc<'_>,
        silenced: &Silenced,
        advice: &mut Advice,
    ) {
        let tried = tried(requests, advised);
        let ran = |at: usize| {
            let mut own = tried.iter().filter(|one| one.statement == at).peekable();
            own.peek().is_some() && own.all(|one| one.before.is_some())
        };
        let name = self.collection.as_str();
        let mut kept = std::mem::take(&mut advice.findings);
        kept.retain(|finding| {
            let is_own = finding.rule == "I1" && finding.collection == name;
            let mut behind = self.unserved.iter().filter(|one| one.path == finding.path);
            !is_own || behind.any(|one| !ran(one.statement))
        });
        let created = advised.get("create").and_then(|created| created.as_array());
        let created = created.into_iter().flat_map(|created| created.iter());
        for created in created.filter_map(|created| created.as_document()) {
            let Some(new) = self.finding(input, &tried, created, advised) else { continue };
            let is_known = |known: &Finding| {
                let is_reference = known.rule == "A13" && known.path == only_path(created);
                known.collection == name
                    && (is_reference || known.rule == "I1" && known.path == new.path)
            };
            if kept.iter().any(is_known) {
                continue;
            }
            match silenced.is_silent(&new) {
                true => advice.silenced += 1,
                false => kept.push(new),
            }
        }
        advice.findings = kept;
        advice.rank();
    }

    /// Returns the finding of an index that helped statements which read the whole collection.
    fn finding(
        &self,
        input: &Input<'_>,
        tried: &[Tried],
        created: Doc<'_>,
        advised: Doc<'_>,
    ) -> Option<Finding> {
        let definition = IndexDefinition::of_spec(created)?;
        let paths = definition.key.iter().map(|(path, _)| path);
        let name = self.collection.as_str();
        if !paths.into_iter().all(|path| missing_index::path_exists(input, name, path)) {
            return None;
        }
        let positions = created.get("requests")?.as_array()?;
        let positions = positions.iter().filter_map(|at| usize::try_from(at.exact_i64()?).ok());
        let served: Vec<&Tried> = positions.filter_map(|at| tried.get(at)).collect();
        let mut statements: Vec<usize> = served.iter().map(|one| one.statement).collect();
        statements.sort_unstable();
        statements.dedup();
        if !statements.iter().any(|at| self.unserved.iter().any(|one| one.statement == *at)) {
            return None;
        }
        let statements: Vec<&Statement<'_>> =
            statements.iter().filter_map(|at| self.statements.get(*at).copied()).collect();
        let cost = costs(input, &statements, &served, created);
        let (apply, undo) = commands(name, &definition);
        Some(Finding {
            rule: "I1",
            severity: input.severity(Some(cost), Severity::Low),
            collection: name.to_owned(),
            path: definition.name(),
            evidence: evidence(&statements, &served),
            cost: Some(cost),
            confidence: executed(advised),
            apply: vec![apply],
            undo: vec![undo],
        })
    }
}

/// Returns the cost of the statements as it was recorded, and with the index as it was measured.
fn costs(
    input: &Input<'_>,
    statements: &[&Statement<'_>],
    served: &[&Tried],
    created: Doc<'_>,
) -> (Cost, Cost) {
    let mut now = Cost::default();
    for cost in statements.iter().map(|statement| statement.cost()) {
        now.docs_examined += cost.docs_examined;
        now.bytes_read += cost.bytes_read;
    }
    let seconds = input.seconds.unwrap_or(1.0);
    let examined = served.iter().filter_map(|one| Some(one.after.as_ref()?.documents * one.count));
    let docs_examined = examined.sum::<f64>() / seconds;
    let write_cost = created.get("writeCost").and_then(|cost| cost.as_document());
    let entries = write_cost.map_or(0.0, |cost| number(cost, "entriesWritten"));
    let after = Cost {
        docs_examined,
        bytes_read: docs_examined * now.bytes_read / now.docs_examined.max(1e-9),
        bytes_written: entries * ENTRY_BYTES as f64 / seconds,
        storage: number(created, "bytesEstimate"),
    };
    (now, after)
}

fn evidence(statements: &[&Statement<'_>], served: &[&Tried]) -> Vec<super::Evidence> {
    let sum =
        |of: &dyn Fn(&Statement<'_>) -> f64| statements.iter().map(|one| of(one)).sum::<f64>();
    let rate = sum(&|one| one.per_second).max(1e-9);
    let runs = sum(&|one| one.used.measures.count as f64).max(1.0);
    let weighted = |of: &dyn Fn(&Tried) -> Option<f64>| {
        let parts = served.iter().filter_map(|one| Some((of(one)? * one.count, one.count)));
        let (total, count) = parts.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        if count > 0.0 { total / count } else { 0.0 }
    };
    let after = |of: fn(&Run) -> f64| weighted(&move |one| one.after.as_ref().map(of));
    let before = |of: fn(&Run) -> f64| weighted(&move |one| one.before.as_ref().map(of));
    vec![
        ("statements", Value::PerSecond(rate)),
        (
            "examinedForEach",
            Value::Count(sum(&|one| one.examined_for_each() * one.per_second) / rate),
        ),
        ("examinedByEachWith", Value::Count(after(|run| run.documents))),
        ("examinedByEachWithLow", Value::Count(after(|run| run.low))),
        ("examinedByEachWithHigh", Value::Count(after(|run| run.high))),
        ("growthOfCost", Value::Count(rounded(before(|run| run.growth)))),
        ("growthOfCostWith", Value::Count(rounded(after(|run| run.growth)))),
        (
            "collectionScans",
            Value::Share(sum(&|one| one.used.measures.collection_scans as f64) / runs),
        ),
        ("sortsInMemory", Value::Share(sum(&|one| one.used.measures.sorts as f64) / runs)),
    ]
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// Returns the commands that create the index and that drop it.
fn commands(name: &str, definition: &IndexDefinition) -> (String, String) {
    let options = DocBuf::build(|out| {
        let collation = definition.collation.as_ref().map(Bson::from);
        let partial = definition.partial.as_ref().map(Bson::from);
        if collation.is_some() || partial.is_some() {
            out.append("name", definition.name().as_str());
        }
        out.append_some("partialFilterExpression", partial);
        out.append_some("collation", collation);
    });
    let key = definition.key_document();
    let (create, drop) = mongosh::create_index(name, &key);
    if options.as_doc().is_empty() {
        return (create, drop);
    }
    let collection = mongosh::collection(name);
    let create = format!(
        "{collection}.createIndex({}, {})",
        mongosh::object(key.as_doc()),
        mongosh::object(options.as_doc())
    );
    (create, format!("{collection}.dropIndex({})", mongosh::string(&definition.name())))
}

/// Returns the path of the key if it has only one.
fn only_path(created: Doc<'_>) -> &str {
    let key = created.get("key").and_then(|key| key.as_document()).unwrap_or_default();
    let mut fields = key.fields();
    match (fields.next(), fields.next()) {
        (Some((path, _)), None) => path,
        _ => "",
    }
}

/// Reads on how much of the collection the commands ran.
fn executed(advised: Doc<'_>) -> Confidence {
    let copy = advised.get("copy").and_then(|copy| copy.as_document()).unwrap_or_default();
    let count = |field| number(copy, field) as u64;
    Confidence::Executed { copied: count("documents"), of: count("documentsInCollection") }
}

/// Reads what became of the commands. The advice lists those that it could use, in their order.
fn tried(requests: &TrialRequests, advised: Doc<'_>) -> Vec<Tried> {
    let listed = advised.get("requests").and_then(|listed| listed.as_array());
    let listed = listed.into_iter().flat_map(|listed| listed.iter());
    let mut given = requests.requests.iter().zip(&requests.statements);
    let mut found = Vec::new();
    for one in listed.filter_map(|one| one.as_document()) {
        let Some(command) = one.get("command").and_then(|command| command.as_document()) else {
            continue;
        };
        let same = |(request, _): &(&IndexRequest, &usize)| {
            request.command.as_bytes() == command.as_bytes()
        };
        let Some((request, statement)) = given.by_ref().find(same) else { break };
        let run = |name: &str| {
            let run = one.get(name)?.as_document()?;
            let documents = run.get("documentsExamined")?.as_document()?;
            Some(Run {
                documents: number(documents, "estimate"),
                low: number(documents, "low"),
                high: number(documents, "high"),
                growth: number(run, "growth"),
            })
        };
        found.push(Tried {
            statement: *statement,
            count: request.count,
            before: run("before"),
            after: run("after"),
        });
    }
    found
}

fn number(doc: Doc<'_>, name: &str) -> f64 {
    doc.get(name).and_then(|value| value.as_number()).map_or(0.0, |number| number.to_f64())
}
