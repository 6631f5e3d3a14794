//! Prints values as Extended JSON.

use crate::calendar::iso_text;
use crate::literal::{quote, write_base64, write_double};
use crate::{Doc, Value};
use std::fmt::{self, Write};

/// The variant of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// True for the canonical format, which writes the type of every number and date.
    pub canonical: bool,
    /// True for one field on each line, indented with tabs.
    pub pretty: bool,
}

/// The dates that the relaxed format writes as text: the years 1970 to 9999.
const TEXT_DATES: std::ops::Range<i64> = 0..253_402_300_800_000;

/// Returns the text of a value.
pub fn print<'v>(value: impl Into<Value<'v>>, format: Format) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(value.into(), format, &mut text);
    text
}

/// Appends the text of a value.
pub fn write(value: Value<'_>, format: Format, out: &mut dyn Write) -> fmt::Result {
    Printer { format, indent: 0, out }.value(value)
}

struct Printer<'w> {
    format: Format,
    indent: usize,
    out: &'w mut dyn Write,
}

impl Printer<'_> {
    fn value(&mut self, value: Value<'_>) -> fmt::Result {
        match value {
            Value::Double(number) if self.format.canonical || !number.is_finite() => {
                self.out.write_str("{\"$numberDouble\":\"")?;
                write_double(number, self.out)?;
                self.out.write_str("\"}")
            }
            Value::Double(number) => write_double(number, self.out),
            Value::String(text) => quote(text, self.out),
            Value::Document(doc) => self.document(doc),
            Value::Array(array) => {
                self.list(('[', ']'), array.iter(), |printer, value| printer.value(value))
            }
            Value::Bool(flag) => write!(self.out, "{flag}"),
            Value::Null => self.out.write_str("null"),
            Value::Int32(number) if self.format.canonical => {
                write!(self.out, "{{\"$numberInt\":\"{number}\"}}")
            }
            Value::Int64(number) if self.format.canonical => {
                write!(self.out, "{{\"$numberLong\":\"{number}\"}}")
            }
            Value::Int32(number) => write!(self.out, "{number}"),
            Value::Int64(number) => write!(self.out, "{number}"),
            other => self.wrapped(other),
        }
    }

    /// Writes a value of a type that JSON does not have.
    fn wrapped(&mut self, value: Value<'_>) -> fmt::Result {
        match value {
            Value::Binary(binary) => {
                self.out.write_str("{\"$binary\":{\"base64\":\"")?;
                write_base64(binary.bytes, self.out)?;
                write!(self.out, "\",\"subType\":\"{:02x}\"}}}}", binary.subtype)
            }
            Value::Undefined => self.out.write_str("{\"$undefined\":true}"),
            Value::ObjectId(id) => write!(self.out, "{{\"$oid\":\"{id}\"}}"),
            Value::Date(millis) if !self.format.canonical && TEXT_DATES.contains(&millis) => {
                let text = iso_text(millis).replace(".000Z", "Z");
                write!(self.out, "{{\"$date\":\"{text}\"}}")
            }
            Value::Date(millis) => {
                write!(self.out, "{{\"$date\":{{\"$numberLong\":\"{millis}\"}}}}")
            }
            Value::Regex(regex) => {
                self.out.write_str("{\"$regularExpression\":{\"pattern\":")?;
                quote(regex.pattern, self.out)?;
                self.out.write_str(",\"options\":")?;
                quote(regex.options, self.out)?;
                self.out.write_str("}}")
            }
            Value::DbPointer(pointer) => {
                self.out.write_str("{\"$dbPointer\":{\"$ref\":")?;
                quote(pointer.namespace, self.out)?;
                write!(self.out, ",\"$id\":{{\"$oid\":\"{}\"}}}}}}", pointer.id)
            }
            Value::Code(code) => self.text("$code", code),
            Value::Symbol(text) => self.text("$symbol", text),
            Value::CodeWithScope(code) => {
                self.out.write_str("{\"$code\":")?;
                quote(code.code, self.out)?;
                self.out.write_str(",\"$scope\":")?;
                self.document(code.scope)?;
                self.out.write_char('}')
            }
            Value::Timestamp(at) => {
                let (seconds, increment) = (at.seconds, at.increment);
                write!(self.out, "{{\"$timestamp\":{{\"t\":{seconds},\"i\":{increment}}}}}")
            }
            Value::Decimal(decimal) => write!(self.out, "{{\"$numberDecimal\":\"{decimal}\"}}"),
            Value::MinKey => self.out.write_str("{\"$minKey\":1}"),
            Value::MaxKey => self.out.write_str("{\"$maxKey\":1}"),
            plain => self.value(plain),
        }
    }

    fn text(&mut self, name: &str, text: &str) -> fmt::Result {
        write!(self.out, "{{\"{name}\":")?;
        quote(text, self.out)?;
        self.out.write_char('}')
    }

    fn document(&mut self, doc: Doc<'_>) -> fmt::Result {
        let colon = if self.format.pretty { ": " } else { ":" };
        self.list(('{', '}'), doc.fields(), |printer, (name, value)| {
            quote(name, printer.out)?;
            printer.out.write_str(colon)?;
            printer.value(value)
        })
    }

    fn list<T>(
        &mut self,
        (open, close): (char, char),
        items: impl Iterator<Item = T>,
        mut write_item: impl FnMut(&mut Self, T) -> fmt::Result,
    ) -> fmt::Result {
        self.out.write_char(open)?;
        self.indent += 1;
        let mut empty = true;
        for item in items {
            if !empty {
                self.out.write_char(',')?;
            }
            empty = false;
            self.line()?;
            write_item(self, item)?;
        }
        self.indent -= 1;
        if !empty {
            self.line()?;
        }
        self.out.write_char(close)
    }

    /// Begins a new line if the format is pretty.
    fn line(&mut self) -> fmt::Result {
        if !self.format.pretty {
            return Ok(());
        }
        self.out.write_char('\n')?;
        (0..self.indent).try_for_each(|_| self.out.write_char('\t'))
    }
}
