//! Aggregation expressions: parsed once into a tree with resolved paths, run over bytes.
//!
//! Reading order: `tree` (the tree and its evaluation), `operator` (what a row of the registry
//! is), `registry` (all rows), `parse`, `field_path`, then one file an operator or close family,
//! each with its rows, its code and its documentation.

mod dependencies;
mod field_path;
mod operator;
mod parse;
mod registry;
mod serialize;
mod tree;

mod accumulators;
mod convert;
mod dates;
mod literal;
mod regex;
mod strings;
mod timestamps;

pub use dependencies::Dependencies;
pub use field_path::FieldPath;
pub use operator::{Arity, Call, Field, Fields, Operator, Run};
pub use registry::{find_operator, operators};
pub use tree::{Expression, Form, Node};
