//! `$replaceRoot`, `$replaceWith`: replaces each document by another.

use super::facts::Facts;
use super::registry::StageRow;
use super::{Stage, Transform};
use crate::context::{EvalContext, ParseContext};
use crate::expression::{Dependencies, Expression, Extractor};
use crate::options::Options;
use crate::text;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const REPLACE_ROOT: StageRow = StageRow {
    name: "$replaceRoot",
    since: "3.4",
    doc: "Replaces each document by the value of an expression.",
    facts: Facts { reshapes: true, ..Facts::TRANSFORM },
    parse: |_, value, cx| {
        let stage = ReplaceRoot::parse_root(value, cx)?;
        Ok(vec![Stage::Transform(Transform::ReplaceRoot(Arc::new(stage)))])
    },
};

pub(super) const REPLACE_WITH: StageRow = StageRow {
    name: "$replaceWith",
    since: "4.2",
    doc: "Replaces each document by the value of an expression.",
    facts: Facts { reshapes: true, ..Facts::TRANSFORM },
    parse: |_, value, cx| {
        let stage = ReplaceRoot::parse_with(value, cx)?;
        Ok(vec![Stage::Transform(Transform::ReplaceRoot(Arc::new(stage)))])
    },
};

/// A parsed `$replaceRoot` or `$replaceWith`.
#[derive(Debug)]
pub struct ReplaceRoot {
    new_root: Expression,
    extractor: Extractor,
    /// The name of the expression in messages.
    called: &'static str,
}

impl ReplaceRoot {
    pub(super) fn parse_root(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Value::Document(spec) = value else {
            return Err(Error::location(
                40229,
                format!(
                    "expected an object as specification for $replaceRoot stage, got {}",
                    value.type_name()
                ),
            ));
        };
        const OPTIONS: Options<'_> = Options("$replaceRoot");
        let mut new_root = None;
        for field in OPTIONS.fields(spec) {
            match field? {
                ("newRoot", value) => new_root = Some(value),
                (name, _) => return Err(OPTIONS.unknown(name)),
            }
        }
        let new_root = new_root.ok_or_else(|| OPTIONS.missing("newRoot"))?;
        Self::new(new_root, "'newRoot' expression ", cx)
    }

    pub(super) fn parse_with(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        Self::new(value, "'replacement document' ", cx)
    }

    fn new(new_root: Value<'_>, called: &'static str, cx: &ParseContext) -> Result<Self> {
        let mut new_root = Expression::parse(new_root, cx)?;
        let mut extractor = Extractor::default();
        extractor.attach(&mut new_root);
        Ok(ReplaceRoot { new_root, extractor, called })
    }

    /// Returns the expression for the new document.
    pub fn expression(&self) -> &Expression {
        &self.new_root
    }

    pub(super) fn apply<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        match self.new_root.eval(&self.extractor.context(cx)?)? {
            Some(Value::Document(doc)) => cx.check_depth(doc.into()).map(|()| doc),
            other => {
                let (shown, kind) = match other {
                    Some(value) => (text::value(value), value.type_name()),
                    None => ("MISSING".to_owned(), "missing"),
                };
                Err(Error::location(
                    40228,
                    format!(
                        "{}must evaluate to an object, but resulting value was: {shown}. Type of resulting value: '{kind}'. Input document: {}",
                        self.called,
                        text::doc(cx.root)
                    ),
                ))
            }
        }
    }

    pub(super) fn add_dependencies(&self, needed: &mut Dependencies) {
        self.new_root.add_dependencies(needed);
    }

    pub(super) fn print(&self, writer: &mut DocWriter<'_>) {
        writer.document("$replaceRoot").append("newRoot", &self.new_root.to_bson());
    }
}
