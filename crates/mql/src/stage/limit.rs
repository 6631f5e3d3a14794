//! `$limit`, `$skip`: a part of the documents.

use super::facts::{Facts, InFusion};
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::text;
use quire_document::{DocWriter, Value};
use quire_error::Error;

pub(super) const LIMIT: StageRow = StageRow {
    name: "$limit",
    since: "2.2",
    doc: "Passes on the first n documents.",
    facts: Facts { in_fusion: InFusion::Selects, ..Facts::PLAIN },
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
        Ok(vec![Stage::Limit(Limit(number))])
    },
};

pub(super) const SKIP: StageRow = StageRow {
    name: "$skip",
    since: "2.2",
    doc: "Passes on all documents except the first n.",
    facts: Facts { in_fusion: InFusion::Selects, ..Facts::PLAIN },
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
        Ok(vec![Stage::Skip(Skip(number))])
    },
};

/// A parsed `$limit`: the most documents to pass on, at least 1.
#[derive(Clone, Copy, Debug)]
pub struct Limit(pub u64);

/// A parsed `$skip`: the number of documents to skip.
#[derive(Clone, Copy, Debug)]
pub struct Skip(pub u64);

impl StageBody for Limit {
    fn name(&self) -> &'static str {
        LIMIT.name
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn modified(&self) -> Modified {
        Modified::Nothing
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        writer.append(LIMIT.name, printed(self.0));
    }
}

impl StageBody for Skip {
    fn name(&self) -> &'static str {
        SKIP.name
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn modified(&self) -> Modified {
        Modified::Nothing
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        writer.append(SKIP.name, printed(self.0));
    }
}

/// Returns a number of documents as explain shows it: as a long.
pub(super) fn printed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the value as an integer, if it is one from 0 to the largest long.
fn whole_number(value: Value<'_>) -> Option<u64> {
    let number = value.as_number()?.exact_i64()?;
    u64::try_from(number).ok()
}
