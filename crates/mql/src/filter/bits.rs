//! `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear`, `$bitsAnyClear`: bits of numbers and binary data.

use super::node::{Node, Test};
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator};
use crate::text::show;
use quire_document::{Binary, DocWriter, Value, number::Number};
use quire_error::{Error, Result};
use std::sync::Arc;

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

/// The longest mask that is kept as a list of positions.
const LISTED_BYTES_MAX: usize = 32;

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
    positions: Positions,
}

/// The positions of bits, each once; 0 is the lowest bit of the first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Positions {
    /// In ascending order.
    List(Vec<u32>),
    /// The bits that are set in these bytes, of which the last is not 0. A list would have 32 times as
    /// many bytes.
    Mask(Arc<[u8]>),
}

impl Positions {
    /// Returns the bits that are set in `bytes`.
    fn mask(bytes: &[u8]) -> Self {
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        Positions::Mask(bytes.get(..end).unwrap_or_default().into())
    }
}

impl BitTest {
    /// Returns true if the value is a number or binary data that passes the test. A number is read
    /// as 64 bits with its sign extended without end; binary data is extended with zeros.
    pub fn test(&self, value: Value<'_>) -> bool {
        match (value, &self.positions) {
            (Value::Binary(binary), Positions::Mask(mask)) => {
                self.decide_bytes(mask, binary.bytes, false)
            }
            (Value::Binary(binary), Positions::List(list)) => self.decide(list, |position| {
                let byte = binary.bytes.get((position / 8) as usize).copied().unwrap_or(0);
                byte >> (position % 8) & 1 == 1
            }),
            (other, positions) => match (other.exact_i64(), positions) {
                (Some(number), Positions::Mask(mask)) => {
                    self.decide_bytes(mask, &number.to_le_bytes(), number < 0)
                }
                (Some(number), Positions::List(list)) => {
                    self.decide(list, |position| number >> position.min(63) & 1 == 1)
                }
                (None, _) => false,
            },
        }
    }

    fn decide(&self, list: &[u32], is_set: impl Fn(u32) -> bool) -> bool {
        let mut positions = list.iter().copied();
        match self.kind {
            BitKind::AllSet => positions.all(is_set),
            BitKind::AnySet => positions.any(is_set),
            BitKind::AllClear => positions.all(|position| !is_set(position)),
            BitKind::AnyClear => positions.any(|position| !is_set(position)),
        }
    }

    /// Decides by the bits of `bytes`, and by those after them, which are all set or all clear.
    fn decide_bytes(&self, mask: &[u8], bytes: &[u8], rest_is_set: bool) -> bool {
        let mut pairs = mask.iter().zip(bytes);
        // The last byte of a mask has a bit.
        let has_rest = mask.len() > bytes.len();
        let (rest_set, rest_clear) = (has_rest && rest_is_set, has_rest && !rest_is_set);
        match self.kind {
            BitKind::AllSet => !rest_clear && pairs.all(|(mask, byte)| byte & mask == *mask),
            BitKind::AnySet => rest_set || pairs.any(|(mask, byte)| byte & mask != 0),
            BitKind::AllClear => !rest_set && pairs.all(|(mask, byte)| byte & mask == 0),
            BitKind::AnyClear => rest_clear || pairs.any(|(mask, byte)| byte & mask != *mask),
        }
    }

    /// Writes the test as explain shows it: with the positions, or with a long mask.
    pub(super) fn write(&self, writer: &mut DocWriter<'_>) {
        match &self.positions {
            Positions::List(list) => {
                let mut positions = writer.array(self.kind.operator());
                for position in list {
                    positions.push(*position as i32);
                }
            }
            Positions::Mask(mask) => {
                let mask = Binary { subtype: 0, bytes: mask };
                writer.append(self.kind.operator(), Value::Binary(mask));
            }
        }
    }
}

/// Returns the positions of the bits that are set.
fn set_bits(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.iter().enumerate().flat_map(|(at, byte)| {
        (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at as u32 * 8 + bit)
    })
}

fn parse(kind: BitKind, argument: Argument<'_>) -> Result<Node> {
    let operator = kind.operator();
    let positions = match argument.value {
        Value::Array(array) => {
            let positions = array.iter().enumerate().map(|(index, value)| position(index, value));
            let mut positions = positions.collect::<Result<Vec<u32>>>()?;
            positions.sort_unstable();
            positions.dedup();
            Positions::List(positions)
        }
        Value::Binary(binary) if binary.bytes.len() <= LISTED_BYTES_MAX => {
            Positions::List(set_bits(binary.bytes).collect())
        }
        Value::Binary(binary) => Positions::mask(binary.bytes),
        value if value.is_number() => {
            let mask = mask(operator, value)?;
            Positions::List((0..63).filter(|bit| mask >> bit & 1 == 1).collect())
        }
        value => {
            return Err(Error::bad_value(format!(
                "{} takes an Array, a number, or a BinData but received: {operator}: {}",
                argument.path,
                show(value)
            )));
        }
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn test(kind: BitKind, positions: Positions) -> BitTest {
        BitTest { kind, positions }
    }

    /// A mask of 14 MB became a list of 800 MB.
    #[test]
    fn a_mask_decides_as_the_list_of_its_bits() {
        let long: Vec<u8> = (0..100u8).map(|at| if at % 7 == 0 { 0 } else { at }).collect();
        let values = [
            Value::Int32(0),
            Value::Int64(-1),
            Value::Int64(-123_456_789),
            Value::Double(7.0),
            Value::Double(0.5),
            Value::String("no number"),
            Value::Binary(Binary { subtype: 0, bytes: &long }),
            Value::Binary(Binary { subtype: 0, bytes: &long[..50] }),
            Value::Binary(Binary { subtype: 0, bytes: &[0xff; 200] }),
            Value::Binary(Binary { subtype: 0, bytes: &[] }),
        ];
        let ends = [vec![0; 50], vec![1], vec![0; 60]].concat();
        let masks = [long.clone(), vec![0; 100], vec![1], vec![], vec![0xff; 40], ends];
        for kind in [BitKind::AllSet, BitKind::AnySet, BitKind::AllClear, BitKind::AnyClear] {
            for mask in &masks {
                let list = test(kind, Positions::List(set_bits(mask).collect()));
                let mask = test(kind, Positions::mask(mask));
                for value in values {
                    assert_eq!(mask.test(value), list.test(value), "{kind:?} {value:?}");
                }
            }
        }
    }
}
