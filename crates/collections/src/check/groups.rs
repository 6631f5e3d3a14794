//! The stored groups of roll-ups. They are computed again where they are missing, so a repair deletes
//! what it finds.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::Catalog;
use quire_catalog::patterns::PatternKind;
use quire_error::Result;
use quire_storage::{CommitOptions, Mode, Page, ScanRequest, Space, StorageError, begin};

use crate::Store;
use crate::failure::from_storage;
use crate::findings::{Finding, Problem, Report};
use crate::rules::patterns::{all_rows, is_readable, pattern_of_row};

/// The rows that are read at once.
const PAGE_ROWS: usize = 1000;

/// Finds rows that cannot be read, or that belong to no pattern and are not being dropped.
pub(super) fn check(store: &Arc<Store>, repair: bool, report: &mut Report) -> Result<()> {
    let catalog = store.catalog();
    let leaving = store.engine().dropped_ranges();
    let is_leaving = |key: &[u8]| {
        leaving.iter().any(|range| {
            range.space == Space::Meta && range.start[..] <= *key && *key < range.end[..]
        })
    };
    let snapshot = store.engine().snapshot().map_err(from_storage)?;
    let (mut from, end) = all_rows();
    let mut page = Page::default();
    loop {
        let request = ScanRequest::new(Space::Meta, &from, &end).rows_max(PAGE_ROWS);
        match snapshot.scan(&request, &mut page) {
            Ok(()) => {}
            // What cannot be read of `meta` was reported with the catalog.
            Err(StorageError::Corruption { .. }) => return Ok(()),
            Err(error) => return Err(from_storage(error)),
        }
        for (key, row) in &page.rows {
            let Some(problem) = problem(&catalog, key, row) else { continue };
            if !is_leaving(key) {
                found(store, key, problem, repair, report)?;
            }
        }
        let Some((last, _)) = page.rows.last().filter(|_| page.rows.len() == PAGE_ROWS) else {
            return Ok(());
        };
        from = last.to_vec();
        from.push(0);
    }
}

/// Returns what is wrong with a row; `None` if nothing is.
fn problem(catalog: &Catalog, key: &[u8], row: &[u8]) -> Option<&'static str> {
    let stray = Some("belongs to no pattern");
    let Some(of) = pattern_of_row(key) else { return stray };
    let Some(owner) = catalog.by_id(of.owner) else { return stray };
    let pattern = owner.patterns.named(&of.pattern);
    let Some(pattern) = pattern.filter(|found| found.generation == of.generation) else {
        return stray;
    };
    let PatternKind::Rollup(rollup) = &pattern.kind else { return stray };
    let from = catalog.collection(owner.namespace.db(), &rollup.from);
    if from.is_none_or(|from| from.id != of.from) {
        return stray;
    }
    let readable = rollup.compile().is_ok_and(|rollup| is_readable(&rollup, row));
    (!readable).then_some("cannot be read")
}

fn found(
    store: &Arc<Store>,
    key: &Bytes,
    problem: &str,
    repair: bool,
    report: &mut Report,
) -> Result<()> {
    report.findings.push(Finding {
        place: Space::Meta.name().to_owned(),
        problem: format!("a group of a roll-up {problem}"),
        what: Problem::Other,
        repaired: repair,
    });
    if repair {
        let mut txn = begin(store.engine(), Mode::Write).map_err(from_storage)?;
        txn.delete(Space::Meta, key.clone()).map_err(from_storage)?;
        txn.commit(CommitOptions::synced()).map_err(from_storage)?;
    }
    Ok(())
}
