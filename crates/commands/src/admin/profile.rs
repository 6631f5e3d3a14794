//! `profile`: the level of a database's profiler, and the server's limit for slow operations.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use crate::frame::profiler::ProfileFilter;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

const NOTE: &str = "When a filter expression is set, slowms and sampleRate are not used for \
                    profiling and slow-query log lines.";

/// The change of the filter.
enum FilterChange {
    Set(Arc<ProfileFilter>),
    Unset,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let level = level(cx, body)?;
    let (mut slow_ms, mut sample_rate, mut change) = (None, None, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "slowms" | "sampleRate" if arg.is_null() => {}
            "slowms" => slow_ms = Some(clamped(arg.integer()?)),
            "sampleRate" => sample_rate = Some(share(&arg)?),
            "filter" => change = Some(filter(&arg)?),
            _ => return Err(arg.unknown()),
        }
    }
    let service = cx.service;
    let was = service.profiler.setting(cx.db);
    reply.append("was", was.level).append("slowms", clamped(service.parameters.cached.slow_ms()));
    reply.append("sampleRate", service.profiler.sample_rate());
    if let Some(filter) = &was.filter {
        reply.append("filter", &filter.shown);
    }
    if was.filter.is_some() || matches!(change, Some(FilterChange::Set(_))) {
        reply.append("note", NOTE);
    }
    let mut setting = was;
    match change {
        Some(FilterChange::Set(filter)) => setting.filter = Some(filter),
        Some(FilterChange::Unset) => setting.filter = None,
        None => {}
    }
    // An invalid level changes nothing.
    if matches!(level, 0..=2) {
        setting.level = level;
    }
    if matches!(level, 1 | 2) {
        let _writing = service.write_gate.enter(&cx.interrupt)?;
        service.make_profile(cx.db)?;
    }
    service.profiler.set(cx.db, setting)?;
    if let Some(slow_ms) = slow_ms {
        service.parameters.set_slow_ms(slow_ms);
    }
    if let Some(rate) = sample_rate {
        service.profiler.set_sample_rate(rate);
    }
    Ok(())
}

fn level(cx: &Context<'_>, body: Doc<'_>) -> Result<i32> {
    match body.first().map(|first| Arg::new(cx.command.name, first)) {
        Some(arg) if !arg.is_null() => Ok(clamped(arg.integer()?)),
        _ => Err(missing(cx.command.name, cx.command.name)),
    }
}

fn clamped(number: i64) -> i32 {
    number.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

fn share(arg: &Arg<'_>) -> Result<f64> {
    let rate = match arg.value() {
        Value::Double(rate) => rate,
        Value::Decimal(rate) => rate.to_f64(),
        _ => arg.integer()? as f64,
    };
    match (0.0..=1.0).contains(&rate) {
        true => Ok(rate),
        false => Err(Error::bad_value("'sampleRate' must be between 0.0 and 1.0 inclusive")),
    }
}

fn filter(arg: &Arg<'_>) -> Result<FilterChange> {
    match arg.value() {
        Value::Document(filter) => {
            ProfileFilter::parse(filter).map(|filter| FilterChange::Set(Arc::new(filter)))
        }
        Value::String("unset") => Ok(FilterChange::Unset),
        _ => Err(Error::bad_value("Expected an object, or the string 'unset'.")),
    }
}
