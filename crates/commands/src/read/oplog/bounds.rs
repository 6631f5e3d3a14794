//! The part of the log that a filter needs, by its conditions on `ts`.

use quire_document::{Doc, Value};

/// The first and the last time that the filter of a read can match, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeBounds {
    pub from: u64,
    pub to: u64,
}

impl Default for TimeBounds {
    fn default() -> Self {
        TimeBounds { from: 0, to: u64::MAX }
    }
}

impl TimeBounds {
    /// Returns the bounds of a filter. They may be too wide, never too narrow.
    pub fn of(filter: Doc<'_>) -> Self {
        let mut bounds = TimeBounds::default();
        bounds.add(filter);
        bounds
    }

    fn add(&mut self, filter: Doc<'_>) {
        for (name, value) in filter.fields() {
            match (name, value) {
                ("ts", Value::Document(conditions)) => {
                    conditions.fields().for_each(|(operator, value)| self.narrow(operator, value));
                }
                ("ts", value) => self.narrow("$eq", value),
                ("$and", Value::Array(parts)) => {
                    parts.iter().filter_map(|part| part.as_document()).for_each(|part| {
                        self.add(part);
                    });
                }
                _ => {}
            }
        }
    }

    fn narrow(&mut self, operator: &str, value: Value<'_>) {
        let Value::Timestamp(time) = value else { return };
        let time = time.to_u64();
        match operator {
            "$eq" => (self.from, self.to) = (self.from.max(time), self.to.min(time)),
            "$gt" => self.from = self.from.max(time.saturating_add(1)),
            "$gte" => self.from = self.from.max(time),
            "$lt" => self.to = self.to.min(time.saturating_sub(1)),
            "$lte" => self.to = self.to.min(time),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{Timestamp, doc};

    #[test]
    fn conditions_on_the_time_bound_the_read_and_others_do_not() {
        let ts = |time| Timestamp::from_u64(time);
        let of = |filter: quire_document::DocBuf| {
            let TimeBounds { from, to } = TimeBounds::of(filter.as_doc());
            (from, to)
        };
        assert_eq!(of(doc! { "op": "i" }), (0, u64::MAX));
        assert_eq!(of(doc! { "ts": ts(7) }), (7, 7));
        assert_eq!(of(doc! { "ts": { "$gt": ts(7), "$lte": ts(9) } }), (8, 9));
        let both = doc! { "$and": [{ "ts": { "$gte": ts(3) } }, { "ts": { "$lt": ts(9) } }] };
        assert_eq!(of(both), (3, 8));
        assert_eq!(of(doc! { "$or": [{ "ts": ts(1) }], "ts": { "$ne": ts(2) } }), (0, u64::MAX));
        assert_eq!(of(doc! { "ts": { "$gt": 5 } }), (0, u64::MAX));
    }
}
