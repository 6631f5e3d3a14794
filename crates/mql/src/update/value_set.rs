//! A set of values for look-ups, for `$addToSet` and `$pullAll` with long lists.

use super::extreme;
use crate::context::EvalContext;
use crate::context::work::sort_by;
use quire_document::Value;
use quire_error::Result;

/// Up to this number of values a linear search is used; beyond it they are sorted.
pub(super) const LINEAR_MAX: usize = 8;

/// The values. If there are many, they are in MongoDB's order (with the update's collation).
pub(super) struct ValueSet<'v>(Vec<Value<'v>>);

impl<'v> ValueSet<'v> {
    pub(super) fn new(mut values: Vec<Value<'v>>, cx: &EvalContext<'_>) -> Result<Self> {
        if values.len() > LINEAR_MAX {
            sort_by(&mut values, cx.shared, |a, b| extreme::compare(cx, *a, *b))?;
        }
        Ok(ValueSet(values))
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if one of the values equals `value`.
    pub(super) fn contains(&self, value: Value<'_>, cx: &EvalContext<'_>) -> bool {
        let order = |known: &Value<'_>| extreme::compare(cx, *known, value);
        if self.0.len() > LINEAR_MAX {
            return self.0.binary_search_by(order).is_ok();
        }
        self.0.iter().any(|known| order(known).is_eq())
    }
}

/// Returns the values without repetitions, in the given order.
pub(super) fn without_repeats<'v>(
    values: Vec<Value<'v>>,
    cx: &EvalContext<'_>,
) -> Result<Vec<Value<'v>>> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    sort_by(&mut places, cx.shared, |a, b| extreme::compare(cx, values[*a], values[*b]))?;
    places.dedup_by(|later, first| extreme::compare(cx, values[*later], values[*first]).is_eq());
    places.sort_unstable();
    Ok(places.into_iter().map(|place| values[place]).collect())
}
