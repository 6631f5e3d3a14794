//! `filemd5`: the MD5 hash of a file that GridFS has stored.

use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use md5::{Digest, Md5};
use quire_document::{ArrayBuf, Doc, DocWriter, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{BatchLimits, UnitOfWork, open};
use quire_planner::AggregateRequest;
use std::fmt::Write;

/// The chunks that are read at a time.
const CHUNKS: usize = 100;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut root = "fs";
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "root" => root = arg.string()?,
            "partialOk" | "md5state" => {
                let text =
                    format!("filemd5.{} is not supported: a file is hashed as a whole", arg.name());
                return Err(Error::new(ErrorCode::CommandNotSupported, text));
            }
            _ => return Err(arg.unknown()),
        }
    }
    let file = body.first().map(|first| first.value());
    let file = file.ok_or_else(|| missing(cx.command.name, cx.command.name))?;
    let request = AggregateRequest {
        namespace: format!("{}.{root}.chunks", cx.db),
        pipeline: vec![
            doc! { "$match": { "files_id": { "$eq": file } } },
            doc! { "$sort": { "files_id": 1, "n": 1 } },
        ],
        ..AggregateRequest::default()
    };
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    let mut execution = open(&request, &views, cx.exec_params())?;
    let (mut hash, mut chunks) = (Md5::new(), 0);
    loop {
        let mut end = Ok(true);
        let batch = ArrayBuf::build(|out| {
            let limits = BatchLimits::docs(CHUNKS);
            let batch = execution.next_batch(&mut views, &cx.interrupt, limits, out);
            end = batch.map(|batch| batch.is_last());
        });
        let is_last = end?;
        for row in batch.as_array().iter() {
            add_chunk(row.as_document().unwrap_or_default(), chunks, &mut hash)?;
            chunks += 1;
        }
        if is_last {
            break;
        }
    }
    reply.append("numChunks", chunks);
    let hex = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    reply.append("md5", hex.as_str());
    Ok(())
}

/// Adds the chunk number `at` to the hash.
fn add_chunk(chunk: Doc<'_>, at: i32, hash: &mut Md5) -> Result<()> {
    let n = chunk.get("n").and_then(|n| n.exact_i64());
    if n != Some(i64::from(at)) {
        let found = n.map_or("one without a number".to_owned(), |n| n.to_string());
        let text = format!("should have chunk: {at} have: {found}");
        return Err(Error::location(50985, text));
    }
    match chunk.get("data") {
        Some(Value::Binary(data)) => hash.update(data.bytes),
        _ => {
            return Err(Error::location(
                50849,
                "The element that calls binDataClean() must be type of BinData",
            ));
        }
    }
    Ok(())
}
