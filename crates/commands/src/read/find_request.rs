//! The arguments of `find`, which `explain` reads too.

use crate::cursors::cursor_reply::Opening;
use crate::frame::args::{arguments, whole};
use crate::frame::query_args::{collation, flag, hint, owned};
use quire_document::Doc;
use quire_error::{Error, Result};
use quire_planner::{FindRequest, Hint};

/// The options of a find outside the plan: how the result is divided into batches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batching {
    /// The largest number of documents in the first batch; `None` for the default of 101.
    pub batch_size: Option<u64>,
    /// True to close the cursor after the first batch.
    pub single_batch: bool,
    /// True to never close the cursor for being idle.
    pub no_timeout: bool,
    /// True if the getMores of a tailable cursor wait for documents.
    pub await_data: bool,
    /// True to accept the documents of some shards alone. It has no effect on a single server.
    pub allow_partial_results: bool,
}

impl Batching {
    /// Returns how a find that has become a pipeline opens its cursor: the pipeline has the limit.
    pub fn opening(self, namespace: String, command: Doc<'_>) -> Opening<'_> {
        Opening {
            namespace,
            batch_size: self.batch_size,
            single_batch: self.single_batch,
            no_timeout: self.no_timeout,
            limit: 0,
            full_batch_stays_open: true,
            command,
        }
    }
}

/// Reads the arguments of `find`.
pub fn parse_find(namespace: String, body: Doc<'_>) -> Result<(FindRequest, Batching)> {
    let mut request = FindRequest { namespace, ..FindRequest::default() };
    let mut batching = Batching::default();
    for arg in arguments("FindCommandRequest", body) {
        match arg.name() {
            "filter" => request.filter = arg.document()?.to_owned(),
            "projection" => request.projection = arg.document()?.to_owned(),
            "sort" => request.sort = arg.document()?.to_owned(),
            "min" => request.min = arg.document()?.to_owned(),
            "max" => request.max = arg.document()?.to_owned(),
            "let" => request.let_vars = owned(&arg)?,
            "hint" => request.hint = hint(&arg)?,
            "collation" => request.collation = collation(&arg)?,
            "skip" if !arg.is_null() => request.skip = arg.integer_from(0)? as u64,
            "limit" if !arg.is_null() => request.limit = arg.integer_from(0)? as u64,
            "batchSize" if !arg.is_null() => {
                batching.batch_size = Some(arg.integer_from(0)? as u64);
            }
            "singleBatch" => batching.single_batch = flag(&arg)?,
            "returnKey" => request.return_key = flag(&arg)?,
            "showRecordId" => request.show_record_id = flag(&arg)?,
            "allowDiskUse" if !arg.is_null() => request.allow_disk_use = Some(flag(&arg)?),
            "noCursorTimeout" => batching.no_timeout = flag(&arg)?,
            "tailable" => request.tailable = flag(&arg)?,
            "awaitData" => batching.await_data = flag(&arg)?,
            "allowPartialResults" => batching.allow_partial_results = flag(&arg)?,
            "oplogReplay" | "allowSpeculativeMajorityRead" | "mirrored" => {
                flag(&arg)?;
            }
            "skip" | "limit" | "batchSize" | "allowDiskUse" => {}
            "term" | "readOnce" | "resumeAfter" | "startAt" | "requestResumeToken"
            | "ntoreturn" => {
                return Err(Error::not_built(&format!("find.{}", arg.name())));
            }
            "includeQueryStatsMetrics" => {
                arg.bool()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    if let (Some(Hint::Natural(forward)), Some(order)) =
        (&request.hint, request.sort.get("$natural").and_then(whole))
        && *forward != (order > 0)
    {
        let text = "$natural hint must be in the same direction as $natural sort order";
        return Err(Error::bad_value(text));
    }
    check_tailable(&request, batching)?;
    Ok((request, batching))
}

/// Refuses what a tailable cursor cannot have: an order other than that of insertion, an end.
fn check_tailable(request: &FindRequest, batching: Batching) -> Result<()> {
    if !request.tailable {
        return match batching.await_data {
            true => Err(Error::failed_to_parse(
                "Cannot set 'awaitData' without also setting 'tailable'",
            )),
            false => Ok(()),
        };
    }
    let sort = request.sort.as_doc();
    let is_natural = || sort.iter().count() == 1 && sort.get("$natural").and_then(whole) == Some(1);
    if !sort.is_empty() && !is_natural() {
        let text = "cannot use tailable option with a sort other than {$natural: 1}";
        return Err(Error::bad_value(text));
    }
    if batching.single_batch {
        let text = "cannot use tailable option with the 'singleBatch' option";
        return Err(Error::bad_value(text));
    }
    Ok(())
}
