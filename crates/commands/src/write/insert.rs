//! `insert`: inserts documents into a collection.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::write::write_reply::{WriteErrors, WriteOptions, Written, statements, write_target};
use quire_document::{Doc, DocWriter};
use quire_error::Result;
use quire_executor::modify::{InsertOptions, insert_commits, insert_many};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut options, mut documents) = (WriteOptions::default(), None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "documents" => documents = Some(arg),
            _ if options.read(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = write_target(cx, body)?;
    cx.tally.fingerprint = cx.insert_print(&namespace);
    let documents = statements(cx, "documents", documents)?;
    let commits = insert_commits(&namespace, documents.len());
    let mut unit = cx.write_unit(commits, &options.statements, documents.len(), options.policy)?;
    let left = unit.skip_repeated();
    let chosen: Vec<Doc<'_>>;
    let pending: &[Doc<'_>] = match &left {
        None => &documents,
        Some(left) => {
            chosen = left.iter().filter_map(|place| documents.get(*place).copied()).collect();
            &chosen
        }
    };
    cx.begin_statements(&mut unit, 0..pending.len())?;
    // The first error aborts a transaction.
    let ordered = options.ordered || cx.in_transaction();
    let how = InsertOptions { ordered, timestamps: options.timestamps };
    let mut outcome = insert_many(&mut unit, &namespace, pending, how, &cx.interrupt)?;
    match outcome.errors.is_empty() {
        true => unit.note(outcome.committed.as_ref()),
        false => unit.note_some(outcome.committed.as_ref()),
    }
    if let Some(left) = &left {
        for (place, _) in &mut outcome.errors {
            *place = left.get(*place).copied().unwrap_or(*place);
        }
        if let Some((place, _)) = outcome.errors.first().filter(|_| options.ordered) {
            unit.forget_after(*place);
        }
    }
    let repeated = cx.finish_writes(unit)?;
    cx.tally.inserted = Some(outcome.inserted);
    cx.tally.has_write_errors = !outcome.errors.is_empty();
    cx.service.metrics.inserts.add(outcome.inserted);
    cx.service.metrics.documents_inserted.add(outcome.inserted);
    let mut errors = WriteErrors::default();
    errors.extend(outcome.errors);
    let count = outcome.inserted as i32 + repeated.len() as i32;
    Written { count, errors, repeated: &repeated, ..Written::default() }.write(cx, reply);
    Ok(())
}
