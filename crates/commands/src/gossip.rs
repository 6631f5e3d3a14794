//! Cluster time on the wire: `$clusterTime` in requests moves the clock on, every reply carries
//! `$clusterTime` and `operationTime`. (Manual: "Causal Consistency".)

use crate::service::{Service, Topology, now_ms};
use quire_document::{Binary, Doc, DocWriter, Timestamp, Value};
use quire_error::{Error, ErrorCode, Result};

/// How far ahead of the wall clock a client may move the clock.
/// MongoDB: `maxAcceptableLogicalClockDriftSecs`.
const DRIFT_SECS_MAX: i64 = 365 * 24 * 60 * 60;

/// Takes over the time that a request carries.
///
/// # Errors
/// 10065, 4 NoSuchKey, 14 TypeMismatch for a malformed one; 205 ClusterTimeFailsRateLimiter for
/// one that is too far ahead.
pub fn receive(service: &Service, body: Doc<'_>) -> Result<()> {
    let Some(value) = body.get("$clusterTime").filter(|value| !value.is_nullish()) else {
        return Ok(());
    };
    if service.options.topology == Topology::Standalone {
        return Ok(());
    }
    let Value::Document(gossip) = value else {
        let text = "invalid parameter: expected an object ($clusterTime)";
        return Err(Error::location(10065, text));
    };
    let time = match gossip.get("clusterTime") {
        Some(Value::Timestamp(time)) => time,
        Some(other) => return Err(wrong_type("clusterTime", "timestamp", other)),
        None => {
            let text = "Missing expected field \"clusterTime\"";
            return Err(Error::new(ErrorCode::NoSuchKey, text));
        }
    };
    check_signature(gossip)?;
    let wall_secs = now_ms() / 1000;
    if i64::from(time.seconds) > wall_secs + DRIFT_SECS_MAX {
        let text = format!(
            "New cluster time, {}, is too far from this node's wall clock time, {wall_secs}.",
            time.seconds
        );
        return Err(Error::new(ErrorCode::ClusterTimeFailsRateLimiter, text));
    }
    service.advance_clock(time);
    Ok(())
}

/// Nobody signs here, so a signature need only look like one.
fn check_signature(gossip: Doc<'_>) -> Result<()> {
    let signature = match gossip.get("signature") {
        None => return Ok(()),
        Some(Value::Document(signature)) => signature,
        Some(other) => return Err(wrong_type("signature", "object", other)),
    };
    match signature.get("hash") {
        None | Some(Value::Binary(_)) => {}
        Some(other) => return Err(wrong_type("hash", "binData", other)),
    }
    match signature.get("keyId") {
        Some(value) if !value.is_number() => Err(wrong_type("keyId", "long", value)),
        _ => Ok(()),
    }
}

fn wrong_type(field: &str, expected: &str, found: Value<'_>) -> Error {
    let found = found.type_name();
    let text = format!("\"{field}\" had the wrong type. Expected {expected}, found {found}");
    Error::type_mismatch(text)
}

/// Appends the times that a replica set puts on every reply, signed as by a server where nobody
/// logs in.
pub fn write_times(service: &Service, reply: &mut DocWriter<'_>) {
    if service.options.topology == Topology::Standalone {
        return;
    }
    let time: Timestamp = service.cluster_time();
    {
        let mut gossip = reply.document("$clusterTime");
        gossip.append("clusterTime", time);
        let mut signature = gossip.document("signature");
        let hash = Binary { subtype: 0, bytes: &[0; 20] };
        signature.append("hash", Value::Binary(hash)).append("keyId", 0i64);
    }
    reply.append("operationTime", time);
}
