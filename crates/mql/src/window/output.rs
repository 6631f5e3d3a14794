//! An output field of `$setWindowFields`: its window function, parsed.

use super::SortedBy;
use super::fill::{FillSpec, LinearFill};
use super::partition::Evaluator;
use super::ranks::{Rank, Ranking};
use super::registry::{WindowFunction, find_window_function};
use super::sliding::{Given, Sliding, SlidingSpec};
use crate::context::{EvalContext, ParseContext};
use crate::expression::{Dependencies, Expression, Extractor, FieldPath};
use crate::sort::SortPattern;
use quire_document::{Doc, DocWriter, Value, ValueBuf};
use quire_error::{Error, Result};
use std::sync::Arc;

/// An output field with its window function.
#[derive(Debug)]
pub struct Output {
    field: Box<str>,
    function: &'static WindowFunction,
    /// The function's argument, as explain shows it.
    shown: ValueBuf,
    kind: Kind,
}

/// The kinds of window functions.
#[derive(Debug)]
pub(super) enum Kind {
    /// Computes from the values of a window.
    Sliding(Arc<SlidingSpec>),
    /// Counts the documents of the partition.
    Rank(Rank, Arc<SortPattern>),
    /// Interpolates between known values.
    LinearFill(Arc<FillSpec>),
}

/// The input of a window function's parser.
pub(super) struct Spec<'s, 'v> {
    /// The function's name.
    pub name: &'static str,
    /// The argument of the function.
    pub argument: Value<'v>,
    /// The whole output field: the function, and optionally `window`.
    pub whole: Doc<'v>,
    pub sorted_by: &'s SortedBy,
    pub cx: &'s ParseContext,
}

impl Output {
    /// Parses the value of the output field `field`.
    ///
    /// # Errors
    /// 9 FailedToParse for an unknown window function, and errors of the function and its bounds.
    pub(crate) fn parse(
        field: &str,
        value: Value<'_>,
        sorted_by: &SortedBy,
        cx: &ParseContext,
    ) -> Result<Self> {
        FieldPath::parse(field)?;
        let Value::Document(whole) = value else {
            return Err(Error::failed_to_parse(format!("The field '{field}' must be an object")));
        };
        let named = whole.fields().find(|(name, _)| name.starts_with('$'));
        let Some((name, argument)) = named else {
            return Err(Error::failed_to_parse("Expected a $-prefixed window function"));
        };
        let Some(function) = find_window_function(name) else {
            let message = format!("Unrecognized window function, {name}");
            return Err(Error::failed_to_parse(message));
        };
        let name = function.name;
        let kind = (function.parse)(&Spec { name, argument, whole, sorted_by, cx })?;
        let shown = match &kind {
            Kind::Sliding(spec) => match &spec.given {
                Given::One(expression) if !matches!(argument, Value::Document(_)) => {
                    expression.to_bson()
                }
                _ => ValueBuf::new(argument),
            },
            _ => ValueBuf::new(argument),
        };
        Ok(Output { field: field.into(), function, shown, kind })
    }

    /// Gives the paths that the function reads to an extractor.
    pub(crate) fn attach(&mut self, extractor: &mut Extractor) {
        match &mut self.kind {
            Kind::Sliding(spec) => {
                if let Some(spec) = Arc::get_mut(spec) {
                    spec.attach(extractor);
                }
            }
            Kind::LinearFill(spec) => {
                if let Some(spec) = Arc::get_mut(spec) {
                    extractor.attach(&mut spec.sorted_by);
                    extractor.attach(&mut spec.input);
                }
            }
            Kind::Rank(..) => {}
        }
    }

    /// Returns the path of the output field.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the state of the function for a new partition.
    pub(super) fn evaluator(&self, cx: &EvalContext<'_>) -> Result<Box<dyn Evaluator>> {
        Ok(match &self.kind {
            Kind::Sliding(spec) => Box::new(Sliding::new(spec, cx)?),
            Kind::Rank(rank, pattern) => Box::new(Ranking::new(*rank, Arc::clone(pattern))),
            Kind::LinearFill(spec) => Box::new(LinearFill::new(Arc::clone(spec))),
        })
    }

    /// Adds the dependencies of the function, except the sort key, to `needed`.
    pub(crate) fn add_dependencies(&self, needed: &mut Dependencies) {
        match &self.kind {
            Kind::Rank(..) => {}
            Kind::LinearFill(spec) => {
                spec.sorted_by.add_dependencies(needed);
                spec.input.add_dependencies(needed);
            }
            Kind::Sliding(spec) => {
                let sorted_by = spec.sorted_by.iter();
                sorted_by.for_each(|expression| expression.add_dependencies(needed));
                spec.n.iter().for_each(|n| needed.add_without_root(n));
                match &spec.given {
                    Given::One(expression) => expression.add_dependencies(needed),
                    Given::Ranked(ranking) => ranking.add_dependencies(needed),
                    Given::Pair(first, second) => {
                        first.add_dependencies(needed);
                        second.add_dependencies(needed);
                    }
                }
            }
        }
    }

    /// Writes the field as explain shows it.
    pub(crate) fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(&self.field);
        inner.append(self.function.name, &self.shown);
        if let Kind::Sliding(spec) = &self.kind
            && self.function.takes_window
        {
            spec.bounds.print(&mut inner);
        }
    }
}

impl<'v> Spec<'_, 'v> {
    /// Returns the value of `window`.
    pub fn window(&self) -> Option<Value<'v>> {
        self.whole.get("window")
    }

    /// Fails if there is a second function, or a field that is not `window`.
    pub fn check_fields(&self) -> Result<()> {
        for (name, _) in self.whole.fields().filter(|(name, _)| *name != "window") {
            if name != self.name && find_window_function(name).is_some() {
                let message = "Cannot specify two functions in window function spec";
                return Err(Error::failed_to_parse(message));
            }
            if name != self.name {
                let message = format!("Window function found an unknown argument: {name}");
                return Err(Error::failed_to_parse(message));
            }
        }
        Ok(())
    }

    /// Returns the expression of the sort field, if documents are sorted by one field.
    pub fn sorted_by(&self) -> Result<Option<Expression>> {
        self.sorted_by.single().map(|(path, _)| Expression::path(path)).transpose()
    }

    pub fn expression(&self, value: Value<'_>) -> Result<Expression> {
        Expression::parse(value, self.cx)
    }
}
