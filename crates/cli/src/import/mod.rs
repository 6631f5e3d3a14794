//! `quire import`: imports documents from JSON, CSV or TSV into a collection. Every line that is
//! not imported is reported, and the exit code shows whether there was one.

mod columns;
mod csv;
mod dates;
mod json;
mod options;
mod source;
mod statements;
mod workers;

use crate::call::{Call, print};
use crate::connect::CallError;
use crate::exit::{FAILED, FOUND, Failure};
use crate::progress::{CountingReader, Progress};
use options::{ImportOptions, Input};
use quire_document::doc;
use source::{Item, Source};
use statements::Statements;
use std::io::{BufReader, Read};
use workers::{Batch, Workers};

/// The number of documents in a batch, and below their bytes.
const BATCH_DOCUMENTS: usize = 1000;
const BATCH_BYTES: usize = 8 << 20;

/// Runs `quire import`: reads documents from a file or from the standard input and writes them.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = ImportOptions::parse(call)? else {
        print(&options::help());
        return Ok(());
    };
    let (input, size): (Box<dyn Read>, Option<u64>) = match &options.file {
        Input::Stdin => (Box::new(std::io::stdin()), None),
        Input::File(path) => {
            let cannot =
                |error| Failure::new(FAILED, format!("cannot read {}: {error}", path.display()));
            let file = std::fs::File::open(path).map_err(cannot)?;
            let size = file.metadata().map_err(cannot)?.len();
            (Box::new(file), Some(size))
        }
    };
    let progress = Progress::start(size, options.quiet);
    let input = BufReader::with_capacity(1 << 20, CountingReader::new(input, &progress));
    let mut source = options.source(input)?;
    let door = options.target.open_or_create("quire import")?;
    if options.drop {
        let dropped = door.client()?.call(&options.db, doc! { "drop": &*options.collection }, None);
        match dropped {
            Ok(_) | Err(CallError::Refused { code: 26, .. }) => {}
            Err(error) => return Err(error.failure("cannot drop the collection")),
        }
    }
    let statements = Statements::new(&options);
    let workers = Workers::start(&door, &options, &progress)?;
    let read = feed(&mut *source, &statements, &options, &workers, &progress);
    let tally = workers.finish();
    progress.finish();
    door.close()?;
    let failed = tally.failed + read.bad;
    print(&format!(
        "{} document(s) {} {}.{}. {failed} document(s) failed.",
        tally.done,
        statements.verb(),
        options.db,
        options.collection
    ));
    if let Some(why) = tally.ended.or(read.ended) {
        return Err(Failure::new(FAILED, why));
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(FOUND, "some lines were not imported; they are listed above")),
    }
}

/// The result of reading the input.
struct Feed {
    /// The number of lines without a document.
    bad: u64,
    /// The error that ended reading, if there was one.
    ended: Option<String>,
}

/// Reads the source to its end and passes its documents to the workers.
fn feed(
    source: &mut dyn Source,
    statements: &Statements,
    options: &ImportOptions,
    workers: &Workers,
    progress: &Progress,
) -> Feed {
    let mut read = Feed { bad: 0, ended: None };
    let mut batch = Batch::default();
    while !workers.stopped() {
        match source.next() {
            None => break,
            Some(Item::Document { line, document }) => match statements.statement(document) {
                Ok(statement) => batch.push(line, statement),
                Err(why) => {
                    read.bad += 1;
                    progress.complain(&format!("line {line}: {why}"));
                    if options.stop_on_error {
                        break;
                    }
                }
            },
            Some(Item::Bad { line, why }) => {
                read.bad += 1;
                progress.complain(&format!("line {line}: {why}"));
                if options.stop_on_error {
                    read.ended = Some(format!("stopped at line {line}; the rest was not read"));
                    break;
                }
            }
            Some(Item::End { line, why }) => {
                read.bad += 1;
                progress.complain(&format!("line {line}: {why}"));
                read.ended = Some(format!("line {line}: the rest was not read"));
                break;
            }
        }
        if batch.len() >= BATCH_DOCUMENTS || batch.bytes() >= BATCH_BYTES {
            workers.send(std::mem::take(&mut batch));
        }
    }
    workers.send(batch);
    read
}
