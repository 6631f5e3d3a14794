//! `getDiagnosticData`: the sample of the server's state that monitoring tools read, in mongod's
//! shape: a document for each collector, with the times at which it began and ended.

use crate::admin::{repl_set, server_status};
use crate::frame::context::Context;
use crate::frame::host::proc_number;
use crate::frame::service::{Topology, now_ms};
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut data = reply.document("data");
    data.append("start", Value::Date(now_ms()));
    let options = doc! { "serverStatus": 1 };
    let status = collected(|part| server_status::run(cx, options.as_doc(), part))?;
    data.append("serverStatus", &status);
    if cx.service.options.topology != Topology::Standalone {
        let status = collected(|part| repl_set::status(cx, Doc::empty(), part))?;
        data.append("replSetGetStatus", &status);
    }
    let metrics = collected(|part| {
        system_metrics(part);
        Ok(())
    })?;
    data.append("systemMetrics", &metrics);
    data.append("end", Value::Date(now_ms()));
    Ok(())
}

/// Returns what a collector writes, between the times at which it began and ended.
fn collected(write: impl FnOnce(&mut DocWriter<'_>) -> Result<()>) -> Result<DocBuf> {
    let mut written = Ok(());
    let part = DocBuf::build(|part| {
        part.append("start", Value::Date(now_ms()));
        written = write(part);
        part.append("end", Value::Date(now_ms()));
    });
    written.map(|()| part)
}

/// Writes the state of the machine, as far as the system shows it.
fn system_metrics(part: &mut DocWriter<'_>) {
    {
        let mut memory = part.document("memory");
        for (name, field) in [
            ("MemTotal_kb", "MemTotal:"),
            ("MemFree_kb", "MemFree:"),
            ("MemAvailable_kb", "MemAvailable:"),
            ("Cached_kb", "Cached:"),
            ("Dirty_kb", "Dirty:"),
            ("SwapTotal_kb", "SwapTotal:"),
            ("SwapFree_kb", "SwapFree:"),
        ] {
            memory.append(name, proc_number("/proc/meminfo", field));
        }
    }
    let cpus = quire_collections::processors();
    part.document("cpu").append("num_logical_cores", cpus as i64);
}
