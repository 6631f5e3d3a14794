//! `quire export`: the documents of a collection as Extended JSON or CSV.

mod csv;
mod options;

use crate::call::{Call, print};
use crate::connect::{CallError, Client, batch, integer};
use crate::exit::{FAILED, Failure};
use crate::progress::Progress;
use csv::CsvWriter;
use options::{ExportOptions, Kind, Output};
use quire_document::extjson::{self, Format};
use quire_document::{Doc, Value, doc};
use std::io::{BufWriter, Write};

/// Runs `quire export`: writes the documents of a collection to a file or to the standard output.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = ExportOptions::parse(call)? else {
        print(&options::help());
        return Ok(());
    };
    let door = options.target.open("quire export")?;
    let mut client = door.client()?;
    if options.assert_exists && !exists(&mut client, &options)? {
        let text = format!("the collection {}.{} does not exist", options.db, options.collection);
        return Err(Failure::new(FAILED, text));
    }
    let output: Box<dyn Write> = match &options.output {
        Output::Stdout => Box::new(std::io::stdout()),
        Output::File(path) => Box::new(std::fs::File::create(path).map_err(|error| {
            Failure::new(FAILED, format!("cannot write {}: {error}", path.display()))
        })?),
    };
    let mut sink = Sink::new(BufWriter::with_capacity(1 << 20, output), &options)?;
    let progress = Progress::documents(total(&mut client, &options), options.quiet);
    let exported = copy(&mut client, &options, &mut sink, &progress);
    progress.finish();
    let exported = exported.and_then(|count| sink.finish().map(|()| count).map_err(cannot_write));
    drop(client);
    door.close()?;
    let count = exported?;
    if !options.quiet {
        eprintln!("exported {count} document(s)");
    }
    Ok(())
}

fn cannot_write(error: std::io::Error) -> Failure {
    Failure::new(FAILED, format!("cannot write: {error}; the output is incomplete"))
}

fn exists(client: &mut Client, options: &ExportOptions) -> Result<bool, Failure> {
    let list = doc! {
        "listCollections": 1, "nameOnly": true, "filter": { "name": &*options.collection },
    };
    let reply = client
        .call(&options.db, list, None)
        .map_err(|error| error.failure("cannot list the collections"))?;
    let (_, batch) = batch(&reply, "firstBatch")?;
    Ok(batch.count() > 0)
}

/// Returns the number of documents to export, if no filter is given.
fn total(client: &mut Client, options: &ExportOptions) -> Option<u64> {
    if !options.query.as_doc().is_empty() {
        return None;
    }
    let count = doc! { "count": &*options.collection };
    let reply = client.call(&options.db, count, None).ok()?;
    let all = u64::try_from(reply.get("n").and_then(integer)?).ok()?;
    let left = all.saturating_sub(options.skip.unsigned_abs());
    Some(if options.limit > 0 { left.min(options.limit.unsigned_abs()) } else { left })
}

/// Fetches and writes all documents. Returns their number.
fn copy(
    client: &mut Client,
    options: &ExportOptions,
    sink: &mut Sink,
    progress: &Progress,
) -> Result<u64, Failure> {
    let cannot = |error: CallError| error.failure("cannot read the collection");
    let mut reply = client.call(&options.db, options.find(), None).map_err(cannot)?;
    let mut name = "firstBatch";
    let mut count = 0;
    loop {
        let (id, documents) = batch(&reply, name)?;
        for document in documents.iter().filter_map(|value| value.as_document()) {
            sink.write(document).map_err(cannot_write)?;
            count += 1;
        }
        progress.add(documents.count() as u64);
        if id == 0 {
            return Ok(count);
        }
        let more = doc! { "getMore": id, "collection": &*options.collection };
        reply = client.call(&options.db, more, None).map_err(cannot)?;
        name = "nextBatch";
    }
}

/// Writes documents in the requested format.
enum Sink {
    Json { out: Stream, format: Format, array: bool, first: bool, text: String },
    Csv(Box<CsvWriter<Stream>>),
}

type Stream = BufWriter<Box<dyn Write>>;

impl Sink {
    fn new(mut out: Stream, options: &ExportOptions) -> Result<Sink, Failure> {
        if options.kind == Kind::Csv {
            let writer = CsvWriter::new(out, &options.fields, options.header);
            return writer.map(|writer| Sink::Csv(Box::new(writer))).map_err(cannot_write);
        }
        if options.json_array {
            out.write_all(b"[").map_err(cannot_write)?;
        }
        let format = Format { canonical: options.canonical, pretty: options.pretty };
        Ok(Sink::Json { out, format, array: options.json_array, first: true, text: String::new() })
    }

    fn write(&mut self, document: Doc<'_>) -> std::io::Result<()> {
        match self {
            Sink::Csv(writer) => writer.write(document),
            Sink::Json { out, format, array, first, text } => {
                text.clear();
                if *array && !*first {
                    text.push_str(",\n");
                }
                // Writing to a string cannot fail.
                let _ = extjson::write(Value::Document(document), *format, text);
                if !*array {
                    text.push('\n');
                }
                *first = false;
                out.write_all(text.as_bytes())
            }
        }
    }

    fn finish(&mut self) -> std::io::Result<()> {
        match self {
            Sink::Csv(writer) => writer.finish(),
            Sink::Json { out, array, .. } => {
                if *array {
                    out.write_all(b"]\n")?;
                }
                out.flush()
            }
        }
    }
}
