//! The columns of CSV and TSV: names, with dots for nested fields, types, and the conversion of a
//! row to a document.

use super::dates::DateFormat;
use quire_document::{Binary, Decimal128, DocBuf, DocWriter, Value};

/// The type of a column's values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ColumnType {
    /// A number if the text is one, else a string.
    Auto,
    Binary(BinaryText),
    Boolean,
    Date(DateFormat),
    Decimal,
    Double,
    Int32,
    Int64,
    String,
}

/// The encoding of binary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryText {
    Base64,
    Hex,
}

/// The treatment of a text that does not have its column's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Grace {
    /// Ends the import.
    #[default]
    Stop,
    /// Guesses its type.
    AutoCast,
    /// Leaves out the field.
    SkipField,
    /// Leaves out the row.
    SkipRow,
}

/// The columns, as a tree of names.
#[derive(Debug)]
pub(crate) struct Columns {
    types: Vec<ColumnType>,
    names: Vec<String>,
    layout: Vec<(String, Node)>,
    grace: Grace,
    ignore_blanks: bool,
}

#[derive(Debug)]
enum Node {
    Column(usize),
    Nested(Vec<(String, Node)>),
}

/// Why a row cannot be converted to a document.
#[derive(Debug, PartialEq)]
pub(crate) struct BadRow {
    pub(crate) why: String,
    /// True if the import must end.
    pub(crate) ends: bool,
}

impl Columns {
    /// Reads the names; with `typed`, each is followed by its type: `age.int32()`.
    ///
    /// # Errors
    /// An empty, duplicate or contradictory name; an unknown type.
    pub(crate) fn new(
        names: &[String],
        typed: bool,
        grace: Grace,
        ignore_blanks: bool,
    ) -> Result<Columns, String> {
        let mut columns =
            Columns { types: vec![], names: vec![], layout: vec![], grace, ignore_blanks };
        for (at, name) in names.iter().enumerate() {
            let (name, kind) = match typed {
                true => split_type(name)?,
                false => (name.as_str(), ColumnType::Auto),
            };
            place(&mut columns.layout, name, at)
                .ok_or_else(|| format!("the column '{name}' is empty or contradicts another"))?;
            columns.types.push(kind);
            columns.names.push(name.to_owned());
        }
        match columns.names.is_empty() {
            true => Err("there are no columns".into()),
            false => Ok(columns),
        }
    }

    /// Converts a row to a document. Fields beyond the columns get names such as `field7`.
    ///
    /// # Errors
    /// A text does not have its column's type.
    pub(crate) fn document(&self, row: &[&str]) -> Result<DocBuf, BadRow> {
        let mut values: Vec<Option<Cell<'_>>> = Vec::with_capacity(row.len());
        for (at, text) in row.iter().copied().enumerate() {
            values.push(self.cell(at, text)?);
        }
        let mut document = DocBuf::new();
        document.extend(|writer| {
            write(&self.layout, &mut values, writer);
            for (at, cell) in values.iter().enumerate().skip(self.names.len()) {
                if let Some(cell) = cell {
                    cell.append(&format!("field{at}"), writer);
                }
            }
        });
        Ok(document)
    }

    fn cell<'t>(&self, at: usize, text: &'t str) -> Result<Option<Cell<'t>>, BadRow> {
        if self.ignore_blanks && text.is_empty() {
            return Ok(None);
        }
        let kind = self.types.get(at).unwrap_or(&ColumnType::Auto);
        if let Some(cell) = kind.read(text) {
            return Ok(Some(cell));
        }
        let why = || {
            format!("column '{}': '{text}' is not a value of type {}", self.names[at], kind.name())
        };
        match self.grace {
            Grace::AutoCast => Ok(ColumnType::Auto.read(text)),
            Grace::SkipField => Ok(None),
            Grace::SkipRow => Err(BadRow { why: why(), ends: false }),
            Grace::Stop => Err(BadRow { why: why(), ends: true }),
        }
    }
}

/// A value of a row.
enum Cell<'t> {
    Value(Value<'t>),
    Bytes(Vec<u8>),
}

impl Cell<'_> {
    fn append(&self, name: &str, writer: &mut DocWriter<'_>) {
        match self {
            Cell::Value(value) => writer.append(name, *value),
            Cell::Bytes(bytes) => writer.append(name, Value::Binary(Binary { subtype: 0, bytes })),
        };
    }
}

fn write(layout: &[(String, Node)], values: &mut [Option<Cell<'_>>], out: &mut DocWriter<'_>) {
    for (name, node) in layout {
        match node {
            Node::Column(at) => {
                if let Some(cell) = values.get_mut(*at).and_then(Option::take) {
                    cell.append(name, out);
                }
            }
            Node::Nested(inner) if has_any(inner, values) => {
                write(inner, values, &mut out.document(name));
            }
            Node::Nested(_) => {}
        }
    }
}

fn has_any(layout: &[(String, Node)], values: &[Option<Cell<'_>>]) -> bool {
    layout.iter().any(|(_, node)| match node {
        Node::Column(at) => values.get(*at).is_some_and(Option::is_some),
        Node::Nested(inner) => has_any(inner, values),
    })
}

/// Puts a column into the tree; `None` if its name is empty or already used.
fn place(layout: &mut Vec<(String, Node)>, name: &str, at: usize) -> Option<()> {
    let (first, rest) = match name.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    };
    if first.is_empty() || first.contains('\0') {
        return None;
    }
    let found = layout.iter_mut().find(|(name, _)| name == first);
    match (rest, found) {
        (None, Some(_)) => None,
        (None, None) => {
            layout.push((first.to_owned(), Node::Column(at)));
            Some(())
        }
        (Some(_), Some((_, Node::Column(_)))) => None,
        (Some(rest), Some((_, Node::Nested(inner)))) => place(inner, rest, at),
        (Some(rest), None) => {
            let mut inner = Vec::new();
            place(&mut inner, rest, at)?;
            layout.push((first.to_owned(), Node::Nested(inner)));
            Some(())
        }
    }
}

/// Splits `age.int32()` into name and type.
fn split_type(text: &str) -> Result<(&str, ColumnType), String> {
    let unknown = || format!("the column '{text}' has no known type, like name.string()");
    let (rest, argument) =
        text.strip_suffix(')').and_then(|text| text.rsplit_once('(')).ok_or_else(unknown)?;
    let (name, kind) = rest.rsplit_once('.').ok_or_else(unknown)?;
    let kind = match (kind, argument) {
        ("auto", "") => ColumnType::Auto,
        ("binary", "base64") => ColumnType::Binary(BinaryText::Base64),
        ("binary", "hex") => ColumnType::Binary(BinaryText::Hex),
        ("boolean", "") => ColumnType::Boolean,
        ("decimal", "") => ColumnType::Decimal,
        ("double", "") => ColumnType::Double,
        ("int32", "") => ColumnType::Int32,
        ("int64", "") => ColumnType::Int64,
        ("string", "") => ColumnType::String,
        _ => ColumnType::Date(DateFormat::parse(kind, argument).ok_or_else(unknown)?),
    };
    Ok((name, kind))
}

impl ColumnType {
    fn name(&self) -> &'static str {
        match self {
            ColumnType::Auto => "value",
            ColumnType::Binary(_) => "binary data",
            ColumnType::Boolean => "boolean",
            ColumnType::Date(_) => "date of this format",
            ColumnType::Decimal => "decimal",
            ColumnType::Double => "double",
            ColumnType::Int32 => "int32",
            ColumnType::Int64 => "int64",
            ColumnType::String => "string",
        }
    }

    fn read<'t>(&self, text: &'t str) -> Option<Cell<'t>> {
        Some(Cell::Value(match self {
            ColumnType::Auto => auto(text),
            ColumnType::Binary(how) => return how.decode(text).map(Cell::Bytes),
            ColumnType::Boolean => match text.to_ascii_lowercase().as_str() {
                "true" | "t" | "1" => Value::Bool(true),
                "false" | "f" | "0" => Value::Bool(false),
                _ => return None,
            },
            ColumnType::Date(format) => Value::Date(format.millis(text)?),
            ColumnType::Decimal => Value::Decimal(Decimal128::parse(text)?),
            ColumnType::Double => Value::Double(text.parse().ok()?),
            ColumnType::Int32 => Value::Int32(text.parse().ok()?),
            ColumnType::Int64 => Value::Int64(text.parse().ok()?),
            ColumnType::String => Value::String(text),
        }))
    }
}

/// Returns a whole number, a decimal number, or a string. Words such as `nan` and `inf` stay
/// strings.
fn auto(text: &str) -> Value<'_> {
    if let Ok(number) = text.parse::<i64>() {
        return i32::try_from(number).map_or(Value::Int64(number), Value::Int32);
    }
    let digits = text.trim_start_matches(['-', '+']);
    let numeric = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    match text.parse::<f64>() {
        Ok(number) if numeric => Value::Double(number),
        _ => Value::String(text),
    }
}

impl BinaryText {
    fn decode(self, text: &str) -> Option<Vec<u8>> {
        use quire_document::extjson;
        match self {
            BinaryText::Base64 => extjson::decode_base64(text),
            BinaryText::Hex => extjson::decode_hex(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn columns(names: &[&str], typed: bool, grace: Grace, blanks: bool) -> Result<Columns, String> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        Columns::new(&names, typed, grace, blanks)
    }

    #[test]
    fn rows_become_documents() {
        let plain = columns(&["a", "b.c", "d", "b.e"], false, Grace::Stop, false).unwrap();
        let row = plain.document(&["1", "x", "-2.50", "4294967296", "7"]).unwrap();
        let expected = doc! {
            "a": 1, "b": { "c": "x", "e": 4_294_967_296i64 }, "d": -2.5, "field4": 7,
        };
        assert_eq!(row, expected);
        assert_eq!(plain.document(&["", "nan"]).unwrap(), doc! { "a": "", "b": { "c": "nan" } });
        let sparse = columns(&["a", "b.c"], false, Grace::Stop, true).unwrap();
        assert_eq!(sparse.document(&["", ""]).unwrap(), doc! {});
    }

    #[test]
    fn types_are_kept() {
        let names = [
            "a.string()",
            "b.int64()",
            "c.boolean()",
            "d.date(2006-01-02)",
            "e.decimal()",
            "f.binary(hex)",
            "g.double()",
            "h.auto()",
            "i.int32()",
        ];
        let typed = columns(&names, true, Grace::SkipRow, false).unwrap();
        let row = ["1", "2", "TRUE", "2025-01-15", "1.10", "00ff", "3", "4", "5"];
        let expected = doc! {
            "a": "1", "b": 2i64, "c": true, "d": Value::Date(1_736_899_200_000),
            "e": Value::Decimal(Decimal128::parse("1.10").unwrap()),
            "f": Value::Binary(Binary { subtype: 0, bytes: &[0, 255] }), "g": 3.0, "h": 4, "i": 5,
        };
        assert_eq!(typed.document(&row).unwrap(), expected);
        let bad = typed.document(&["1", "two"]).unwrap_err();
        assert_eq!(
            (bad.why.as_str(), bad.ends),
            ("column 'b': 'two' is not a value of type int64", false)
        );
    }

    #[test]
    fn values_of_the_wrong_type_are_handled_as_configured() {
        let with = |grace| columns(&["a.int32()", "b.string()"], true, grace, false).unwrap();
        let row = ["x", "y"];
        assert!(with(Grace::Stop).document(&row).unwrap_err().ends);
        assert_eq!(with(Grace::AutoCast).document(&row).unwrap(), doc! { "a": "x", "b": "y" });
        assert_eq!(with(Grace::SkipField).document(&row).unwrap(), doc! { "b": "y" });
        assert!(!with(Grace::SkipRow).document(&row).unwrap_err().ends);
    }

    #[test]
    fn wrong_names_are_refused() {
        for names in [&["a", "a"][..], &["a", "a.b"], &["a.b", "a"], &[""], &["a."], &[]] {
            assert!(columns(names, false, Grace::Stop, false).is_err(), "{names:?}");
        }
        for name in ["a", "a.int()", "a.int32(5)", "int32()", "a.binary(rot13)", "a.date"] {
            assert!(columns(&[name], true, Grace::Stop, false).is_err(), "{name}");
        }
    }
}
