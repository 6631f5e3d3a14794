//! The generator of slots: documents for the next days, one for each item and day. It is short for a
//! pipeline that ends with a `$merge` which leaves existing documents as they are, so that gaps are
//! filled and nothing is made twice.

use crate::frame::args::{fields, missing};
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::{Error, Result};

const OWNER: &str = "createJob.slots";
/// The largest number of days.
const DAYS_MAX: i64 = 3660;

/// The pipeline of a generator, and the collection that it reads.
pub struct SlotPipeline {
    /// `None` for items that the definition lists.
    pub collection: Option<String>,
    pub stages: Vec<DocBuf>,
}

/// Returns the pipeline for `{over, filter, days, timeZone, template, into, on}`.
///
/// # Errors
/// 2 for a value that makes no sense, 40414 for a missing field, 40415 for an unknown one.
pub fn pipeline(given: Doc<'_>) -> Result<SlotPipeline> {
    let (mut over, mut filter, mut days, mut zone) = (None, Doc::empty(), None, "UTC");
    let (mut template, mut into, mut on) = (None, None, Value::String("_id"));
    for arg in fields(OWNER, given) {
        match arg.name() {
            "over" => over = Some(arg.value()),
            "filter" => filter = arg.document()?,
            "days" => days = Some(arg.integer_from(1)?),
            "timeZone" => zone = arg.string()?,
            "template" => template = Some(arg.document()?),
            "into" => into = Some(arg.string()?),
            "on" => on = arg.value(),
            _ => return Err(arg.unknown()),
        }
    }
    let days = days.ok_or_else(|| missing(OWNER, "days"))?;
    if days > DAYS_MAX {
        return Err(Error::bad_value(format!("slots can be made for at most {DAYS_MAX} days")));
    }
    let template = template.ok_or_else(|| missing(OWNER, "template"))?;
    let into = into.ok_or_else(|| missing(OWNER, "into"))?;
    let mut stages = Vec::new();
    let collection = match over {
        Some(Value::String(collection)) => Some(collection.to_owned()),
        Some(Value::Array(items)) => {
            stages.push(doc! { "$documents": [{ "items": { "$literal": items } }] });
            stages.push(doc! { "$unwind": "$items" });
            stages.push(doc! { "$project": { "item": "$items" } });
            None
        }
        Some(_) => {
            return Err(Error::bad_value("'over' is the name of a collection or an array"));
        }
        None => return Err(missing(OWNER, "over")),
    };
    if collection.is_some() {
        stages.push(doc! { "$match": filter });
        stages.push(doc! { "$project": { "_id": 0, "item": "$$ROOT" } });
    }
    let today = doc! { "$dateTrunc": { "date": "$$job.due", "unit": "day", "timezone": zone } };
    let date = doc! { "$dateAdd": { "startDate": &today, "unit": "day", "amount": "$day",
    "timezone": zone } };
    stages.push(doc! { "$set": { "day": { "$range": [0, days] } } });
    stages.push(doc! { "$unwind": "$day" });
    stages.push(doc! { "$set": { "day": &date } });
    let vars = doc! { "item": "$item", "day": "$day" };
    stages.push(doc! { "$replaceWith": { "$let": { "vars": &vars, "in": template } } });
    stages.push(doc! { "$merge": { "into": into, "on": on, "whenMatched": "keepExisting",
    "whenNotMatched": "insert" } });
    Ok(SlotPipeline { collection, stages })
}
