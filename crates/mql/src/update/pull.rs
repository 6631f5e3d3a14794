//! `$pull`, `$pullAll`: removes the elements of an array that match a condition or equal a value.

use super::apply::{Run, header};
use super::modifier::{Effect, Missing, Modifier};
use super::operator::UpdateOperator;
use super::value_set::ValueSet;
use super::{element_filter, extreme, pop};
use crate::context::ParseContext;
use crate::filter::Filter;
use element_filter::ElementFilter;
use quire_document::{ArrayBuf, Element, Type, Value, ValueBuf};
use quire_error::{Error, Result};
use std::cmp::Ordering;

pub(super) const PULL: UpdateOperator = UpdateOperator {
    name: "$pull",
    since: "2.2",
    doc: "Removes the elements of an array that equal a value or match a condition.",
    parse: |operand, cx| Ok(Box::new(Pull { matcher: Matcher::parse(operand.value, cx)? })),
};

pub(super) const PULL_ALL: UpdateOperator = UpdateOperator {
    name: "$pullAll",
    since: "2.2",
    doc: "Removes the elements of an array that equal one of several values.",
    parse: |operand, _| match operand.value {
        Value::Array(values) => {
            Ok(Box::new(Pull { matcher: Matcher::OneOf(values.iter().collect()) }))
        }
        other => Err(Error::bad_value(format!(
            "$pullAll requires an array argument but was given a {}",
            other.type_name()
        ))),
    },
};

#[derive(Debug)]
struct Pull {
    matcher: Matcher,
}

#[derive(Debug)]
enum Matcher {
    /// Conditions on fields, which only documents can match.
    Document(Filter),
    /// Operators or a regular expression on the element itself.
    Element(ElementFilter),
    /// Equality with this value.
    Equal(ValueBuf),
    /// Equality with one of these values.
    OneOf(ArrayBuf),
}

impl Matcher {
    fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        Ok(match value {
            Value::Document(spec) if element_filter::starts_with_operator(spec) => {
                Matcher::Element(ElementFilter::parse_value(value, cx)?)
            }
            Value::Regex(_) => Matcher::Element(ElementFilter::parse_value(value, cx)?),
            Value::Document(spec) => Matcher::Document(element_filter::parse(spec, cx)?),
            _ => Matcher::Equal(ValueBuf::new(value)),
        })
    }

    fn matches(&self, run: &Run<'_>, one_of: &ValueSet<'_>, element: Value<'_>) -> Result<bool> {
        let equals = |value: Value<'_>| extreme::compare(run.cx, element, value) == Ordering::Equal;
        match self {
            Matcher::Document(filter) => match element {
                Value::Document(doc) => element_filter::matches(filter, doc, run.cx),
                _ => Ok(false),
            },
            Matcher::Element(filter) => filter.matches(element, run.cx),
            Matcher::Equal(value) => Ok(equals(value.as_value())),
            Matcher::OneOf(_) => Ok(one_of.contains(element, run.cx)),
        }
    }
}

impl Modifier for Pull {
    fn update(
        &self,
        run: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        let Value::Array(array) = element.value() else {
            return Err(Error::bad_value("Cannot apply $pull to a non-array value"));
        };
        let one_of = match &self.matcher {
            Matcher::OneOf(values) => values.as_array().to_vec(),
            _ => Vec::new(),
        };
        let one_of = ValueSet::new(one_of, run.cx)?;
        let mut kept = Vec::new();
        let mut count = 0;
        for value in array.iter() {
            count += 1;
            if !self.matcher.matches(run, &one_of, value)? {
                kept.push(value);
            }
        }
        if kept.len() == count {
            return Ok(Effect::Kept);
        }
        header(out, Type::Array, element.key_bytes());
        pop::write_array(out, kept);
        Ok(Effect::Written)
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::CheckPath
    }

    fn create(&self, _: &Run<'_>, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}
