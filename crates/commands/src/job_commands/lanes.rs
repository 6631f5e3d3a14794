//! Lanes of a job on changes that runs in parallel. Each event belongs to one lane by the hash of its
//! key, and each lane is a row of the table of jobs with a position of its own: it reads the stream,
//! leaves out the events of other lanes, and handles its own one after the other. So events of one key
//! are handled in order, and those of others do not wait for them. The first lane is the row that every
//! job has.

use crate::frame::args::fields;
use quire_collections::{Job, JobId};
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::{Error, Result};

/// The lanes of a definition that does not say how many: the number of threads that run jobs.
const LANES: i64 = 4;
/// The most lanes of a job. Each reads the whole stream.
const LANES_MAX: i64 = 16;
/// What stands between the name of a job and the number of a lane in the name of a row. No name of a
/// job contains it.
const SEPARATOR: char = '\0';

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

/// Returns the identity of the row of a lane. `id` is that of the job.
pub fn lane_id(id: &JobId, lane: u32) -> JobId {
    match lane {
        0 => id.clone(),
        lane => JobId { name: format!("{}{SEPARATOR}{lane}", id.name), ..id.clone() },
    }
}

/// Returns the key of the job, and the number of the lane, from the name of a row.
pub fn parts(name: &str) -> (&str, u32) {
    match name.split_once(SEPARATOR) {
        Some((key, lane)) => (key, lane.parse().unwrap_or(0)),
        None => (name, 0),
    }
}

/// Returns the name of a row for people.
pub fn shown(name: &str) -> String {
    match parts(name) {
        (key, 0) => key.to_owned(),
        (key, lane) => format!("{key} lane {lane}"),
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
    fn a_name_has_a_lane_unless_it_is_the_first() {
        let id = JobId::new("user", "d.a lane 2");
        assert_eq!(lane_id(&id, 0), id);
        let other = lane_id(&id, 12);
        assert_eq!(parts(&other.name), ("d.a lane 2", 12));
        assert_eq!(parts(&id.name), ("d.a lane 2", 0));
        assert_eq!(shown(&other.name), "d.a lane 2 lane 12");
    }

    #[test]
    fn a_job_has_two_to_sixteen_lanes() {
        assert_eq!(Lanes::parse(Doc::empty()).unwrap().count, 4);
        assert_eq!(Lanes::parse(doc! { "lanes": 16 }.as_doc()).unwrap().count, 16);
        for wrong in [doc! { "lanes": 1 }, doc! { "lanes": 17 }, doc! { "key": 1 }] {
            assert!(Lanes::parse(wrong.as_doc()).is_err(), "{wrong:?}");
        }
    }
}
