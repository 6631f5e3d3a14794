//! Roll-ups: the accumulators of a parent over its children, kept by differences.
//!
//! A roll-up is defined by a filter (`match`) and an accumulator for each derived path of the parent
//! (`set`). What one child gives is a [`Contribution`]; what the children of one parent give together
//! is a [`ChildGroup`]. A change of a child changes the group by the difference of two contributions. If
//! the difference does not determine an accumulator, for example after the largest child is gone,
//! the accumulator is stale until the group is computed from the children again.
//!
//! Results don't depend on the order of the changes: sums are exact, and where `$group` takes the
//! order in which documents arrive, a roll-up takes the order of the children's `_id`. So a group
//! that was changed a thousand times equals one that is computed anew, which is the oracle of the
//! tests and of `validate`.
//!
//! Read in this order: this file, `group`, `ranks`, `bag`.

mod bag;
mod group;
mod ranks;

#[cfg(test)]
mod tests;

pub use group::{ChildGroup, Results};

use crate::accumulator::AccumulatorSpec;
use crate::context::{EvalContext, ParseContext, Shared, current_interrupt};
use crate::expression::check_field_name;
use crate::filter::{Features, Filter};
use bumpalo::Bump;
use quire_document::{Doc, Value, ValueBuf, identical};
use quire_error::{Error, ErrorCode, Result};
use ranks::Ranks;

/// The most derived paths of one roll-up.
pub const ROLLUP_PATHS_MAX: usize = 100;

/// The operators whose result is not a function of the document.
const CHANGING: [&str; 6] =
    ["$rand", "$sampleRate", "$function", "$accumulator", "$where", "$text"];

/// The operators of a filter of children.
const FEATURES: Features = Features { encryption: false, ..Features::VALIDATOR };

/// A compiled roll-up.
#[derive(Debug)]
pub struct Rollup {
    filter: Filter,
    fields: Vec<Field>,
}

/// A derived path and its accumulator.
#[derive(Debug)]
struct Field {
    path: String,
    spec: AccumulatorSpec,
    kind: Kind,
}

/// How an accumulator is kept.
#[derive(Debug)]
enum Kind {
    /// The exact sum.
    Sum,
    /// The mean, from the exact sum and the count.
    Mean,
    /// The first children in an order.
    Ranked(Ranks),
    /// The distinct values.
    Set,
}

/// What one child gives to the group of its parent.
#[derive(Debug, Clone)]
pub struct Contribution {
    /// The child's `_id`.
    id: ValueBuf,
    /// The value for each accumulator; `None` for an accumulator that ignores the child.
    values: Vec<Option<ValueBuf>>,
}

impl PartialEq for Contribution {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Option<ValueBuf>, &Option<ValueBuf>)| match (a, b) {
            (Some(a), Some(b)) => identical(a.as_value(), b.as_value()),
            (None, None) => true,
            _ => false,
        };
        identical(self.id.as_value(), other.id.as_value())
            && self.values.iter().zip(&other.values).all(same)
    }
}

impl Rollup {
    /// Compiles a roll-up. Strings are compared by their bytes.
    ///
    /// # Errors
    /// The errors of an invalid filter or accumulator; 2 BadValue for an accumulator that cannot be
    /// kept, for an operator whose result is not a function of the child, and for paths that
    /// contain each other.
    pub fn parse(matching: Option<Doc<'_>>, set: Doc<'_>) -> Result<Self> {
        let mut context = ParseContext::default();
        context.no_clock = true;
        refuse_changing(Value::Document(set))?;
        let filter = match matching {
            Some(matching) => {
                refuse_changing(Value::Document(matching))?;
                Filter::parse_with(matching, &context, FEATURES)?
            }
            None => Filter::all(),
        };
        let count = set.count();
        if count == 0 || count > ROLLUP_PATHS_MAX {
            let text = format!("'set' of a rollup must have 1 to {ROLLUP_PATHS_MAX} fields");
            return Err(Error::bad_value(text));
        }
        let fields: Vec<Field> = set
            .fields()
            .map(|(path, spec)| Field::parse(path, spec, &context))
            .collect::<Result<_>>()?;
        check_paths(&fields)?;
        Ok(Rollup { filter, fields })
    }

    /// Returns the derived paths of the parent in the order of the definition.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.path.as_str())
    }

    /// Returns what a child gives to its group; `None` if the filter leaves it out.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn contribution(&self, child: Doc<'_>) -> Result<Option<Contribution>> {
        let mut shared = Shared::default();
        if let Some(interrupt) = current_interrupt() {
            shared = shared.with_interrupt(interrupt);
        }
        let arena = Bump::new();
        let cx = EvalContext::new(&arena, child, &shared);
        if !self.filter.matches(child, &cx)? {
            return Ok(None);
        }
        let id = ValueBuf::new(child.get("_id").unwrap_or(Value::Null));
        let values = self.fields.iter().map(|field| field.value(&cx)).collect::<Result<_>>()?;
        Ok(Some(Contribution { id, values }))
    }
}

impl Field {
    fn parse(path: &str, spec: Value<'_>, context: &ParseContext) -> Result<Self> {
        check_path(path)?;
        let spec = AccumulatorSpec::parse(path, spec, context)?;
        let kind = Kind::of(&spec)?;
        Ok(Field { path: path.to_owned(), spec, kind })
    }

    fn value(&self, cx: &EvalContext<'_>) -> Result<Option<ValueBuf>> {
        let value = self.spec.value(cx)?;
        let kept = match &self.kind {
            Kind::Sum | Kind::Mean => value.filter(|value| value.is_number()),
            Kind::Set => value,
            Kind::Ranked(ranks) => ranks.kept(value),
        };
        Ok(kept.map(ValueBuf::new))
    }
}

impl Kind {
    fn of(spec: &AccumulatorSpec) -> Result<Self> {
        let shared = Shared::default();
        let arena = Bump::new();
        let cx = EvalContext::new(&arena, Doc::empty(), &shared);
        Ok(match spec.name() {
            "$sum" | "$count" => Kind::Sum,
            "$avg" => Kind::Mean,
            "$addToSet" => Kind::Set,
            name => match Ranks::of(name, spec.argument(), spec.n(Value::Null, &cx)?) {
                Some(ranks) => Kind::Ranked(ranks?),
                None => return Err(Error::bad_value(format!("a rollup cannot keep {name}"))),
            },
        })
    }
}

/// Refuses operators whose result is not a function of the document, wherever they stand.
fn refuse_changing(value: Value<'_>) -> Result<()> {
    match value {
        Value::Document(doc) => doc.fields().try_for_each(|(name, value)| {
            if CHANGING.contains(&name) {
                let text = format!("{name} is not allowed in a rollup: its result can change");
                return Err(Error::bad_value(text));
            }
            refuse_changing(value)
        }),
        Value::Array(array) => array.iter().try_for_each(refuse_changing),
        Value::String(text) if text.starts_with("$$USER_ROLES") => {
            Err(Error::bad_value("$$USER_ROLES is not allowed in a rollup: its value can change"))
        }
        _ => Ok(()),
    }
}

fn check_path(path: &str) -> Result<()> {
    if path == "_id" || path.starts_with("_id.") {
        return Err(Error::bad_value("a rollup cannot set _id"));
    }
    if path.is_empty() || path.split('.').any(str::is_empty) {
        return Err(Error::bad_value(format!("'{path}' is not a path that a rollup can set")));
    }
    path.split('.').try_for_each(check_field_name)
}

fn check_paths(fields: &[Field]) -> Result<()> {
    let contains = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for (at, field) in fields.iter().enumerate() {
        let other = fields
            .iter()
            .enumerate()
            .find(|(index, other)| *index != at && contains(&other.path, &field.path));
        if let Some((_, other)) = other {
            let text =
                format!("the paths '{}' and '{}' of a rollup collide", other.path, field.path);
            return Err(Error::bad_value(text));
        }
    }
    Ok(())
}

/// Fails with 146 ExceededMemoryLimit beyond `max` bytes.
fn check_bytes(bytes: usize, max: usize) -> Result<()> {
    if bytes <= max {
        return Ok(());
    }
    let text = format!("an accumulator of a rollup needs more than {max} bytes for one document");
    Err(Error::new(ErrorCode::ExceededMemoryLimit, text))
}
