//! Reads documents in Extended JSON, one after the other or in one array.
//!
//! A document ends with its closing bracket, so it may extend over several lines. If it does not
//! end correctly, only its first line is skipped: in a file with one document on each line, a
//! damaged line affects no other.

use super::source::{Item, Source};
use quire_document::extjson;
use std::io::BufRead;

/// The longest text of a document in bytes: a document of 16 MiB may be several times longer as
/// text.
const DOCUMENT_BYTES_MAX: usize = 128 << 20;

/// Reads documents in Extended JSON.
pub(crate) struct JsonSource<R> {
    input: R,
    /// The bytes read from `input`; those before `at` are consumed.
    buffer: Vec<u8>,
    at: usize,
    /// The line number at `at`.
    line: u64,
    /// True if the whole input is in the buffer.
    complete: bool,
    array: bool,
    place: Place,
}

/// The state of the reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// In an array, before its first value or after a comma.
    Value,
    /// In an array, after a value.
    Separator,
    /// Outside of an array.
    Between,
    End,
}

/// The end of a document's text.
enum Extent {
    /// The document has this number of bytes.
    Whole(usize),
    /// It cannot be parsed: the length of its first line with the line feed, and the reason.
    Broken(usize, &'static str),
}

impl<R: BufRead> JsonSource<R> {
    /// Reads documents; with `array` one array of documents.
    pub(crate) fn new(input: R, array: bool) -> Self {
        let place = Place::Start;
        JsonSource { input, buffer: Vec::new(), at: 0, line: 1, complete: false, array, place }
    }

    /// Reads more bytes. Returns false at the end of the input.
    fn fill(&mut self) -> std::io::Result<bool> {
        if self.at > 0 && self.at * 2 >= self.buffer.len() {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        loop {
            match self.input.fill_buf() {
                Ok([]) => {
                    self.complete = true;
                    return Ok(false);
                }
                Ok(bytes) => {
                    let count = bytes.len();
                    self.buffer.extend_from_slice(bytes);
                    self.input.consume(count);
                    return Ok(true);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the byte `ahead` of the current position.
    fn byte(&mut self, ahead: usize) -> std::io::Result<Option<u8>> {
        loop {
            if let Some(byte) = self.buffer.get(self.at + ahead) {
                return Ok(Some(*byte));
            }
            if self.complete || !self.fill()? {
                return Ok(None);
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        let skipped = &self.buffer[self.at..self.at + bytes];
        self.line += skipped.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.at += bytes;
    }

    /// Moves to the next byte that is not white space, and returns it.
    fn space(&mut self) -> std::io::Result<Option<u8>> {
        while let Some(byte) = self.byte(0)? {
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.skip(1);
        }
        Ok(None)
    }

    /// Moves past the line feed of this line.
    fn skip_line(&mut self) -> std::io::Result<()> {
        while let Some(byte) = self.byte(0)? {
            self.skip(1);
            if byte == b'\n' {
                break;
            }
        }
        Ok(())
    }

    fn advance(&mut self) -> std::io::Result<Option<Item>> {
        loop {
            let line = self.line;
            match (self.place, self.space()?) {
                (Place::Start, Some(0xEF)) if self.byte(1)? == Some(0xBB) => self.skip(3),
                (Place::Start, Some(b'[')) if self.array => {
                    self.skip(1);
                    self.place = Place::Value;
                }
                (Place::Start, Some(b'[')) => {
                    return self.end("an array begins; add --jsonArray".into());
                }
                (Place::Start, Some(_)) if self.array => {
                    return self.end("--jsonArray expects [ at the beginning".into());
                }
                (Place::Start, _) if !self.array => self.place = Place::Between,
                (Place::Between | Place::End, None) => return Ok(None),
                (_, None) => {
                    self.place = Place::End;
                    return Ok(Some(Item::End { line, why: "the array does not end".into() }));
                }
                (Place::End, Some(_)) => return self.end("text after the array".into()),
                (Place::Value | Place::Separator, Some(b']')) => {
                    self.skip(1);
                    self.place = Place::End;
                }
                (Place::Separator, Some(b',')) => {
                    self.skip(1);
                    self.place = Place::Value;
                }
                (Place::Value | Place::Between, Some(b'{')) => return self.document(),
                (place, Some(_)) => {
                    let line = self.line;
                    self.skip_line()?;
                    let why = match place {
                        Place::Separator => "expected , or ] after a document",
                        _ => "expected a document: {",
                    };
                    return Ok(Some(Item::Bad { line, why: why.into() }));
                }
            }
        }
    }

    /// Ends the input with an error.
    fn end(&mut self, why: String) -> std::io::Result<Option<Item>> {
        let line = self.line;
        self.at = self.buffer.len();
        self.place = Place::End;
        while self.fill()? {
            self.at = self.buffer.len();
        }
        Ok(Some(Item::End { line, why }))
    }

    /// Reads the document that begins here.
    fn document(&mut self) -> std::io::Result<Option<Item>> {
        let line = self.line;
        let bad = |line, why| Ok(Some(Item::Bad { line, why }));
        if self.array {
            self.place = Place::Separator;
        }
        let length = match self.extent()? {
            Extent::Whole(length) => length,
            Extent::Broken(first_line, why) => {
                self.skip(first_line);
                return bad(line, why.to_owned());
            }
        };
        let bytes = &self.buffer[self.at..self.at + length];
        let parsed = match std::str::from_utf8(bytes) {
            Ok(text) => extjson::parse_doc(text),
            Err(_) => {
                self.skip(length);
                return bad(line, "not valid UTF-8".to_owned());
            }
        };
        match parsed {
            Ok(document) => {
                self.skip(length);
                match self.garbage()? {
                    false => Ok(Some(Item::Document { line, document })),
                    true => {
                        self.skip_line()?;
                        bad(line, "text after the document".to_owned())
                    }
                }
            }
            Err(error) => {
                let first_line = bytes.iter().position(|byte| *byte == b'\n');
                let looks_like_lines = |at: usize| bytes.get(at + 1) == Some(&b'{');
                let given_up = match first_line {
                    Some(at) if looks_like_lines(at) => at + 1,
                    _ => length,
                };
                let at = line + error.line as u64 - 1;
                let why = match at == line {
                    true => format!("column {}: {}", error.column, error.message),
                    false => {
                        let (column, message) = (error.column, error.message);
                        format!(
                            "the document that begins here: line {at}, column {column}: {message}"
                        )
                    }
                };
                self.skip(given_up);
                bad(line, why)
            }
        }
    }

    /// Returns true if the rest of the line after a document is not a document.
    fn garbage(&mut self) -> std::io::Result<bool> {
        if self.array {
            return Ok(false);
        }
        while let Some(b' ' | b'\t' | b'\r') = self.byte(0)? {
            self.skip(1);
        }
        Ok(!matches!(self.byte(0)?, None | Some(b'\n' | b'{')))
    }

    /// Finds the closing bracket of the bracket at the current position.
    fn extent(&mut self) -> std::io::Result<Extent> {
        let (mut depth, mut in_string, mut length) = (0usize, false, 0);
        let mut first_line = None;
        // The last byte that was not white space.
        let mut last = 0;
        loop {
            let Some(byte) = self.byte(length)? else {
                let why = "the document does not end";
                return Ok(Extent::Broken(first_line.unwrap_or(length), why));
            };
            length += 1;
            if length > DOCUMENT_BYTES_MAX {
                let why = "the document does not end, or is too long";
                return Ok(Extent::Broken(first_line.unwrap_or(length), why));
            }
            match (in_string, byte) {
                (true, b'\n') => {
                    let why = "the line ends inside of a string";
                    return Ok(Extent::Broken(first_line.unwrap_or(length), why));
                }
                (true, b'\\') => {
                    let escaped = self.byte(length)?;
                    length += usize::from(escaped.is_some_and(|byte| byte != b'\n'));
                }
                (_, b'"') => in_string = !in_string,
                (false, b'{' | b'[') => depth += 1,
                (false, b'}' | b']') => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(Extent::Whole(length));
                    }
                }
                (false, b'\n') => {
                    first_line.get_or_insert(length);
                    let goes_on = matches!(last, b',' | b':' | b'[' | b'{');
                    if !goes_on && self.byte(length)? == Some(b'{') {
                        let why = "the line ends inside of a document";
                        return Ok(Extent::Broken(first_line.unwrap_or(length), why));
                    }
                }
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                last = byte;
            }
        }
    }
}

impl<R: BufRead> Source for JsonSource<R> {
    fn next(&mut self) -> Option<Item> {
        self.advance().unwrap_or_else(|error| {
            let line = self.line;
            self.place = Place::End;
            Some(Item::End { line, why: format!("cannot read: {error}") })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// Returns `line:document` or `line!` for every item of the text; also reads it in pieces of 3
    /// bytes.
    fn read(text: &str, array: bool) -> Vec<String> {
        let in_pieces = |size| {
            let mut source =
                JsonSource::new(BufReader::with_capacity(size, text.as_bytes()), array);
            let items = std::iter::from_fn(|| source.next()).map(|item| match item {
                Item::Document { line, document } => {
                    format!("{line}:{}", extjson::print(&document, extjson::Format::default()))
                }
                Item::Bad { line, .. } => format!("{line}!"),
                Item::End { line, .. } => format!("{line}!!"),
            });
            items.collect::<Vec<_>>()
        };
        let whole = in_pieces(1 << 16);
        assert_eq!(in_pieces(3), whole, "{text}");
        whole
    }

    #[test]
    fn documents_behind_each_other() {
        assert_eq!(read("", false), [""; 0]);
        assert_eq!(read("\n \n", false), [""; 0]);
        assert_eq!(read("\u{feff}{\"a\":1}\n{\"a\":2}", false), ["1:{\"a\":1}", "2:{\"a\":2}"]);
        assert_eq!(read("{\"a\":1}{\"a\":2} {}\n", false), ["1:{\"a\":1}", "1:{\"a\":2}", "1:{}"]);
        let pretty = "\n{\n \"a\": [\n  {\"b\": \"}\\\"{\"}\n ]\n}\r\n{}";
        assert_eq!(read(pretty, false), ["2:{\"a\":[{\"b\":\"}\\\"{\"}]}", "7:{}"]);
        assert_eq!(read("{\"a\":[\n{\"b\":1},\n{\"b\":2}\n]}", false).len(), 1);
    }

    #[test]
    fn a_bad_line_costs_no_other() {
        for bad in [
            "{\"a\":1",
            "{\"a\":",
            "{\"a\":1,",
            "{\"a",
            "{\"a\":\"",
            "{\"a\":[{\"b\":1}",
            "{\"a\":x}",
            "{\"a\":1}}",
            "{\"a\":1},",
            "nonsense",
            "}",
            "{\"a\":1]",
            "{\"a\\",
            "{\"$oid\":\"z\"}",
        ] {
            let text = format!("{{\"n\":1}}\n{bad}\n{{\"n\":2}}\n{{\"n\":3}}\n");
            let expected = ["1:{\"n\":1}", "2!", "3:{\"n\":2}", "4:{\"n\":3}"];
            assert_eq!(read(&text, false), expected, "{bad}");
            let text = format!("{{\"n\":1}}\n{bad}");
            assert_eq!(read(&text, false), ["1:{\"n\":1}", "2!"], "{bad}");
        }
    }

    #[test]
    fn arrays() {
        assert_eq!(read("[]", true), [""; 0]);
        assert_eq!(read(" [ {\"a\":1},\n{\"a\":2}\n, {} ] \n", true).len(), 3);
        assert_eq!(read("[{\"a\":x},\n{}]", true), ["1!", "2:{}"]);
        assert_eq!(read("[{}", true), ["1:{}", "1!!"]);
        assert_eq!(read("[{}] {}", true), ["1:{}", "1!!"]);
        assert_eq!(read("{}", true), ["1!!"]);
        assert_eq!(read("[{}]", false), ["1!!"]);
        assert_eq!(
            read("[{}\n{}]", true),
            ["1:{}", "2!"]
                .map(String::from)
                .iter()
                .chain(&["2!!".to_owned()])
                .cloned()
                .collect::<Vec<_>>()
        );
    }
}
