//! A trace file: BSON documents one after the other, the head first.

use crate::exit::{FAILED, Failure};
use quire_advisor::trace::{Entry, Head};
use quire_document::limits::Limits;
use quire_document::{Doc, validate};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// A file that is being written.
pub(super) struct TraceWriter {
    path: PathBuf,
    out: BufWriter<File>,
}

impl TraceWriter {
    /// Creates a file, which must not exist.
    pub(super) fn create(path: &Path, head: Doc<'_>) -> Result<TraceWriter, Failure> {
        let file = File::create_new(path).map_err(|error| failed(path, "create", &error))?;
        let mut writer = TraceWriter { path: path.to_owned(), out: BufWriter::new(file) };
        writer.write(head)?;
        Ok(writer)
    }

    /// Appends a document.
    pub(super) fn write(&mut self, doc: Doc<'_>) -> Result<(), Failure> {
        let written = self.out.write_all(doc.as_bytes());
        written.map_err(|error| failed(&self.path, "write", &error))
    }

    /// Writes what is buffered.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| failed(&self.path, "write", &error))
    }
}

/// Reads a whole file.
pub(super) fn read(path: &Path) -> Result<(Head, Vec<Entry>), Failure> {
    let file = File::open(path).map_err(|error| failed(path, "open", &error))?;
    let mut input = BufReader::new(file);
    let damaged = |why: String| {
        Failure::new(FAILED, format!("{} is damaged or no trace: {why}", path.display()))
    };
    let mut buffer = Vec::new();
    let (mut head, mut entries) = (None, Vec::new());
    while next(&mut input, &mut buffer).map_err(|error| failed(path, "read", &error))? {
        let doc = validate(&buffer, &Limits::WIRE).map_err(|error| damaged(error.to_string()))?;
        if head.is_none() {
            head = Some(Head::from_document(doc).map_err(|error| damaged(error.to_string()))?);
            continue;
        }
        let entry = Entry::from_document(doc);
        entries.push(entry.map_err(|error| damaged(error.to_string()))?);
    }
    match head {
        Some(head) => Ok((head, entries)),
        None => Err(damaged("it is empty".to_owned())),
    }
}

/// Reads the bytes of the next document. Returns false at the end of the file.
fn next(input: &mut impl Read, buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    buffer.clear();
    buffer.extend_from_slice(&length);
    let rest = u64::from(u32::from_le_bytes(length)).saturating_sub(4);
    let read = input.take(rest).read_to_end(buffer)?;
    match read as u64 == rest {
        true => Ok(true),
        false => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

fn failed(path: &Path, doing: &str, error: &std::io::Error) -> Failure {
    Failure::new(FAILED, format!("cannot {doing} {}: {error}", path.display()))
}
