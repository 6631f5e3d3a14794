//! A generator of values and documents with a seed, for property tests. It prefers edge cases:
//! numbers of different types that differ in the last bit, texts with zeros, empty and nested
//! values.

use crate::decimal::{COEFFICIENT_MAX, EXPONENT_MAX, EXPONENT_MIN, Parts};
use crate::{
    ArrayBuf, Binary, CodeWithScope, DbPointer, Decimal128, DocBuf, ObjectId, Regex, Timestamp,
    Value, ValueBuf,
};

/// Generates values. The same seed gives the same values.
#[derive(Clone, Debug)]
pub struct Generator {
    state: u64,
    /// The most levels of nested documents and arrays.
    pub depth_max: u32,
}

impl Generator {
    /// Returns a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Generator { state: seed, depth_max: 3 }
    }

    /// Returns the next 64 random bits (SplitMix64).
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// Returns a number from 0 to below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// Returns true with probability 1 / `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one of `things`; `None` if there are none.
    pub fn pick<'t, T>(&mut self, things: &'t [T]) -> Option<&'t T> {
        let at = self.below(things.len() as u64) as usize;
        things.get(at)
    }

    /// Returns a value of any type.
    pub fn value(&mut self) -> ValueBuf {
        self.value_at(0)
    }

    /// Returns a document with a few fields.
    pub fn document(&mut self) -> DocBuf {
        self.document_at(0)
    }

    fn value_at(&mut self, depth: u32) -> ValueBuf {
        match self.below(24) {
            0..=6 => self.number(),
            7..=9 => ValueBuf::new(self.text().as_str()),
            10..=11 if depth < self.depth_max => self.document_at(depth + 1).into(),
            12..=13 if depth < self.depth_max => self.array_at(depth + 1).into(),
            14 => ValueBuf::new(self.bits() & 1 == 1),
            15 => ValueBuf::new(Value::Date(self.integer())),
            16 => ValueBuf::new(ObjectId::from_parts(self.bits() as u32, [1; 5], 7)),
            17 => ValueBuf::new(Timestamp::from_u64(self.integer() as u64)),
            18 => {
                let (subtype, bytes) = (self.below(6) as u8, self.text());
                ValueBuf::new(Value::Binary(Binary { subtype, bytes: bytes.as_bytes() }))
            }
            19 => ValueBuf::new(Value::Null),
            20 => ValueBuf::new(Value::Undefined),
            21 => ValueBuf::new(if self.one_in(2) { Value::MinKey } else { Value::MaxKey }),
            _ => self.rare_value(depth),
        }
    }

    fn rare_value(&mut self, depth: u32) -> ValueBuf {
        let text = self.text();
        match self.below(5) {
            0 => ValueBuf::new(Value::Symbol(&text)),
            1 => ValueBuf::new(Value::Code(&text)),
            2 => {
                let pattern = text.replace('\0', "z");
                ValueBuf::new(Value::Regex(Regex { pattern: &pattern, options: "i" }))
            }
            3 => {
                let id = ObjectId::from_parts(self.below(3) as u32, [0; 5], 0);
                ValueBuf::new(Value::DbPointer(DbPointer { namespace: &text, id }))
            }
            _ => {
                let scope = self.document_at(depth.max(self.depth_max));
                let scope = scope.as_doc();
                ValueBuf::new(Value::CodeWithScope(CodeWithScope { code: &text, scope }))
            }
        }
    }

    fn document_at(&mut self, depth: u32) -> DocBuf {
        DocBuf::build(|writer| {
            for _ in 0..self.below(5) {
                let (name, value) = (self.name(), self.value_at(depth));
                writer.append(&name, &value);
            }
        })
    }

    fn array_at(&mut self, depth: u32) -> ArrayBuf {
        ArrayBuf::build(|writer| {
            for _ in 0..self.below(5) {
                writer.push(&self.value_at(depth));
            }
        })
    }

    /// Returns a field name. There are only few, so that different documents have the same names.
    pub fn name(&mut self) -> String {
        self.pick(&["a", "b", "c", "_id", "", "a.b", "0", "é"]).copied().unwrap_or("a").to_string()
    }

    /// Returns a text: short, sometimes with zero bytes, one bytes and characters of several bytes.
    pub fn text(&mut self) -> String {
        let length = if self.one_in(40) { self.below(600) } else { self.below(6) };
        let letters = ['\0', '\u{1}', '\u{2}', 'a', 'b', 'é', '\u{ffff}', '😀'];
        (0..length).filter_map(|_| self.pick(&letters).copied()).collect()
    }

    /// Returns a long: small, near a power of two, or any.
    pub fn integer(&mut self) -> i64 {
        let near = self.below(5) as i64 - 2;
        match self.below(4) {
            0 => near,
            1 => self.below(2000) as i64 - 1000,
            2 => {
                let power = (1i64 << self.below(63)).wrapping_add(near);
                if self.one_in(2) { power.wrapping_neg() } else { power }
            }
            _ => (self.bits() >> self.below(64)) as i64,
        }
    }

    /// Returns a double: an integer, a fraction, or any bits (NaN, subnormal, infinite, ...).
    pub fn double(&mut self) -> f64 {
        match self.below(4) {
            0 => self.integer() as f64,
            1 => self.integer() as f64 / (1u64 << self.below(60)) as f64,
            2 => {
                let bits = (self.integer() as f64).to_bits();
                f64::from_bits(bits.wrapping_add(self.below(5)).wrapping_sub(2))
            }
            _ => f64::from_bits(self.bits()),
        }
    }

    /// Returns a decimal: any bits, any parts, or one next to a long or a double.
    pub fn decimal(&mut self) -> Decimal128 {
        let any = (self.bits() as u128) << 64 | self.bits() as u128;
        match self.below(6) {
            0 => Decimal128::from_bits(any),
            1 => {
                let negative = self.one_in(2);
                let coefficient = (any >> self.below(127)) % (COEFFICIENT_MAX + 1);
                let span = (EXPONENT_MAX - EXPONENT_MIN) as u64;
                let exponent = EXPONENT_MIN + self.below(span + 1) as i32;
                Decimal128::pack(Parts { negative, coefficient, exponent })
            }
            2 => {
                let (number, zeros) = (self.integer(), self.below(12) as u32);
                let coefficient = number.unsigned_abs() as u128 * 10u128.pow(zeros);
                let exponent = self.below(8) as i32 - 4 - zeros as i32;
                Decimal128::pack(Parts { negative: number < 0, coefficient, exponent })
            }
            3 => self.beside(Decimal128::from_i64(0)),
            _ => {
                let close = Decimal128::from_f64_exact(self.double());
                self.beside(close)
            }
        }
    }

    /// Returns the decimal, or one with a slightly different last digit.
    fn beside(&mut self, decimal: Decimal128) -> Decimal128 {
        match decimal.parts() {
            Some(mut parts) => {
                let moved = parts.coefficient + self.below(3) as u128;
                parts.coefficient = moved.saturating_sub(1).min(COEFFICIENT_MAX);
                Decimal128::pack(parts)
            }
            None => decimal,
        }
    }

    /// Returns a number of any of the four types.
    pub fn number(&mut self) -> ValueBuf {
        match self.below(4) {
            0 => ValueBuf::new(self.integer() as i32),
            1 => ValueBuf::new(self.integer()),
            2 => ValueBuf::new(self.double()),
            _ => ValueBuf::new(self.decimal()),
        }
    }
}
