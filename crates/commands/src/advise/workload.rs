//! The argument `workload` of the advice: a list of commands with how often each runs.

use crate::frame::args::{Arg, fields};
use quire_advisor::indexes::IndexRequest;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};

/// The most commands of a workload.
pub const COMMANDS_MAX: usize = 10_000;

/// The requests for which indexes are advised.
#[derive(Default)]
pub struct AdvisedWorkload {
    /// The commands of the workload.
    pub requests: Vec<IndexRequest>,
    /// The name of their origin in the reply.
    pub source: &'static str,
}

impl AdvisedWorkload {
    /// Parses the argument.
    ///
    /// # Errors
    /// 2 BadValue, 14 TypeMismatch, 40415 for an unknown field.
    pub fn parse(arg: &Arg<'_>) -> Result<AdvisedWorkload> {
        let mut parsed = AdvisedWorkload { source: "commands", ..AdvisedWorkload::default() };
        for field in fields("adviseIndexes.workload", arg.document()?) {
            match field.name() {
                "commands" => {
                    let commands = field.array()?.iter().enumerate();
                    let request = |(at, value): (usize, Value<'_>)| match value {
                        Value::Document(request) => parse_request(request),
                        other => Err(field.wrong_element(at, other, "object")),
                    };
                    parsed.requests = commands.map(request).collect::<Result<_>>()?;
                }
                _ => return Err(field.unknown()),
            }
        }
        if parsed.requests.len() > COMMANDS_MAX {
            let text = format!("a workload has at most {COMMANDS_MAX} commands");
            return Err(Error::bad_value(text));
        }
        Ok(parsed)
    }
}

/// Parses a command, or `{command, count}`.
fn parse_request(request: Doc<'_>) -> Result<IndexRequest> {
    let Some(Value::Document(command)) = request.get("command") else {
        return Ok(IndexRequest { command: request.to_owned(), count: 1.0 });
    };
    let mut count = 1.0;
    for field in fields("adviseIndexes.workload.commands", request) {
        match field.name() {
            "command" => {}
            "count" => count = field.integer_from(1)? as f64,
            _ => return Err(field.unknown()),
        }
    }
    Ok(IndexRequest { command: command.to_owned(), count })
}
