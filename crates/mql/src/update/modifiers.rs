//! Updates by operators: parses `{$set: {..}, $inc: {..}}` into one tree, and applies it.

use super::apply::Run;
use super::array_filter::ArrayFilters;
use super::describe::{self, UpdateDescription};
use super::operator::{self, FieldOperand};
use super::path;
use super::rename::{self, Finder, Rename};
use super::tree::{Fields, TreeBuilder};
use crate::context::{EvalContext, ParseContext};
use crate::text;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};

/// The operators of an update, as a tree of paths.
#[derive(Debug)]
pub(super) struct Modifiers {
    tree: Fields,
    renames: Vec<Rename>,
    filters: ArrayFilters,
    touched: Vec<Touched>,
    removed: Vec<String>,
    positional: bool,
}

/// A path that an operator changes.
#[derive(Debug)]
struct Touched {
    /// The dotted path, up to its first dynamic part.
    path: String,
    /// True if the operator's result depends on the current value only: `$inc`, `$mul`, `$min`,
    /// `$max`.
    is_relative: bool,
}

struct Builder<'f> {
    tree: TreeBuilder<'f>,
    renames: Vec<Rename>,
    touched: Vec<Touched>,
    /// The paths that `$unset` and `$rename` remove, without positions in arrays.
    removed: Vec<String>,
    positional: bool,
}

impl Modifiers {
    pub(super) fn parse(update: Doc<'_>, filters: ArrayFilters, cx: &ParseContext) -> Result<Self> {
        let mut builder = Builder {
            tree: TreeBuilder::new(&filters),
            renames: Vec::new(),
            touched: Vec::new(),
            removed: Vec::new(),
            positional: false,
        };
        for (name, operands) in update.fields() {
            builder.operator(name, operands, cx)?;
        }
        let Builder { tree, renames, touched, removed, positional } = builder;
        let (tree, used) = tree.finish();
        if let Some(unused) = filters.names().find(|name| !used.contains(*name)) {
            let shown = text::doc(update);
            return Err(Error::failed_to_parse(format!(
                "The array filter for identifier '{unused}' was not used in the update {shown}"
            )));
        }
        Ok(Modifiers { tree, renames, filters, touched, removed, positional })
    }

    pub(super) fn needs_position(&self) -> bool {
        self.positional
    }

    pub(super) fn may_change(&self, path: &str) -> bool {
        let overlap = |touched: &str| within(touched, path) || within(path, touched);
        self.touched.iter().any(|touched| overlap(&touched.path))
    }

    pub(super) fn removes(&self, path: &str) -> bool {
        self.removed.iter().any(|removed| within(removed, path))
    }

    pub(super) fn is_relative(&self, path: &str) -> bool {
        self.touched.iter().any(|touched| touched.is_relative && touched.path == path)
    }

    pub(super) fn is_only_relative(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        self.touched.iter().all(|touched| touched.is_relative && is_meant(&touched.path))
    }

    /// Returns the paths that the operators can change.
    pub(super) fn touched(&self) -> impl Iterator<Item = &str> {
        self.touched.iter().map(|touched| &*touched.path)
    }

    /// Describes how the operators changed `before` to `after`.
    pub(super) fn describe(&self, before: Doc<'_>, after: Doc<'_>) -> UpdateDescription {
        describe::by_operators(&self.tree, before, after)
    }

    /// Appends the result to `out`. Returns true if the document changed.
    pub(super) fn apply(
        &self,
        doc: Doc<'_>,
        position: Option<u32>,
        insert: bool,
        cx: &EvalContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let position = position.filter(|_| self.positional).map(|index| index.to_string());
        let mut run = Run::new(doc, position.as_deref(), insert, cx, &self.filters);
        let mut finder = Finder::new(doc, self.renames.len());
        for rename in &self.renames {
            cx.shared.check_interrupt()?;
            run.renames.push(rename.find(&mut finder)?);
        }
        run.document(&self.tree, out)?;
        Ok(run.changed)
    }
}

impl Builder<'_> {
    fn operator(&mut self, name: &str, operands: Value<'_>, cx: &ParseContext) -> Result<()> {
        let Some(operator) = operator::find_operator(name) else {
            return Err(Error::failed_to_parse(format!(
                "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
            )));
        };
        let Value::Document(operands) = operands else {
            return Err(Error::failed_to_parse(format!(
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{}}}",
                operands.type_name(),
                text::field(name, operands)
            )));
        };
        for (path, value) in operands.fields() {
            // A place in the tree and a modifier; two places for a `$rename`.
            cx.part()?;
            cx.part()?;
            let operand = FieldOperand { path, value };
            if name == rename::RENAME.name {
                cx.part()?;
                self.rename(&operand)?;
            } else {
                let parts = path::parse(path)?;
                let modifier = (operator.parse)(&operand, cx)?;
                self.tree.add(&parts, modifier)?;
                self.note(&parts, matches!(name, "$inc" | "$mul" | "$min" | "$max"));
                if name == "$unset" {
                    self.note_removed(&parts);
                }
            }
        }
        Ok(())
    }

    fn rename(&mut self, operand: &FieldOperand<'_>) -> Result<()> {
        let Value::String(to) = operand.value else {
            return Err(Error::bad_value(format!(
                "The 'to' field for $rename must be a string: {}",
                text::field(operand.path, operand.value)
            )));
        };
        if to.contains('\0') {
            let message = "The 'to' field for $rename cannot contain an embedded null byte";
            return Err(Error::location(9867600, message));
        }
        let number = self.renames.len();
        let from_parts = path::parse(operand.path)?;
        self.tree.add(&from_parts, Rename::source(number))?;
        let to_parts = path::parse(to)?;
        let rename = Rename::parse(operand.path, to)?;
        self.tree.add(&to_parts, Rename::target(number))?;
        self.renames.push(rename);
        self.note(&from_parts, false);
        self.note(&to_parts, false);
        self.note_removed(&from_parts);
        Ok(())
    }

    fn note(&mut self, parts: &[&str], is_relative: bool) {
        self.positional |= parts.contains(&"$");
        let fixed = parts.iter().take_while(|part| !path::is_dynamic(part));
        let path = fixed.copied().collect::<Vec<_>>().join(".");
        let is_relative = is_relative && path.split('.').count() == parts.len();
        self.touched.push(Touched { path, is_relative });
    }

    fn note_removed(&mut self, parts: &[&str]) {
        let is_position = |part: &str| path::is_dynamic(part) || part.parse::<u32>().is_ok();
        // The first part is the name of a field, also if it is a number.
        let (first, rest) = (parts.iter().take(1), parts.iter().skip(1));
        let names = first.chain(rest.filter(|part| !is_position(part)));
        self.removed.push(names.copied().collect::<Vec<_>>().join("."));
    }
}

/// Returns true if one dotted path is another one, or below it.
fn within(inner: &str, outer: &str) -> bool {
    inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
}
