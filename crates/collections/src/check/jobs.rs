//! The rows of the table of jobs. A damaged row is a job that never runs again.

use std::sync::Arc;

use bytes::Bytes;
use quire_error::Result;
use quire_storage::{CommitOptions, Mode, Space, begin};

use crate::Store;
use crate::failure::from_storage;
use crate::findings::{Finding, Problem, Report};

/// Finds rows that are not jobs. A repair deletes them: what they asked for is unknown. The kinds
/// make their jobs again where the data say that there is work.
pub(super) fn check(store: &Arc<Store>, repair: bool, report: &mut Report) -> Result<()> {
    let mut damaged = Vec::new();
    store.jobs(|key| damaged.push(Bytes::copy_from_slice(key)))?;
    for key in damaged {
        report.findings.push(Finding {
            place: Space::Meta.name().to_owned(),
            problem: format!("the job {:?} is damaged", String::from_utf8_lossy(&key)),
            what: Problem::Other,
            repaired: repair,
        });
        if repair {
            let mut txn = begin(store.engine(), Mode::Write).map_err(from_storage)?;
            txn.delete(Space::Meta, key).map_err(from_storage)?;
            txn.commit(CommitOptions::synced()).map_err(from_storage)?;
        }
    }
    Ok(())
}
