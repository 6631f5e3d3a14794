//! `createIndexes`: creates indexes, and the collection if it does not exist.

use crate::ddl::create::refuse_system;
use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use quire_catalog::IndexSpec;
use quire_collections::CreateIndexes;
use quire_document::{Array, Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_session::Changed;

/// The indexes that are parsed between two checks of the interrupt.
const UNCHECKED: usize = 1000;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut indexes, mut ignore_unknown) = (None, false);
    let mut quorum = Value::String("votingMembers");
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "indexes" => indexes = Some((arg, arg.array()?)),
            "ignoreUnknownIndexOptions" if !arg.is_null() => ignore_unknown = arg.bool()?,
            "commitQuorum" => {
                check_quorum(&arg)?;
                if !arg.is_null() {
                    quorum = arg.value();
                }
            }
            "ignoreUnknownIndexOptions" => {}
            "isTimeseriesNamespace" => {
                arg.bool()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = cx.target(body)?;
    let (arg, indexes) = indexes.ok_or_else(|| missing(cx.command.name, "indexes"))?;
    let specs = specs(cx, &arg, indexes, ignore_unknown)?;
    if cx.in_transaction() && cx.service.store.catalog().lookup(&namespace).is_none() {
        refuse_system(&namespace)?;
    }
    let request = CreateIndexes { namespace, specs };
    // Only a command that changes the collection waits for its transactions.
    if !cx.in_transaction() && makes_indexes(cx, &request)? {
        let namespace = request.namespace.as_str().to_owned();
        // Transactions may continue during the build.
        drop(cx.await_transactions(Changed::Collections(vec![namespace]))?);
    }
    cx.service.bound_builds();
    let built = cx.server_unit()?.create_indexes(&request, &cx.interrupt);
    let built = built.map_err(|error| cx.without_values(&request.namespace, error))?;
    reply.append("numIndexesBefore", built.before as i32);
    reply.append("numIndexesAfter", built.after as i32);
    if built.created_collection || built.after > built.before {
        reply.append("createdCollectionAutomatically", built.created_collection);
        reply.append("commitQuorum", quorum);
    }
    if let Some(note) = built.note(request.specs.len()) {
        reply.append("note", note);
    }
    Ok(())
}

fn makes_indexes(cx: &Context<'_>, request: &CreateIndexes) -> Result<bool> {
    let makes = cx.service.store.makes_indexes(request, &cx.interrupt);
    makes.map_err(|error| cx.without_values(&request.namespace, error))
}

fn specs(
    cx: &Context<'_>,
    arg: &Arg<'_>,
    indexes: Array<'_>,
    ignore_unknown: bool,
) -> Result<Vec<IndexSpec>> {
    if indexes.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    let mut specs = Vec::new();
    for (at, index) in indexes.iter().enumerate() {
        if index.is_nullish() {
            continue;
        }
        let Value::Document(spec) = index else {
            let found = index.type_name();
            let name = arg.name();
            return Err(Error::type_mismatch(format!(
                "BSON field 'createIndexes.{name}.{at}' is the wrong type '{found}', expected type 'object'"
            )));
        };
        let parsed = IndexSpec::parse(spec, ignore_unknown)?;
        if cx.generic.api.strict == Some(true) && is_text(parsed.key.as_doc()) {
            let text = "text indexes cannot be created with apiStrict: true";
            return Err(Error::new(ErrorCode::APIStrictError, text));
        }
        specs.push(parsed);
        if specs.len().is_multiple_of(UNCHECKED) {
            cx.interrupt_check().check()?;
        }
    }
    Ok(specs)
}

/// Returns true for the key pattern of a text index.
fn is_text(key: Doc<'_>) -> bool {
    key.fields().any(|(_, kind)| kind.as_str() == Some("text"))
}

/// Checks the commit quorum: with one member every quorum of one is met.
fn check_quorum(arg: &Arg<'_>) -> Result<()> {
    match arg.value() {
        Value::Null | Value::String("majority" | "votingMembers") => Ok(()),
        Value::String(mode) => {
            let text =
                format!("No write concern mode named '{mode}' found in replica set configuration");
            Err(Error::new(ErrorCode::UnknownReplWriteConcern, text))
        }
        value => match crate::frame::args::whole(value) {
            Some(0 | 1) => Ok(()),
            Some(members) if members > 1 => {
                let text = format!(
                    "Commit quorum cannot be satisfied with the current replica set configuration: {members}"
                );
                Err(Error::new(ErrorCode::UnsatisfiableCommitQuorum, text))
            }
            Some(_) => Err(Error::failed_to_parse("commitQuorum has to be a non-negative number")),
            None => Err(Error::type_mismatch(format!(
                "BSON field 'createIndexes.commitQuorum' is the wrong type '{}', expected types '[long, int, decimal, double, string']",
                value.type_name()
            ))),
        },
    }
}
