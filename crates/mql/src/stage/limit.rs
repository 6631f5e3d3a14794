//! `$limit`, `$skip`: a part of the documents.

use super::Stage;
use super::registry::StageRow;
use crate::update::text;
use quire_document::Value;
use quire_error::Error;

pub(super) const LIMIT: StageRow = StageRow {
    name: "$limit",
    since: "2.2",
    doc: "Lets through the first n documents.",
    parse: |_, value, _| {
        let number = whole_number(value).ok_or_else(|| {
            let shown = text::field("$limit", value);
            Error::location(
                5107201,
                format!(
                    "invalid argument to $limit stage: Expected a non-negative number in: {shown}"
                ),
            )
        })?;
        if number == 0 {
            return Err(Error::location(15958, "the limit must be positive"));
        }
        Ok(vec![Stage::Limit(number)])
    },
};

pub(super) const SKIP: StageRow = StageRow {
    name: "$skip",
    since: "2.2",
    doc: "Lets through all but the first n documents.",
    parse: |_, value, _| {
        let number = whole_number(value).ok_or_else(|| {
            let shown = text::field("$skip", value);
            Error::location(
                5107200,
                format!(
                    "invalid argument to $skip stage: Expected a non-negative number in: {shown}"
                ),
            )
        })?;
        Ok(vec![Stage::Skip(number)])
    },
};

/// The whole number, 0 or above, that fits a long.
fn whole_number(value: Value<'_>) -> Option<u64> {
    let number = value.as_number()?.exact_i64()?;
    u64::try_from(number).ok()
}
