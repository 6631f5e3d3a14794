//! Pipelines: what can be moved is moved to the front, and the front becomes a `find`.
//! (MongoDB manual, "Aggregation Pipeline Optimization".)

use crate::covering::flag;
use crate::request::{AggregateRequest, FindRequest};
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::Result;
use quire_mql::ParseContext;
use quire_mql::expression::Node as ExprNode;
use quire_mql::projection::{Kind, Projection};
use quire_mql::stage::{Match, Modified, Stage, Transform};
use std::collections::BTreeSet;

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

/// A projection stage as explain shows it: `{a: 1}` is `{_id: true, a: true}`.
pub fn print_projection(projection: &Projection) -> DocBuf {
    let source = projection.to_bson().as_doc();
    match projection.kind() {
        Kind::Inclusion => printed_inclusion(source, projection),
        Kind::AddFields => DocBuf::build(|writer| {
            for (name, value) in source.fields() {
                writer.append(name, &printed_value(name, value, projection));
            }
        }),
        Kind::Exclusion => {
            let mut paths: Vec<&str> = source
                .fields()
                .filter(|(name, value)| *name != "_id" || flag(*value) == Some(false))
                .map(|(name, _)| name)
                .collect();
            let keeps_id = !paths.contains(&"_id");
            DocBuf::build(|writer| {
                write_excluded(&mut paths, writer);
                if keeps_id {
                    writer.append("_id", true);
                }
            })
        }
    }
}

/// `{"c.d": 0}` is `{c: {d: false}}`.
fn write_excluded(paths: &mut Vec<&str>, writer: &mut quire_document::DocWriter<'_>) {
    while !paths.is_empty() {
        let first = paths.remove(0);
        match first.split_once('.') {
            None => {
                writer.append(first, false);
            }
            Some((top, rest)) => {
                let mut below = vec![rest];
                paths.retain(|path| match path.split_once('.') {
                    Some((other, rest)) if other == top => {
                        below.push(rest);
                        false
                    }
                    _ => true,
                });
                write_excluded(&mut below, &mut writer.document(top));
            }
        }
    }
}

/// A computed field with its constants folded and marked.
fn printed_value(name: &str, value: Value<'_>, projection: &Projection) -> ValueBuf {
    let computed = projection.computed_fields();
    match (computed.into_iter().find(|(path, _)| path == name), value) {
        (Some((_, expression)), _) => expression.to_bson(),
        (None, Value::Document(doc)) => ValueBuf::from(DocBuf::build(|writer| {
            for (inner, value) in doc.fields() {
                let path = format!("{name}.{inner}");
                writer.append(inner, &printed_value(&path, value, projection));
            }
        })),
        (None, other) => ValueBuf::new(other),
    }
}

fn printed_inclusion(source: Doc<'_>, projection: &Projection) -> DocBuf {
    let flat = flat_inclusion(source, projection);
    let mut fields: Vec<(&str, Value<'_>)> = flat.as_doc().fields().collect();
    DocBuf::build(|writer| write_nested(&mut fields, writer))
}

/// `{"o.x": true}` is `{o: {x: true}}`.
fn write_nested(fields: &mut Vec<(&str, Value<'_>)>, writer: &mut quire_document::DocWriter<'_>) {
    while !fields.is_empty() {
        let (first, value) = fields.remove(0);
        match first.split_once('.') {
            None => {
                writer.append(first, value);
            }
            Some((top, rest)) => {
                let mut below = vec![(rest, value)];
                fields.retain(|(path, value)| match path.split_once('.') {
                    Some((other, rest)) if other == top => {
                        below.push((rest, *value));
                        false
                    }
                    _ => true,
                });
                write_nested(&mut below, &mut writer.document(top));
            }
        }
    }
}

fn flat_inclusion(source: Doc<'_>, projection: &Projection) -> DocBuf {
    DocBuf::build(|writer| {
        let dropped = matches!(source.get("_id"), Some(value) if flag(value) == Some(false));
        let below_id = source.fields().any(|(name, _)| name.starts_with("_id."));
        let given = source.get("_id").is_some_and(|value| flag(value).is_none());
        if !dropped && !below_id && !given {
            writer.append("_id", true);
        }
        for (name, value) in source.fields() {
            match flag(value) {
                Some(_) if name == "_id" => {}
                Some(kept) => {
                    writer.append(name, kept);
                }
                None => print_kept(name, name, value, projection, writer),
            }
        }
        if dropped {
            writer.append("_id", false);
        }
    })
}

/// A field of an inclusion that is no flag: computed, or a document of fields below it.
fn print_kept(
    path: &str,
    name: &str,
    value: Value<'_>,
    projection: &Projection,
    writer: &mut quire_document::DocWriter<'_>,
) {
    let nested = value
        .as_document()
        .filter(|doc| doc.first().is_some_and(|first| !first.key().starts_with('$')));
    let Some(nested) = nested else {
        writer.append(name, &printed_value(path, value, projection));
        return;
    };
    let mut inner = writer.document(name);
    for (name, value) in nested.fields() {
        match flag(value) {
            Some(kept) => {
                inner.append(name, kept);
            }
            None => print_kept(&format!("{path}.{name}"), name, value, projection, &mut inner),
        }
    }
}

/// What the rest reads becomes the projection, so that an index alone may answer.
fn apply_needs(parts: &mut PipelineParts) {
    let Some(paths) = needed_paths(&parts.rest) else { return };
    if paths.is_empty() {
        parts.counts_only = true;
        return;
    }
    let shortest: Vec<&String> =
        paths.iter().filter(|path| !paths.iter().any(|other| is_below(path, other))).collect();
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

fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'))
}

/// Moves filters and limits forward, joins neighbours.
pub(crate) fn optimise(stages: Vec<Stage>, context: &ParseContext) -> Result<Vec<Stage>> {
    let mut stages = stages;
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
        (Stage::Match(a), Stage::Match(b)) => (vec![Stage::Match(both(&a, &b, context)?)], true),
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

fn both(a: &Match, b: &Match, context: &ParseContext) -> Result<Match> {
    if a.source().is_empty() {
        return Match::new(b.source(), context);
    }
    if b.source().is_empty() {
        return Match::new(a.source(), context);
    }
    let joined = DocBuf::build(|writer| {
        writer.array("$and").push(a.source()).push(b.source());
    });
    Match::new(joined.as_doc(), context)
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
    renames: &[(String, String)],
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
    let renamed = renames.iter().find_map(|(new, old)| match path.strip_prefix(new.as_str()) {
        Some("") => Some(old.clone()),
        Some(rest) if rest.starts_with('.') => Some(format!("{old}{rest}")),
        _ => None,
    });
    Ok(renamed.map(|path| {
        DocBuf::build(|writer| {
            writer.append_renamed(&path, first);
        })
    }))
}

fn is_untouched(path: &str, modified: &Modified) -> bool {
    let related = |other: &String| path == other || is_below(path, other) || is_below(other, path);
    match modified {
        Modified::Nothing => true,
        Modified::All => false,
        Modified::Paths(paths) => !paths.iter().any(related),
        Modified::AllExcept(kept) => kept.iter().any(|kept| path == kept || is_below(path, kept)),
    }
}

/// New names for fields that a stage only copies: `{$project: {x: "$a"}}`.
fn renames(stage: &Stage) -> Vec<(String, String)> {
    let computed = match stage {
        Stage::Transform(Transform::Projection("$project", projection)) => {
            projection.computed_fields()
        }
        _ => return Vec::new(),
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
