//! The parameter `logComponentVerbosity`: a level for each component of the log, -1 to inherit the
//! level above. From level 1 on every operation is logged, and not only slow ones; the components
//! `command` and `write` decide that. (Manual: "Log Messages", "Verbosity Levels".)

use crate::frame::args::whole;
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, Result};

/// The name of the parameter.
pub const NAME: &str = "logComponentVerbosity";
/// The parameter with the level that components inherit.
pub const DEFAULT_LEVEL: &str = "logLevel";

const LEVEL: &str = "verbosity";
const INHERIT: i32 = -1;
const LEVEL_MAX: i64 = 5;

/// MongoDB's components with their subcomponents.
const COMPONENTS: &[(&str, &[&str])] = &[
    ("accessControl", &[]),
    ("assert", &[]),
    ("command", &[]),
    ("control", &[]),
    ("executor", &[]),
    ("ftdc", &[]),
    ("geo", &[]),
    ("index", &[]),
    ("network", &["asio", "bridge", "connectionPool"]),
    ("processHealth", &[]),
    ("query", &["optimizer", "rejected"]),
    ("queryStats", &[]),
    ("replication", &["election", "heartbeats", "initialSync", "rollback"]),
    ("resharding", &[]),
    ("sharding", &["migration", "rangeDeleter", "shardingCatalogRefresh"]),
    ("storage", &["journal", "recovery", "wt"]),
    ("tenantMigration", &[]),
    ("test", &[]),
    ("transaction", &[]),
    ("write", &[]),
];

/// Returns all components with their default level.
pub fn defaults() -> DocBuf {
    DocBuf::build(|levels| {
        levels.append(LEVEL, 0);
        for (component, parts) in COMPONENTS {
            let mut entry = levels.document(component);
            entry.append(LEVEL, INHERIT);
            for part in *parts {
                entry.document(part).append(LEVEL, INHERIT);
            }
        }
    })
}

/// Returns the levels after a change, or an error without any change.
///
/// # Errors
/// 14 TypeMismatch for a value that is not a document; 2 BadValue for an unknown component and for
/// an invalid level.
pub fn changed(levels: Doc<'_>, change: Value<'_>) -> Result<DocBuf> {
    let Value::Document(change) = change else {
        let text =
            format!("Failed setting {NAME}: expected an object, found {}", change.type_name());
        return Err(Error::type_mismatch(text));
    };
    merged(levels, change, NAME)
}

fn merged(levels: Doc<'_>, change: Doc<'_>, path: &str) -> Result<DocBuf> {
    if let Some((name, _)) = change.fields().find(|(name, _)| !levels.contains(name)) {
        return Err(Error::bad_value(format!("Invalid component name {path}.{name}")));
    }
    let mut out = DocBuf::new();
    for (name, was) in levels.fields() {
        match (was, change.get(name)) {
            (was, None) => _ = out.append(name, was),
            (Value::Document(part), Some(change)) => {
                let path = format!("{path}.{name}");
                let changed = match change {
                    Value::Document(change) => merged(part, change, &path)?,
                    level => merged(part, single(level).as_doc(), &path)?,
                };
                out.append(name, &changed);
            }
            (_, Some(wanted)) => _ = out.append(name, level(wanted, path)?),
        }
    }
    Ok(out)
}

/// Returns the document form of a bare number, which is the component's own level.
fn single(level: Value<'_>) -> DocBuf {
    let mut out = DocBuf::new();
    out.append(LEVEL, level);
    out
}

fn level(value: Value<'_>, path: &str) -> Result<i32> {
    let least = i64::from(if path == NAME { 0 } else { INHERIT });
    let nan = matches!(value, Value::Double(number) if number.is_nan());
    whole(value)
        .filter(|level| !nan && (least..=LEVEL_MAX).contains(level))
        .and_then(|level| i32::try_from(level).ok())
        .ok_or_else(|| {
            let text = format!("Expected a number from {least} to {LEVEL_MAX} at {path}.{LEVEL}");
            Error::bad_value(text)
        })
}

/// Returns the levels with another inherited level.
pub fn with_default(levels: Doc<'_>, level: i64) -> DocBuf {
    let level = i32::try_from(level).unwrap_or(0);
    // A level in the parameter's range is never refused.
    merged(levels, single(Value::Int32(level)).as_doc(), NAME).unwrap_or_else(|_| levels.to_owned())
}

/// Returns the level that components inherit.
pub fn default_level(levels: Doc<'_>) -> i64 {
    levels.get(LEVEL).and_then(whole).unwrap_or(0)
}

/// Returns the effective level of a component.
pub fn effective(levels: Doc<'_>, component: &str) -> i64 {
    let own = levels.get(component).and_then(|part| part.as_document()?.get(LEVEL));
    own.and_then(whole).filter(|level| *level >= 0).unwrap_or_else(|| default_level(levels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn change(levels: &DocBuf, change: DocBuf) -> Result<DocBuf> {
        changed(levels.as_doc(), Value::Document(change.as_doc()))
    }

    #[test]
    fn components_inherit_until_they_have_a_level() {
        let levels = defaults();
        assert_eq!(effective(levels.as_doc(), "command"), 0);
        let levels = change(&levels, doc! { "verbosity": 2, "write": { "verbosity": 0 } }).unwrap();
        assert_eq!(effective(levels.as_doc(), "command"), 2);
        assert_eq!(effective(levels.as_doc(), "write"), 0);
        let levels = change(&levels, doc! { "write": -1, "network": { "asio": 3 } }).unwrap();
        assert_eq!(effective(levels.as_doc(), "write"), 2);
        let network = levels.get("network").and_then(|network| network.as_document()).unwrap();
        let expected = doc! {
            "verbosity": -1,
            "asio": { "verbosity": 3 },
            "bridge": { "verbosity": -1 },
            "connectionPool": { "verbosity": -1 },
        };
        assert_eq!(network.to_owned(), expected);
        assert_eq!(effective(with_default(levels.as_doc(), 1).as_doc(), "command"), 1);
    }

    #[test]
    fn a_bad_change_changes_nothing() {
        let levels = defaults();
        for bad in [
            doc! { "command": 1, "unknown": 1 },
            doc! { "verbosity": -1 },
            doc! { "command": { "verbosity": 6 } },
            doc! { "command": { "verbosity": "1" } },
            doc! { "command": { "verbosity": f64::NAN } },
            doc! { "network": { "command": 1 } },
        ] {
            assert_eq!(change(&levels, bad.clone()).unwrap_err().code().number(), 2, "{bad:?}");
        }
    }
}
