//! `adviseIndexes`: the indexes that a workload needs, those that it does not, and what each costs and
//! saves, measured in the laboratory (docs/advise-indexes.md).

use crate::advise::server_laboratory::{ServerLaboratory, find};
use crate::advise::workload::AdvisedWorkload;
use crate::frame::args::{Arg, arguments, fields, missing};
use crate::frame::context::Context;
use crate::read::analyze_schema::existing_database;
use quire_advisor::indexes::{
    ADVICE_VERSION, Asked, IndexAdvice, IndexBudget, advise_indexes, write_weights,
};
use quire_catalog::Namespace;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::time::Instant;

/// The indexes that a collection has in the end, with `_id`, without a `budget`. Reviews of schemas
/// ask questions from the eleventh on.
const INDEXES_DEFAULT: usize = 10;
/// The documents of a copy, without a `sampleSize`.
const SAMPLE_DEFAULT: u64 = 10_000;
/// The units of a number of bytes.
const UNITS: &[(&str, u64)] =
    &[("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

/// The arguments of the command.
struct Parsed {
    workload: AdvisedWorkload,
    budget: IndexBudget,
    sample_size: u64,
    seed: u64,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let begun = Instant::now();
    let parsed = parse(cx, body)?;
    let cx = &*cx;
    let collections = collections(cx, body, &parsed.workload)?;
    let mut laboratory = ServerLaboratory::new(cx, parsed.sample_size, parsed.seed);
    let mut all: Vec<IndexAdvice> = Vec::new();
    for collection in &collections {
        let requests = &parsed.workload.requests;
        all.push(advise_indexes(&mut laboratory, collection, requests, parsed.budget)?);
    }
    reply.append("version", ADVICE_VERSION);
    {
        let mut workload = reply.document("workload");
        workload.append("source", parsed.workload.source);
        workload.append("requests", long(parsed.workload.requests.len() as u64));
    }
    {
        let mut budget = reply.document("budget");
        budget.append("maxIndexes", long(parsed.budget.indexes as u64));
        if parsed.budget.bytes < u64::MAX {
            budget.append("maxBytes", long(parsed.budget.bytes));
        }
    }
    write_weights(&mut reply.document("weights"));
    reply.append("sampleSize", long(parsed.sample_size)).append("confidence", 0.95);
    {
        let mut list = reply.array("collections");
        all.iter().for_each(|advice| advice.write(&mut list.document()));
    }
    reply.append("millis", long(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)));
    Ok(())
}

fn parse(cx: &Context<'_>, body: Doc<'_>) -> Result<Parsed> {
    let name = cx.command.name;
    let mut workload = None;
    let mut budget = IndexBudget { indexes: INDEXES_DEFAULT, bytes: u64::MAX };
    let (mut sample_size, mut seed) = (SAMPLE_DEFAULT, quire_storage::rng::word());
    for arg in arguments(name, body) {
        match arg.name() {
            "workload" => workload = Some(arg),
            "budget" if !arg.is_null() => budget = parse_budget(&arg)?,
            "sampleSize" if !arg.is_null() => {
                sample_size = arg.integer_from(1)?.cast_unsigned();
            }
            "seed" if !arg.is_null() => seed = arg.integer()?.cast_unsigned(),
            "budget" | "sampleSize" | "seed" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let workload = workload.ok_or_else(|| missing(name, "workload"))?;
    let workload = AdvisedWorkload::parse(cx, &workload, seed)?;
    Ok(Parsed { workload, budget, sample_size, seed })
}

fn parse_budget(arg: &Arg<'_>) -> Result<IndexBudget> {
    let mut budget = IndexBudget { indexes: INDEXES_DEFAULT, bytes: u64::MAX };
    for field in fields("adviseIndexes.budget", arg.document()?) {
        match field.name() {
            "maxIndexes" => {
                budget.indexes = usize::try_from(field.integer_from(0)?).unwrap_or(usize::MAX);
            }
            "maxBytes" => budget.bytes = parse_bytes(&field)?,
            _ => return Err(field.unknown()),
        }
    }
    Ok(budget)
}

/// Parses a number of bytes: `2147483648` or `"2GB"`.
fn parse_bytes(field: &Arg<'_>) -> Result<u64> {
    let Value::String(text) = field.value() else {
        return Ok(field.integer_from(0)?.cast_unsigned());
    };
    let parsed = UNITS.iter().find_map(|(unit, bytes)| {
        let number = text.trim().strip_suffix(unit)?.trim().parse::<u64>().ok()?;
        number.checked_mul(*bytes)
    });
    parsed.ok_or_else(|| {
        Error::bad_value(format!("'{text}' is no number of bytes, such as 2GB, 500MB or 1000B"))
    })
}

/// Returns the collections about which advice is asked: the named one, or those of the database that
/// the workload names or that have indexes.
fn collections(cx: &Context<'_>, body: Doc<'_>, workload: &AdvisedWorkload) -> Result<Vec<String>> {
    if let Some(Value::String(_)) = body.first().map(|first| first.value()) {
        let namespace = cx.target(body)?;
        check_indexable(cx, &namespace)?;
        return Ok(vec![namespace.collection().to_owned()]);
    }
    match body.first().map(|first| first.value()) {
        Some(Value::Int32(1) | Value::Int64(1)) => {}
        Some(Value::Double(1.0)) => {}
        _ => {
            let text = "adviseIndexes takes the name of a collection, or 1 for the whole database";
            return Err(Error::type_mismatch(text));
        }
    }
    existing_database(cx)?;
    let asked: Vec<Asked> = workload
        .requests
        .iter()
        .filter_map(|request| Asked::of_command(request.command.as_doc()))
        .collect();
    let catalog = cx.service.store.catalog();
    let Some(database) = catalog.database(cx.db) else { return Ok(Vec::new()) };
    let is_of_use = |name: &str, indexes: usize| {
        let is_named = |asked: &Asked| {
            asked.collection == name || asked.joined.iter().any(|(joined, _)| joined == name)
        };
        indexes > 1 || asked.iter().any(is_named)
    };
    let mut names: Vec<String> = database
        .collections()
        .filter(|collection| !collection.namespace.is_system())
        .map(|collection| (collection.namespace.collection(), collection.index_count()))
        .filter(|(name, indexes)| is_of_use(name, *indexes))
        .map(|(name, _)| name.to_owned())
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Fails unless a collection exists on which a client can create indexes.
fn check_indexable(cx: &Context<'_>, namespace: &Namespace) -> Result<()> {
    let (code, text) = if cx.service.store.catalog().view(namespace).is_some() {
        let text = format!("Namespace {namespace} is a view, not a collection");
        (ErrorCode::CommandNotSupportedOnView, text)
    } else if find(cx, namespace.collection())?.is_none() {
        (ErrorCode::NamespaceNotFound, format!("ns does not exist: {namespace}"))
    } else if namespace.is_system() {
        let text = format!("Cannot create indexes on the collection '{namespace}'");
        (ErrorCode::InvalidNamespace, text)
    } else {
        return Ok(());
    };
    Err(Error::new(code, text))
}

fn long(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
