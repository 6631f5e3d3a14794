//! The operand of `$in`: a sorted list of values, and regular expressions.

use super::parse::Parser;
use crate::checked_sort;
use crate::context::work::{SORTED_AT_ONCE, search_units};
use crate::context::{Collator, ParseContext, Shared};
use crate::regex::Regex;
use quire_document::{Array, Value, ValueBuf};
use quire_error::{Error, Result};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The operand of `$in`.
#[derive(Clone)]
pub struct InList {
    /// Shared, because plans contain copies of parts of a filter.
    values: Arc<[ValueBuf]>,
    regexes: Arc<[Regex]>,
    has_null: bool,
    collator: Option<Arc<dyn Collator>>,
    /// The types of the values that come later; the values are examples of them.
    to_come: Option<KeyTypes>,
}

/// The types of the keys of a join, for a plan that is made before the keys are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTypes {
    /// Values of any type.
    All,
    /// Only values that a grouping and a sparse index tell from a missing field: not null,
    /// undefined, MinKey and MaxKey.
    Present,
}

impl KeyTypes {
    /// Returns true if a key has one of the types.
    pub fn contain(self, key: Value<'_>) -> bool {
        self == KeyTypes::All
            || !matches!(key, Value::Null | Value::Undefined | Value::MinKey | Value::MaxKey)
    }

    /// Returns a value of each kind that an index treats in its own way.
    fn examples(self) -> Vec<ValueBuf> {
        let mut examples = vec![ValueBuf::new(0), ValueBuf::new("")];
        if self == KeyTypes::All {
            examples.push(ValueBuf::new(Value::Null));
        }
        examples
    }
}

impl InList {
    /// Returns the operand for values of these types that come later: a plan with it is planned once,
    /// and bound to the values of each of its runs.
    pub fn placeholder(types: KeyTypes, collator: Option<Arc<dyn Collator>>) -> InList {
        // Values of different types have the same order under every collation.
        static ALL: LazyLock<InList> = LazyLock::new(|| InList::to_be(KeyTypes::All));
        static PRESENT: LazyLock<InList> = LazyLock::new(|| InList::to_be(KeyTypes::Present));
        let list = match types {
            KeyTypes::All => &ALL,
            KeyTypes::Present => &PRESENT,
        };
        InList { collator, ..InList::clone(list) }
    }

    fn to_be(types: KeyTypes) -> InList {
        InList { to_come: Some(types), ..InList::new(types.examples(), Vec::new(), None) }
    }

    /// Returns the types of the values that come later; `None` if the values are known.
    pub fn to_come(&self) -> Option<KeyTypes> {
        self.to_come
    }

    /// Returns the operand with these values, which are sorted and deduplicated here, and regular
    /// expressions.
    pub fn new(
        mut values: Vec<ValueBuf>,
        regexes: Vec<Regex>,
        collator: Option<Arc<dyn Collator>>,
    ) -> InList {
        let compare = |left: &ValueBuf, right: &ValueBuf| {
            quire_document::compare(left.as_value(), right.as_value(), collator.as_deref())
        };
        values.sort_by(compare);
        values.dedup_by(|left, right| compare(left, right).is_eq());
        let has_null = values.iter().any(|value| matches!(value.as_value(), Value::Null));
        InList { values: values.into(), regexes: regexes.into(), has_null, collator, to_come: None }
    }

    /// Parses the operand of `$in` or `$nin`.
    pub(super) fn parse(operator: &str, value: Value<'_>, parser: &Parser<'_>) -> Result<InList> {
        let Value::Array(array) = value else {
            return Err(Error::bad_value(format!("{operator} needs an array")));
        };
        Self::parse_array(array, parser)
    }

    fn parse_array(array: Array<'_>, parser: &Parser<'_>) -> Result<InList> {
        let (mut values, mut regexes) = (Vec::new(), Vec::new());
        for value in array.iter() {
            parser.context.work()?;
            match value {
                Value::Regex(regex) => {
                    parser.context.part()?;
                    regexes.push(Regex::new(regex.pattern, regex.options)?);
                }
                Value::Document(doc) if super::parse::is_operator_document(doc) => {
                    return Err(Error::bad_value("cannot nest $ under $in"));
                }
                Value::Undefined => {
                    return Err(Error::bad_value("InMatchExpression equality cannot be undefined"));
                }
                other => values.push(ValueBuf::new(other)),
            }
        }
        InList::checked(values, regexes, parser.collator(), parser.context)
    }

    /// Returns the same as [`InList::new`], but fails if the operation was killed or its deadline
    /// passed meanwhile.
    pub fn checked(
        values: Vec<ValueBuf>,
        regexes: Vec<Regex>,
        collator: Option<Arc<dyn Collator>>,
        context: &ParseContext,
    ) -> Result<InList> {
        let count = values.len();
        if count <= SORTED_AT_ONCE {
            context.work_units(search_units(count, count))?;
            return Ok(InList::new(values, regexes, collator));
        }
        let work = |units| context.work_units(units);
        let compare =
            |a: &Value<'_>, b: &Value<'_>| quire_document::compare(*a, *b, collator.as_deref());
        let mut order: Vec<Value<'_>> = values.iter().map(ValueBuf::as_value).collect();
        checked_sort::sort(&mut order, SORTED_AT_ONCE, &work, compare)?;
        let mut distinct: Vec<ValueBuf> = Vec::with_capacity(count);
        for value in order {
            work(8)?;
            if distinct.last().is_none_or(|last| compare(&last.as_value(), &value).is_ne()) {
                distinct.push(ValueBuf::new(value));
            }
        }
        let has_null = distinct.iter().any(|value| matches!(value.as_value(), Value::Null));
        let (values, regexes) = (distinct.into(), regexes.into());
        Ok(InList { values, regexes, has_null, collator, to_come: None })
    }

    /// Returns the distinct values in MongoDB's order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Value<'_>> {
        self.values.iter().map(ValueBuf::as_value)
    }

    /// Returns the number of distinct values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the distinct value number `at` in MongoDB's order.
    pub fn get(&self, at: usize) -> Option<Value<'_>> {
        self.values.get(at).map(ValueBuf::as_value)
    }

    /// Returns the regular expressions in the written order.
    pub fn regexes(&self) -> &[Regex] {
        &self.regexes
    }

    /// Returns true if null is one of the values.
    pub fn has_null(&self) -> bool {
        self.has_null
    }

    /// Returns the collation for comparisons of the strings.
    pub fn collator(&self) -> Option<&Arc<dyn Collator>> {
        self.collator.as_ref()
    }

    /// Returns true if the list is empty, so that nothing matches.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.regexes.is_empty()
    }

    /// Returns true if `value` (`None` is missing) is in the list or matches a regular expression.
    /// Fails with 51156 if a match exceeds its limits.
    pub fn test(&self, value: Option<Value<'_>>, shared: &Shared) -> Result<bool> {
        let Some(value) = value else { return Ok(self.has_null) };
        let collator = self.collator.as_deref();
        let found = self
            .values
            .binary_search_by(|candidate| {
                quire_document::compare(candidate.as_value(), value, collator)
            })
            .is_ok();
        if found {
            return Ok(true);
        }
        for regex in self.regexes.iter() {
            shared.work(16)?;
            if super::regex::test(regex, value, shared)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl fmt::Debug for InList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.iter()).entries(self.regexes.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::testing::Generator;

    /// The last round of sorting a million values ran without a check of the interrupt.
    #[test]
    fn a_long_list_is_sorted_in_parts_to_the_same_list() {
        let mut random = Generator::new(1);
        let values: Vec<ValueBuf> =
            (0..3 * SORTED_AT_ONCE).map(|_| ValueBuf::new(random.below(30_000) as i64)).collect();
        let whole = InList::new(values.clone(), Vec::new(), None);
        let mut context = ParseContext::default();
        let list = InList::checked(values.clone(), Vec::new(), None, &context).unwrap();
        assert!(list.values == whole.values);
        let killed = || Err(Error::new(quire_error::ErrorCode::Interrupted, "killed"));
        context.interrupt = Some(Arc::new(killed));
        assert!(InList::checked(values, Vec::new(), None, &context).is_err());
    }
}
