//! `$addFields`, `$set`: fields that expressions compute, beside those that are there.

use super::registry::StageRow;
use super::{Stage, Transform};
use crate::context::{EvalContext, ParseContext};
use crate::expression::{Dependencies, Expression, FieldPath, PATH_COMPONENTS_MAX};
use crate::update::text;
use quire_document::{Array, ArrayWriter, Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::collections::BTreeSet;

pub(super) const ADD_FIELDS: StageRow = StageRow {
    name: "$addFields",
    since: "3.4",
    doc: "Adds fields that expressions compute.",
    parse: |name, value, cx| {
        let stage = AddFields::parse(name, value, cx)?;
        Ok(vec![Stage::Transform(Transform::AddFields(stage))])
    },
};

pub(super) const SET: StageRow = StageRow {
    name: "$set",
    since: "4.2",
    doc: "Adds fields that expressions compute.",
    parse: ADD_FIELDS.parse,
};

/// A parsed `$addFields` or `$set`.
#[derive(Debug)]
pub struct AddFields {
    name: &'static str,
    fields: Fields,
    paths: Vec<String>,
}

type Fields = Vec<(Box<str>, Node)>;

#[derive(Debug)]
enum Node {
    Value(Expression),
    Below(Fields),
}

impl AddFields {
    pub(super) fn parse(name: &'static str, value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Value::Document(spec) = value else {
            let kind = value.type_name();
            let message = format!("{name} specification stage must be an object, got {kind}");
            return Err(Error::location(40272, message));
        };
        let mut stage = AddFields { name, fields: Vec::new(), paths: Vec::new() };
        let context = format!("Invalid {name}");
        for (path, value) in spec.fields() {
            check_path(path)
                .and_then(|()| stage.add(path, value, cx))
                .map_err(|error| error.context(&context))?;
        }
        Ok(stage)
    }

    /// The name as it was written.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Adds a value, or the fields of an object that is no operator, at a path.
    fn add(&mut self, path: &str, value: Value<'_>, cx: &ParseContext) -> Result<()> {
        match value {
            Value::Document(object) if is_nested(object)? => {
                for (name, value) in object.fields() {
                    if name.contains('.') {
                        let message = format!(
                            "cannot use dotted field name '{name}' in a sub object: {}",
                            text::doc(object)
                        );
                        return Err(Error::location(40183, message));
                    }
                    check_path(name)?;
                    self.add(&format!("{path}.{name}"), value, cx)?;
                }
                Ok(())
            }
            value => {
                let parts: Vec<&str> = path.split('.').collect();
                let expression = Expression::parse(value, cx)?;
                insert(&mut self.fields, &parts, expression).map_err(|at| conflict(path, &at))?;
                self.paths.push(path.to_owned());
                Ok(())
            }
        }
    }

    pub(super) fn apply<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        cx.document(|writer| write_fields(&self.fields, cx.root, writer, cx))
    }

    /// The paths that it sets, with their expressions' dependencies left to `add_dependencies`.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    pub(super) fn add_dependencies(&self, needed: &mut Dependencies) {
        add_dependencies(&self.fields, needed);
    }

    pub(super) fn modified_paths(&self) -> BTreeSet<String> {
        self.paths.iter().cloned().collect()
    }

    pub(super) fn serialize(&self, writer: &mut DocWriter<'_>) {
        serialize(&self.fields, &mut writer.document(self.name));
    }
}

/// True for an object whose fields are paths; false for an operator or an empty object.
fn is_nested(object: Doc<'_>) -> Result<bool> {
    let operators = object.fields().filter(|(name, _)| name.starts_with('$')).count();
    if operators > 0 && object.count() > 1 {
        let message = format!(
            "an expression specification must contain exactly one field, the name of the expression. Found {} fields in {}",
            object.count(),
            text::doc(object)
        );
        return Err(Error::location(40181, message));
    }
    Ok(operators == 0 && !object.is_empty())
}

fn check_path(path: &str) -> Result<()> {
    if path.split('.').count() > PATH_COMPONENTS_MAX {
        return Err(Error::new(ErrorCode::Overflow, "FieldPath is too long"));
    }
    FieldPath::parse(path).map(|_| ())
}

/// Puts an expression at a path; the error is the path that is in the way.
fn insert(fields: &mut Fields, path: &[&str], expression: Expression) -> Result<(), String> {
    let Some((first, rest)) = path.split_first() else { return Ok(()) };
    let known = fields.iter_mut().find(|(name, _)| **name == **first);
    match (known, rest.is_empty()) {
        (None, true) => fields.push(((*first).into(), Node::Value(expression))),
        (None, false) => {
            let mut below = Vec::new();
            insert(&mut below, rest, expression)?;
            fields.push(((*first).into(), Node::Below(below)));
        }
        (Some((_, Node::Below(below))), false) => {
            insert(below, rest, expression).map_err(|at| format!("{first}.{at}"))?;
        }
        (Some(_), _) => return Err((*first).to_owned()),
    }
    Ok(())
}

fn conflict(path: &str, at: &str) -> Error {
    Error::location(
        40176,
        format!(
            "specification contains two conflicting paths. Cannot specify both '{path}' and '{at}'"
        ),
    )
}

/// Writes `doc` with the fields in their places, new ones at the end.
fn write_fields(
    fields: &Fields,
    doc: Doc<'_>,
    writer: &mut DocWriter<'_>,
    cx: &EvalContext<'_>,
) -> Result<()> {
    let mut written = vec![false; fields.len()];
    for element in doc.iter() {
        let name = element.key_bytes();
        let found = fields.iter().position(|(field, _)| field.as_bytes() == name);
        match found.filter(|at| !written[*at]) {
            Some(at) => {
                written[at] = true;
                write_node(&fields[at].1, element.key(), Some(element.value()), writer, cx)?;
            }
            None => {
                writer.append_element(element);
            }
        }
    }
    for ((name, node), written) in fields.iter().zip(written) {
        if !written {
            write_node(node, name, None, writer, cx)?;
        }
    }
    Ok(())
}

fn write_node(
    node: &Node,
    name: &str,
    current: Option<Value<'_>>,
    writer: &mut DocWriter<'_>,
    cx: &EvalContext<'_>,
) -> Result<()> {
    match (node, current) {
        (Node::Value(expression), _) => expression.append_to(name, writer, cx),
        (Node::Below(fields), Some(Value::Document(doc))) => {
            write_fields(fields, doc, &mut writer.document(name), cx)
        }
        (Node::Below(fields), Some(Value::Array(array))) => {
            write_elements(fields, array, &mut writer.array(name), cx)
        }
        (Node::Below(fields), _) => {
            write_fields(fields, Doc::empty(), &mut writer.document(name), cx)
        }
    }
}

/// Writes an array with the fields in each of its elements.
fn write_elements(
    fields: &Fields,
    array: Array<'_>,
    writer: &mut ArrayWriter<'_>,
    cx: &EvalContext<'_>,
) -> Result<()> {
    for value in array.iter() {
        match value {
            Value::Document(doc) => write_fields(fields, doc, &mut writer.document(), cx)?,
            Value::Array(inner) => write_elements(fields, inner, &mut writer.array(), cx)?,
            _ => write_fields(fields, Doc::empty(), &mut writer.document(), cx)?,
        }
    }
    Ok(())
}

fn add_dependencies(fields: &Fields, needed: &mut Dependencies) {
    for (_, node) in fields {
        match node {
            Node::Value(expression) => expression.add_dependencies(needed),
            Node::Below(fields) => add_dependencies(fields, needed),
        }
    }
}

fn serialize(fields: &Fields, writer: &mut DocWriter<'_>) {
    for (name, node) in fields {
        match node {
            Node::Value(expression) => expression.serialize_to(name, writer),
            Node::Below(fields) => serialize(fields, &mut writer.document(name)),
        }
    }
}
