//! The operand of `$in`: a sorted list of values, and regular expressions.

use super::parse::Parser;
use crate::context::work::{SORTED_AT_ONCE, search_units};
use crate::context::{Collator, Shared};
use crate::regex::Regex;
use quire_document::{Array, Value, ValueBuf};
use quire_error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// The operand of `$in`.
#[derive(Clone)]
pub struct InList {
    /// Shared, because plans contain copies of parts of a filter.
    values: Arc<[ValueBuf]>,
    regexes: Vec<Regex>,
    has_null: bool,
    collator: Option<Arc<dyn Collator>>,
}

impl InList {
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
        InList { values: values.into(), regexes, has_null, collator }
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
                Value::Regex(regex) => regexes.push(Regex::new(regex.pattern, regex.options)?),
                Value::Document(doc) if super::parse::is_operator_document(doc) => {
                    return Err(Error::bad_value("cannot nest $ under $in"));
                }
                Value::Undefined => {
                    return Err(Error::bad_value("InMatchExpression equality cannot be undefined"));
                }
                other => values.push(ValueBuf::new(other)),
            }
        }
        let collator = parser.collator();
        // Sorts runs with checks of the interrupt, so that sorting all of them takes little time.
        for run in values.chunks_mut(SORTED_AT_ONCE) {
            parser.context.work_units(search_units(run.len(), run.len()))?;
            run.sort_by(|left, right| {
                quire_document::compare(left.as_value(), right.as_value(), collator.as_deref())
            });
        }
        Ok(InList::new(values, regexes, collator))
    }

    /// Returns the distinct values in MongoDB's order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Value<'_>> {
        self.values.iter().map(ValueBuf::as_value)
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
        for regex in &self.regexes {
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
        f.debug_list().entries(self.values.iter()).entries(&self.regexes).finish()
    }
}
