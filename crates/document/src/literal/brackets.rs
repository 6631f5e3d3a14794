//! What literals and Extended JSON have in common: items between brackets, and the documents and
//! arrays that are written from them.

use super::scan::{Fault, NESTING_MAX, Scanned, Scanner, fault, finish};
use crate::Type;
use crate::builder::ArrayWriter;

/// A parser of a text format with documents and arrays in brackets.
pub(crate) trait Brackets<'t>: Sized {
    /// Whether a comma may stand before the closing bracket.
    const LAST_COMMA: bool;

    /// Where it stands in the text.
    fn scan(&mut self) -> &mut Scanner<'t>;

    /// Reads a value, appends its bytes, and answers its type.
    fn value(&mut self, out: &mut Vec<u8>) -> Scanned<Type>;

    /// Reads a field's name and appends it, without its terminator.
    fn name(&mut self, out: &mut Vec<u8>) -> Scanned<()>;

    /// Items up to the closing bracket; the opening one stands here.
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
                return Err(Fault(format!("expected , or {}", end as char)));
            }
            if !ended {
                scan.skip(1);
                scan.space();
                ended = Self::LAST_COMMA && scan.peek() == Some(end);
            }
        }
        let scan = self.scan();
        scan.skip(1);
        scan.depth -= 1;
        Ok(())
    }

    /// An array; its bracket stands here.
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

    /// The fields of a document; its bracket stands here.
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

    /// A name in quotes, appended without its terminator.
    fn quoted_name(&mut self, out: &mut Vec<u8>) -> Scanned<()> {
        let name = self.scan().string()?;
        if name.contains('\0') {
            return fault("a field name can't contain a zero");
        }
        out.extend_from_slice(name.as_bytes());
        Ok(())
    }
}
