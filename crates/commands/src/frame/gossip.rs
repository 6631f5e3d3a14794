//! Cluster time in messages: the `$clusterTime` of a request advances the clock, and every reply
//! has `$clusterTime` and `operationTime`. (Manual: "Causal Consistency".)

use crate::frame::service::{Service, Topology};
use quire_document::{Binary, Doc, DocWriter, Timestamp, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::ClusterTime;
use std::sync::LazyLock;

/// Advances the clock to the time of a request. The time of a client that is not `trusted`, because
/// it has not logged in, is checked and not used.
///
/// # Errors
/// 10065, 4 NoSuchKey and 14 TypeMismatch for a malformed time; 205 ClusterTimeFailsRateLimiter for
/// one that is too far ahead.
pub fn receive(service: &Service, time: Option<Value<'_>>, trusted: bool) -> Result<()> {
    let Some(value) = time.filter(|value| !value.is_nullish()) else { return Ok(()) };
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
    if trusted { service.clock.hear(time) } else { Ok(()) }
}

/// Checks only the form of the signature, because there is no key to sign with.
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

/// Appends the times that a replica set adds to every reply, signed like those of a server without
/// access control. The time of an operation that has `committed` is that of its last commit: a change
/// stream that begins at it shows what was written, whatever others have committed since.
pub fn write_times(service: &Service, committed: Option<ClusterTime>, reply: &mut DocWriter<'_>) {
    if service.options.topology == Topology::Standalone {
        return;
    }
    let time = service.clock.now();
    reply.append("$clusterTime", Doc::from_valid_bytes(&dated(time)));
    reply.append("operationTime", committed.map_or(time, |time| Timestamp::from_u64(time.0)));
}

/// Returns `$clusterTime` with this time. It is encoded once; only the time changes.
fn dated(time: Timestamp) -> [u8; GOSSIP_BYTES] {
    let mut gossip = *UNDATED;
    gossip[TIME_AT..TIME_AT + 8].copy_from_slice(&time.to_u64().to_le_bytes());
    gossip
}

const GOSSIP_BYTES: usize = 88;
/// The offset of the time: after the length, and the type and name of the first field.
const TIME_AT: usize = 4 + 1 + "clusterTime\0".len();

static UNDATED: LazyLock<[u8; GOSSIP_BYTES]> = LazyLock::new(|| {
    let hash = Binary { subtype: 0, bytes: &[0; 20] };
    let signature = doc! { "hash": Value::Binary(hash), "keyId": 0i64 };
    let none = Timestamp { seconds: 0, increment: 0 };
    let undated = doc! { "clusterTime": none, "signature": &signature };
    undated.as_doc().as_bytes().try_into().expect("it has always the same length")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_time_is_in_its_document() {
        let time = Timestamp { seconds: 7, increment: 9 };
        let gossip = dated(time);
        let gossip = Doc::from_valid_bytes(&gossip);
        assert!(
            matches!(gossip.get("clusterTime"), Some(Value::Timestamp(found)) if found == time)
        );
        assert!(check_signature(gossip).is_ok() && gossip.iter().count() == 2);
    }
}
