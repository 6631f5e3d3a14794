//! `$count`: the number of documents. It is replaced by a `$group` and a `$project`.

use super::Stage;
use super::facts::{BehindChanges, Facts};
use super::pipeline::parse_stage;
use super::registry::StageRow;
use crate::context::ParseContext;
use quire_document::{Value, doc};
use quire_error::{Error, Result};

pub(super) const COUNT: StageRow = StageRow {
    name: "$count",
    since: "3.4",
    doc: "One document with the number of documents.",
    facts: Facts { behind_changes: BehindChanges::RefusedAs("$group"), ..Facts::PLAIN },
    parse: |_, value, cx| parse(value, cx),
};

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let Value::String(field) = value else {
        return Err(Error::location(40156, "the count field must be a non-empty string"));
    };
    check(field)?;
    let group = doc! { "$group": { "_id": Value::Null, (field): { "$sum": 1 } } };
    let project = doc! { "$project": { (field): true, "_id": false } };
    let mut stages = parse_stage(Value::Document(group.as_doc()), cx)?;
    stages.extend(parse_stage(Value::Document(project.as_doc()), cx)?);
    Ok(stages)
}

fn check(field: &str) -> Result<()> {
    let refuse = |number, message| Err(Error::location(number, message));
    if field.is_empty() {
        return refuse(40157, "the count field must be a non-empty string");
    }
    if field.starts_with('$') {
        return refuse(40158, "the count field cannot be a $-prefixed path");
    }
    if field.contains('\0') {
        return refuse(40159, "the count field cannot contain a null byte");
    }
    if field.contains('.') {
        return refuse(40160, "the count field cannot contain '.'");
    }
    if field == "_id" {
        return refuse(9039800, "the count field cannot be '_id'");
    }
    Ok(())
}
