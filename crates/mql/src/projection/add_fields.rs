//! Parses the operand of `$addFields` (or `$set`) to a tree.

use super::path::components;
use super::tree::{Branch, Entry, Kind, Projection};
use crate::context::ParseContext;
use crate::expression::{Expression, of_stage};
use crate::text::show_doc;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};

impl Projection {
    /// Parses the operand of a stage named `stage`. Codes: 40272 not a document, 40176 conflicting
    /// paths, 40181 an expression next to other fields, 40183 a dot in a nested name.
    pub fn parse_add_fields(
        stage: &str,
        value: Value<'_>,
        context: &ParseContext,
    ) -> Result<Projection> {
        let Value::Document(doc) = value else {
            let text =
                format!("{stage} specification stage must be an object, got {}", value.type_name());
            return Err(Error::location(40272, text));
        };
        let mut parser = Parser { context, spec: doc, root: Branch::default(), named: Vec::new() };
        let parsed = doc.fields().try_for_each(|(name, value)| parser.field(name, value));
        parsed.map_err(|error| of_stage(stage, error))?;
        let mut root = parser.root;
        root.seal();
        let (extractor, source) = (root.extractor(), doc.to_owned());
        Ok(Projection { kind: Kind::AddFields, root, positional: None, source, extractor })
    }
}

struct Parser<'c, 'd> {
    context: &'c ParseContext,
    spec: Doc<'d>,
    root: Branch,
    /// The paths parsed so far.
    named: Vec<String>,
}

impl Parser<'_, '_> {
    fn field(&mut self, path: &str, value: Value<'_>) -> Result<()> {
        components(path)?;
        match value {
            Value::Document(doc) if doc.is_empty() => {
                self.context.part()?;
                self.add(path, Expression::constant(Value::Document(doc)))
            }
            Value::Document(doc) if doc.fields().any(|(name, _)| name.starts_with('$')) => {
                if doc.count() > 1 {
                    let text = format!(
                        "an expression specification must contain exactly one field, the name of \
                         the expression. Found {} fields in {}, while parsing object {}",
                        doc.count(),
                        show_doc(doc),
                        show_doc(self.spec)
                    );
                    return Err(Error::location(40181, text));
                }
                let expression = Expression::parse_object(doc, self.context)?;
                self.add(path, expression)
            }
            Value::Document(doc) => doc.fields().try_for_each(|(name, value)| {
                if name.contains('.') {
                    let text = format!(
                        "cannot use dotted field name '{name}' in a sub object: {}",
                        show_doc(doc)
                    );
                    return Err(Error::location(40183, text));
                }
                if name.is_empty() {
                    let text = "FieldPath field names may not be empty strings.";
                    return Err(Error::location(15998, text));
                }
                self.field(&format!("{path}.{name}"), value)
            }),
            value => {
                let expression = Expression::parse(value, self.context)?;
                self.add(path, expression)
            }
        }
    }

    fn add(&mut self, path: &str, expression: Expression) -> Result<()> {
        let entry = Entry::Computed(expression);
        let inserted = self.root.insert(&components(path)?, entry, false, path);
        if inserted.is_err() {
            let below = |long: &str, short: &str| {
                long.strip_prefix(short)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let other = self.named.iter().find(|known| below(known, path) || below(path, known));
            let text = format!(
                "specification contains two conflicting paths. Cannot specify both '{path}' and \
                 '{}': {}",
                other.map_or("", String::as_str),
                show_doc(self.spec)
            );
            return Err(Error::location(40176, text));
        }
        self.named.push(path.to_owned());
        Ok(())
    }
}
