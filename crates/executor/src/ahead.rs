//! Draining an input: once that proves long, a thread of its own reads on while the rows that are
//! there are taken.

use std::sync::mpsc::sync_channel;
use std::thread;

use quire_error::{Error, Result};

use crate::env::{Env, Run};
use crate::helpers::Helpers;
use crate::operator::BoxedOperator;
use crate::row::Row;

/// Rows asked for at a time.
const ROWS_MAX: usize = 1024;
/// Batches that may wait to be taken.
const WAITING_MAX: usize = 2;

/// Gives all rows of an input to `take`, in their order, until it fails.
pub(crate) fn drain(
    input: &mut BoxedOperator,
    run: &mut Run<'_>,
    mut take: impl FnMut(&mut Vec<Row>, &Env) -> Result<()>,
) -> Result<()> {
    let env = run.env;
    let mut rows = Vec::new();
    let mut taken = 0;
    let _helper = loop {
        let more = input.next(run, ROWS_MAX, &mut rows)?;
        taken += rows.len() as u64;
        take(&mut rows, env)?;
        rows.clear();
        if !more {
            return Ok(());
        }
        if taken >= env.params.long_scan_docs {
            let helper = Helpers::acquire(env.params.threads_max.saturating_sub(1).min(1));
            if helper.count() > 0 {
                break helper;
            }
        }
    };
    let (send, batches) = sync_channel::<Result<Vec<Row>>>(WAITING_MAX);
    let read_on = move || {
        loop {
            let mut rows = Vec::new();
            let more = input.next(run, ROWS_MAX, &mut rows);
            let ended = !matches!(more, Ok(true));
            if send.send(more.map(|_| rows)).is_err() || ended {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let name = thread::Builder::new().name("read ahead".to_owned());
        let reader = name
            .spawn_scoped(scope, read_on)
            .map_err(|error| Error::internal(format!("no thread could be started: {error}")))?;
        let result = batches.into_iter().try_for_each(|rows| take(&mut rows?, env));
        match reader.join() {
            Ok(()) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
