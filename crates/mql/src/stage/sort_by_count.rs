//! `$sortByCount`: groups by an expression, most frequent value first. It is replaced by `$group`
//! and `$sort`.

use super::Stage;
use super::facts::{BehindChanges, Facts};
use super::pipeline::parse_stage;
use super::registry::StageRow;
use crate::context::ParseContext;
use quire_document::{Value, doc};
use quire_error::{Error, Result};

pub(super) const SORT_BY_COUNT: StageRow = StageRow {
    name: "$sortByCount",
    since: "3.4",
    doc: "Counts the documents for each value of an expression, most frequent value first.",
    facts: Facts { behind_changes: BehindChanges::RefusedAs("$group"), ..Facts::PLAIN },
    parse: |_, value, cx| parse(value, cx),
};

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    match value {
        Value::Document(spec) => {
            let operator = spec.first().is_some_and(|first| first.key().starts_with('$'));
            if !operator {
                let message = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
                return Err(Error::location(40147, message));
            }
        }
        Value::String(path) => {
            if !path.starts_with('$') {
                let message = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
                return Err(Error::location(40148, message));
            }
        }
        _ => {
            let message = "the sortByCount field must be specified as a string or as an object";
            return Err(Error::location(40149, message));
        }
    }
    let group = doc! { "$group": { "_id": value, "count": { "$sum": 1 } } };
    let sort = doc! { "$sort": { "count": (-1) } };
    let mut stages = parse_stage(Value::Document(group.as_doc()), cx)?;
    stages.extend(parse_stage(Value::Document(sort.as_doc()), cx)?);
    Ok(stages)
}
