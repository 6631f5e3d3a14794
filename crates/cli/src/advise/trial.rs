//! Indexes tried in the laboratory of the server, which only Quire has: what it measured replaces the
//! estimates of rule I1.

use super::options::AdviseOptions;
use crate::connect::{Client, batch};
use crate::exit::Failure;
use quire_advisor::Extent;
use quire_advisor::findings::tried::trials;
use quire_advisor::findings::{Advice, Input};
use quire_document::{ArrayBuf, Doc, DocBuf, doc};

/// The documents that give values to the conditions of a shape.
const DOCUMENTS: i32 = 3;
/// The indexes that a collection can have, which is the budget of the advice.
const INDEXES_MAX: i32 = 64;

/// Lets the server run the statements of rule I1 with indexes. Where it refuses, because the user may
/// not or its version cannot, the estimate stays.
///
/// # Errors
/// A server that does not reply any more.
pub(super) fn try_indexes(
    options: &AdviseOptions,
    tool: &str,
    input: &Input<'_>,
    advice: &mut Advice,
) -> Result<(), Failure> {
    let all = trials(input, advice);
    if all.is_empty() {
        return Ok(());
    }
    let door = options.reading.target.open(tool)?;
    let mut client = door.client()?;
    for trial in all {
        let documents = some_documents(&mut client, input.database, &trial.collection);
        let requests = trial.requests(&documents);
        let commands = requests.requests.iter().map(|request| {
            doc! { "command": &request.command, "count": request.count }
        });
        let commands: Vec<DocBuf> = commands.collect();
        let commands: ArrayBuf = commands.iter().collect();
        let mut command = doc! {
            "adviseIndexes": trial.collection.as_str(), "workload": { "commands": &commands },
            "budget": { "maxIndexes": INDEXES_MAX },
        };
        if let Extent::Sample(documents) = options.reading.extent {
            command.append("sampleSize", documents as i64);
        }
        let Ok(reply) = client.call(input.database, command, None) else { continue };
        let advised = reply.get("collections").and_then(|all| all.as_array()?.get(0));
        if let Some(advised) = advised.and_then(|advised| advised.as_document()) {
            trial.confirm(input, &requests, advised, &options.silenced, advice);
        }
    }
    drop(client);
    door.close()
}

/// Returns some documents of a collection; none if the server refuses.
fn some_documents(client: &mut Client, db: &str, collection: &str) -> Vec<DocBuf> {
    let command = doc! {
        "aggregate": collection, "pipeline": [{ "$sample": { "size": DOCUMENTS } }], "cursor": {},
    };
    let Ok(reply) = client.call(db, command, None) else { return Vec::new() };
    let Ok((_, documents)) = batch(&reply, "firstBatch") else { return Vec::new() };
    documents.iter().filter_map(|one| one.as_document()).map(Doc::to_owned).collect()
}
