//! Aggregation expressions: parsed once into a tree with resolved paths, then evaluated on BSON
//! bytes.
//!
//! Read in this order: `tree` (the tree and its evaluation), `operator` (the type of the registry's
//! rows), `registry` (all operators), `parse`, `field_path`, `extract` and `batch` (evaluation of
//! many documents at once, with `column` and `kernel`), then one file for each operator or family,
//! with its rows, its code and its documentation.
//!
//! A new operator is a row in its family's `OPERATORS` and a function `fn run<'a>(call: &'a Call,
//! cx: &EvalContext<'a>) -> Result<Option<Value<'a>>>`. `call.eval(i, cx)?` evaluates argument `i`
//! (`None` is a missing value), and `cx.string/array/document/array_of/copy` build results in the
//! arena. `Arity::Named` parses `{a: .., b: ..}` into arguments in the order of its fields.
//! `Operator::checked` adds a check of constant arguments while parsing, and `Operator::form`
//! replaces the parser. Calls with constant arguments are folded unless the row is `volatile()`.

mod batch;
mod checkpoints;
mod dependencies;
mod extract;
mod field_path;
mod kernel;
mod operator;
mod parse;
mod ranges;
mod registry;
mod serialize;
mod tree;

mod accumulators;
mod appending;
mod arithmetic;
mod array_access;
mod array_building;
mod bitwise;
mod boolean;
mod comparison;
mod conditional;
mod convert;
mod dates;
mod external;
mod hashed;
mod iteration;
mod iterations;
mod literal;
mod n_elements;
mod objects;
mod powers;
mod quantiles;
mod records;
mod regex;
mod rounding;
mod sets;
mod sort_array;
mod strings;
mod timestamps;
mod trigonometry;
mod types;
mod variables;

pub(crate) use arithmetic::{difference, product, quotient, total};
pub use batch::Batch;
pub use boolean::is_true;
pub use comparison::compare_results;
pub use dates::Unit;
pub(crate) use dates::moved_date;
pub use dependencies::Dependencies;
pub(crate) use external::unavailable;
pub use extract::Extractor;
pub use field_path::{FieldPath, PATH_COMPONENTS_MAX, check_field_name};
pub use hashed::hashed_key;
pub use operator::{Arity, Call, Field, Fields, Operator, Run};
pub use parse::check_variable_name;
pub use quantiles::Quantiles;
pub use registry::{find_operator, operators};
pub(crate) use strings::six_digits;
pub use tree::{Expression, ExpressionNode, Form, of_stage};

#[cfg(test)]
mod property;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
