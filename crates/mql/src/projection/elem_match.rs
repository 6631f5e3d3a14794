//! `$elemMatch` in a projection: the first element of an array that satisfies a condition.

use crate::context::{EvalContext, ParseContext};
use crate::filter::{Features, Filter};
use quire_document::{Array, Doc, DocBuf, Value};
use quire_error::Result;

/// A compiled condition on the elements of one field.
#[derive(Debug)]
pub(super) struct ElemMatch {
    field: Box<str>,
    filter: Filter,
}

impl ElemMatch {
    pub(super) fn parse(field: &str, condition: Doc<'_>, context: &ParseContext) -> Result<Self> {
        let filter = DocBuf::build(|writer| {
            writer.document(field).append("$elemMatch", condition);
        });
        let filter = Filter::parse_with(filter.as_doc(), context, Features::PARTS)?;
        Ok(ElemMatch { field: field.into(), filter })
    }

    /// Returns the first matching element of the field's array.
    pub(super) fn find<'a>(&self, doc: Doc<'a>, cx: &EvalContext<'_>) -> Result<Option<Value<'a>>> {
        let Some(Value::Array(array)) = doc.get(&self.field) else { return Ok(None) };
        Ok(match self.filter.find_position(doc, cx)? {
            Some(Some(index)) => Array::get(array, index as usize),
            _ => None,
        })
    }
}
