//! The class of an encoded value: its first byte. Classes ascend with MongoDB's order of types.
//!
//! 0x00 and 0xFF are not classes, in either direction, so they can mean "before every value" and
//! "after every value".

use crate::Type;

pub(super) const MIN_KEY: u8 = 0x08;
pub(super) const UNDEFINED: u8 = 0x10;
pub(super) const NULL: u8 = 0x14;
pub(super) const NAN: u8 = 0x20;
/// The class of zero. Classes of negative numbers mirror those of positive ones: -2^63 and below is
/// 0x21, between -1 and 0 is 0x2A.
pub(super) const ZERO: u8 = 0x2B;
/// Numbers above 0 and below 1.
pub(super) const FRACTION: u8 = 0x2C;
/// Numbers from 1 to below 2^63: 0x2D to 0x34, by the number of bytes of twice the integer part.
pub(super) const INTEGER_1: u8 = 0x2D;
/// Numbers from 2^63, with Infinity.
pub(super) const HUGE: u8 = 0x35;
pub(super) const STRING: u8 = 0x40;
pub(super) const DOCUMENT: u8 = 0x50;
pub(super) const ARRAY: u8 = 0x58;
pub(super) const BINARY: u8 = 0x60;
pub(super) const OBJECT_ID: u8 = 0x68;
pub(super) const FALSE: u8 = 0x70;
pub(super) const TRUE: u8 = 0x71;
pub(super) const DATE: u8 = 0x78;
pub(super) const TIMESTAMP: u8 = 0x7C;
pub(super) const REGEX: u8 = 0x80;
pub(super) const DB_POINTER: u8 = 0x88;
pub(super) const CODE: u8 = 0x90;
pub(super) const CODE_WITH_SCOPE: u8 = 0x98;
pub(super) const MAX_KEY: u8 = 0xF0;

/// Returns the first and the last class of the values with the same rank as `kind`.
pub(super) const fn range(kind: Type) -> (u8, u8) {
    match kind {
        Type::MinKey => (MIN_KEY, MIN_KEY),
        Type::Undefined => (UNDEFINED, UNDEFINED),
        Type::Null => (NULL, NULL),
        Type::Double | Type::Int32 | Type::Int64 | Type::Decimal => (NAN, HUGE),
        Type::String | Type::Symbol => (STRING, STRING),
        Type::Document => (DOCUMENT, DOCUMENT),
        Type::Array => (ARRAY, ARRAY),
        Type::Binary => (BINARY, BINARY),
        Type::ObjectId => (OBJECT_ID, OBJECT_ID),
        Type::Bool => (FALSE, TRUE),
        Type::Date => (DATE, DATE),
        Type::Timestamp => (TIMESTAMP, TIMESTAMP),
        Type::Regex => (REGEX, REGEX),
        Type::DbPointer => (DB_POINTER, DB_POINTER),
        Type::Code => (CODE, CODE),
        Type::CodeWithScope => (CODE_WITH_SCOPE, CODE_WITH_SCOPE),
        Type::MaxKey => (MAX_KEY, MAX_KEY),
    }
}
