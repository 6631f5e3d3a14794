//! `setIndexCommitQuorum`: how many members must have built an index before it is committed. The only
//! member is all of them, so a build that runs goes on as it is.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use quire_catalog::IndexState;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut names, mut has_quorum) = (None, false);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "indexNames" => names = Some(index_names(&arg)?),
            "commitQuorum" => {
                check_quorum(&arg)?;
                has_quorum = true;
            }
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = cx.target(body)?;
    let names = names.ok_or_else(|| missing(cx.command.name, "indexNames"))?;
    if !has_quorum {
        return Err(missing(cx.command.name, "commitQuorum"));
    }
    let catalog = cx.service.store.catalog();
    let is_built = |name: &&str| {
        let index = catalog.lookup(&namespace).and_then(|found| found.index_by_name(name));
        index.is_some_and(|index| index.state == IndexState::WriteOnly)
    };
    match !names.is_empty() && names.iter().all(is_built) {
        true => Ok(()),
        false => {
            let text = format!(
                "Cannot find an index build on collection '{namespace}' with the provided index names"
            );
            Err(Error::new(ErrorCode::IndexNotFound, text))
        }
    }
}

fn index_names<'a>(arg: &Arg<'a>) -> Result<Vec<&'a str>> {
    let name = |(at, name): (usize, Value<'a>)| {
        name.as_str().ok_or_else(|| arg.wrong_element(at, name, "string"))
    };
    arg.array()?.iter().enumerate().map(name).collect()
}

/// Accepts a number of members, or the name of a mode.
fn check_quorum(arg: &Arg<'_>) -> Result<()> {
    match arg.value().as_str() {
        Some("majority" | "votingMembers") => Ok(()),
        Some(other) => {
            let text =
                format!("No write concern mode named '{other}' found in replica set configuration");
            Err(Error::new(ErrorCode::UnknownReplWriteConcern, text))
        }
        None => match arg.integer()? {
            0..=1 => Ok(()),
            more => {
                let text = format!(
                    "a commit quorum of {more}; this server is a replica set of one member"
                );
                Err(Error::new(ErrorCode::UnsatisfiableCommitQuorum, text))
            }
        },
    }
}
