//! `$eq`, `$lt`, `$lte`, `$gt`, `$gte` for one value, with MongoDB's type bracketing.

use crate::context::Collator;
use quire_document::{Type, Value, ValueBuf, number::Number};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The relation between a value and the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Comparison {
    Eq,
    Lte,
    Lt,
    Gt,
    Gte,
}

impl Comparison {
    /// Returns the operator's name.
    pub const fn operator(self) -> &'static str {
        match self {
            Comparison::Eq => "$eq",
            Comparison::Lt => "$lt",
            Comparison::Lte => "$lte",
            Comparison::Gt => "$gt",
            Comparison::Gte => "$gte",
        }
    }

    /// Returns the name of a comparison that a `$expr` implies, as explain shows it.
    pub const fn implied_operator(self) -> &'static str {
        match self {
            Comparison::Eq => "$_internalExprEq",
            Comparison::Lt => "$_internalExprLt",
            Comparison::Lte => "$_internalExprLte",
            Comparison::Gt => "$_internalExprGt",
            Comparison::Gte => "$_internalExprGte",
        }
    }

    /// Returns the comparison with its sides exchanged.
    pub const fn flipped(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Eq,
            Comparison::Lt => Comparison::Gt,
            Comparison::Lte => Comparison::Gte,
            Comparison::Gt => Comparison::Lt,
            Comparison::Gte => Comparison::Lte,
        }
    }

    /// Returns true if a value with this order relative to the operand passes.
    #[inline]
    pub const fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Eq => ordering.is_eq(),
            Comparison::Lt => ordering.is_lt(),
            Comparison::Lte => ordering.is_le(),
            Comparison::Gt => ordering.is_gt(),
            Comparison::Gte => ordering.is_ge(),
        }
    }

    /// Returns true if a value equal to the operand passes.
    const fn includes_equal(self) -> bool {
        matches!(self, Comparison::Eq | Comparison::Lte | Comparison::Gte)
    }
}

/// The right side of a comparison.
#[derive(Clone)]
pub struct Operand {
    value: ValueBuf,
    fast: Fast,
    collator: Option<Arc<dyn Collator>>,
}

/// Operands that are decoded in advance.
#[derive(Clone, Debug)]
enum Fast {
    Int(i64),
    Text(Box<str>),
    Null,
    None,
}

impl Operand {
    /// Returns an operand. Strings in it are compared by the collator, if there is one.
    pub fn new(value: Value<'_>, collator: Option<Arc<dyn Collator>>) -> Operand {
        let fast = match value {
            Value::Int32(number) => Fast::Int(number.into()),
            Value::Int64(number) => Fast::Int(number),
            Value::String(text) if collator.is_none() => Fast::Text(text.into()),
            Value::Null => Fast::Null,
            _ => Fast::None,
        };
        Operand { value: ValueBuf::new(value), fast, collator }
    }

    /// Returns the value to compare with.
    pub fn value(&self) -> Value<'_> {
        self.value.as_value()
    }

    /// Returns the type of the operand.
    pub fn kind(&self) -> Type {
        self.value.kind()
    }

    /// Returns the collation for comparisons of its strings.
    pub fn collator(&self) -> Option<&Arc<dyn Collator>> {
        self.collator.as_ref()
    }

    /// Returns true if `value` (`None` is missing) passes.
    #[inline]
    pub fn test(&self, comparison: Comparison, value: Option<Value<'_>>) -> bool {
        match (&self.fast, value) {
            (Fast::Int(number), Some(Value::Int32(value))) => {
                comparison.accepts(i64::from(value).cmp(number))
            }
            (Fast::Int(number), Some(Value::Int64(value))) => comparison.accepts(value.cmp(number)),
            (Fast::Text(text), Some(Value::String(value))) => {
                comparison.accepts(value.as_bytes().cmp(text.as_bytes()))
            }
            // For `$eq`, `$gte` and `$lte` a missing field is null; undefined is not (since 8.0).
            (Fast::Null, None | Some(Value::Null)) => comparison.includes_equal(),
            (Fast::Null, _) => false,
            (_, value) => self.test_any(comparison, value),
        }
    }

    fn test_any(&self, comparison: Comparison, value: Option<Value<'_>>) -> bool {
        let operand = self.value.as_value();
        let rank = value.map_or(Type::Undefined.rank(), |value| value.kind().rank());
        if rank != operand.kind().rank() {
            // Values are compared only with values of their type, except that MinKey and MaxKey are
            // compared with all.
            return match comparison {
                Comparison::Eq => false,
                Comparison::Lt | Comparison::Lte => operand.kind() == Type::MaxKey,
                Comparison::Gt | Comparison::Gte => operand.kind() == Type::MinKey,
            };
        }
        let Some(value) = value else { return false };
        let is_nan = |value: Value<'_>| value.as_number().is_some_and(Number::is_nan);
        // NaN equals NaN, and is neither less nor greater than a number.
        if is_nan(value) || is_nan(operand) {
            return is_nan(value) && is_nan(operand) && comparison.includes_equal();
        }
        comparison.accepts(quire_document::compare(value, operand, self.collator.as_deref()))
    }
}

impl fmt::Debug for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
