//! `$redact`: keeps, prunes or descends into each document and its subdocuments.

use super::facts::{BehindChanges, Facts};
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::context::{EvalContext, ParseContext, Slot};
use crate::expression::{Dependencies, Expression};
use crate::text;
use quire_document::{Array, ArrayWriter, Doc, DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const REDACT: StageRow = StageRow {
    name: "$redact",
    since: "2.6",
    doc: "Keeps, prunes or descends into documents and their subdocuments.",
    facts: Facts { behind_changes: BehindChanges::Allowed, ..Facts::PLAIN },
    parse: |_, value, cx| Ok(vec![Stage::Redact(Arc::new(Redact::parse(value, cx)?))]),
};

/// A parsed `$redact`.
#[derive(Debug)]
pub struct Redact {
    expression: Expression,
    /// The slot of `$$CURRENT`, the subdocument that is evaluated.
    current: Slot,
}

enum Decision {
    Keep,
    Prune,
    Descend,
}

impl Redact {
    fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let mut cx = cx.clone();
        cx.redact = true;
        let (cx, current) = cx.bind("CURRENT");
        Ok(Redact { expression: Expression::parse(value, &cx)?, current })
    }

    /// Returns the remaining part of `cx.root`; `None` if it is pruned.
    pub fn apply<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Doc<'a>>> {
        match self.decide(cx.root, cx)? {
            Decision::Keep => Ok(Some(cx.root)),
            Decision::Prune => Ok(None),
            Decision::Descend => Ok(Some(cx.document(|writer| self.descend(cx.root, writer, cx))?)),
        }
    }

    fn decide<'a>(&'a self, doc: Doc<'a>, cx: &EvalContext<'a>) -> Result<Decision> {
        let cx = cx.bind(self.current, Some(Value::Document(doc)));
        let result = self.expression.eval(&cx)?;
        match result {
            Some(Value::String("keep")) => Ok(Decision::Keep),
            Some(Value::String("prune")) => Ok(Decision::Prune),
            Some(Value::String("descend")) => Ok(Decision::Descend),
            other => {
                let shown = other.map_or_else(|| "MISSING".to_owned(), text::value);
                let message = format!(
                    "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned {shown}"
                );
                Err(Error::location(17053, message))
            }
        }
    }

    fn descend<'a>(
        &'a self,
        doc: Doc<'a>,
        writer: &mut DocWriter<'_>,
        cx: &EvalContext<'a>,
    ) -> Result<()> {
        for element in doc.iter() {
            match element.value() {
                Value::Document(inner) => match self.decide(inner, cx)? {
                    Decision::Keep => {
                        writer.append_element(element);
                    }
                    Decision::Prune => {}
                    Decision::Descend => {
                        self.descend(inner, &mut writer.document(element.key()), cx)?;
                    }
                },
                Value::Array(inner) => {
                    self.descend_array(inner, &mut writer.array(element.key()), cx)?;
                }
                _ => {
                    writer.append_element(element);
                }
            }
        }
        Ok(())
    }

    fn descend_array<'a>(
        &'a self,
        array: Array<'a>,
        writer: &mut ArrayWriter<'_>,
        cx: &EvalContext<'a>,
    ) -> Result<()> {
        for value in array.iter() {
            match value {
                Value::Document(inner) => match self.decide(inner, cx)? {
                    Decision::Keep => {
                        writer.push(inner);
                    }
                    Decision::Prune => {}
                    Decision::Descend => self.descend(inner, &mut writer.document(), cx)?,
                },
                Value::Array(inner) => self.descend_array(inner, &mut writer.array(), cx)?,
                other => {
                    writer.push(other);
                }
            }
        }
        Ok(())
    }
}

impl StageBody for Redact {
    fn name(&self) -> &'static str {
        REDACT.name
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        self.expression.add_dependencies(&mut reads);
        reads.whole_document = true;
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn streams(&self) -> bool {
        true
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        self.expression.serialize_to("$redact", writer);
    }
}
