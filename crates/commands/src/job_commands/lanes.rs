//! Lanes of a job on changes that runs in parallel. Each event belongs to one lane by the hash of its
//! key, and each lane is a row of the table of jobs with a position of its own: it reads the stream,
//! leaves out the events of other lanes, and handles its own one after the other. So events of one key
//! are handled in order, and those of others do not wait for them. The first lane is the row that every
//! job has.

use crate::frame::args::fields;
use quire_collections::Job;
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::{Error, Result};

/// The lanes of a definition that does not say how many: the number of threads that run jobs.
const LANES: i64 = 4;
/// The most lanes of a job. Each reads the whole stream.
const LANES_MAX: i64 = 16;

/// How the events of a job are divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Lanes {
    /// The expression of the key as the field `by`.
    key: DocBuf,
    pub count: u32,
}

impl Default for Lanes {
    /// Returns a single lane: all events in order.
    fn default() -> Self {
        Lanes { key: DocBuf::new(), count: 1 }
    }
}

impl Lanes {
    /// Parses `changes.parallel`.
    ///
    /// # Errors
    /// 2 for a number of lanes that is not from 2 to 16, 40415 for an unknown field, 14 for a wrong type.
    pub fn parse(given: Doc<'_>) -> Result<Self> {
        let (mut by, mut count) = (None, LANES);
        for arg in fields("createJob.changes.parallel", given) {
            match arg.name() {
                "by" => by = Some(arg.value()),
                "lanes" => count = arg.integer_from(2)?,
                _ => return Err(arg.unknown()),
            }
        }
        if count > LANES_MAX {
            return Err(Error::bad_value(format!("'lanes' of a job is at most {LANES_MAX}")));
        }
        let key = match by {
            Some(by) => doc! { "by": by },
            // Each document by itself.
            None => doc! { "by": ["$$event.ns", "$$event.documentKey"] },
        };
        Ok(Lanes { key, count: u32::try_from(count).unwrap_or(1) })
    }

    /// Returns the stage that lets the events of a lane pass; `None` if there is one lane.
    pub fn stage(&self, lane: u32) -> Option<DocBuf> {
        let own = doc! { "$eq": [&self.number(), lane as i32] };
        (self.count > 1).then(|| doc! { "$match": { "$expr": &own } })
    }

    /// Returns the expression of an event's lane.
    fn number(&self) -> DocBuf {
        let key = self.key.get("by").unwrap_or(Value::Null);
        // In the other expressions of a job the event is a variable, too.
        let key = doc! { "$let": { "vars": { "event": "$$ROOT" }, "in": key } };
        let hash = doc! { "$mod": [{ "$toHashedIndexKey": &key }, self.count as i32] };
        doc! { "$abs": &hash }
    }
}

/// Returns what a paused job keeps of its lanes but the first.
pub fn kept(rows: &[Job]) -> Vec<DocBuf> {
    let row = |row: &Job| doc! { "position": &row.position, "steps": row.steps, "done": row.done };
    rows.iter().skip(1).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_two_to_sixteen_lanes() {
        assert_eq!(Lanes::parse(Doc::empty()).unwrap().count, 4);
        assert_eq!(Lanes::parse(doc! { "lanes": 16 }.as_doc()).unwrap().count, 16);
        for wrong in [doc! { "lanes": 1 }, doc! { "lanes": 17 }, doc! { "key": 1 }] {
            assert!(Lanes::parse(wrong.as_doc()).is_err(), "{wrong:?}");
        }
    }
}
