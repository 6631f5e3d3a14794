//! Deletes the records of retryable writes that can no longer be repeated.

use std::sync::Arc;

use bytes::Bytes;
use quire_error::Result;
use quire_storage::{
    CommitOptions, Interrupt, Mode, Page, ScanRequest, Snapshot, Space, StorageError, Txn,
};

use crate::Store;
use crate::failure::{from_interruption, from_storage};
use crate::layout::damaged;
use crate::retry::{SESSION, SessionKey, parse_header, parse_suffix};

/// Returns true if a session is in use. The arguments are its UUID, and its user's digest if it has
/// a user.
pub type IsAlive<'f> = dyn Fn(&[u8; 16], Option<&[u8; 32]>) -> bool + 'f;

/// The session whose records the scan is reading.
struct Current {
    prefix: Vec<u8>,
    number: i64,
    doomed: bool,
}

impl Store {
    /// Deletes the records of sessions that have not written since `before_ms` and are not in use,
    /// and rows that a newer transaction number has replaced. Returns the number of deleted keys.
    /// Records that are written meanwhile stay.
    pub fn reap_retry_records(
        self: &Arc<Self>,
        before_ms: i64,
        is_alive: &IsAlive<'_>,
        interrupt: &Arc<Interrupt>,
    ) -> Result<u64> {
        let mut from = Bytes::from_static(&[SESSION]);
        let (mut page, mut current, mut deleted) = (Page::default(), None, 0);
        loop {
            interrupt.check().map_err(from_interruption)?;
            let (mut txn, _) = self.begin(Mode::Write)?;
            txn.scan(&ScanRequest::new(Space::Meta, &from, &[SESSION + 1]), &mut page)
                .map_err(from_storage)?;
            deleted += delete_doomed(&mut txn, &page, &mut current, before_ms, is_alive)?;
            match txn.commit(CommitOptions::buffered().ended_by(interrupt)) {
                // One of the sessions is used again: the whole page waits for the next pass.
                Ok(_) | Err(StorageError::Conflict(_)) => {}
                Err(error) => return Err(from_storage(error)),
            }
            match page.resume.take() {
                Some(resume) => from = resume,
                None => return Ok(deleted),
            }
        }
    }
}

fn delete_doomed(
    txn: &mut Txn,
    page: &Page,
    current: &mut Option<Current>,
    before_ms: i64,
    is_alive: &IsAlive<'_>,
) -> Result<u64> {
    let mut deleted = 0;
    for (key, value) in &page.rows {
        let parsed = SessionKey::parse(key);
        let (id, user, length) = parsed.ok_or_else(|| damaged("a key of retryable writes"))?;
        let (prefix, suffix) = key.split_at(length);
        let doomed = if suffix.is_empty() {
            let (number, time, _) = parse_header(value)?;
            let doomed = time < before_ms && !is_alive(&id, user.as_ref());
            *current = Some(Current { prefix: prefix.to_vec(), number, doomed });
            doomed
        } else {
            let (number, _) =
                parse_suffix(suffix).ok_or_else(|| damaged("a key of retryable writes"))?;
            match current {
                Some(current) if current.prefix == prefix => {
                    current.doomed || number != current.number
                }
                // The session's first row is gone, so no look-up finds this row.
                _ => true,
            }
        };
        if doomed {
            txn.delete(Space::Meta, key.clone()).map_err(from_storage)?;
            deleted += 1;
        }
    }
    Ok(deleted)
}
