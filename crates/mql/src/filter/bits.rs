//! `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear`, `$bitsAnyClear`: bits of numbers and binary data.

use super::node::{Node, Test};
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator};
use crate::text::show;
use quire_document::{Value, number::Number};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[QueryOperator] = &[
    QueryOperator {
        name: "$bitsAllSet",
        parse: Parse::Field(|_: &Parser<'_>, argument| parse(BitKind::AllSet, argument)),
        doc: "Matches numbers and binary data in which all given bits are 1.",
        since: "3.2",
    },
    QueryOperator {
        name: "$bitsAnySet",
        parse: Parse::Field(|_: &Parser<'_>, argument| parse(BitKind::AnySet, argument)),
        doc: "Matches numbers and binary data in which one of the given bits is 1.",
        since: "3.2",
    },
    QueryOperator {
        name: "$bitsAllClear",
        parse: Parse::Field(|_: &Parser<'_>, argument| parse(BitKind::AllClear, argument)),
        doc: "Matches numbers and binary data in which all given bits are 0.",
        since: "3.2",
    },
    QueryOperator {
        name: "$bitsAnyClear",
        parse: Parse::Field(|_: &Parser<'_>, argument| parse(BitKind::AnyClear, argument)),
        doc: "Matches numbers and binary data in which one of the given bits is 0.",
        since: "3.2",
    },
];

/// The kind of test: which of the four operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum BitKind {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

impl BitKind {
    /// Returns the operator's name.
    pub const fn operator(self) -> &'static str {
        match self {
            BitKind::AllSet => "$bitsAllSet",
            BitKind::AllClear => "$bitsAllClear",
            BitKind::AnySet => "$bitsAnySet",
            BitKind::AnyClear => "$bitsAnyClear",
        }
    }
}

/// A test of the bits at certain positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitTest {
    /// The bits that must be set or clear.
    pub kind: BitKind,
    /// The positions in ascending order; 0 is the lowest bit of the first byte.
    pub positions: Vec<u32>,
}

impl BitTest {
    /// Returns true if the value is a number or binary data that passes the test. A number is read
    /// as 64 bits with its sign extended without end; binary data is extended with zeros.
    pub fn test(&self, value: Value<'_>) -> bool {
        match value {
            Value::Binary(binary) => self.decide(|position| {
                let byte = binary.bytes.get((position / 8) as usize).copied().unwrap_or(0);
                byte >> (position % 8) & 1 == 1
            }),
            other => match other.exact_i64() {
                Some(number) => self.decide(|position| number >> position.min(63) & 1 == 1),
                None => false,
            },
        }
    }

    fn decide(&self, is_set: impl Fn(u32) -> bool) -> bool {
        let mut positions = self.positions.iter();
        match self.kind {
            BitKind::AllSet => positions.all(|position| is_set(*position)),
            BitKind::AnySet => positions.any(|position| is_set(*position)),
            BitKind::AllClear => positions.all(|position| !is_set(*position)),
            BitKind::AnyClear => positions.any(|position| !is_set(*position)),
        }
    }
}

fn parse(kind: BitKind, argument: Argument<'_>) -> Result<Node> {
    let operator = kind.operator();
    let mut positions = match argument.value {
        Value::Array(array) => array
            .iter()
            .enumerate()
            .map(|(index, value)| position(index, value))
            .collect::<Result<Vec<u32>>>()?,
        Value::Binary(binary) => binary
            .bytes
            .iter()
            .enumerate()
            .flat_map(|(at, byte)| {
                (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at as u32 * 8 + bit)
            })
            .collect(),
        value if value.is_number() => {
            let mask = mask(operator, value)?;
            (0..63).filter(|bit| mask >> bit & 1 == 1).collect()
        }
        value => {
            return Err(Error::bad_value(format!(
                "{} takes an Array, a number, or a BinData but received: {operator}: {}",
                argument.path,
                show(value)
            )));
        }
    };
    positions.sort_unstable();
    positions.dedup();
    Ok(Node::path(argument.path, Test::Bits(BitTest { kind, positions })))
}

fn mask(operator: &str, value: Value<'_>) -> Result<i64> {
    let failed = |reason: &str| {
        Err(Error::failed_to_parse(format!("{reason}: {operator}: {}", show(value))))
    };
    match value.exact_i64() {
        Some(mask) if mask >= 0 => Ok(mask),
        Some(_) => failed("Expected a positive number in"),
        None => match value.as_number() {
            Some(Number::Double(number)) if number.fract() != 0.0 => failed("Expected an integer"),
            _ => failed("Cannot represent as a 64-bit integer"),
        },
    }
}

fn position(index: usize, value: Value<'_>) -> Result<u32> {
    let failed = |reason: &str| {
        let text = format!("bit positions {reason} but got: {index}: {}", show(value));
        Err(Error::bad_value(text))
    };
    match value.exact_i64() {
        None => failed("must be an integer"),
        Some(position) if position < 0 => failed("must be >= 0"),
        Some(position) => match i32::try_from(position) {
            Ok(position) => Ok(position as u32),
            Err(_) => failed("cannot be represented as a 32-bit signed integer"),
        },
    }
}
