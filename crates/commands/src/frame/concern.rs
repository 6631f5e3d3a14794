//! Write concern and read concern: parsing, checks, and their meaning for a replica set with one
//! member.
//!
//! `w: 1` is acknowledged when the commit is visible; the commit is on disk within 100 ms. `j:
//! true` and `w: "majority"` are acknowledged when it is on disk. (Manual: "Write Concern", "Read
//! Concern".)

use crate::frame::args::{fields, whole};
use quire_document::{Doc, DocBuf, Timestamp, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Durability;

/// The members that must have a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Acknowledge {
    /// This number of members; with 0 there is no reply.
    Members(i64),
    /// A majority of the members.
    Majority,
    /// A mode by name.
    Mode(String),
    /// Members by tags.
    Tags(DocBuf),
}

/// A write concern.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteConcern {
    /// The members that must have the write; `None` for the default.
    pub w: Option<Acknowledge>,
    /// True if the write must be on disk.
    pub j: Option<bool>,
    /// The older spelling of `j`.
    pub fsync: bool,
    /// The longest wait in milliseconds; 0 for no limit.
    pub wtimeout: i64,
}

impl WriteConcern {
    /// Returns the write concern of a replica set without a default.
    pub fn majority() -> Self {
        WriteConcern { w: Some(Acknowledge::Majority), j: None, fsync: false, wtimeout: 0 }
    }

    /// Reads a write concern document.
    pub fn parse(doc: Doc<'_>) -> Result<Self> {
        let mut concern = WriteConcern { w: None, j: None, fsync: false, wtimeout: 0 };
        for arg in fields("writeConcern", doc) {
            match arg.name() {
                "w" if arg.is_null() => {}
                "w" => concern.w = Some(parse_w(arg.value())?),
                "j" | "fsync" if arg.is_null() => {}
                "j" => concern.j = Some(arg.safe_bool()?),
                "fsync" => concern.fsync = arg.safe_bool()?,
                "wtimeout" => concern.wtimeout = parse_wtimeout(arg.value())?,
                "provenance" if arg.is_null() => {}
                "provenance" => check_provenance("writeConcern", arg.string()?)?,
                "getLastError" => {}
                _ => return Err(arg.unknown()),
            }
        }
        if concern.j == Some(true) && concern.fsync {
            return Err(Error::failed_to_parse("fsync and j options cannot be used together"));
        }
        Ok(concern)
    }

    /// Returns the durability that a commit needs before the reply.
    pub fn durability(&self) -> Durability {
        let majority = matches!(self.w, None | Some(Acknowledge::Majority));
        let synced = self.j.unwrap_or(majority) || self.fsync;
        if synced { Durability::Synced } else { Durability::Buffered }
    }

    /// Returns the error of a concern that one member cannot satisfy; the write is done
    /// nevertheless. `provenance` is the origin of the concern.
    pub fn unsatisfied(&self, provenance: &str) -> Option<Error> {
        let (code, text) = match self.w.as_ref()? {
            Acknowledge::Members(members) if *members > 1 => {
                (ErrorCode::UnsatisfiableWriteConcern, "Not enough data-bearing nodes".to_owned())
            }
            Acknowledge::Mode(mode) => (
                ErrorCode::UnknownReplWriteConcern,
                format!("No write concern mode named '{mode}' found in replica set configuration"),
            ),
            Acknowledge::Tags(_) => {
                (ErrorCode::UnsatisfiableWriteConcern, "Not enough data-bearing nodes".to_owned())
            }
            _ => return None,
        };
        Some(Error::new(code, text).with_details(self.info(provenance).into_bytes()))
    }

    /// Returns the error of a concern that was not satisfied within its `wtimeout`.
    pub fn timed_out(&self, provenance: &str) -> Error {
        let mut details = DocBuf::new();
        details.append("wtimeout", true);
        details.extend(|writer| {
            writer.append_all(self.info(provenance).as_doc());
        });
        let text = "waiting for replication timed out";
        Error::new(ErrorCode::WriteConcernTimeout, text).with_details(details.into_bytes())
    }

    /// Returns the concern as replies show it.
    pub fn to_doc(&self) -> DocBuf {
        DocBuf::build(|writer| {
            match self.w.as_ref().unwrap_or(&Acknowledge::Majority) {
                Acknowledge::Members(members) => writer.append("w", *members as i32),
                Acknowledge::Majority => writer.append("w", "majority"),
                Acknowledge::Mode(mode) => writer.append("w", mode.as_str()),
                Acknowledge::Tags(tags) => writer.append("w", tags),
            };
            if let Some(j) = self.j {
                writer.append("j", j);
            }
            if self.fsync {
                writer.append("fsync", true);
            }
            match i32::try_from(self.wtimeout) {
                Ok(wtimeout) => writer.append("wtimeout", wtimeout),
                Err(_) => writer.append("wtimeout", self.wtimeout),
            };
        })
    }

    fn info(&self, provenance: &str) -> DocBuf {
        let mut shown = self.to_doc();
        shown.append("provenance", provenance);
        DocBuf::build(|writer| {
            writer.append("writeConcern", &shown);
        })
    }
}

/// Reads `wtimeout`. A value that is not a number means no timeout, as in MongoDB.
fn parse_wtimeout(value: Value<'_>) -> Result<i64> {
    match whole(value) {
        Some(wtimeout) if wtimeout > i64::from(i32::MAX) => {
            Err(Error::failed_to_parse("wtimeout must be less than 2^31 milliseconds"))
        }
        wtimeout => Ok(wtimeout.unwrap_or(0)),
    }
}

fn parse_w(value: Value<'_>) -> Result<Acknowledge> {
    match value {
        Value::String("majority") => Ok(Acknowledge::Majority),
        Value::String(mode) => Ok(Acknowledge::Mode(mode.to_owned())),
        Value::Document(tags) if tags.is_empty() => {
            Err(Error::failed_to_parse("tagged write concern requires tags"))
        }
        Value::Document(tags) => match tags.fields().find(|(_, value)| !value.is_number()) {
            None => Ok(Acknowledge::Tags(tags.to_owned())),
            Some((name, value)) => {
                let text = format!(
                    "tags must be a single level document with only number values; found: {}: {}",
                    name,
                    value.type_name()
                );
                Err(Error::failed_to_parse(text))
            }
        },
        Value::Double(number) if number.is_nan() => {
            Err(Error::failed_to_parse("w has to be a non-negative number and not greater than 50"))
        }
        Value::Decimal(number) if !number.is_finite() => {
            Err(Error::failed_to_parse("w has to be a non-negative number and not greater than 50"))
        }
        other => match whole(other) {
            Some(members) if (0..=50).contains(&members) => Ok(Acknowledge::Members(members)),
            Some(_) => Err(Error::failed_to_parse(
                "w has to be a non-negative number and not greater than 50",
            )),
            None => Err(Error::failed_to_parse("w has to be a number, string, or object")),
        },
    }
}

/// The consistency and durability of a read. With one member, all visible writes have a majority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadLevel {
    /// The latest state.
    #[default]
    Local,
    /// The latest state.
    Available,
    /// The state that a majority has.
    Majority,
    /// The state at one time.
    Snapshot,
    /// The latest state, confirmed.
    Linearizable,
}

/// A read concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadConcern {
    /// The level, if one was given.
    pub level: Option<ReadLevel>,
    /// The read must include all writes up to this time.
    pub after_cluster_time: Option<Timestamp>,
    /// The read is at this time.
    pub at_cluster_time: Option<Timestamp>,
}

impl ReadLevel {
    /// Returns the level's name.
    pub const fn name(self) -> &'static str {
        match self {
            ReadLevel::Local => "local",
            ReadLevel::Available => "available",
            ReadLevel::Majority => "majority",
            ReadLevel::Snapshot => "snapshot",
            ReadLevel::Linearizable => "linearizable",
        }
    }

    /// Returns true if the data that is read must survive a power failure.
    pub const fn is_durable(self) -> bool {
        matches!(self, ReadLevel::Majority | ReadLevel::Snapshot | ReadLevel::Linearizable)
    }
}

impl ReadConcern {
    /// Reads a read concern document.
    pub fn parse(doc: Doc<'_>) -> Result<Self> {
        let mut concern = ReadConcern::default();
        for arg in fields("readConcern", doc) {
            match arg.name() {
                "afterClusterTime" => concern.after_cluster_time = Some(timestamp(&arg)?),
                "atClusterTime" => concern.at_cluster_time = Some(timestamp(&arg)?),
                _ if arg.is_null() => {}
                "level" => concern.level = Some(parse_level(arg.string()?)?),
                "provenance" => check_provenance("readConcern", arg.string()?)?,
                "allowTransactionTableSnapshot" | "waitLastStableRecoveryTimestamp" => {
                    arg.bool()?;
                }
                "afterOpTime" => return Err(Error::not_built("readConcern.afterOpTime")),
                _ => return Err(arg.unknown()),
            }
        }
        concern.check()?;
        Ok(concern)
    }

    /// Returns true for a level that every command accepts.
    pub fn is_plain(&self) -> bool {
        matches!(self.level, None | Some(ReadLevel::Local)) && self.at_cluster_time.is_none()
    }

    /// Fails for a time that this server has not reached; `now` is `None` for a server without
    /// cluster time.
    pub fn check_reached(&self, now: Option<Timestamp>) -> Result<()> {
        if self.level == Some(ReadLevel::Snapshot) && now.is_none() {
            let text = "node needs to be a replica set member to use readConcern: snapshot";
            return Err(Error::new(ErrorCode::NotAReplicaSet, text));
        }
        let (name, after) = match (self.after_cluster_time, self.at_cluster_time) {
            (Some(after), _) => ("afterClusterTime", after),
            (None, Some(at)) => ("atClusterTime", at),
            (None, None) => return Ok(()),
        };
        let Some(now) = now else {
            let text = "Cannot wait for a cluster time on a server that is no replica set member";
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        };
        if after <= now {
            return Ok(());
        }
        let shown =
            |time: Timestamp| format!("{{ ts: Timestamp({}, {}) }}", time.seconds, time.increment);
        let text = format!(
            "readConcern {name} value must not be greater than the current clusterTime. Requested clusterTime: {}; current clusterTime: {}",
            shown(after),
            shown(now)
        );
        Err(Error::new(ErrorCode::InvalidOptions, text))
    }

    fn check(&self) -> Result<()> {
        let none = Timestamp { seconds: 0, increment: 0 };
        if self.after_cluster_time == Some(none)
            || self.at_cluster_time.is_some_and(|time| time.seconds == 0)
        {
            let text = "afterClusterTime and atClusterTime cannot be a null timestamp";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        let level = self.level.unwrap_or_default();
        if self.after_cluster_time.is_some() {
            if self.at_cluster_time.is_some() {
                let text = "Specifying both afterClusterTime and atClusterTime is not allowed";
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
            if matches!(level, ReadLevel::Available | ReadLevel::Linearizable) {
                let text = "afterClusterTime field can be set only if level is equal to majority, \
                            local, or snapshot";
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
        }
        if self.at_cluster_time.is_some() && level != ReadLevel::Snapshot {
            let text = "atClusterTime field can be set only if level is equal to snapshot";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        Ok(())
    }
}

/// Checks the origin of a read or write concern, which a client may send.
fn check_provenance(owner: &str, provenance: &str) -> Result<()> {
    const KNOWN: &[&str] = &[
        "clientSupplied",
        "implicitDefault",
        "customDefault",
        "getLastErrorDefaults",
        "internalWriteDefault",
    ];
    match KNOWN.contains(&provenance) {
        true => Ok(()),
        false => Err(Error::bad_value(format!(
            "Enumeration value '{provenance}' for field '{owner}.provenance' is not a valid value."
        ))),
    }
}

fn timestamp(arg: &crate::frame::args::Arg<'_>) -> Result<Timestamp> {
    match arg.value() {
        Value::Timestamp(time) => Ok(time),
        _ => Err(arg.wrong_type("timestamp")),
    }
}

fn parse_level(level: &str) -> Result<ReadLevel> {
    Ok(match level {
        "local" => ReadLevel::Local,
        "available" => ReadLevel::Available,
        "majority" => ReadLevel::Majority,
        "snapshot" => ReadLevel::Snapshot,
        "linearizable" => ReadLevel::Linearizable,
        _ => {
            return Err(Error::bad_value(format!(
                "Enumeration value '{level}' for field 'readConcern.level' is not a valid value."
            )));
        }
    })
}
