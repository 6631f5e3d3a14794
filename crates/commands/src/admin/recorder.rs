//! `quireRecorder`: shows, resets and deletes what the recorder has counted, and records traces.
//! Quire's own command (docs/recorder.md).

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use crate::frame::service::now_ms;
use quire_advisor::Workload;
use quire_advisor::trace::Values;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};
use std::time::Duration;

/// The shapes that `show` returns without a `limit`, and the most that it returns.
const SHOWN: usize = 100;
const SHOWN_MAX: usize = 1000;
/// A trace lasts at most a day.
const TRACE_SECONDS_MAX: u64 = 24 * 60 * 60;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let what = body.first().map_or(Value::Null, |first| first.value());
    let Value::String(what) = what else {
        let text = "quireRecorder is a string: 'show', 'reset', 'purge' or one about a trace";
        return Err(Error::type_mismatch(text));
    };
    match what {
        "show" => show(cx, body, reply),
        "reset" | "purge" => {
            if let Some(arg) = arguments(cx.command.name, body).next() {
                return Err(arg.unknown());
            }
            match what {
                "reset" => cx.service.recorder.reset(),
                _ => {
                    let _writing = cx.service.write_gate.enter(&cx.interrupt)?;
                    cx.service.recorder.purge(&cx.service.store)?;
                }
            }
            Ok(())
        }
        "beginTrace" => begin_trace(cx, body, reply),
        "readTrace" => {
            let id = trace_id(cx, body)?.ok_or_else(|| missing(cx.command.name, "trace"))?;
            let reading = cx.service.recorder.tracing().read(id)?;
            let mut entries = reply.array("entries");
            reading.entries.iter().for_each(|entry| {
                entries.push(entry);
            });
            entries.finish();
            reply.append("lost", i64::try_from(reading.lost).unwrap_or(i64::MAX));
            reply.append("continues", reading.continues);
            Ok(())
        }
        "endTrace" => match trace_id(cx, body)? {
            Some(id) => cx.service.recorder.tracing().end(id),
            None => cx.service.recorder.tracing().stop(),
        },
        other => {
            let text = format!(
                "quireRecorder is 'show', 'reset', 'purge', 'beginTrace', 'readTrace' or 'endTrace', not '{other}'"
            );
            Err(Error::bad_value(text))
        }
    }
}

/// Begins a trace of `seconds`, with the values `keep`, `hash` or `none`.
fn begin_trace(cx: &Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut values, mut seconds) = (None, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "values" => {
                let name = arg.string()?;
                let known = Values::parse(name).ok_or_else(|| {
                    Error::bad_value(format!("values is 'keep', 'hash' or 'none', not '{name}'"))
                })?;
                values = Some(known);
            }
            "seconds" => seconds = Some(arg.integer_from(1)?),
            _ => return Err(arg.unknown()),
        }
    }
    let values = values.ok_or_else(|| missing(cx.command.name, "values"))?;
    let seconds = seconds.ok_or_else(|| missing(cx.command.name, "seconds"))?;
    let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(1).min(TRACE_SECONDS_MAX));
    let (id, head) = cx.service.recorder.tracing().begin(values, lasts)?;
    reply.append("trace", id).append("head", &head.to_document());
    Ok(())
}

fn trace_id(cx: &Context<'_>, body: Doc<'_>) -> Result<Option<i64>> {
    let mut id = None;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "trace" => id = Some(arg.integer_from(0)?),
            _ => return Err(arg.unknown()),
        }
    }
    Ok(id)
}

/// The arguments of `show`.
#[derive(Default)]
struct Show<'a> {
    /// Only the shapes of this collection, or of this database.
    ns: Option<&'a str>,
    /// The stored windows from this time, in place of the counts since the start.
    from_ms: Option<i64>,
    until_ms: Option<i64>,
    limit: Option<usize>,
}

fn show(cx: &Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut options = Show::default();
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "ns" => options.ns = Some(arg.string()?),
            "from" => options.from_ms = Some(date(&arg)?),
            "until" => options.until_ms = Some(date(&arg)?),
            "limit" => options.limit = Some(limit(&arg)?),
            _ => return Err(arg.unknown()),
        }
    }
    let recorder = &cx.service.recorder;
    let mut workload = match (options.from_ms, options.until_ms) {
        (None, None) => recorder.workload(&cx.service.store),
        (None, Some(_)) => return Err(missing(cx.command.name, "from")),
        (Some(from), until) => {
            let _writing = cx.service.write_gate.enter(&cx.interrupt)?;
            recorder.windows(&cx.service.store, from, until.unwrap_or_else(now_ms))?
        }
    };
    let all = keep(&mut workload, options.ns, options.limit.unwrap_or(SHOWN));
    reply.append("recording", recorder.is_on());
    reply.append("shapes", i64::try_from(all).unwrap_or(i64::MAX));
    reply.append("workload", &workload.to_document());
    Ok(())
}

/// Keeps the `limit` shapes of a collection or a database on which most time was spent. Returns how
/// many there were.
fn keep(workload: &mut Workload, ns: Option<&str>, limit: usize) -> usize {
    if let Some(ns) = ns {
        let is_of = |namespace: &str| {
            namespace.strip_prefix(ns).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        workload.shapes.retain(|used| is_of(&used.namespace));
    }
    let all = workload.shapes.len();
    workload.shapes.sort_by_key(|used| std::cmp::Reverse(used.measures.total_micros.sum));
    workload.shapes.truncate(limit);
    all
}

fn date(arg: &Arg<'_>) -> Result<i64> {
    match arg.value() {
        Value::Date(ms) => Ok(ms),
        _ => Err(arg.wrong_type("date")),
    }
}

fn limit(arg: &Arg<'_>) -> Result<usize> {
    let number = arg.integer_from(1)?;
    Ok(usize::try_from(number).unwrap_or(SHOWN_MAX).min(SHOWN_MAX))
}
