//! Interleaved parts: documents or arrays, each field of which is a stream of its own.
//!
//! A document, the *reference*, has all fields of the documents to come, in their order, with a value before their first
//! one. For each document each stream gives its next value; a stream whose blocks are at their end takes the next literal or
//! the next blocks of the part.

use quire_document::{Doc, Element, Type};
use quire_error::Result;

use super::control::{self, Control, Form};
use super::series::Series;
use super::{Budget, STATE_STEPS, malformed};

/// A step of building a document.
#[derive(Debug)]
enum Build<'a> {
    /// Begins a document or an array.
    Open { name: &'a [u8], kind: Type },
    /// Appends the next value of the next stream.
    Field { name: &'a [u8] },
    /// Ends the innermost document or array. It is left out if it has no fields, unless it is empty in the reference.
    Close { keeps_empty: bool },
}

/// An interleaved part.
#[derive(Debug)]
pub(super) struct Interleaved<'a> {
    root: Type,
    steps: Vec<Build<'a>>,
    streams: Vec<Series<'a>>,
    /// The last document in wire form; empty if it was missing.
    document: Vec<u8>,
    /// The document that is being built.
    next: Vec<u8>,
    has_documents: bool,
}

impl<'a> Interleaved<'a> {
    /// Returns the part with the fields of a reference.
    ///
    /// # Errors
    /// 378 NonConformantBSON for a reference without fields, and if the budget is too small.
    pub fn new(form: Form, reference: Doc<'a>, budget: &mut Budget) -> Result<Self> {
        let mut part = Interleaved {
            root: form.root,
            steps: Vec::new(),
            streams: Vec::new(),
            document: Vec::new(),
            next: Vec::new(),
            has_documents: false,
        };
        part.add((b"", form.root), reference, form, budget)?;
        match part.streams.is_empty() {
            true => Err(malformed("documents without fields")),
            false => Ok(part),
        }
    }

    /// Adds the fields of a document in the reference. The reference is valid, which bounds the depth.
    fn add(
        &mut self,
        (name, kind): (&'a [u8], Type),
        doc: Doc<'a>,
        form: Form,
        budget: &mut Budget,
    ) -> Result<()> {
        let keeps_empty = doc.is_empty();
        budget.spend(STATE_STEPS)?;
        self.steps.push(Build::Open { name, kind });
        for element in doc.iter() {
            let kind = element.kind();
            if kind == Type::Document || kind == Type::Array && form.enters_arrays {
                let inner = Doc::from_valid_bytes(element.value_bytes());
                self.add((element.key_bytes(), kind), inner, form, budget)?;
                continue;
            }
            budget.spend(STATE_STEPS)?;
            self.steps.push(Build::Field { name: element.key_bytes() });
            self.streams.push(Series::after(element));
        }
        self.steps.push(Build::Close { keeps_empty });
        Ok(())
    }

    /// Moves to the next document, and returns whether there is one or it is missing; `None` at the end of the part. `at` is
    /// the position of the next control byte in `bytes`.
    ///
    /// # Errors
    /// 378 NonConformantBSON for damaged bytes, and if the budget is too small.
    pub fn advance(
        &mut self,
        bytes: &'a [u8],
        at: &mut usize,
        budget: &mut Budget,
    ) -> Result<Option<bool>> {
        let Interleaved { steps, streams, next, .. } = self;
        next.clear();
        budget.spend(steps.len() as u64)?;
        let mut opened = Vec::new();
        let mut rest = streams.iter_mut();
        let mut is_first = true;
        for step in steps.iter() {
            match step {
                Build::Open { name, kind } => {
                    opened.push(next.len());
                    // The outermost document is a value without type and name.
                    if opened.len() > 1 {
                        put_header(next, *kind, name);
                    }
                    next.extend_from_slice(&[0; 4]);
                }
                Build::Field { name } => {
                    let Some(stream) = rest.next() else { break };
                    match advance_stream(stream, bytes, at)? {
                        None if is_first => return self.finish(),
                        None => return Err(malformed("a document ends between its fields")),
                        Some(false) => {}
                        Some(true) => put_value(next, name, stream.value()),
                    }
                    is_first = false;
                }
                Build::Close { keeps_empty } => {
                    let Some(start) = opened.pop() else { break };
                    close(next, (start, opened.is_empty()), *keeps_empty);
                }
            }
        }
        budget.spend(next.len() as u64 / 16)?;
        std::mem::swap(&mut self.document, &mut self.next);
        self.has_documents = true;
        Ok(Some(!self.document.is_empty()))
    }

    /// Ends the part: every stream must be at its end.
    fn finish(&self) -> Result<Option<bool>> {
        match self.has_documents && self.streams.iter().all(Series::is_done) {
            true => Ok(None),
            false => Err(malformed("documents end before their fields")),
        }
    }

    /// Returns the last document with an empty name; `None` if it was missing.
    pub fn value(&self) -> Option<Element<'_>> {
        (!self.document.is_empty()).then(|| Element::from_parts(self.root, b"", &self.document))
    }

    /// Returns the stream that goes on after the part, from its last document.
    pub fn last(&self) -> Series<'a> {
        self.value().map(Series::after).unwrap_or_default()
    }
}

/// Moves a stream to its next value; `None` at the end of the part.
fn advance_stream<'a>(
    stream: &mut Series<'a>,
    bytes: &'a [u8],
    at: &mut usize,
) -> Result<Option<bool>> {
    if let Some(is_there) = stream.advance()? {
        return Ok(Some(is_there));
    }
    match control::read(bytes, *at)? {
        Control::End => {
            *at += 1;
            Ok(None)
        }
        Control::Literal { element, end } => {
            stream.set(element);
            *at = end;
            Ok(Some(true))
        }
        Control::Blocks { scale, words, end } => {
            stream.begin(scale, words)?;
            *at = end;
            stream.advance()
        }
        Control::Interleaved { .. } => Err(malformed("documents begin within documents")),
    }
}

fn put_header(out: &mut Vec<u8>, kind: Type, name: &[u8]) {
    out.push(kind.byte());
    out.extend_from_slice(name);
    out.push(0);
}

fn put_value(out: &mut Vec<u8>, name: &[u8], value: Option<Element<'_>>) {
    if let Some(value) = value {
        put_header(out, value.kind(), name);
        out.extend_from_slice(value.value_bytes());
    }
}

/// Ends the document that begins at `start`, or removes it with its header if it has no fields.
fn close(out: &mut Vec<u8>, (start, is_root): (usize, bool), keeps_empty: bool) {
    let header = match is_root {
        true => 0,
        // Type, name, zero.
        false => 2 + out.get(start + 1..).map_or(0, name_length),
    };
    let content = start + header;
    if out.len() == content + 4 && !keeps_empty {
        out.truncate(start);
        return;
    }
    out.push(0);
    let length = (out.len() - content) as u32;
    if let Some(place) = out.get_mut(content..content + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

fn name_length(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == 0).unwrap_or(0)
}
