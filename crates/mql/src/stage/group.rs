//! `$group`: one document for each key, with the results of accumulators over its documents.

use super::facts::Facts;
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::accumulator::{AccumulatorSpec, State, Table, in_group};
use crate::column::Column;
use crate::context::{Collator, EvalContext, ParseContext};
use crate::expression::{Batch, Dependencies, Expression, ExpressionNode, Extractor, FieldPath};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) const GROUP: StageRow = StageRow {
    name: "$group",
    since: "2.2",
    doc: "One document for each value of a key, with accumulated values.",
    facts: Facts { reshapes: true, ..Facts::PLAIN },
    parse: |_, value, cx| Ok(vec![Stage::Group(Arc::new(Group::parse(value, cx)?))]),
};

/// A parsed `$group`.
#[derive(Debug)]
pub struct Group {
    key: GroupKey,
    fields: Vec<(Box<str>, AccumulatorSpec)>,
    /// Extracts the values of all paths of key and accumulators from a document in one pass.
    extractor: Extractor,
    reads_documents: bool,
    fields_read: Option<Arc<[String]>>,
}

/// The key of the groups.
#[derive(Debug)]
pub enum GroupKey {
    /// The value of an expression; a missing value counts as null.
    Expression(Expression),
    /// A document of expressions.
    Fields(Vec<(Box<str>, Expression)>),
}

impl Group {
    /// Parses the operand.
    pub fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Value::Document(spec) = value else {
            let message = "a group's fields must be specified in an object";
            return Err(Error::location(15947, message));
        };
        let mut key = None;
        let mut fields: Vec<(Box<str>, AccumulatorSpec)> = Vec::new();
        for (name, value) in spec.fields() {
            if name == "_id" {
                if key.is_some() {
                    let message = "a group's _id may only be specified once";
                    return Err(Error::location(15948, message));
                }
                key = Some(GroupKey::parse(value, cx)?);
                continue;
            }
            check_name(name)?;
            fields.push((Box::from(name), AccumulatorSpec::parse(name, value, cx)?));
        }
        let Some(mut key) = key else {
            let message = "a group specification must include an _id";
            return Err(Error::location(15955, message));
        };
        let (mut extractor, count) = (Extractor::default(), fields.len());
        key.attach(&mut extractor);
        for (_, spec) in &mut fields {
            spec.guard_one_of(count);
            spec.attach(&mut extractor);
        }
        let mut group = Group { key, fields, extractor, reads_documents: true, fields_read: None };
        let reads = group.needs().reads;
        group.reads_documents =
            reads.whole_document || !reads.paths.is_empty() || !reads.metadata.is_empty();
        group.fields_read = group.fields_of(&reads);
        Ok(group)
    }

    /// Returns the context with the paths of key and accumulators extracted from `cx.root` in one
    /// pass. Optional: without it each path is searched separately.
    pub fn extract<'a>(&self, cx: &EvalContext<'a>) -> Result<EvalContext<'a>> {
        self.extractor.context(cx)
    }

    /// Returns the key of the groups.
    pub fn key(&self) -> &GroupKey {
        &self.key
    }

    /// Returns the output fields with their accumulators, in order.
    pub fn fields(&self) -> &[(Box<str>, AccumulatorSpec)] {
        &self.fields
    }

    /// Returns new states for a group, one for each field.
    pub fn new_states(&self, key: Value<'_>, cx: &EvalContext<'_>) -> Result<Vec<Box<dyn State>>> {
        self.fields.iter().map(|(_, spec)| spec.new_state(key, cx)).collect()
    }

    /// Returns tables for the states of all groups, one for each field.
    pub fn new_tables(&self, collator: Option<&Arc<dyn Collator>>) -> Vec<Box<dyn Table>> {
        self.fields.iter().map(|(_, spec)| spec.new_table(collator.cloned())).collect()
    }

    /// Adds a group to all tables.
    pub fn open(
        &self,
        tables: &mut [Box<dyn Table>],
        key: Value<'_>,
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        for ((_, spec), table) in self.fields.iter().zip(tables) {
            table.open(spec.n(key, cx)?);
        }
        Ok(())
    }

    /// Adds the document `cx.root` to a group.
    pub fn add(
        &self,
        tables: &mut [Box<dyn Table>],
        group: usize,
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        for ((_, spec), table) in self.fields.iter().zip(tables) {
            table.add(group, spec.value(cx)?)?;
        }
        Ok(())
    }

    /// Extracts the paths of key and accumulators from each document of a batch.
    pub fn batch<'a>(&self, docs: &'a [Doc<'a>], cx: &EvalContext<'a>) -> Result<Batch<'a>> {
        Batch::new(docs, &self.extractor, cx)
    }

    /// Returns the top-level fields whose values are all that the groups need of a document; `None` if
    /// they need more, such as a path into a value, the whole document or metadata.
    pub fn fields_read(&self) -> Option<&Arc<[String]>> {
        self.fields_read.as_ref()
    }

    /// Returns true if keys and arguments depend on the documents.
    pub fn reads_documents(&self) -> bool {
        self.reads_documents
    }

    fn fields_of(&self, reads: &Dependencies) -> Option<Arc<[String]>> {
        let fields = self.extractor.fields()?;
        let are_all = !reads.whole_document
            && reads.metadata.is_empty()
            && reads.paths.iter().all(|path| fields.contains(&path.as_str()));
        are_all.then(|| fields.into_iter().map(str::to_owned).collect())
    }

    /// Returns a batch of `rows` rows with the columns of [`fields_read`](Group::fields_read), in that
    /// order.
    pub fn batch_of_columns<'a>(&self, rows: usize, columns: Vec<Column<'a>>) -> Batch<'a> {
        debug_assert_eq!(columns.len(), self.extractor.len());
        Batch::of_columns(rows, columns)
    }

    /// Returns the keys of a batch, and the argument of each accumulator.
    ///
    /// # Errors
    /// Fails if a document has an error, but not always with the error of the first such document.
    /// The caller then evaluates document by document to find the first.
    pub fn columns<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<(Cow<'a, Column<'a>>, Vec<Cow<'a, Column<'a>>>)> {
        let keys = self.key.columns(batch, cx)?;
        let arguments = self.fields.iter().map(|(_, spec)| spec.column(batch, cx));
        Ok((keys, arguments.collect::<Result<_>>()?))
    }

    /// Returns true if no accumulator can fail for any value or has an n. Each accumulator may then
    /// process a whole batch before the next one does.
    pub fn is_infallible(&self) -> bool {
        self.fields.iter().all(|(_, spec)| spec.is_infallible())
    }

    /// Returns the output document of a group.
    pub fn output<'a>(
        &self,
        key: Value<'_>,
        states: &[Box<dyn State>],
        cx: &EvalContext<'a>,
    ) -> Result<Doc<'a>> {
        cx.document(|writer| {
            writer.append("_id", key);
            for ((name, _), state) in self.fields.iter().zip(states) {
                writer.append(name, state.result(cx)?);
            }
            Ok(())
        })
    }

    fn add_dependencies(&self, needed: &mut Dependencies) {
        match &self.key {
            GroupKey::Expression(expression) => expression.add_dependencies(needed),
            GroupKey::Fields(fields) => {
                fields.iter().for_each(|(_, expression)| expression.add_dependencies(needed));
            }
        }
        self.fields.iter().for_each(|(_, spec)| spec.add_dependencies(needed));
    }
}

impl StageBody for Group {
    fn name(&self) -> &'static str {
        GROUP.name
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        self.add_dependencies(&mut reads);
        Needs::only(reads)
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document("$group");
        match &self.key {
            GroupKey::Expression(expression) => expression.serialize_to("_id", &mut inner),
            GroupKey::Fields(fields) => {
                let mut id = inner.document("_id");
                for (name, expression) in fields {
                    expression.serialize_to(name, &mut id);
                }
            }
        }
        for (name, spec) in &self.fields {
            spec.serialize(name, &mut inner);
        }
    }
}

impl GroupKey {
    fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Value::Document(spec) = value else {
            return Ok(GroupKey::Expression(Expression::parse(value, cx)?));
        };
        let operator = spec.first().is_none_or(|first| first.key().starts_with('$'));
        if operator {
            return Ok(GroupKey::Expression(Expression::parse(value, cx)?));
        }
        let mut fields = Vec::new();
        for (name, value) in spec.fields() {
            if name.contains('.') {
                let message = "FieldPath field names may not contain '.'. Consider using $getField or $setField.";
                return Err(Error::location(16412, message));
            }
            crate::expression::check_field_name(name)?;
            if value.is_number() || matches!(value, Value::Bool(_)) {
                let message = "$group does not support inclusion-style expressions";
                return Err(Error::location(17390, message));
            }
            fields.push((Box::from(name), Expression::parse(value, cx)?));
        }
        Ok(GroupKey::Fields(fields))
    }

    fn attach(&mut self, extractor: &mut Extractor) {
        match self {
            GroupKey::Expression(expression) => extractor.attach(expression),
            GroupKey::Fields(fields) => {
                fields.iter_mut().for_each(|(_, expression)| extractor.attach(expression));
            }
        }
    }

    /// Returns the path, if the key is one field.
    pub fn path(&self) -> Option<&FieldPath> {
        match self {
            GroupKey::Expression(expression) => match expression.node() {
                ExpressionNode::Path(path) => Some(path),
                _ => None,
            },
            GroupKey::Fields(_) => None,
        }
    }

    /// Returns the keys of a batch; null for a missing value.
    fn columns<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Cow<'a, Column<'a>>> {
        match self {
            GroupKey::Expression(expression) => expression.columns(batch, cx),
            GroupKey::Fields(fields) => documents(fields, batch, cx).map(Cow::Owned),
        }
    }

    /// Returns the key of `cx.root`.
    pub fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        match self {
            GroupKey::Expression(expression) => {
                let value = expression.eval(cx).map_err(|error| in_group(error, expression))?;
                Ok(value.unwrap_or(Value::Null))
            }
            GroupKey::Fields(fields) => {
                let only = fields.len() == 1;
                let doc = cx.document(|writer| {
                    for (name, expression) in fields {
                        // In a key of several fields, missing and null are different, as in mongod.
                        cx.pass()?;
                        let value = expression.eval(cx);
                        let value = value.map_err(|error| in_group(error, expression))?;
                        writer.append_some(name, value.or(only.then_some(Value::Null)));
                    }
                    Ok(())
                })?;
                Ok(Value::Document(doc))
            }
        }
    }
}

/// Returns a document of the fields for each row of a batch. Rows after one another with the same values share one.
fn documents<'a>(
    fields: &'a [(Box<str>, Expression)],
    batch: &'a Batch<'a>,
    cx: &EvalContext<'a>,
) -> Result<Column<'a>> {
    let columns = fields.iter().map(|(_, expression)| expression.columns(batch, cx));
    let columns: Vec<Cow<'a, Column<'a>>> = columns.collect::<Result<_>>()?;
    let absent = (fields.len() == 1).then_some(Value::Null);
    let mut documents: Vec<Option<Value<'a>>> = Vec::with_capacity(batch.len());
    for row in 0..batch.len() {
        if let Some(before) = documents.last()
            && columns.iter().all(|column| column.repeats(row))
        {
            documents.push(*before);
            continue;
        }
        let document = cx.document(|writer| {
            for ((name, _), column) in fields.iter().zip(&columns) {
                cx.pass()?;
                writer.append_some(name, column.get(row).or(absent));
            }
            Ok(())
        })?;
        documents.push(Some(Value::Document(document)));
        Batch::check_memory(cx)?;
    }
    Ok(Column::Values(documents))
}

/// Fails for a name that an output field of accumulators must not have.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.contains('.') {
        let message = format!("The field name '{name}' cannot contain '.'");
        return Err(Error::location(40235, message));
    }
    if name.starts_with('$') {
        let message = format!("The field name '{name}' cannot be an operator name");
        return Err(Error::location(40236, message));
    }
    Ok(())
}
