//! A row of the accumulators' registry, and the registry.

use super::spec::Argument;
use super::{Collation, State, Table};
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

/// Parses the value behind an accumulator's name.
pub(super) type ParseFn = fn(Value<'_>, &ParseContext) -> Result<Parsed>;

/// An accumulator of `$group`.
pub struct Accumulator {
    /// Its name with the dollar sign.
    pub name: &'static str,
    /// The MongoDB version that introduced it.
    pub since: &'static str,
    /// One sentence for COMPATIBILITY.md.
    pub doc: &'static str,
    pub(super) parse: ParseStyle,
    /// Makes its table where its states have a type of their own there. Such an accumulator fails
    /// for no value, so a batch may go to one after the other.
    pub(super) table: Option<fn(Collation) -> Box<dyn Table>>,
}

/// How an accumulator's argument is parsed.
pub(super) enum ParseStyle {
    /// It takes one expression.
    Unary(fn(Collation) -> Box<dyn State>),
    /// By its own parser.
    Own(ParseFn),
}

/// A parsed accumulator.
pub(crate) struct Parsed {
    pub(crate) argument: Argument,
    /// How many values it keeps, for those that keep n.
    pub(crate) n: Option<Expression>,
    pub(crate) make: Make,
}

/// Makes the state of a group, given n (0 where there is none).
pub(crate) type Make = Arc<dyn Fn(usize, Collation) -> Box<dyn State> + Send + Sync>;

impl Accumulator {
    /// An accumulator of one expression.
    pub(super) const fn unary(
        name: &'static str,
        since: &'static str,
        doc: &'static str,
        make: fn(Collation) -> Box<dyn State>,
    ) -> Self {
        Accumulator { name, since, doc, parse: ParseStyle::Unary(make), table: None }
    }

    /// An accumulator with a parser of its own.
    pub(super) const fn own(
        name: &'static str,
        since: &'static str,
        doc: &'static str,
        parse: ParseFn,
    ) -> Self {
        Accumulator { name, since, doc, parse: ParseStyle::Own(parse), table: None }
    }

    /// The same with a table of its own.
    pub(super) const fn with_table(mut self, table: fn(Collation) -> Box<dyn Table>) -> Self {
        self.table = Some(table);
        self
    }

    pub(super) fn parsed(&self, value: Value<'_>, cx: &ParseContext) -> Result<Parsed> {
        if value.as_array().is_some() {
            return Err(not_unary(self.name));
        }
        self.parsed_in_window(value, cx)
    }

    /// As `parsed`; as a window function it may have an array of expressions as its argument.
    pub(crate) fn parsed_in_window(&self, value: Value<'_>, cx: &ParseContext) -> Result<Parsed> {
        match self.parse {
            ParseStyle::Unary(make) => {
                Ok(Parsed::unary(Expression::parse(value, cx)?, move |collation| make(collation)))
            }
            ParseStyle::Own(parse) => parse(value, cx),
        }
    }
}

/// 40237: an accumulator with a list of arguments.
pub(super) fn not_unary(name: &str) -> Error {
    Error::location(40237, format!("The {name} accumulator is a unary operator"))
}

impl Parsed {
    pub(super) fn unary(
        argument: Expression,
        make: impl Fn(Collation) -> Box<dyn State> + Send + Sync + 'static,
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

/// Every accumulator, in the order of their names.
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

/// The accumulator of that name.
pub fn find_accumulator(name: &str) -> Option<&'static Accumulator> {
    ACCUMULATORS.iter().find(|accumulator| accumulator.name == name)
}
