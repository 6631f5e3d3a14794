//! `$lookup`: adds to each document the matching documents of another collection.

use super::facts::Facts;
use super::registry::StageRow;
use super::sub_pipeline::{From, add_outer_reads, parse_over, parse_path, stages_of};
use super::{Match, Modified, Needs, Stage, StageBody, Unwind};
use crate::context::Inside;
use crate::context::{ParseContext, UserVariable};
use crate::expression::{Dependencies, Expression, ExpressionNode, FieldPath, check_variable_name};
use crate::filter::Node as Condition;
use crate::options::Options;
use crate::text;
use quire_document::path::Path;
use quire_document::{Array, Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const LOOKUP: StageRow = StageRow {
    name: "$lookup",
    since: "3.2",
    doc: "Joins each document with documents of another collection.",
    facts: Facts { reshapes: true, ..Facts::JOIN },
    parse: |_, value, cx| Ok(vec![Stage::Lookup(Arc::new(Lookup::parse(value, cx)?))]),
};

/// A parsed `$lookup`.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The foreign collection.
    pub from: From,
    /// The output field for the joined documents.
    pub output: FieldPath,
    /// `localField` and `foreignField`.
    pub fields: Option<(Path, Path)>,
    /// The variables of `let`. Their values follow those of the enclosing variables.
    pub variables: Arc<Vec<Expression>>,
    /// The number of enclosing variables.
    pub outer_variables: usize,
    /// The stages that process the foreign documents.
    pub pipeline: Vec<Stage>,
    /// An equality that the first stage of the pipeline implies.
    pub equality: Option<Arc<VariableEquality>>,
    /// A `$unwind` of the joined documents, which is applied during the join.
    pub unwind: Option<Arc<Unwind>>,
    /// A filter of the joined documents that followed the `$unwind`.
    pub filter: Option<Arc<Match>>,
    /// `let` and `pipeline` as the user wrote them.
    written: DocBuf,
}

/// A condition `{$expr: {$eq: ["$path", expression]}}` whose expression reads only variables. It
/// restricts the foreign documents that can match; the filter that contains it is still evaluated.
#[derive(Debug)]
pub struct VariableEquality {
    /// The foreign field.
    pub foreign: FieldPath,
    /// The expression for the value that the field must have.
    pub value: Expression,
}

const OPTIONS: Options<'_> = Options("$lookup");

/// The operands during parsing, except `from`.
#[derive(Default)]
struct Spec<'v> {
    output: Option<&'v str>,
    local: Option<&'v str>,
    foreign: Option<&'v str>,
    variables: Option<Doc<'v>>,
    pipeline: Option<Array<'v>>,
}

impl Lookup {
    fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Value::Document(fields) = value else {
            let text = format!(
                "the $lookup stage specification must be an object, but found {}",
                value.type_name()
            );
            return Err(Error::failed_to_parse(text));
        };
        let from = from(fields, cx)?;
        let spec = Spec::read(fields)?;
        let Some(output) = spec.output else {
            return Err(OPTIONS.missing("as"));
        };
        let output = parse_path(output)?;
        let fields = match (spec.local, spec.foreign) {
            (None, None) => None,
            (Some(local), Some(foreign)) => Some((
                Path::new(&parse_path(local)?.to_string()),
                Path::new(&parse_path(foreign)?.to_string()),
            )),
            _ => {
                let text = "$lookup requires both or neither of 'localField' and 'foreignField' to be specified";
                return Err(Error::failed_to_parse(text));
            }
        };
        if spec.pipeline.is_none() && spec.variables.is_some() {
            let text = match fields {
                Some(_) => "$lookup with a 'let' argument must also specify 'pipeline'",
                None => NEITHER,
            };
            return Err(Error::failed_to_parse(text));
        }
        if spec.pipeline.is_none() && fields.is_none() {
            return Err(Error::failed_to_parse(NEITHER));
        }
        let outer_variables = cx.variables.len();
        let (variables, inner) = variables(spec.variables.unwrap_or_default(), cx)?;
        let pipeline = parse_over(spec.pipeline, Inside::Lookup, &from, &inner)?;
        let pipeline = search_apart(pipeline, outer_variables);
        let equality = match (&fields, spec.pipeline) {
            (None, Some(stages)) => equality(stages, &inner)?.map(Arc::new),
            _ => None,
        };
        let written = spec.written();
        let variables = Arc::new(variables);
        let (unwind, filter) = (None, None);
        Ok(Lookup {
            from,
            output,
            fields,
            variables,
            outer_variables,
            pipeline,
            equality,
            unwind,
            filter,
            written,
        })
    }

    /// Returns the stage with a `$unwind` of the joined documents.
    pub fn with_unwind(&self, unwind: Arc<Unwind>) -> Self {
        Lookup { unwind: Some(unwind), ..self.clone() }
    }

    /// Returns the stage with another filter of the joined documents.
    pub fn with_filter(&self, filter: Match) -> Self {
        Lookup { filter: Some(Arc::new(filter)), ..self.clone() }
    }

    /// Returns the number of stages before the first that reads a variable of `let` or is volatile.
    /// Their result is the same for each document.
    pub fn uncorrelated(&self) -> usize {
        let varies = |stage: &Stage| {
            let reads = stage.needs().reads;
            let own = reads.variables.iter().any(|index| *index >= self.outer_variables);
            own || reads.volatile
        };
        let first = self.pipeline.iter().position(varies);
        first.unwrap_or(self.pipeline.len())
    }
}

const NEITHER: &str =
    "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified";

/// Parses `from`, before all other operands.
fn from(fields: Doc<'_>, cx: &ParseContext) -> Result<From> {
    match fields.get("from") {
        Some(Value::String(name)) => From::named(name, cx),
        Some(Value::Document(named)) => {
            const OPTIONS: Options<'_> = Options("$lookup.from");
            for field in OPTIONS.fields(named) {
                match field? {
                    ("db" | "coll", Value::String(_)) => {}
                    (name @ ("db" | "coll"), other) => {
                        return Err(OPTIONS.wrong_type(name, other, "string"));
                    }
                    (name, _) => return Err(OPTIONS.unknown(name)),
                }
            }
            let text =
                "$lookup with syntax {from: {db:<>, coll:<>},..} is not supported for these names";
            Err(Error::failed_to_parse(text))
        }
        None => {
            let stages = fields.get("pipeline").and_then(|stages| stages.as_array());
            From::written("$lookup", stages, cx)
        }
        Some(other) => {
            let text =
                format!("$lookup 'from' field must be a string, but found {}", other.type_name());
            Err(Error::failed_to_parse(text))
        }
    }
}

impl<'v> Spec<'v> {
    fn read(fields: Doc<'v>) -> Result<Self> {
        let mut spec = Spec::default();
        for field in OPTIONS.fields(fields) {
            match field? {
                // `from` was parsed before.
                ("from", _) => {}
                ("pipeline", value) => spec.pipeline = Some(stages_of(value)?),
                ("as" | "localField" | "foreignField" | "let", Value::Null) => {}
                ("let", Value::Document(doc)) => spec.variables = Some(doc),
                ("let", other) => {
                    return Err(Error::type_mismatch(format!(
                        "$lookup argument 'let: {}' must be an object, is type {}",
                        text::value(other),
                        other.type_name()
                    )));
                }
                ("as", Value::String(text)) => spec.output = Some(text),
                // As in mongod, an empty text means that the field was not given.
                ("localField" | "foreignField", Value::String("")) => {}
                ("localField", Value::String(text)) => spec.local = Some(text),
                ("foreignField", Value::String(text)) => spec.foreign = Some(text),
                (name @ ("as" | "localField" | "foreignField"), other) => {
                    return Err(OPTIONS.wrong_type(name, other, "string"));
                }
                (other, _) => return Err(OPTIONS.unknown(other)),
            }
        }
        Ok(spec)
    }

    /// Returns `let` and `pipeline` as explain shows them.
    fn written(&self) -> DocBuf {
        DocBuf::build(|writer| {
            if let Some(stages) = self.pipeline {
                writer.append("let", self.variables.unwrap_or_default());
                writer.append("pipeline", stages);
            }
        })
    }
}

/// Parses `let`. Returns the expressions, and the context with the variables in scope.
fn variables(spec: Doc<'_>, cx: &ParseContext) -> Result<(Vec<Expression>, ParseContext)> {
    let mut inner = cx.clone();
    let mut expressions = Vec::new();
    for (name, value) in spec.fields() {
        check_variable_name(name, true)?;
        expressions.push(Expression::parse(value, cx)?);
        let variable = UserVariable { name: name.into(), known: None };
        Arc::make_mut(&mut inner.variables).push(variable);
    }
    Ok((expressions, inner))
}

/// Separates a search in the first filter from the conditions beside it that read variables of `let`:
/// an index answers the search once for all documents, before the stages that depend on the document.
fn search_apart(mut stages: Vec<Stage>, outer_variables: usize) -> Vec<Stage> {
    let Some(Stage::Match(filter)) = stages.first() else { return stages };
    let conditions = filter.filter().root().conjuncts();
    if !conditions.iter().any(|condition| matches!(condition, Condition::Search(_))) {
        return stages;
    }
    let varies = |condition: &Condition| {
        let reads = Match::all_of(vec![condition.clone()]).needs().reads;
        reads.volatile || reads.variables.iter().any(|index| *index >= outer_variables)
    };
    let (varying, same): (Vec<_>, Vec<_>) = conditions.iter().cloned().partition(varies);
    if !varying.is_empty() {
        let apart = [same, varying].map(|part| Stage::Match(Arc::new(Match::all_of(part))));
        stages.splice(..1, apart);
    }
    stages
}

/// Returns the first equality of a foreign field with variables in the `$expr` of a leading
/// `$match`, at its top or in an `$and`.
fn equality(stages: Array<'_>, cx: &ParseContext) -> Result<Option<VariableEquality>> {
    let first = stages.iter().next().and_then(|stage| stage.as_document());
    let filter = first.and_then(|stage| stage.get("$match")?.as_document());
    let Some(condition) = filter.and_then(|filter| filter.get("$expr")?.as_document()) else {
        return Ok(None);
    };
    let mut conditions = vec![condition];
    if let Some(all) = condition.get("$and").and_then(|all| all.as_array()) {
        conditions.extend(all.iter().filter_map(|one| one.as_document()));
    }
    for condition in conditions {
        let Some(sides) = condition.get("$eq").and_then(|sides| sides.as_array()) else { continue };
        let sides: Vec<Value<'_>> = sides.iter().collect();
        let [left, right] = sides.as_slice() else { continue };
        for (field, other) in [(*left, *right), (*right, *left)] {
            // Parsed, because `let` may bind `$$CURRENT` to another value.
            let field = Expression::parse(field, cx)?;
            let ExpressionNode::Path(path) = field.node() else { continue };
            let value = Expression::parse(other, cx)?;
            let reads = value.dependencies();
            let constant = reads.paths.is_empty() && !reads.whole_document;
            if constant && !reads.volatile && reads.metadata.is_empty() {
                return Ok(Some(VariableEquality { foreign: path.clone(), value }));
            }
        }
    }
    Ok(None)
}

impl StageBody for Lookup {
    fn name(&self) -> &'static str {
        LOOKUP.name
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        if let Some((local, _)) = &self.fields {
            reads.paths.insert(local.as_str().to_owned());
        }
        self.variables.iter().for_each(|variable| variable.add_dependencies(&mut reads));
        add_outer_reads(&self.pipeline, self.outer_variables, &mut reads);
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        let index = self.unwind.as_ref().and_then(|unwind| unwind.index_path());
        Modified::replacing(std::iter::once(&self.output).chain(index))
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(LOOKUP.name);
        inner.append_some("from", self.from.name.as_deref().map(Value::from));
        inner.append("as", self.output.to_string().as_str());
        if let Some((local, foreign)) = &self.fields {
            inner.append("localField", local.as_str()).append("foreignField", foreign.as_str());
        }
        match &self.filter {
            None => {
                inner.append_all(self.written.as_doc());
            }
            Some(filter) => {
                let written = self.written.as_doc();
                let variables = written.get("let").and_then(|variables| variables.as_document());
                inner.append("let", variables.unwrap_or_default());
                let mut stages = inner.array("pipeline");
                let own = written.get("pipeline").and_then(|stages| stages.as_array());
                own.into_iter().flat_map(|own| own.iter()).for_each(|stage| {
                    stages.push(stage);
                });
                filter.print(&mut stages.document());
            }
        }
        if let Some(unwind) = &self.unwind {
            let mut unwinding = inner.document("unwinding");
            unwinding.append("preserveNullAndEmptyArrays", unwind.preserves());
            if let Some(index) = unwind.index_path() {
                unwinding.append("includeArrayIndex", index.to_string().as_str());
            }
        }
    }
}
