//! `setDefaultRWConcern`: sets the default read and write concern, durably.

use crate::frame::args::{Arg, arguments};
use crate::frame::concern::{Acknowledge, ReadConcern, ReadLevel, WriteConcern};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};

/// The change of one of the two.
enum Change<T> {
    Keep,
    Unset,
    Set(T),
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut read, mut write) = (Change::Keep, Change::Keep);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "defaultReadConcern" | "defaultWriteConcern" if arg.is_null() => {}
            "defaultReadConcern" => read = read_change(&arg)?,
            "defaultWriteConcern" => write = write_change(&arg)?,
            _ => return Err(arg.unknown()),
        }
    }
    if matches!((&read, &write), (Change::Keep, Change::Keep)) {
        let text = "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present";
        return Err(Error::bad_value(text));
    }
    cx.check_member()?;
    if let Some(error) = cx.write_concern().unsatisfied("clientSupplied") {
        return Err(error);
    }
    let defaults = &cx.service.concern_defaults;
    defaults.change(cx.service, cx.commit_options(), |current| {
        match read {
            Change::Keep => {}
            Change::Unset => current.read = None,
            Change::Set(level) => current.read = Some(level),
        }
        match write {
            Change::Keep => {}
            Change::Unset if current.write.is_none() => {}
            Change::Unset => {
                let text = "The global default write concern cannot be unset once it is set.";
                return Err(Error::new(ErrorCode::IllegalOperation, text));
            }
            Change::Set(concern) => current.write = Some(concern),
        }
        Ok(())
    })?;
    defaults.write_reply(false, reply);
    Ok(())
}

fn read_change(arg: &Arg<'_>) -> Result<Change<ReadLevel>> {
    let doc = arg.document()?;
    if let Some(name) = ["afterClusterTime", "atClusterTime", "afterOpTime"]
        .into_iter()
        .find(|name| doc.contains(name))
    {
        let text = format!("'{name}' is not suitable for the default read concern");
        return Err(Error::bad_value(text));
    }
    if doc.contains("provenance") {
        return Err(Error::bad_value("'provenance' must be unset in default read concern"));
    }
    match ReadConcern::parse(doc)?.level {
        None => Ok(Change::Unset),
        Some(level @ (ReadLevel::Linearizable | ReadLevel::Snapshot)) => {
            let level = level.name();
            let text = format!("level: '{level}' is not suitable for the default read concern");
            Err(Error::bad_value(text))
        }
        Some(level) => Ok(Change::Set(level)),
    }
}

fn write_change(arg: &Arg<'_>) -> Result<Change<WriteConcern>> {
    let doc = arg.document()?;
    if doc.is_empty() {
        return Ok(Change::Unset);
    }
    if doc.contains("provenance") {
        return Err(Error::bad_value("'provenance' must be unset in default write concern"));
    }
    let mut concern = WriteConcern::parse(doc)?;
    if doc.get("w").is_some_and(|w| w.is_nullish()) {
        concern.w = Some(Acknowledge::Mode(String::new()));
    }
    match &concern.w {
        None => Err(Error::bad_value("'w' must be given in the default write concern")),
        Some(Acknowledge::Members(0)) => {
            let text = "Unacknowledged write concern is not suitable for the default write concern";
            Err(Error::bad_value(text))
        }
        Some(_) => match concern.unsatisfied("clientSupplied") {
            Some(error) => Err(error),
            None => Ok(Change::Set(concern)),
        },
    }
}
