//! Prints plans as MongoDB's `explain` does: the stages and their statistics after they ran.

mod buckets;
mod express;
mod foreign;

use self::buckets::bucket_facts;
use self::express::Express;
pub use self::foreign::foreign_plan;
use self::foreign::with_key;
use crate::indexes::cached::shape_hashes;
pub use crate::node_stats::{JoinStats, JoinStrategy, MemoryUse, NodeStats};
use crate::plan::{IndexScan, Node, Plan, ProjectionKind};
use crate::shape::digits;
use quire_catalog::key::{Interval, Intervals, KeyField};
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter, Value, ValueBuf};
use quire_mql::filter::Node as Condition;
use quire_mql::sort::SortPattern;
use quire_mql::stage::Stage;

/// The memory limit of a sort that explain shows, in bytes.
pub const SORT_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Returns a plan in the form that MongoDB shows after it ran: a skip shows the rest of its count.
pub fn after_running(node: &Node, stats: &NodeStats) -> Node {
    let mut node = node.clone();
    count_down(&mut node, stats);
    node
}

fn count_down(node: &mut Node, stats: &NodeStats) {
    if let Node::Skip { count, .. } = node {
        *count = count.saturating_sub(stats.skipped);
    }
    let stats = if node.is_idle() { Some(stats) } else { stats.inputs.first() };
    if let (Some(input), Some(stats)) = (node.input_mut(), stats) {
        count_down(input, stats);
    }
}

/// Appends the fields of `queryPlanner`.
pub fn query_planner(plan: &Plan, out: &mut DocWriter<'_>) {
    out.append("namespace", plan.namespace.as_str());
    if !matches!(plan.root, Node::RecordStoreFastCount { .. }) {
        let filter = plan.filter.as_deref().map(Condition::to_bson);
        out.append("parsedQuery", &filter.unwrap_or_default());
    }
    if let Some(collation) = &plan.collation {
        out.append("collation", &collation.to_document());
    }
    out.append("indexFilterSet", plan.index_filter.is_some());
    if let Some(settings) = &plan.settings {
        out.append("querySettings", &settings.shown);
    }
    let (shape, key) = shape_hashes(plan);
    let (shape, key) = (digits(shape), digits(key));
    out.append("queryHash", shape.as_str());
    out.append("planCacheShapeHash", shape.as_str());
    out.append("planCacheKey", key.as_str());
    out.append("optimizationTimeMillis", 0);
    out.append("maxIndexedOrSolutionsReached", false);
    out.append("maxIndexedAndSolutionsReached", false);
    out.append("maxScansToExplodeReached", false);
    out.append("prunedSimilarIndexes", false);
    {
        let mut winning = out.document("winningPlan");
        winning.append("isCached", false);
        match plan.planned() {
            root if let Some(found) = Express::of(root) => found.print(None, &mut winning),
            group @ Node::Stage { .. } => {
                print(group, None, Some(0), &mut winning.document("queryPlan"));
            }
            root => stage(root, None, &mut winning),
        }
    }
    let mut rejected = out.array("rejectedPlans");
    for node in &plan.rejected {
        let mut one = rejected.document();
        one.append("isCached", false);
        stage(node, None, &mut one);
    }
}

/// A candidate plan that ran for a while.
#[derive(Debug)]
pub struct Trial {
    /// The candidate plan.
    pub node: Node,
    /// The statistics of its trial.
    pub stats: NodeStats,
}

impl Trial {
    fn print(&self, out: &mut DocWriter<'_>) {
        let Trial { node, stats } = self;
        number("nReturned", shown_rows(node, stats), out);
        number("executionTimeMillisEstimate", stats.millis, out);
        number("totalKeysExamined", stats.total_keys(), out);
        number("totalDocsExamined", stats.total_docs(), out);
        // As in MongoDB: 1 plus the share of the steps that returned a row.
        out.append("score", 1.0 + stats.returned as f64 / stats.works().max(1) as f64);
        stage(node, Some(stats), &mut out.document("executionStages"));
    }
}

/// Returns the number of returned rows that explain shows for a plan.
fn shown_rows(node: &Node, stats: &NodeStats) -> u64 {
    match node {
        Node::Count { .. } => 0,
        _ => stats.returned,
    }
}

/// Appends the fields of `executionStats` for a plan that ran. `trials` are those of all
/// candidates, if they are to be shown.
pub fn execution_stats(
    plan: &Plan,
    stats: &NodeStats,
    trials: Option<&[Trial]>,
    out: &mut DocWriter<'_>,
) {
    let returned = shown_rows(plan.planned(), stats);
    out.append("executionSuccess", stats.failure.is_none());
    if let Some((code, message)) = &stats.failure {
        out.append("failed", true);
        out.append("errorMessage", message.as_str());
        out.append("errorCode", *code);
    }
    number("nReturned", returned, out);
    number("executionTimeMillis", stats.millis, out);
    number("totalKeysExamined", stats.total_keys(), out);
    number("totalDocsExamined", stats.total_docs(), out);
    {
        let mut stages = out.document("executionStages");
        match plan.planned() {
            root if let Some(found) = Express::of(root) => {
                found.print(Some(stats), stages.append("isCached", false));
            }
            group @ Node::Stage { .. } => print(group, Some(stats), Some(0), &mut stages),
            root => stage(root, Some(stats), &mut stages),
        }
    }
    if let Some(trials) = trials {
        let mut all = out.array("allPlansExecution");
        trials.iter().for_each(|trial| trial.print(&mut all.document()));
    }
}

/// Prints a plan that did not run.
pub(crate) fn print_stages(node: &Node, out: &mut DocWriter<'_>) {
    stage(node, None, out);
}

/// Prints a stage with its inputs, and its statistics if it ran.
fn stage(node: &Node, stats: Option<&NodeStats>, out: &mut DocWriter<'_>) {
    print(node, stats, None, out);
}

/// Prints as [`stage`] does. `numbered` is the number of stages whose `planNodeId` is lower than
/// those of all stages here; each stage has a higher number than its inputs.
fn print(node: &Node, stats: Option<&NodeStats>, numbered: Option<usize>, out: &mut DocWriter<'_>) {
    if let Node::SortKeys { input, .. } = node {
        return print(input, stats, numbered, out);
    }
    let idle = stats.filter(|_| node.is_idle()).map(NodeStats::passed_on);
    let stats = idle.as_ref().or(stats);
    match node {
        Node::Stage { stage: Stage::Group(_), .. } => out.append("stage", "GROUP"),
        _ => out.append("stage", node.name()),
    };
    if let Some(before) = numbered {
        number("planNodeId", (before + shown_stages(node)) as u64, out);
    }
    let filter = match node {
        Node::CollScan { filter, .. }
        | Node::ClusteredScan { filter, .. }
        | Node::Fetch { filter, .. } => filter.as_ref(),
        Node::IndexScan(scan) | Node::DistinctScan { scan, .. } => scan.filter.as_ref(),
        Node::Buckets(scan) => scan.rest.as_ref(),
        _ => None,
    };
    if let Some(filter) = filter {
        out.append("filter", &filter.to_bson());
    }
    if let Some(stats) = stats {
        common_stats(node, stats, out);
    }
    facts(node, stats, out);
    let inputs = node.inputs().iter().enumerate().map(|(at, input)| {
        let stats = stats.and_then(|stats| stats.inputs.get(at));
        if matches!(node, Node::Stage { .. }) { grouped(input, stats) } else { (input, stats) }
    });
    let mut numbered = numbered;
    let mut each = |(input, stats): (&Node, _), out: &mut DocWriter<'_>| {
        print(input, stats, numbered, out);
        numbered = numbered.map(|before| before + shown_stages(input));
    };
    match node {
        Node::Gather { inputs: several, .. } if several.is_empty() => {}
        Node::Gather { inputs: several, .. } if several.len() == 1 => {
            inputs.for_each(|input| each(input, &mut out.document("inputStage")));
        }
        Node::Or { .. }
        | Node::Points { .. }
        | Node::AndSorted { .. }
        | Node::SortMerge { .. }
        | Node::Gather { .. } => {
            let mut list = out.array("inputStages");
            inputs.for_each(|input| each(input, &mut list.document()));
        }
        _ => inputs.for_each(|input| each(input, &mut out.document("inputStage"))),
    }
}

/// Returns what explain shows as the input of a `GROUP`: it hides the `SUBPLAN`, and a projection
/// that only removes fields, unless the plan reads only keys of an index.
fn grouped<'n>(input: &'n Node, stats: Option<&'n NodeStats>) -> (&'n Node, Option<&'n NodeStats>) {
    let inner = stats.and_then(|stats| stats.inputs.first());
    match input {
        Node::Subplan { input: below } => grouped(below, inner),
        Node::Projection { kind, spec, input: below }
            if spec.narrows && *kind != ProjectionKind::Covered =>
        {
            (below, if input.is_idle() { stats } else { inner })
        }
        other => (other, stats),
    }
}

/// Returns the number of stages that explain shows of a tree.
fn shown_stages(node: &Node) -> usize {
    let own = usize::from(!matches!(node, Node::SortKeys { .. }));
    let below = |input| match node {
        Node::Stage { .. } => shown_stages(grouped(input, None).0),
        _ => shown_stages(input),
    };
    own + node.inputs().iter().map(below).sum::<usize>()
}

fn common_stats(node: &Node, stats: &NodeStats, out: &mut DocWriter<'_>) {
    let returned = shown_rows(node, stats);
    let works = stats.works();
    number("nReturned", returned, out);
    number("executionTimeMillisEstimate", stats.millis, out);
    number("works", works, out);
    number("advanced", returned, out);
    number("needTime", works.saturating_sub(returned + u64::from(stats.is_eof)), out);
    number("needYield", 0, out);
    number("saveState", 0, out);
    number("restoreState", 0, out);
    if stats.failure.is_some() {
        out.append("failed", true);
    }
    out.append("isEOF", i32::from(stats.is_eof));
}

/// Prints the fields that are specific to a kind of stage.
fn facts(node: &Node, stats: Option<&NodeStats>, out: &mut DocWriter<'_>) {
    match node {
        Node::CollScan { .. } | Node::ClusteredScan { .. } => {
            collection_facts(node, out);
            if let Some(stats) = stats {
                number("docsExamined", stats.docs_examined, out);
            }
        }
        Node::IdHack { .. }
        | Node::IdLookups(_)
        | Node::IndexScan(_)
        | Node::CountScan(_)
        | Node::DistinctScan { .. } => index_stage_facts(node, stats, out),
        Node::Fetch { .. } => {
            if let Some(stats) = stats {
                number("docsExamined", stats.docs_examined, out);
                number("alreadyHasObj", 0, out);
            }
        }
        Node::Or { .. } => {
            if let Some(stats) = stats {
                duplicates(stats, out);
            }
        }
        Node::Gather { search, inputs } => {
            // A search that opens its scans while it runs shows its index itself.
            if inputs.is_empty() {
                let index = &search.index;
                out.append("keyPattern", &index.keys.shown_pattern(index.key()));
                out.append("indexName", index.name.as_str());
                out.append("indexVersion", index.version);
            }
            if let Some(stats) = stats {
                number("docsExamined", stats.docs_examined, out);
            }
        }
        Node::Buckets(scan) => bucket_facts(scan, stats, out),
        Node::Points { .. } => {}
        Node::Check { search, .. } => {
            out.append("indexName", search.index.name.as_str());
            search.method.write_facts(out);
            if let Some(stats) = stats {
                let found = stats.inputs.first().map_or(0, |input| input.returned);
                number("docsRejected", found.saturating_sub(stats.returned), out);
            }
        }
        Node::SortMerge { pattern, .. } => {
            out.append("sortPattern", &integral(pattern.to_bson()));
            if let Some(stats) = stats {
                duplicates(stats, out);
            }
        }
        Node::Sort { pattern, limit, simple, .. } => {
            sort_facts(&shown_sort(pattern), *limit, *simple, stats, out)
        }
        Node::Skip { count, .. } => number("skipAmount", *count, out),
        Node::Limit { count, .. } => number("limitAmount", *count, out),
        Node::Projection { spec, .. } => {
            out.append("transformBy", &spec.shown);
        }
        Node::Count { .. } | Node::RecordStoreFastCount { .. } => {
            if let Some(stats) = stats {
                number("nCounted", stats.counted, out);
                number("nSkipped", stats.skipped, out);
            }
        }
        Node::Write { kind, .. } => match stats {
            Some(stats) if kind.removes() => number("nWouldDelete", stats.counted, out),
            Some(stats) => {
                number("nMatched", stats.counted, out);
                number("nWouldModify", stats.counted, out);
                number("nWouldUpsert", u64::from(stats.upserted), out);
            }
            None => {}
        },
        Node::Stage { .. } => {
            if let Some(stats) = stats {
                out.append("usedDisk", stats.spills > 0);
                number("spills", stats.spills, out);
            }
        }
        Node::Eof
        | Node::OneDocument
        | Node::Served(_)
        | Node::Feed { .. }
        | Node::SortKeys { .. }
        | Node::RandomPicks { .. }
        | Node::AndSorted { .. }
        | Node::ReturnKey { .. }
        | Node::Subplan { .. } => {}
    }
}

/// Prints the direction of a collection scan, and the range of `_id`s that it reads.
fn collection_facts(node: &Node, out: &mut DocWriter<'_>) {
    match node {
        Node::CollScan { backward, .. } => {
            out.append("direction", direction(*backward));
        }
        Node::ClusteredScan { scan, .. } => {
            out.append("direction", direction(scan.backward));
            let (first, last) = match &scan.range {
                Some(range) => (
                    range.start.as_ref().and_then(|key| first_value(key.as_doc())),
                    range.end.as_ref().and_then(|key| first_value(key.as_doc())),
                ),
                None if scan.is_whole() => (None, None),
                None => {
                    let list = scan.bounds.first().map_or(&[][..], |intervals| &intervals.0[..]);
                    let (first, last) = (list.first(), list.last());
                    (first.map(|first| first.low.as_value()), last.map(|last| last.high.as_value()))
                }
            };
            // A range of dates without an end has the first or the last date there, which many drivers cannot read.
            let is_readable =
                |value: &Value<'_>| !matches!(value, Value::Date(i64::MIN | i64::MAX));
            out.append_some("minRecord", first.filter(is_readable));
            out.append_some("maxRecord", last.filter(is_readable));
        }
        _ => {}
    }
}

fn first_value(key: Doc<'_>) -> Option<Value<'_>> {
    key.fields().next().map(|(_, value)| value)
}

/// Prints the fields that are specific to a stage that reads an index.
fn index_stage_facts(node: &Node, stats: Option<&NodeStats>, out: &mut DocWriter<'_>) {
    match node {
        Node::IdHack { .. } | Node::IdLookups(_) => {
            if let Some(stats) = stats {
                number("keysExamined", stats.keys_examined, out);
                number("docsExamined", stats.docs_examined, out);
            }
        }
        Node::IndexScan(scan) => {
            index_facts(scan, out);
            // MongoDB keeps such keys in the other direction.
            let backward = scan.backward == scan.keys.kind().shows_bounds;
            out.append("direction", direction(backward));
            out.append("indexBounds", &index_bounds(scan));
            if let Some(stats) = stats {
                number("keysExamined", stats.keys_examined, out);
                number("seeks", stats.seeks, out);
                duplicates(stats, out);
            }
        }
        Node::CountScan(scan) => {
            if let Some(stats) = stats {
                number("keysExamined", stats.keys_examined, out);
            }
            index_facts(scan, out);
            out.append("indexBounds", &count_bounds(scan));
        }
        Node::DistinctScan { scan, each, .. } => {
            index_facts(scan, out);
            out.append("direction", direction(scan.backward));
            out.append("indexBounds", &index_bounds(scan));
            if *each > 1 {
                number("keysOfEach", *each, out);
            }
            if let Some(stats) = stats {
                number("keysExamined", stats.keys_examined, out);
            }
        }
        _ => {}
    }
}

fn sort_facts(
    pattern: &DocBuf,
    limit: u64,
    simple: bool,
    stats: Option<&NodeStats>,
    out: &mut DocWriter<'_>,
) {
    out.append("sortPattern", &integral(pattern));
    number("memLimit", SORT_BYTES_MAX, out);
    if limit > 0 {
        number("limitAmount", limit, out);
    }
    out.append("type", if simple { "simple" } else { "default" });
    if let Some(stats) = stats {
        number("totalDataSizeSorted", stats.bytes_sorted, out);
        out.append("usedDisk", stats.spills > 0);
        number("spills", stats.spills, out);
    }
}

fn duplicates(stats: &NodeStats, out: &mut DocWriter<'_>) {
    number("dupsTested", stats.dups_tested, out);
    number("dupsDropped", stats.dups_dropped, out);
}

fn index_facts(scan: &IndexScan, out: &mut DocWriter<'_>) {
    let index = &scan.index;
    out.append("keyPattern", &scan.keys.shown_pattern(index.key()));
    out.append("indexName", index.name.as_str());
    if let Some(collation) = scan.keys.collation() {
        out.append("collation", &collation.to_document());
    }
    out.append("isMultiKey", scan.multikey.any());
    if scan.keys.kind().tracks_arrays {
        let mut paths = out.document("multiKeyPaths");
        for (at, field) in shown_fields(scan) {
            let bits = scan.multikey.0.get(at).copied().unwrap_or(0);
            let mut list = paths.array(&field.path);
            for prefix in array_prefixes(&field.path, bits) {
                list.push(prefix);
            }
        }
    }
    out.append("isUnique", index.unique);
    out.append("isSparse", index.keys.is_sparse());
    out.append("isPartial", index.partial_filter().is_some());
    out.append("indexVersion", index.version);
}

fn array_prefixes(path: &str, bits: u64) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('.').map(|(at, _)| at).chain(std::iter::once(path.len()));
    ends.enumerate()
        .filter(move |(component, _)| bits & quire_catalog::MultikeyPaths::bit(*component) != 0)
        .filter_map(move |(_, end)| path.get(..end))
}

fn index_bounds(scan: &IndexScan) -> DocBuf {
    DocBuf::build(|out| {
        if scan.range.is_some() || !scan.keys.kind().shows_bounds {
            return;
        }
        for ((at, field), intervals) in bounded_fields(scan) {
            let shown = shown_bounds(scan, at, intervals);
            match scan.keyed {
                Some(keyed) if keyed.field == at => {
                    out.append(&field.path, &with_key(shown, intervals));
                }
                _ => {
                    out.append(&field.path, &shown);
                }
            }
        }
    })
}

/// Returns the fields of the scanned keys with their positions.
fn shown_fields(scan: &IndexScan) -> impl Iterator<Item = (usize, &KeyField)> {
    scan.keys.fields().iter().enumerate().filter(|(at, _)| scan.keys.is_shown(*at))
}

fn bounded_fields(scan: &IndexScan) -> impl Iterator<Item = ((usize, &KeyField), &Intervals)> {
    shown_fields(scan).filter_map(|(at, field)| Some(((at, field), scan.bounds.get(at)?)))
}

/// Returns the bounds of a field; sort keys print as `CollationKey(0x...)`.
fn shown_bounds(scan: &IndexScan, at: usize, intervals: &Intervals) -> ArrayBuf {
    if !scan.keys.holds_sort_keys(at) {
        return intervals.print(scan.is_reversed(at));
    }
    let shown = intervals.0.iter().map(|interval| Interval {
        low: shown_key(interval.low.as_value()),
        high: shown_key(interval.high.as_value()),
        ..interval.clone()
    });
    let texts = Intervals::from(shown.collect::<Vec<_>>()).print(scan.is_reversed(at));
    let unquoted = texts.as_array().iter().map(|text| {
        let text = text.as_str().unwrap_or_default();
        text.replace("\"CollationKey", "CollationKey").replace(")\"", ")")
    });
    let unquoted: Vec<String> = unquoted.collect();
    unquoted.iter().map(String::as_str).collect()
}

/// Returns a bound's value as explain shows it: the bytes of a sort key in hexadecimal digits.
fn shown_key(value: Value<'_>) -> ValueBuf {
    match value {
        Value::String(text) if !text.is_empty() => {
            let digits: String = text.chars().map(|byte| format!("{:02x}", byte as u32)).collect();
            ValueBuf::new(format!("CollationKey(0x{digits})").as_str())
        }
        other => ValueBuf::new(other),
    }
}

/// Returns the two ends of the one range that a COUNT_SCAN visits.
fn count_bounds(scan: &IndexScan) -> DocBuf {
    let (mut start_inclusive, mut end_inclusive) = (true, true);
    let end = |first: bool, inclusive: &mut bool| {
        DocBuf::build(|out| {
            for ((at, field), intervals) in bounded_fields(scan) {
                let Some(interval) = intervals.0.first() else { continue };
                // After an exclusive value either all keys that begin with it follow, or none of
                // them.
                let low = (first == *inclusive) != scan.is_reversed(at);
                let (value, belongs) = if low {
                    (interval.low.as_value(), interval.low_inclusive)
                } else {
                    (interval.high.as_value(), interval.high_inclusive)
                };
                *inclusive &= belongs;
                match scan.keys.holds_sort_keys(at) {
                    true => out.append(&field.path, &shown_key(value)),
                    false => out.append(&field.path, value),
                };
            }
        })
    };
    let start_key = end(true, &mut start_inclusive);
    let end_key = end(false, &mut end_inclusive);
    DocBuf::build(|out| {
        out.append("startKey", &start_key);
        out.append("startKeyInclusive", start_inclusive);
        out.append("endKey", &end_key);
        out.append("endKeyInclusive", end_inclusive);
    })
}

/// Returns a sort as explain shows it: the parts that read metadata have names of their own.
fn shown_sort(pattern: &SortPattern) -> DocBuf {
    let written = pattern.to_bson();
    if !pattern.reads_metadata() {
        return written.clone();
    }
    DocBuf::build(|out| {
        let mut computed = 0;
        for ((path, value), part) in written.as_doc().fields().zip(pattern.parts()) {
            if part.path().is_some() {
                out.append(path, value);
            } else {
                out.append(&format!("$computed{computed}"), value);
                computed += 1;
            }
        }
    })
}

/// Returns the pattern with directions as integers, however they were written.
fn integral(pattern: &DocBuf) -> DocBuf {
    DocBuf::build(|out| {
        for (path, value) in pattern.as_doc().fields() {
            match value {
                Value::Double(number) => out.append(path, number as i32),
                Value::Int64(number) => out.append(path, number as i32),
                other => out.append(path, other),
            };
        }
    })
}

fn direction(backward: bool) -> &'static str {
    if backward { "backward" } else { "forward" }
}

/// Appends a counter as MongoDB writes it: an int if it fits.
fn number(name: &str, value: u64, out: &mut DocWriter<'_>) {
    match i32::try_from(value) {
        Ok(value) => out.append(name, value),
        Err(_) => out.append(name, i64::try_from(value).unwrap_or(i64::MAX)),
    };
}
