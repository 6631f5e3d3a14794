//! Reads rows of CSV and TSV line by line, so that each row has its line number, and a quotation
//! mark without an end costs one line and not the rest of the file.

use super::columns::{Columns, Grace};
use super::source::{Item, Source};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use std::io::BufRead;

/// The longest row in bytes: a document of 16 MiB is never longer.
const ROW_BYTES_MAX: usize = 32 << 20;

/// The source of the columns of a file.
pub(crate) struct Layout {
    /// The names of the columns; `None` if they are in the first row.
    pub(crate) fields: Option<Vec<String>>,
    /// True if each name is followed by its type.
    pub(crate) typed: bool,
    pub(crate) grace: Grace,
    pub(crate) ignore_blanks: bool,
    /// True for TSV: tabs separate the texts, and quotation marks have no meaning.
    pub(crate) tabs: bool,
}

/// Reads rows of CSV or TSV.
pub(crate) struct CsvSource<R> {
    lines: Lines<R>,
    splitter: Splitter,
    columns: Columns,
    ended: bool,
}

impl<R: BufRead> CsvSource<R> {
    /// Reads the first row if it has the names of the columns.
    ///
    /// # Errors
    /// The names are invalid, or cannot be read.
    pub(crate) fn new(input: R, layout: Layout) -> Result<Self, String> {
        let mut lines = Lines { input, again: Vec::new(), number: 0 };
        let mut splitter = Splitter::new(layout.tabs);
        let fields = match layout.fields {
            Some(fields) => fields,
            None => match splitter.read(&mut lines).map_err(|error| error.to_string())? {
                Row::Whole(_) => {
                    let names = splitter.texts().map_err(|_| "the header line is not UTF-8")?;
                    names.into_iter().map(str::to_owned).collect()
                }
                Row::Open(_) => return Err("a quotation mark of the header is not closed".into()),
                Row::End => return Err("the header line is missing".into()),
            },
        };
        let columns = Columns::new(&fields, layout.typed, layout.grace, layout.ignore_blanks)?;
        Ok(CsvSource { lines, splitter, columns, ended: false })
    }

    fn document(&mut self, line: u64) -> Item {
        let Ok(texts) = self.splitter.texts() else {
            return Item::Bad { line, why: "not valid UTF-8".into() };
        };
        match self.columns.document(&texts) {
            Ok(document) => Item::Document { line, document },
            Err(bad) if bad.ends => {
                self.ended = true;
                Item::End { line, why: bad.why }
            }
            Err(bad) => Item::Bad { line, why: bad.why },
        }
    }
}

impl<R: BufRead> Source for CsvSource<R> {
    fn next(&mut self) -> Option<Item> {
        if self.ended {
            return None;
        }
        match self.splitter.read(&mut self.lines) {
            Ok(Row::Whole(line)) => Some(self.document(line)),
            Ok(Row::Open(line)) => {
                Some(Item::Bad { line, why: "a quotation mark is not closed".into() })
            }
            Ok(Row::End) => None,
            Err(error) => {
                self.ended = true;
                Some(Item::End { line: self.lines.number, why: format!("cannot read: {error}") })
            }
        }
    }
}

/// Numbered lines, which can be put back.
struct Lines<R> {
    input: R,
    again: Vec<u8>,
    /// The number of the last line that was read.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Appends the next line, always with a line feed. Returns false at the end.
    fn read(&mut self, out: &mut Vec<u8>) -> std::io::Result<bool> {
        let start = out.len();
        if self.again.is_empty() {
            self.input.read_until(b'\n', out)?;
        } else {
            let end = self.again.iter().position(|byte| *byte == b'\n');
            out.extend(self.again.drain(..end.map_or(self.again.len(), |end| end + 1)));
        }
        if out.len() == start {
            return Ok(false);
        }
        if out.last() != Some(&b'\n') {
            out.push(b'\n');
        }
        self.number += 1;
        if self.number == 1 && out[start..].starts_with("\u{feff}".as_bytes()) {
            out.drain(start..start + 3);
        }
        Ok(true)
    }

    /// Puts lines back, which are then read next.
    fn give_back(&mut self, lines: &[u8]) {
        self.number -= lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.again.splice(..0, lines.iter().copied());
    }
}

/// The result of reading a row.
enum Row {
    /// A complete row that begins in this line.
    Whole(u64),
    /// A row without an end; only its first line is consumed.
    Open(u64),
    End,
}

/// Splits rows into texts.
struct Splitter {
    reader: Option<Reader>,
    line: Vec<u8>,
    /// The texts of the row, concatenated, and the end of each.
    out: Vec<u8>,
    ends: Vec<usize>,
    texts: usize,
}

impl Splitter {
    fn new(tabs: bool) -> Splitter {
        let reader = (!tabs).then(|| ReaderBuilder::new().build());
        Splitter { reader, line: vec![], out: vec![0; 4096], ends: vec![0; 64], texts: 0 }
    }

    /// Reads the next row that is not blank.
    fn read<R: BufRead>(&mut self, lines: &mut Lines<R>) -> std::io::Result<Row> {
        loop {
            self.line.clear();
            if !lines.read(&mut self.line)? {
                return Ok(Row::End);
            }
            if self.line.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
                continue;
            }
            let number = lines.number;
            if self.split(lines)? {
                return Ok(Row::Whole(number));
            }
            let first = self.line.iter().position(|byte| *byte == b'\n').unwrap_or(0);
            lines.give_back(&self.line[first + 1..]);
            return Ok(Row::Open(number));
        }
    }

    /// Splits the line and the lines in which the row continues. Returns false if the row does not
    /// end.
    fn split<R: BufRead>(&mut self, lines: &mut Lines<R>) -> std::io::Result<bool> {
        let Some(reader) = &mut self.reader else {
            self.split_at_tabs();
            return Ok(true);
        };
        reader.reset();
        let (mut at, mut length, mut texts) = (0, 0, 0);
        loop {
            let input = &self.line[at..];
            let (result, read, written, ended) =
                reader.read_record(input, &mut self.out[length..], &mut self.ends[texts..]);
            at += read;
            length += written;
            texts += ended;
            match result {
                ReadRecordResult::Record | ReadRecordResult::End => {
                    self.texts = texts;
                    return Ok(true);
                }
                ReadRecordResult::OutputFull => self.out.resize(self.out.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::InputEmpty => {
                    if self.line.len() > ROW_BYTES_MAX || !lines.read(&mut self.line)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    fn split_at_tabs(&mut self) {
        while let Some(b'\r' | b'\n') = self.line.last() {
            self.line.pop();
        }
        self.out.clear();
        self.ends.clear();
        for text in self.line.split(|byte| *byte == b'\t') {
            self.out.extend_from_slice(text);
            self.ends.push(self.out.len());
        }
        self.texts = self.ends.len();
    }

    /// Returns the texts of the row that was read.
    fn texts(&self) -> Result<Vec<&str>, std::str::Utf8Error> {
        let mut start = 0;
        let texts = self.ends.iter().take(self.texts).map(|end| {
            let text = &self.out[start..*end];
            start = *end;
            std::str::from_utf8(text)
        });
        texts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{DocBuf, doc};

    fn read(text: &str, fields: Option<&[&str]>, tabs: bool) -> Vec<Item> {
        let fields = fields.map(|fields| fields.iter().map(|field| (*field).to_owned()).collect());
        let layout =
            Layout { fields, typed: false, grace: Grace::Stop, ignore_blanks: false, tabs };
        let mut source = CsvSource::new(text.as_bytes(), layout).unwrap();
        std::iter::from_fn(|| source.next()).collect()
    }

    fn row(line: u64, document: DocBuf) -> Item {
        Item::Document { line, document }
    }

    #[test]
    fn rows_and_their_lines() {
        for end in ["\n", "\r\n"] {
            let text = "\u{feff}a,b\n1,\"x, \"\"y\"\"z\"\n\n2,w\n3,\"u\nv\"\n4,5\" disk\n5,e";
            let items = read(&text.replace('\n', end), None, false);
            let expected = [
                row(2, doc! { "a": 1, "b": "x, \"y\"z" }),
                row(4, doc! { "a": 2, "b": "w" }),
                row(5, doc! { "a": 3, "b": format!("u{end}v").as_str() }),
                row(7, doc! { "a": 4, "b": "5\" disk" }),
                row(8, doc! { "a": 5, "b": "e" }),
            ];
            assert_eq!(items, expected);
        }
        let items = read("1\t\"x\n\n2\t\n", Some(&["a", "b"]), true);
        assert_eq!(items, [row(1, doc! { "a": 1, "b": "\"x" }), row(3, doc! { "a": 2, "b": "" })]);
    }

    #[test]
    fn an_open_quotation_mark_costs_one_line() {
        let items = read("a,b\n1,x\n2,\"y\n3,z\n4,w", None, false);
        let expected = [
            row(2, doc! { "a": 1, "b": "x" }),
            Item::Bad { line: 3, why: "a quotation mark is not closed".into() },
            row(4, doc! { "a": 3, "b": "z" }),
            row(5, doc! { "a": 4, "b": "w" }),
        ];
        assert_eq!(items, expected);
    }

    #[test]
    fn long_rows_fit() {
        let names: Vec<_> = (0..300).map(|n| format!("f{n}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let text = format!("{}\n", vec!["x".repeat(100); 300].join(","));
        let items = read(&text, Some(&names), false);
        let [Item::Document { document, .. }] = &items[..] else { panic!("{items:?}") };
        assert_eq!(document.as_doc().count(), 300);
    }
}
