//! The points of a bucket as documents.

use quire_document::DocBuf;
use quire_error::Result;

use crate::header::Header;
use crate::layout::{META, Token};
use crate::typed::Columnar;

/// The decoded columns of a bucket, and an iterator over its points, in order.
#[derive(Debug)]
pub struct Points<'b> {
    header: &'b Header,
    bytes: &'b [u8],
    columns: Vec<Columnar>,
    /// The number of the next point.
    next: usize,
    /// For each column the number of its next value.
    cursors: Vec<usize>,
    /// Where documents and arrays that have not ended begin.
    open: Vec<usize>,
}

impl<'b> Points<'b> {
    pub(crate) fn decode(header: &'b Header, bytes: &'b [u8]) -> Result<Self> {
        let mut room = header.size;
        let columns = (0..header.fields.len())
            .map(|column| Columnar::decode_within(header, bytes, column, &mut room))
            .collect::<Result<Vec<_>>>()?;
        let cursors = vec![0; columns.len()];
        Ok(Points { header, bytes, columns, next: 0, cursors, open: Vec::new() })
    }

    /// Returns the number of the point that comes next.
    pub fn position(&self) -> usize {
        self.next
    }

    /// Makes `point` the next point. Forward it takes time proportional to the points between, and
    /// none if all points have the same structure.
    pub fn seek(&mut self, point: usize) {
        let point = point.min(self.header.points);
        if self.header.layout_of.is_empty() {
            self.cursors.fill(point);
            self.next = point;
            return;
        }
        if point < self.next {
            self.cursors.fill(0);
            self.next = 0;
        }
        for passed in self.next..point {
            for token in self.header.layout(passed) {
                if let Token::Value(column) = token
                    && let Some(cursor) = self.cursors.get_mut(*column as usize)
                {
                    *cursor += 1;
                }
            }
        }
        self.next = point;
    }

    /// Appends the next point to `out`, and returns true; false after the last one.
    pub fn write_next(&mut self, out: &mut Vec<u8>) -> bool {
        if self.next >= self.header.points {
            return false;
        }
        let start = begin(out);
        for token in self.header.layout(self.next) {
            match *token {
                Token::End => {
                    if let Some(start) = self.open.pop() {
                        end(out, start);
                    }
                }
                Token::Value(column) => self.write_value(column, out),
                Token::Document(column) => self.write_start(0x03, column, out),
                Token::Array(column) => self.write_start(0x04, column, out),
            }
        }
        end(out, start);
        self.next += 1;
        true
    }

    fn write_start(&mut self, kind: u8, column: u32, out: &mut Vec<u8>) {
        out.push(kind);
        self.write_name(column, out);
        self.open.push(begin(out));
    }

    fn write_name(&self, column: u32, out: &mut Vec<u8>) {
        let field = self.header.fields.get(column as usize);
        let name = field.and_then(|field| self.bytes.get(field.name.clone()));
        out.extend_from_slice(name.unwrap_or_default());
        out.push(0);
    }

    fn write_value(&mut self, column: u32, out: &mut Vec<u8>) {
        let at = column as usize;
        let (Some(values), Some(cursor)) = (self.columns.get(at), self.cursors.get_mut(at)) else {
            return;
        };
        let value = *cursor;
        *cursor += 1;
        if column == META
            && let Some((kind, place)) = &self.header.meta
        {
            out.push(kind.byte());
            self.write_name(column, out);
            out.extend_from_slice(self.bytes.get(place.clone()).unwrap_or_default());
            return;
        }
        let Some((stream, at)) = values.place(value) else { return };
        if let Some(kind) = stream.kind() {
            out.push(kind.byte());
            self.write_name(column, out);
        }
        stream.write(at, out);
    }
}

/// Makes room for the length of a document, and returns where it begins.
fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

/// Ends the document that begins at `start`.
fn end(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    if let Some(bytes) = out.get_mut(start..start + 4) {
        bytes.copy_from_slice(&length.to_le_bytes());
    }
}

impl Iterator for Points<'_> {
    type Item = DocBuf;

    fn next(&mut self) -> Option<DocBuf> {
        let mut bytes = Vec::with_capacity(self.header.size / self.header.points.max(1) + 16);
        self.write_next(&mut bytes).then(|| DocBuf::from_valid_bytes(bytes))
    }

    fn nth(&mut self, skipped: usize) -> Option<DocBuf> {
        self.seek(self.next.saturating_add(skipped));
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.header.points - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Points<'_> {}
