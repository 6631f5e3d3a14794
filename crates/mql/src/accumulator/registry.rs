//! The registry of accumulators, and the type of its rows.

use super::spec::Argument;
use super::{State, StringOrder, Table};
use super::{
    add_to_set, average, count, edge, extreme, merge_objects, n_values, percentile, push, ranked,
    std_dev, sum,
};
use crate::context::ParseContext;
use crate::expression::Expression;
use quire_document::Value;
use quire_error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// Parses the value after an accumulator's name.
pub(super) type ParseFn = fn(Value<'_>, &ParseContext) -> Result<Parsed>;

/// An accumulator of `$group`.
pub struct Accumulator {
    /// The name with the dollar sign.
    pub name: &'static str,
    /// The MongoDB version that introduced it.
    pub since: &'static str,
    /// One sentence for COMPATIBILITY.md.
    pub doc: &'static str,
    pub(super) parse: ParseStyle,
    /// Makes a specialised table of states, if the accumulator has one. Such an accumulator never
    /// fails, so each of them may process a whole batch before the next one does.
    pub(super) table: Option<fn(StringOrder) -> Box<dyn Table>>,
}

/// The way in which an accumulator's argument is parsed.
pub(super) enum ParseStyle {
    /// The argument is one expression.
    Unary(fn(StringOrder) -> Box<dyn State>),
    /// The accumulator has a parser.
    Own(ParseFn),
}

/// A parsed accumulator.
pub(crate) struct Parsed {
    pub(crate) argument: Argument,
    /// The n of an accumulator that keeps n values.
    pub(crate) n: Option<Expression>,
    pub(crate) make: Make,
}

/// Makes the state of a group from its n (0 for an accumulator without n).
pub(crate) type Make = Arc<dyn Fn(usize, StringOrder) -> Box<dyn State> + Send + Sync>;

impl Accumulator {
    /// Returns a row for an accumulator of one expression.
    pub(super) const fn unary(
        name: &'static str,
        since: &'static str,
        doc: &'static str,
        make: fn(StringOrder) -> Box<dyn State>,
    ) -> Self {
        Accumulator { name, since, doc, parse: ParseStyle::Unary(make), table: None }
    }

    /// Returns a row for an accumulator with a parser.
    pub(super) const fn own(
        name: &'static str,
        since: &'static str,
        doc: &'static str,
        parse: ParseFn,
    ) -> Self {
        Accumulator { name, since, doc, parse: ParseStyle::Own(parse), table: None }
    }

    /// Returns the row with a specialised table.
    pub(super) const fn with_table(mut self, table: fn(StringOrder) -> Box<dyn Table>) -> Self {
        self.table = Some(table);
        self
    }

    pub(super) fn parsed(&self, value: Value<'_>, cx: &ParseContext) -> Result<Parsed> {
        if value.as_array().is_some() {
            return Err(not_unary(self.name));
        }
        self.parsed_in_window(value, cx)
    }

    /// Parses like `parsed`, but the argument may also be an array of expressions, as for a window
    /// function.
    pub(crate) fn parsed_in_window(&self, value: Value<'_>, cx: &ParseContext) -> Result<Parsed> {
        match self.parse {
            ParseStyle::Unary(make) => {
                Ok(Parsed::unary(Expression::parse(value, cx)?, move |collation| make(collation)))
            }
            ParseStyle::Own(parse) => parse(value, cx),
        }
    }
}

/// Returns the error 40237, for an accumulator with a list of arguments.
pub(super) fn not_unary(name: &str) -> Error {
    Error::location(40237, format!("The {name} accumulator is a unary operator"))
}

impl Parsed {
    pub(super) fn unary(
        argument: Expression,
        make: impl Fn(StringOrder) -> Box<dyn State> + Send + Sync + 'static,
    ) -> Self {
        let argument = Argument::One(argument);
        Parsed { argument, n: None, make: Arc::new(move |_, collation| make(collation)) }
    }
}

impl fmt::Debug for Accumulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All accumulators, in the order of their names.
pub const ACCUMULATORS: &[Accumulator] = &[
    add_to_set::ADD_TO_SET,
    average::AVG,
    ranked::BOTTOM,
    ranked::BOTTOM_N,
    push::CONCAT_ARRAYS,
    count::COUNT,
    edge::FIRST,
    n_values::FIRST_N,
    edge::LAST,
    n_values::LAST_N,
    extreme::MAX,
    n_values::MAX_N,
    percentile::MEDIAN,
    merge_objects::MERGE_OBJECTS,
    extreme::MIN,
    n_values::MIN_N,
    percentile::PERCENTILE,
    push::PUSH,
    add_to_set::SET_UNION,
    std_dev::STD_DEV_POP,
    std_dev::STD_DEV_SAMP,
    sum::SUM,
    ranked::TOP,
    ranked::TOP_N,
];

/// Returns the accumulator with this name.
pub fn find_accumulator(name: &str) -> Option<&'static Accumulator> {
    ACCUMULATORS.iter().find(|accumulator| accumulator.name == name)
}
