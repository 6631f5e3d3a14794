//! The document of the advice about one collection (docs/advise-indexes.md describes every field).

use crate::indexes::advice::{AdvisedRequest, IndexAdvice, NewIndex, RequestRun};
use crate::indexes::costs::{COST_LEFT_MAX, ENTRY_COST, KEY_COST, SORTED_COST};
use crate::indexes::measured::Measured;
use crate::indexes::removal::{DoubtfulIndex, Reason};
use crate::scaled::{SampleSize, Scaled};
use quire_document::{DocBuf, DocWriter};

/// The version of the document. It changes when a field gets another meaning or goes.
pub const ADVICE_VERSION: i32 = 1;

/// Appends the weights of the costs, so that a reader can compute them again.
pub fn write_weights(out: &mut DocWriter<'_>) {
    out.append("documentExamined", 1.0).append("keyExamined", KEY_COST);
    out.append("rowSorted", SORTED_COST).append("entryWritten", ENTRY_COST);
    out.append("costLeftMax", COST_LEFT_MAX);
}

impl IndexAdvice {
    /// Appends the advice.
    pub fn write(&self, out: &mut DocWriter<'_>) {
        out.append("collection", self.collection.as_str());
        write_size(self.size, &mut out.document("copy"));
        write_size(self.smaller, &mut out.document("smallerCopy"));
        out.append("alreadyRight", self.create.is_empty() && self.remove.is_empty());
        out.append("candidatesTried", long(self.tried as u64));
        {
            let mut list = out.array("create");
            for index in &self.create {
                self.write_created(index, &mut list.document());
            }
        }
        {
            let mut list = out.array("remove");
            for doubt in &self.remove {
                self.write_doubt(doubt, &mut list.document());
            }
        }
        {
            let mut list = out.array("keep");
            for kept in &self.keep {
                let mut one = list.document();
                one.append("name", kept.name.as_str());
                write_positions(&kept.requests, "requests", &mut one);
                if let Some(uses) = kept.uses {
                    one.append("usesSinceStart", long(uses));
                }
            }
        }
        {
            let mut list = out.array("refused");
            for refused in &self.refused {
                let mut one = list.document();
                one.append("key", &refused.definition.key_document());
                one.append("error", refused.error.as_str());
            }
        }
        let mut list = out.array("requests");
        for request in &self.requests {
            write_request(request, &mut list.document());
        }
    }

    fn write_created(&self, index: &NewIndex, out: &mut DocWriter<'_>) {
        let name = index.hidden.clone().unwrap_or_else(|| index.definition.name());
        out.append("name", name.as_str()).append("key", &index.definition.key_document());
        if let Some(filter) = &index.definition.partial {
            out.append("partialFilterExpression", filter);
        }
        if let Some(collation) = &index.definition.collation {
            out.append("collation", collation);
        }
        out.append("reason", index.reason.as_str());
        write_positions(&index.requests, "requests", out);
        {
            let mut benefit = out.document("benefit");
            let (before, after) = (index.cost_before, index.cost_after);
            benefit.append("costBefore", before).append("costAfter", after);
            let percent = if before > 0.0 { (before - after) / before * 100.0 } else { 0.0 };
            benefit.append("percent", (percent * 10.0).round() / 10.0);
            let sum = |of: fn(&AdvisedRequest) -> Option<&RequestRun>| {
                let requests = index.requests.iter().filter_map(|at| self.requests.get(*at));
                let examined = requests.filter_map(|one| {
                    let run = of(one)?;
                    Some(run.scaled.documents.estimate as f64 * one.request.count)
                });
                examined.sum::<f64>()
            };
            benefit.append("documentsExaminedBefore", sum(|one| one.before.as_ref()));
            benefit.append("documentsExaminedAfter", sum(|one| one.after.as_ref()));
        }
        {
            let mut writes = out.document("writeCost");
            writes.append("entriesWritten", index.writes);
            writes.append("bytesPerDocument", index.bytes_per_document);
            writes.append("cost", index.writes * ENTRY_COST);
        }
        out.append("bytesEstimate", long(index.bytes));
        out.append("confidence", confidence(self.size));
        if index.hidden.is_some() {
            out.append("isHidden", true);
            out.append("apply", &self.hide(&name, false)).append("undo", &self.hide(&name, true));
            return;
        }
        {
            let mut apply = out.document("apply");
            apply.append("createIndexes", self.collection.as_str());
            apply.array("indexes").push(&index.definition.spec());
        }
        let mut undo = out.document("undo");
        undo.append("dropIndexes", self.collection.as_str()).append("index", name.as_str());
    }

    /// Returns the command that hides an index, or shows it.
    fn hide(&self, name: &str, hidden: bool) -> DocBuf {
        DocBuf::build(|out| {
            out.append("collMod", self.collection.as_str());
            out.document("index").append("name", name).append("hidden", hidden);
        })
    }

    fn write_doubt(&self, doubt: &DoubtfulIndex, out: &mut DocWriter<'_>) {
        let name = doubt.name.as_str();
        out.append("name", name);
        match &doubt.reason {
            Reason::Absent { path, near } => {
                out.append("reason", "absent").append("field", path.as_str());
                let text = format!("index key `{path}` exists in 0 documents");
                let text = match near {
                    Some(near) => format!("{text}; did you mean `{near}`?"),
                    None => text,
                };
                if let Some(near) = near {
                    out.append("didYouMean", near.as_str());
                }
                out.append("text", text.as_str());
            }
            Reason::Prefix { of } => {
                out.append("reason", "prefix").append("of", of.as_str());
                let text = format!("the key is the beginning of that of `{of}`");
                out.append("text", text.as_str());
            }
            Reason::Unused => {
                out.append("reason", "unused");
                out.append("text", "nothing has used it since the server started");
            }
            Reason::Hidden => {
                out.append("reason", "hidden");
                out.append("text", "it is hidden: no request uses it, every write keeps it");
            }
        }
        out.append("requestsRunWithout", long(doubt.replayed as u64));
        out.append("noRequestIsSlower", doubt.is_same_without);
        if doubt.reason != Reason::Hidden {
            out.append("apply", &self.hide(name, true));
        }
        let mut drop = out.document("then");
        drop.append("dropIndexes", self.collection.as_str()).append("index", name);
        drop.finish();
        out.append("undo", &self.hide(name, false));
        let mut create = out.document("undoThen");
        create.append("createIndexes", self.collection.as_str());
        create.array("indexes").push(&doubt.spec);
    }
}

/// Says on how much of the data a number was measured.
fn confidence(size: SampleSize) -> &'static str {
    if size.is_whole() { "measured" } else { "estimated" }
}

/// Appends the sizes of a copy.
fn write_size(size: SampleSize, out: &mut DocWriter<'_>) {
    out.append("documents", long(size.sampled));
    out.append("documentsInCollection", long(size.total)).append("isWhole", size.is_whole());
}

fn write_positions(positions: &[usize], name: &str, out: &mut DocWriter<'_>) {
    let mut list = out.array(name);
    positions.iter().for_each(|at| {
        list.push(long(*at as u64));
    });
}

fn write_request(request: &AdvisedRequest, out: &mut DocWriter<'_>) {
    out.append("command", &request.request.command).append("count", request.request.count);
    for (name, run) in [("before", &request.before), ("after", &request.after)] {
        if let Some(run) = run {
            write_run(run, &mut out.document(name));
        }
    }
}

fn write_run(run: &RequestRun, out: &mut DocWriter<'_>) {
    let Measured { keys, documents, returned, .. } = run.measured;
    write_scaled(documents, run.scaled.documents, &mut out.document("documentsExamined"));
    write_scaled(keys, run.scaled.keys, &mut out.document("keysExamined"));
    out.append("returnedInCopy", long(returned)).append("joined", long(run.measured.joined));
    out.append("sorts", run.measured.sorts > 0);
    out.append("scansCollection", run.measured.scans_collection);
    {
        let mut list = out.array("indexes");
        run.measured.indexes.iter().for_each(|name| {
            list.push(name.as_str());
        });
    }
    out.append("cost", run.cost).append("growth", (run.growth * 100.0).round() / 100.0);
    out.append("millisInCopy", long(run.measured.millis));
    if let Some(error) = &run.measured.error {
        out.append("error", error.as_str());
    }
}

/// Appends a number that was measured in a copy, and that of the collection.
pub fn write_scaled(measured: u64, scaled: Scaled, out: &mut DocWriter<'_>) {
    out.append("measured", long(measured)).append("estimate", long(scaled.estimate));
    out.append("low", long(scaled.low)).append("high", long(scaled.high));
}

fn long(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
