//! Converts expressions to BSON, for explain and for comparisons of plans.

use super::operator::{Arity, Call};
use super::tree::{Expression, ExpressionNode};
use quire_document::{ArrayBuf, DocBuf, DocWriter, Value, ValueBuf};

impl Expression {
    /// Returns BSON that parses to the same expression. Constants become `{$const: ...}`.
    pub fn to_bson(&self) -> ValueBuf {
        match self.node() {
            ExpressionNode::Constant(value) => operator_document("$const", value.as_value()),
            ExpressionNode::Missing | ExpressionNode::Absent => ValueBuf::new("$$REMOVE"),
            ExpressionNode::Path(path) => ValueBuf::new(format!("${path}").as_str()),
            ExpressionNode::Variable(variable) => ValueBuf::new(
                match &variable.path {
                    Some(path) => format!("$${}.{path}", variable.name),
                    None => format!("$${}", variable.name),
                }
                .as_str(),
            ),
            ExpressionNode::Object(fields) => DocBuf::build(|writer| {
                for (name, field) in fields {
                    writer.append(name, field.to_bson().as_value());
                }
            })
            .into(),
            ExpressionNode::Array(items) => list(items).into(),
            ExpressionNode::Call(call) => call_to_bson(call),
            ExpressionNode::Checkpoint(checkpoint) => checkpoint.first.to_bson(),
            ExpressionNode::Form(form) => DocBuf::build(|writer| form.serialize(writer)).into(),
        }
    }

    /// Appends the BSON of the expression as a field, unless it is an argument that was not given.
    pub fn serialize_to(&self, name: &str, writer: &mut DocWriter<'_>) {
        if !matches!(self.node(), ExpressionNode::Absent) {
            writer.append(name, self.to_bson().as_value());
        }
    }
}

fn operator_document(name: &str, value: Value<'_>) -> ValueBuf {
    DocBuf::build(|writer| {
        writer.append(name, value);
    })
    .into()
}

fn list(items: &[Expression]) -> ArrayBuf {
    ArrayBuf::build(|writer| {
        for item in items {
            writer.push(item.to_bson().as_value());
        }
    })
}

fn call_to_bson(call: &Call) -> ValueBuf {
    let Arity::Named(fields) = call.operator.arity else {
        return operator_document(call.name(), Value::from(&list(&call.args)));
    };
    DocBuf::build(|writer| {
        let mut named = writer.document(call.name());
        for (field, arg) in fields.fields.iter().zip(&call.args) {
            arg.serialize_to(field.name, &mut named);
        }
    })
    .into()
}
