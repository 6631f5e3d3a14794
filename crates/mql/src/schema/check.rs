//! Checks whether a value is valid for a schema.

use super::compare::{first_duplicate, same};
use super::rules::{Additional, Bound, Dependency, Items, Rules};
use crate::context::Shared;
use crate::regex::Regex;
use quire_document::decimal::Parts;
use quire_document::number::Number;
use quire_document::{Array, Decimal128, Doc, Value, compare};
use quire_error::{Error, Result};
use std::cell::Cell;
use std::cmp::Ordering;

/// One check of a document: the context of its regular expressions, and the first error of one of
/// them.
pub(super) struct Check<'s> {
    shared: &'s Shared,
    failure: Cell<Option<Error>>,
}

impl<'s> Check<'s> {
    pub(super) fn new(shared: &'s Shared) -> Self {
        Check { shared, failure: Cell::new(None) }
    }

    /// Returns true if the regular expression matches. An error is stored as the result of the
    /// whole check, and all later matches are skipped.
    pub(super) fn finds(&self, regex: &Regex, text: &str) -> bool {
        let failed = self.failure.take();
        let found = match failed {
            Some(error) => Err(error),
            None => {
                regex.is_match(text, self.shared).map_err(|error| error.in_operator("$jsonSchema"))
            }
        };
        found.unwrap_or_else(|error| {
            self.failure.set(Some(error));
            false
        })
    }

    /// Returns the first element that equals an earlier one. An error is stored as the result of
    /// the whole check.
    pub(super) fn repeated<'a>(&self, array: Array<'a>) -> Option<Value<'a>> {
        first_duplicate(&array.to_vec(), self.shared).unwrap_or_else(|error| {
            self.failure.set(Some(error));
            None
        })
    }

    /// Counts the work of one rule. Returns false if the check has failed.
    fn may_continue(&self) -> bool {
        if let Err(error) = self.shared.work(2) {
            self.failure.set(Some(error));
            return false;
        }
        true
    }

    /// Returns `result`, or the stored error.
    pub(super) fn finish<T>(self, result: T) -> Result<T> {
        self.failure.into_inner().map_or(Ok(result), Err)
    }
}

impl Rules {
    /// Returns true if the value is valid for all keywords that apply to its type.
    pub(super) fn accept(&self, value: Value<'_>, check: &Check<'_>) -> bool {
        check.may_continue()
            && self.types.as_ref().is_none_or(|types| types.contains(value.kind()))
            && self.encrypted.as_ref().is_none_or(|encrypted| encrypted.accepts(value))
            && self.accept_by_type(value, check)
            && self.accept_logic(value, check)
    }

    fn accept_by_type(&self, value: Value<'_>, check: &Check<'_>) -> bool {
        match value {
            Value::Document(doc) => self.accept_object(doc, check),
            Value::Array(array) => self.accept_array(array, check),
            Value::String(text) => self.accept_text(text, check),
            value if value.is_number() => self.accept_number(value),
            _ => true,
        }
    }

    fn accept_number(&self, value: Value<'_>) -> bool {
        self.multiple_of.as_ref().is_none_or(|of| is_multiple(value, of.as_value()))
            && self.maximum.as_ref().is_none_or(|bound| bound.holds(value, Ordering::Less))
            && self.minimum.as_ref().is_none_or(|bound| bound.holds(value, Ordering::Greater))
    }

    fn accept_text(&self, text: &str, check: &Check<'_>) -> bool {
        let length = || text.chars().count() as i64;
        self.max_length.is_none_or(|max| length() <= max)
            && self.min_length.is_none_or(|min| length() >= min)
            && self.pattern.as_ref().is_none_or(|pattern| check.finds(pattern, text))
    }

    fn accept_array(&self, array: Array<'_>, check: &Check<'_>) -> bool {
        let length = || array.count() as i64;
        self.min_items.is_none_or(|min| length() >= min)
            && self.max_items.is_none_or(|max| length() <= max)
            && !(self.unique_items && check.repeated(array).is_some())
            && self.first_bad_item(array, check).is_none()
            && self.first_bad_additional_item(array, check).is_none()
    }

    /// Returns the first element that is not valid for `items`.
    pub(super) fn first_bad_item<'a>(
        &self,
        array: Array<'a>,
        check: &Check<'_>,
    ) -> Option<(usize, Value<'a>)> {
        let mut numbered = array.iter().enumerate();
        match self.items.as_ref()? {
            Items::All(rules) => numbered.find(|(_, value)| !rules.accept(*value, check)),
            Items::Each(list) => numbered.find(|(at, value)| {
                list.get(*at).is_some_and(|rules| !rules.accept(*value, check))
            }),
        }
    }

    /// Returns the first element after those of `items` that `additionalItems` does not allow.
    pub(super) fn first_bad_additional_item<'a>(
        &self,
        array: Array<'a>,
        check: &Check<'_>,
    ) -> Option<(usize, Value<'a>)> {
        let Some(Items::Each(list)) = &self.items else { return None };
        let additional = self.additional_items.as_ref()?;
        array
            .iter()
            .enumerate()
            .skip(list.len())
            .find(|(_, value)| !additional.accepts(*value, check))
    }

    fn accept_object(&self, doc: Doc<'_>, check: &Check<'_>) -> bool {
        let count = || doc.count() as i64;
        self.required.iter().all(|name| find(doc, name).is_some())
            && self
                .properties
                .iter()
                .all(|(name, rules)| property_complies(doc, name, rules, check))
            && (self.pattern_properties.is_empty()
                || doc.fields().all(|(name, value)| self.patterns_accept(name, value, check)))
            && self.additional_properties.as_ref().is_none_or(|additional| {
                doc.fields()
                    .filter(|(name, _)| self.is_additional(name, check))
                    .all(|(_, value)| additional.accepts(value, check))
            })
            && self.min_properties.is_none_or(|min| count() >= min)
            && self.max_properties.is_none_or(|max| count() <= max)
            && self
                .dependencies
                .iter()
                .all(|(name, dependency)| find(doc, name).is_none() || dependency.holds(doc, check))
    }

    fn patterns_accept(&self, name: &str, value: Value<'_>, check: &Check<'_>) -> bool {
        let mut applying =
            self.pattern_properties.iter().filter(|(regex, _)| check.finds(regex, name));
        applying.all(|(_, rules)| rules.accept(value, check))
    }

    /// Returns true if neither `properties` nor `patternProperties` applies to the property.
    pub(super) fn is_additional(&self, name: &str, check: &Check<'_>) -> bool {
        !self.properties.iter().any(|(known, _)| known == name)
            && !self.pattern_properties.iter().any(|(regex, _)| check.finds(regex, name))
    }

    fn accept_logic(&self, value: Value<'_>, check: &Check<'_>) -> bool {
        self.all_of.iter().all(|rules| rules.accept(value, check))
            && (self.any_of.is_empty()
                || self.any_of.iter().any(|rules| rules.accept(value, check)))
            && (self.one_of.is_empty()
                || self.one_of.iter().filter(|rules| rules.accept(value, check)).take(2).count()
                    == 1)
            && self.not.as_ref().is_none_or(|rules| !rules.accept(value, check))
            && self.value_is_listed(value)
    }

    /// Returns false if the value is not listed in `enum`.
    pub(super) fn value_is_listed(&self, value: Value<'_>) -> bool {
        let Some(list) = &self.one_of_values else { return true };
        list.iter().any(|listed| same(listed.as_value(), value))
    }
}

impl Bound {
    /// Returns true if the value is on the side `inside` of the bound, or equal to it if that is
    /// allowed.
    pub(super) fn holds(&self, value: Value<'_>, inside: Ordering) -> bool {
        let nan = |value: Value<'_>| value.as_number().is_some_and(Number::is_nan);
        let bound = self.value.as_value();
        if nan(value) || nan(bound) {
            return nan(value) && nan(bound) && !self.exclusive;
        }
        match compare(value, bound, None) {
            Ordering::Equal => !self.exclusive,
            order => order == inside,
        }
    }
}

impl Additional {
    pub(super) fn accepts(&self, value: Value<'_>, check: &Check<'_>) -> bool {
        match self {
            Additional::Allowed(allowed) => *allowed,
            Additional::Rules(rules) => rules.accept(value, check),
        }
    }
}

impl Dependency {
    pub(super) fn holds(&self, doc: Doc<'_>, check: &Check<'_>) -> bool {
        match self {
            Dependency::Properties(names) => names.iter().all(|name| find(doc, name).is_some()),
            Dependency::Rules(rules) => rules.accept(Value::Document(doc), check),
        }
    }
}

/// Returns true if the property is missing or valid.
pub(super) fn property_complies(
    doc: Doc<'_>,
    name: &str,
    rules: &Rules,
    check: &Check<'_>,
) -> bool {
    find(doc, name).is_none_or(|value| rules.accept(value, check))
}

/// Returns the property with this name. As in mongod, a dot in the name leads into nested objects,
/// but not into arrays.
pub(super) fn find<'a>(doc: Doc<'a>, name: &str) -> Option<Value<'a>> {
    match name.split_once('.') {
        None => doc.get(name),
        Some((first, rest)) => find(doc.get(first)?.as_document()?, rest),
    }
}

/// Returns true if the value is an integer multiple of `of`, in decimal arithmetic; doubles have 15
/// digits.
pub(super) fn is_multiple(value: Value<'_>, of: Value<'_>) -> bool {
    match (parts(value), parts(of)) {
        (Some(value), Some(of)) => divides(of, value),
        // A finite number is its own remainder for an infinite divisor.
        (Some(value), None) => value.coefficient == 0,
        _ => false,
    }
}

fn parts(value: Value<'_>) -> Option<Parts> {
    match value.as_number()? {
        Number::Int(number) => Some(Parts::from_i64(number)),
        Number::Double(number) if number.is_finite() => {
            let text = format!("{number:.14e}");
            let (mantissa, exponent) = text.split_once('e')?;
            let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
            let exponent = exponent.parse::<i32>().ok()? - 14;
            Some(Parts { negative: number < 0.0, coefficient: digits.parse().ok()?, exponent })
        }
        Number::Double(_) => None,
        Number::Decimal(decimal) => Decimal128::parts(decimal),
    }
}

fn divides(divisor: Parts, value: Parts) -> bool {
    if divisor.coefficient == 0 || value.coefficient == 0 {
        return value.coefficient == 0;
    }
    let shift = value.exponent - divisor.exponent;
    if shift < 0 {
        let scaled = 10u128
            .checked_pow(shift.unsigned_abs())
            .and_then(|scale| scale.checked_mul(divisor.coefficient));
        // A divisor of more than 128 bits is larger than any coefficient.
        return scaled.is_some_and(|divisor| value.coefficient.is_multiple_of(divisor));
    }
    // Removes factors of ten from the divisor, instead of multiplying the value by them.
    let (mut divisor, mut twos, mut fives) = (divisor.coefficient, shift, shift);
    while twos > 0 && divisor.is_multiple_of(2) {
        (divisor, twos) = (divisor / 2, twos - 1);
    }
    while fives > 0 && divisor.is_multiple_of(5) {
        (divisor, fives) = (divisor / 5, fives - 1);
    }
    value.coefficient.is_multiple_of(divisor)
}
