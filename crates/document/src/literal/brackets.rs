//! The common part of the parsers for literals and Extended JSON: items in brackets, and the
//! documents and arrays written from them.

use super::scan::{Mistake, NESTING_MAX, Scanned, Scanner, fault, finish};
use crate::Type;
use crate::builder::ArrayWriter;

/// A parser of a text format that has documents and arrays in brackets.
pub(crate) trait Brackets<'t>: Sized {
    /// True if the format allows a comma before the closing bracket.
    const TRAILING_COMMA: bool;

    /// Returns the text with the current position.
    fn scan(&mut self) -> &mut Scanner<'t>;

    /// Parses a value, appends its bytes, and returns its type.
    fn value(&mut self, out: &mut Vec<u8>) -> Scanned<Type>;

    /// Parses a field's name and appends it, without its terminator.
    fn name(&mut self, out: &mut Vec<u8>) -> Scanned<()>;

    /// Parses the items of a bracket. The current position is the opening bracket; `end` is the
    /// closing one.
    fn list(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Scanned<()>) -> Scanned<()> {
        let scan = self.scan();
        scan.skip(1);
        scan.depth += 1;
        if scan.depth > NESTING_MAX {
            return fault("nested too deeply");
        }
        scan.space();
        let mut ended = scan.peek() == Some(end);
        while !ended {
            item(self)?;
            let scan = self.scan();
            scan.space();
            ended = scan.peek() == Some(end);
            if !ended && scan.peek() != Some(b',') {
                return Err(Mistake(format!("expected , or {}", end as char)));
            }
            if !ended {
                scan.skip(1);
                scan.space();
                ended = Self::TRAILING_COMMA && scan.peek() == Some(end);
            }
        }
        let scan = self.scan();
        scan.skip(1);
        scan.depth -= 1;
        Ok(())
    }

    /// Parses an array. The current position is its bracket.
    fn array(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let mut index = 0u32;
        self.list(b']', |parser| {
            let place = out.len();
            out.push(0);
            ArrayWriter::write_name(out, index);
            index += 1;
            out[place] = parser.value(out)?.byte();
            Ok(())
        })?;
        finish(out, start);
        Ok(Type::Array)
    }

    /// Parses the fields of a document. The current position is its bracket.
    fn fields(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.list(b'}', |parser| {
            let place = out.len();
            out.push(0);
            parser.name(out)?;
            out.push(0);
            let scan = parser.scan();
            scan.space();
            if scan.peek() != Some(b':') {
                return fault("expected :");
            }
            scan.skip(1);
            out[place] = parser.value(out)?.byte();
            Ok(())
        })?;
        finish(out, start);
        Ok(Type::Document)
    }

    /// Parses a name in quotes and appends it, without its terminator.
    fn quoted_name(&mut self, out: &mut Vec<u8>) -> Scanned<()> {
        let name = self.scan().string()?;
        if name.contains('\0') {
            return fault("a field name can't contain a zero");
        }
        out.extend_from_slice(name.as_bytes());
        Ok(())
    }
}
