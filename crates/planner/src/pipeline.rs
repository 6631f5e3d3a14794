//! Pipelines: what can be moved is moved to the front, and the front becomes a `find`.
//! (MongoDB manual, "Aggregation Pipeline Optimization".)

use crate::projection_text::print_projection;
use crate::request::{AggregateRequest, FindRequest};
use quire_document::{Array, Doc, DocBuf, Value};
use quire_error::Result;
use quire_mql::ParseContext;
use quire_mql::expression::Node as ExprNode;
use quire_mql::projection::Kind;
use quire_mql::stage::{Match, Modified, Stage, Transform};
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

/// A pipeline in two parts.
#[derive(Debug)]
pub struct PipelineParts {
    /// What the collection is asked.
    pub find: FindRequest,
    /// What is left to do with the answers.
    pub rest: Vec<Stage>,
    /// `find.projection` is a `$project` stage.
    pub project_stage: bool,
    /// `find.projection` only says which fields the rest reads: it may be left out.
    pub projection_is_hint: bool,
    /// The rest reads no field at all.
    pub counts_only: bool,
}

/// Optimises a pipeline and splits it.
///
/// # Errors
/// None that parsing has not met; moved filters are parsed again.
pub fn split_pipeline(
    request: &AggregateRequest,
    stages: Vec<Stage>,
    context: &ParseContext,
) -> Result<PipelineParts> {
    let mut rest = optimise(stages, context)?;
    let mut find = FindRequest {
        namespace: request.namespace.clone(),
        hint: request.hint.clone(),
        let_vars: request.let_vars.clone(),
        allow_disk_use: request.allow_disk_use,
        comment: request.comment.clone(),
        of_pipeline: true,
        ..FindRequest::default()
    };
    rest.reverse();
    if let Some(Stage::Match(_)) = rest.last()
        && let Some(Stage::Match(first)) = rest.pop()
    {
        find.filter = first.source().to_owned();
    }
    if let Some(Stage::Sort(pattern)) = rest.last()
        && pattern.metadata().next().is_none()
    {
        find.sort = pattern.to_bson().clone();
        rest.pop();
    }
    if let Some(Stage::Skip(count)) = rest.last() {
        find.skip = *count;
        rest.pop();
    }
    if let Some(Stage::Limit(count)) = rest.last() {
        find.limit = *count;
        rest.pop();
    }
    let project_stage = match rest.last() {
        Some(Stage::Transform(transform)) => inclusion(transform),
        _ => None,
    };
    if let Some(spec) = &project_stage {
        find.projection = spec.clone();
        rest.pop();
    }
    rest.reverse();
    let mut parts = PipelineParts {
        find,
        rest,
        project_stage: project_stage.is_some(),
        projection_is_hint: false,
        counts_only: false,
    };
    if !parts.project_stage && !parts.rest.is_empty() {
        apply_needs(&mut parts);
    }
    let FindRequest { filter, sort, skip: 0, limit: 0, .. } = &parts.find else { return Ok(parts) };
    let everything = filter.as_doc().is_empty() && sort.as_doc().is_empty() && !parts.project_stage;
    if let Some(Stage::Sample(size)) = parts.rest.first()
        && everything
    {
        parts.find.sample = Some(*size);
    }
    Ok(parts)
}

/// The `$project` that it is, as a plan shows it, if it only names what is kept or computed.
fn inclusion(transform: &Transform) -> Option<DocBuf> {
    let Transform::Projection("$project", projection) = transform else { return None };
    if projection.kind() != Kind::Inclusion {
        return None;
    }
    Some(print_projection(projection))
}

/// What the rest reads becomes the projection, so that an index alone may answer.
fn apply_needs(parts: &mut PipelineParts) {
    let Some(paths) = needed_paths(&parts.rest) else { return };
    if paths.is_empty() {
        parts.counts_only = true;
        return;
    }
    let shortest: Vec<&String> = paths.iter().filter(|path| !has_parent(&paths, path)).collect();
    parts.projection_is_hint = true;
    parts.find.projection = DocBuf::build(|writer| {
        let mut keeps_id = false;
        for path in &shortest {
            keeps_id |= path.as_str() == "_id" || path.starts_with("_id.");
            writer.append(path, 1);
        }
        if !keeps_id {
            writer.append("_id", 0);
        }
    });
}

/// The paths that stages read of their input; `None` if they may need anything.
fn needed_paths(stages: &[Stage]) -> Option<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for stage in stages {
        let needs = stage.needs();
        if needs.reads.whole_document || !needs.reads.metadata.is_empty() {
            return None;
        }
        paths.extend(needs.reads.paths);
        if needs.exhaustive {
            return Some(paths);
        }
        if matches!(stage.modified(), Modified::All) {
            return None;
        }
    }
    None
}

/// True if the set has a path that this one is below.
fn has_parent(paths: &BTreeSet<String>, path: &str) -> bool {
    path.match_indices('.').any(|(end, _)| paths.contains(&path[..end]))
}

/// True if the set has a path that is below this one.
fn has_child(paths: &BTreeSet<String>, path: &str) -> bool {
    let below = format!("{path}.");
    let mut behind = paths.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded));
    behind.next().is_some_and(|next| next.starts_with(&below))
}

/// Moves filters and limits forward, joins neighbours.
pub(crate) fn optimise(stages: Vec<Stage>, context: &ParseContext) -> Result<Vec<Stage>> {
    let mut stages = join_matches(stages, context)?;
    let mut at = 0;
    let mut rounds = 0;
    while at + 1 < stages.len() && rounds < 10_000 {
        rounds += 1;
        let second = stages.remove(at + 1);
        let first = stages.remove(at);
        let (pair, changed) = combine(first, second, context)?;
        for (offset, stage) in pair.into_iter().enumerate() {
            stages.insert(at + offset, stage);
        }
        at = if changed { at.saturating_sub(1) } else { at + 1 };
    }
    Ok(stages)
}

/// The two neighbours, joined or exchanged where that is the same; whether anything changed.
fn combine(first: Stage, second: Stage, context: &ParseContext) -> Result<(Vec<Stage>, bool)> {
    Ok(match (first, second) {
        (Stage::Match(a), Stage::Match(b)) => (vec![Stage::Match(all_of(&[a, b], context)?)], true),
        (Stage::Limit(a), Stage::Limit(b)) => (vec![Stage::Limit(a.min(b))], true),
        (Stage::Skip(a), Stage::Skip(b)) => (vec![Stage::Skip(a.saturating_add(b))], true),
        (Stage::Limit(limit), Stage::Skip(skip)) if limit > skip => {
            (vec![Stage::Skip(skip), Stage::Limit(limit - skip)], true)
        }
        (Stage::Sort(sort), Stage::Match(filter)) => {
            (vec![Stage::Match(filter), Stage::Sort(sort)], true)
        }
        (first @ Stage::Transform(_), second @ (Stage::Limit(_) | Stage::Skip(_))) => {
            (vec![second, first], true)
        }
        (first @ (Stage::Transform(_) | Stage::Unwind(_)), Stage::Match(filter)) => {
            push_match(first, filter, context)?
        }
        (first, second) => (vec![first, second], false),
    })
}

/// Joins each run of filters at once: pair by pair a long run would be parsed again for each.
fn join_matches(stages: Vec<Stage>, context: &ParseContext) -> Result<Vec<Stage>> {
    let mut out = Vec::with_capacity(stages.len());
    let mut run: Vec<Match> = Vec::new();
    for stage in stages {
        match stage {
            Stage::Match(filter) => run.push(filter),
            other => {
                out.extend(joined_run(&mut run, context)?);
                out.push(other);
            }
        }
    }
    out.extend(joined_run(&mut run, context)?);
    Ok(out)
}

/// The one filter that a run of them is; none for none.
fn joined_run(run: &mut Vec<Match>, context: &ParseContext) -> Result<Option<Stage>> {
    let mut run = std::mem::take(run);
    Ok(match run.len() {
        0 | 1 => run.pop().map(Stage::Match),
        _ => Some(Stage::Match(all_of(&run, context)?)),
    })
}

/// The filter that is all of these: one flat `$and`, so that it is never nested too deeply.
fn all_of(filters: &[Match], context: &ParseContext) -> Result<Match> {
    let mut parts: Vec<Doc<'_>> = Vec::new();
    for source in filters.iter().map(Match::source).filter(|source| !source.is_empty()) {
        match only_and(source) {
            Some(list) => parts.extend(list.iter().filter_map(|part| part.as_document())),
            None => parts.push(source),
        }
    }
    if let [only] = parts[..] {
        return Match::new(only, context);
    }
    let joined = DocBuf::build(|writer| {
        if parts.is_empty() {
            return;
        }
        let mut list = writer.array("$and");
        parts.iter().for_each(|part| {
            list.push(*part);
        });
    });
    Match::new(joined.as_doc(), context)
}

/// The list of a filter that is nothing but an `$and`.
fn only_and(filter: Doc<'_>) -> Option<Array<'_>> {
    match filter.first() {
        Some(first) if first.key() == "$and" && filter.count() == 1 => first.value().as_array(),
        _ => None,
    }
}

/// Moves the parts of a filter that a stage does not touch to before it.
fn push_match(first: Stage, filter: Match, context: &ParseContext) -> Result<(Vec<Stage>, bool)> {
    let modified = first.modified();
    let renames = renames(&first);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for part in conjuncts(filter.source()) {
        match moved(&part, &modified, &renames, context)? {
            Some(part) => before.push(part),
            None => after.push(part),
        }
    }
    if before.is_empty() {
        return Ok((vec![first, Stage::Match(filter)], false));
    }
    let mut stages = vec![Stage::Match(joined(&before, context)?), first];
    if !after.is_empty() {
        stages.push(Stage::Match(joined(&after, context)?));
    }
    Ok((stages, true))
}

fn joined(parts: &[DocBuf], context: &ParseContext) -> Result<Match> {
    if let [only] = parts {
        return Match::new(only.as_doc(), context);
    }
    let all = DocBuf::build(|writer| {
        let mut list = writer.array("$and");
        parts.iter().for_each(|part| {
            list.push(part);
        });
    });
    Match::new(all.as_doc(), context)
}

/// The filters that together are this one.
fn conjuncts(filter: Doc<'_>) -> Vec<DocBuf> {
    let mut parts = Vec::new();
    for element in filter.iter() {
        match (element.key(), element.value()) {
            ("$and", Value::Array(list)) => {
                parts.extend(list.iter().filter_map(|v| v.as_document()).flat_map(conjuncts));
            }
            _ => parts.push(DocBuf::build(|writer| {
                writer.append_element(element);
            })),
        }
    }
    parts
}

/// The filter as it reads before the stage; `None` if it cannot stand there.
fn moved(
    part: &DocBuf,
    modified: &Modified,
    renames: &HashMap<String, String>,
    context: &ParseContext,
) -> Result<Option<DocBuf>> {
    let parsed = Match::new(part.as_doc(), context)?;
    let Some(paths) = parsed.filter().paths() else { return Ok(None) };
    if paths.iter().all(|path| is_untouched(path, modified)) {
        return Ok(Some(part.clone()));
    }
    let (Some(first), [path]) = (part.as_doc().first(), paths.as_slice()) else { return Ok(None) };
    if first.key() != *path {
        return Ok(None);
    }
    let top = path.split('.').next().unwrap_or_default();
    let renamed = renames.get(top).map(|old| format!("{old}{}", &path[top.len()..]));
    Ok(renamed.map(|path| {
        DocBuf::build(|writer| {
            writer.append_renamed(&path, first);
        })
    }))
}

fn is_untouched(path: &str, modified: &Modified) -> bool {
    match modified {
        Modified::Nothing => true,
        Modified::All => false,
        Modified::Paths(paths) => {
            !paths.contains(path) && !has_parent(paths, path) && !has_child(paths, path)
        }
        Modified::AllExcept(kept) => kept.contains(path) || has_parent(kept, path),
    }
}

/// New names for fields that a stage only copies: `{$project: {x: "$a"}}`.
fn renames(stage: &Stage) -> HashMap<String, String> {
    let computed = match stage {
        Stage::Transform(Transform::Projection("$project", projection)) => {
            projection.computed_fields()
        }
        _ => return HashMap::new(),
    };
    computed
        .into_iter()
        .filter(|(new, _)| !new.contains('.'))
        .filter_map(|(new, expression)| match expression.node() {
            ExprNode::Path(path) => {
                let old: Vec<&str> = path.components().collect();
                (old.len() == 1).then(|| (new, old.concat()))
            }
            _ => None,
        })
        .collect()
}
