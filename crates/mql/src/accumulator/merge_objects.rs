//! `$mergeObjects`: all documents merged into one; a later field replaces an earlier one.

use super::State;
use super::registry::Accumulator;
use crate::context::EvalContext;
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, Result};

pub(super) const MERGE_OBJECTS: Accumulator = Accumulator::unary(
    "$mergeObjects",
    "3.5.6",
    "One document with the fields of all; later values win.",
    |_| Box::new(Merged { document: DocBuf::new() }),
);

#[derive(Debug)]
struct Merged {
    document: DocBuf,
}

impl Merged {
    fn merge_doc(&mut self, newer: Doc<'_>) {
        let older = self.document.as_doc();
        let merged = DocBuf::build(|writer| {
            for element in older.iter() {
                writer.append_element(newer.find(element.key()).unwrap_or(element));
            }
            for element in newer.iter().filter(|element| !older.contains(element.key())) {
                writer.append_element(element);
            }
        });
        self.document = merged;
    }
}

impl State for Merged {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        match value {
            None | Some(Value::Null | Value::Undefined) => {}
            Some(Value::Document(newer)) => self.merge_doc(newer),
            Some(other) => {
                // In `$group` mongod uses an error code of its execution engine.
                return Err(Error::location(
                    5911200,
                    format!("$mergeObjects only supports objects, not {}", other.type_name()),
                ));
            }
        }
        Ok(())
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        cx.adopt(&self.document).map(Value::Document)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.document.as_bytes().len()
    }

    fn save(&self) -> ValueBuf {
        self.document.clone().into()
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        self.add(Some(saved))
    }
}
