//! `analyzeShardKey`: what a candidate shard key would be worth. One node has no shards, but its data and
//! the queries that `configureQueryAnalyzer` samples tell as much. (Manual: "analyzeShardKey".)

mod characteristics;
mod distribution;
mod key;

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use crate::frame::service::Topology;
use key::ShardKey;
use quire_catalog::{Collection, Namespace};
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use std::sync::Arc;

/// The documents whose keys are read without `sampleRate` and `sampleSize`. MongoDB:
/// `analyzeShardKeyCharacteristicsDefaultSampleSize`.
const SAMPLE_DEFAULT: u64 = 10_000_000;

/// The part of the documents whose keys are read.
#[derive(Clone, Copy)]
enum Sample {
    /// This share of all.
    Rate(f64),
    /// At most this many.
    Size(u64),
}

struct Parsed {
    key: ShardKey,
    characteristics: bool,
    distribution: bool,
    sample: Sample,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if cx.service.options.topology == Topology::Standalone {
        let text = "analyzeShardKey command is not supported on a standalone mongod";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let parsed = parse(cx, body)?;
    let namespace = target(cx, body)?;
    let collection = collection(cx, &namespace)?;
    if parsed.characteristics {
        characteristics::write(cx, &collection, &parsed.key, parsed.sample, reply)?;
    }
    if parsed.distribution {
        distribution::write(cx, &collection, &parsed.key, reply)?;
    }
    Ok(())
}

fn parse(cx: &Context<'_>, body: Doc<'_>) -> Result<Parsed> {
    let name = cx.command.name;
    let (mut key, mut rate, mut size) = (None, None, None);
    let (mut characteristics, mut distribution) = (true, true);
    for arg in arguments(name, body) {
        match arg.name() {
            "key" => key = Some(ShardKey::parse(&arg)?),
            "keyCharacteristics" if !arg.is_null() => characteristics = arg.safe_bool()?,
            "readWriteDistribution" if !arg.is_null() => distribution = arg.safe_bool()?,
            "sampleRate" if !arg.is_null() => rate = Some(sample_rate(&arg)?),
            "sampleSize" if !arg.is_null() => size = Some(arg.integer_from(1)?.unsigned_abs()),
            "keyCharacteristics" | "readWriteDistribution" | "sampleRate" | "sampleSize" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let invalid = |text: &str| Err(Error::new(ErrorCode::InvalidOptions, text));
    let sample = match (rate, size) {
        (Some(_), Some(_)) => return invalid("Cannot specify both 'sampleRate' and 'sampleSize'"),
        (Some(rate), None) => Sample::Rate(rate),
        (None, size) => Sample::Size(size.unwrap_or(SAMPLE_DEFAULT)),
    };
    let is_sampled = rate.is_some() || size.is_some();
    match (characteristics, distribution) {
        (false, false) => {
            return invalid(
                "Cannot analyze a shard key with both 'keyCharacteristics' and 'readWriteDistribution' false",
            );
        }
        (false, true) if is_sampled => {
            return invalid(
                "Cannot specify 'sampleRate' or 'sampleSize' when 'keyCharacteristics' is false",
            );
        }
        _ => {}
    }
    let key = key.ok_or_else(|| missing(name, "key"))?;
    Ok(Parsed { key, characteristics, distribution, sample })
}

fn sample_rate(arg: &Arg<'_>) -> Result<f64> {
    let rate = arg.value().as_number().map(|number| number.to_f64());
    match rate.ok_or_else(|| arg.wrong_type("double"))? {
        rate if rate > 0.0 && rate <= 1.0 => Ok(rate),
        rate => {
            let bound = if rate > 1.0 { "<= 1" } else { "> 0" };
            let text =
                format!("BSON field 'sampleRate' value must be {bound}, actual value '{rate}'");
            Err(Error::bad_value(text))
        }
    }
}

/// Returns the namespace, which may be that of no collection of the server itself.
fn target(cx: &Context<'_>, body: Doc<'_>) -> Result<Namespace> {
    let first = body.first().map(|first| Arg::new(cx.command.name, first));
    let named = first.ok_or_else(|| missing(cx.command.name, cx.command.name))?;
    let namespace = Namespace::parse(named.string()?)?;
    let is_internal = ["admin", "config", "local"].contains(&namespace.db());
    if is_internal || namespace.is_system() {
        let text = format!("Cannot analyze a shard key of the internal collection '{namespace}'");
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    Ok(namespace)
}

/// Returns the collection, which must be an ordinary one with documents.
fn collection(cx: &Context<'_>, namespace: &Namespace) -> Result<Arc<Collection>> {
    let catalog = cx.service.store.catalog();
    if catalog.view(namespace).is_some() {
        let text = format!("Namespace {namespace} is a view, not a collection");
        return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
    }
    let Some(collection) = catalog.lookup(namespace) else {
        let text = format!("Cannot analyze a shard key of '{namespace}', which does not exist");
        return Err(Error::new(ErrorCode::NamespaceNotFound, text));
    };
    if collection.is_time_series() {
        let text = "Operation not supported for a timeseries collection";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    Ok(Arc::clone(collection))
}
