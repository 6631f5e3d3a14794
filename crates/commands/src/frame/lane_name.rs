//! The names of the rows of a job that runs in lanes (`job_commands/lanes.rs`): that of the job, and for
//! each lane but the first a number. Lists of jobs show them, so they are known below all commands.

use quire_collections::JobId;

/// What stands between the name of a job and the number of a lane. No name of a job contains it.
const SEPARATOR: char = '\0';

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
}
