//! Parses Extended JSON: strict JSON, written as BSON while it is parsed. If the first name of a
//! document is that of a wrapper, the complete document is replaced by the wrapped value.

use crate::calendar::parse_iso;
use crate::doc::decode;
use crate::literal::LiteralError;
use crate::literal::brackets::Brackets;
use crate::literal::scan::{Mistake, Scanned, Scanner, append, decode_base64, decode_hex, fault};
use crate::{
    Binary, CodeWithScope, DbPointer, Decimal128, Doc, DocBuf, ObjectId, Regex, Timestamp, Type,
    Value, ValueBuf,
};

/// Parses a single value.
///
/// # Errors
/// The message says what was expected, and at which position; text after the value is an error too.
pub fn parse(text: &str) -> Result<ValueBuf, LiteralError> {
    let mut parser = Parser { scan: Scanner::new(text) };
    let mut bytes = Vec::with_capacity(text.len());
    let kind = parser.whole(&mut bytes).map_err(|fault| parser.scan.locate(fault))?;
    Ok(ValueBuf::new(decode(kind, &bytes)))
}

/// Parses a single document.
///
/// # Errors
/// As [`parse`].
pub fn parse_doc(text: &str) -> Result<DocBuf, LiteralError> {
    let mut parser = Parser { scan: Scanner::new(text) };
    let mut bytes = Vec::with_capacity(text.len());
    match parser.whole(&mut bytes).map_err(|fault| parser.scan.locate(fault))? {
        Type::Document => Ok(DocBuf::from_valid_bytes(bytes)),
        _ => Err(Scanner::new(text).locate(Mistake("expected a document".into()))),
    }
}

struct Parser<'t> {
    scan: Scanner<'t>,
}

impl<'t> Brackets<'t> for Parser<'t> {
    const TRAILING_COMMA: bool = false;

    fn scan(&mut self) -> &mut Scanner<'t> {
        &mut self.scan
    }

    fn value(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        self.scan.space();
        match self.scan.peek() {
            Some(b'{') => self.document(out),
            Some(b'[') => self.array(out),
            Some(b'"') => {
                let text = self.scan.string()?;
                Ok(append(out, Value::String(&text)))
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            Some(b't') => self.word("true", Value::Bool(true), out),
            Some(b'f') => self.word("false", Value::Bool(false), out),
            Some(b'n') => self.word("null", Value::Null, out),
            _ => fault("expected a value"),
        }
    }

    fn name(&mut self, out: &mut Vec<u8>) -> Scanned<()> {
        match self.scan.peek() {
            Some(b'"') => self.quoted_name(out),
            _ => fault("expected a field name in quotes"),
        }
    }
}

impl Parser<'_> {
    fn whole(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        let kind = self.value(out)?;
        self.scan.space();
        match self.scan.is_done() {
            true => Ok(kind),
            false => fault("text after the value"),
        }
    }

    fn word(&mut self, word: &str, value: Value<'_>, out: &mut Vec<u8>) -> Scanned<Type> {
        match self.scan.take_text(word) {
            true => Ok(append(out, value)),
            false => fault("expected a value"),
        }
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        let text = self.scan.number()?;
        let digits = text.trim_start_matches('-');
        if let Some(rest) = digits.strip_prefix('0')
            && rest.starts_with(|next: char| next.is_ascii_digit())
        {
            return fault("a number can't begin with 0");
        }
        let whole = if text.contains(['.', 'e', 'E']) { None } else { text.parse::<i64>().ok() };
        let value = match whole {
            Some(number) => i32::try_from(number).map_or(Value::Int64(number), Value::Int32),
            None => Value::Double(text.parse().map_err(|_| Mistake("bad number".into()))?),
        };
        Ok(append(out, value))
    }

    fn document(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        let start = out.len();
        self.fields(out)?;
        // A wrapped value's first name begins with a dollar sign.
        if out.get(start + 5) != Some(&b'$') {
            return Ok(Type::Document);
        }
        unwrap(out, start)
    }
}

/// Replaces the document at `start` by the value that it wraps, if it is a wrapper.
fn unwrap(out: &mut Vec<u8>, start: usize) -> Scanned<Type> {
    let bytes = out[start..].to_vec();
    let doc = Doc::from_valid_bytes(&bytes);
    let Some(first) = doc.first() else { return Ok(Type::Document) };
    let (name, value) = (first.key(), first.value());
    let second = doc.fields().nth(1);
    let Some(known) = wrapped(name, value, second) else { return Ok(Type::Document) };
    let fields = 1 + usize::from(second.is_some_and(|(name, _)| takes(first.key(), name)));
    match known {
        Some(write) if doc.count() == fields => {
            out.truncate(start);
            Ok(write(out))
        }
        _ => Err(Mistake(format!("not a {name} of Extended JSON"))),
    }
}

/// Returns true if the second field belongs to the wrapper `name`.
fn takes(name: &str, second: &str) -> bool {
    matches!((name, second), ("$code", "$scope") | ("$binary", "$type") | ("$regex", "$options"))
}

type Write<'v> = Box<dyn FnOnce(&mut Vec<u8>) -> Type + 'v>;

/// Returns the value in a wrapper: `None` if `name` is not that of a wrapper, `Some(None)` if the
/// content of the wrapper is invalid.
fn wrapped<'v>(
    name: &str,
    value: Value<'v>,
    second: Option<(&'v str, Value<'v>)>,
) -> Option<Option<Write<'v>>> {
    let plain = |value: Option<Value<'v>>| {
        value.map(|value| Box::new(move |out: &mut Vec<u8>| append(out, value)) as Write<'v>)
    };
    Some(match name {
        "$oid" => plain(text(value).and_then(ObjectId::parse).map(Value::ObjectId)),
        "$symbol" => plain(text(value).map(Value::Symbol)),
        "$numberInt" => plain(number(value).map(Value::Int32)),
        "$numberLong" => plain(number(value).map(Value::Int64)),
        "$numberDouble" => plain(double(value).map(Value::Double)),
        "$numberDecimal" => plain(text(value).and_then(Decimal128::parse).map(Value::Decimal)),
        "$date" => plain(date(value).map(Value::Date)),
        "$timestamp" => plain(timestamp(value).map(Value::Timestamp)),
        "$minKey" => plain(matches!(value, Value::Int32(1)).then_some(Value::MinKey)),
        "$maxKey" => plain(matches!(value, Value::Int32(1)).then_some(Value::MaxKey)),
        "$undefined" => plain(matches!(value, Value::Bool(true)).then_some(Value::Undefined)),
        "$regularExpression" => plain(regular_expression(value)),
        "$regex" => match (value, second) {
            (Value::String(pattern), Some(("$options", Value::String(options)))) => {
                plain(regex(pattern, options))
            }
            // `$regex` as a query operator, not a wrapper.
            _ => return None,
        },
        "$dbPointer" => plain(db_pointer(value)),
        "$code" => plain(match (text(value), second) {
            (Some(code), Some(("$scope", scope))) => {
                scope.as_document().map(|scope| Value::CodeWithScope(CodeWithScope { code, scope }))
            }
            (code, _) => code.map(Value::Code),
        }),
        "$uuid" => binary_of(4, text(value).and_then(uuid)),
        "$binary" => match (value, second) {
            (Value::Document(doc), _) if doc.count() == 2 => {
                let subtype = doc.get("subType").and_then(text).and_then(subtype);
                binary(subtype, doc.get("base64").and_then(text))
            }
            (Value::String(base64), Some(("$type", kind))) => {
                binary(text(kind).and_then(subtype), Some(base64))
            }
            _ => None,
        },
        _ => return None,
    })
}

fn text(value: Value<'_>) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Returns an integer, given as a number or a string.
fn number<N: TryFrom<i64>>(value: Value<'_>) -> Option<N> {
    let number = match value {
        Value::Int32(number) => number.into(),
        Value::Int64(number) => number,
        Value::String(text) => text.parse::<i64>().ok()?,
        _ => return None,
    };
    N::try_from(number).ok()
}

fn double(value: Value<'_>) -> Option<f64> {
    match text(value)? {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        text if text.ends_with(|last: char| last.is_ascii_digit() || last == '.') => {
            text.parse().ok()
        }
        _ => None,
    }
}

/// Returns milliseconds, given as a number or, in the relaxed format, as the text of a date.
fn date(value: Value<'_>) -> Option<i64> {
    match value {
        Value::String(text) => parse_iso(text),
        other => number(other),
    }
}

fn timestamp(value: Value<'_>) -> Option<Timestamp> {
    let doc = value.as_document().filter(|doc| doc.count() == 2)?;
    let part = |name| doc.get(name).and_then(number::<u32>);
    Some(Timestamp { seconds: part("t")?, increment: part("i")? })
}

fn regular_expression(value: Value<'_>) -> Option<Value<'_>> {
    let doc = value.as_document().filter(|doc| doc.count() == 2)?;
    regex(doc.get("pattern").and_then(text)?, doc.get("options").and_then(text)?)
}

fn regex<'v>(pattern: &'v str, options: &'v str) -> Option<Value<'v>> {
    let whole = !pattern.contains('\0') && !options.contains('\0');
    whole.then_some(Value::Regex(Regex { pattern, options }))
}

fn db_pointer(value: Value<'_>) -> Option<Value<'_>> {
    let doc = value.as_document().filter(|doc| doc.count() == 2)?;
    let namespace = doc.get("$ref").and_then(text)?;
    match doc.get("$id")? {
        Value::ObjectId(id) => Some(Value::DbPointer(DbPointer { namespace, id })),
        _ => None,
    }
}

fn subtype(text: &str) -> Option<u8> {
    u8::from_str_radix(text, 16).ok().filter(|_| text.len() <= 2)
}

fn binary<'v>(subtype: Option<u8>, base64: Option<&str>) -> Option<Write<'v>> {
    binary_of(subtype?, base64.and_then(decode_base64))
}

fn binary_of<'v>(subtype: u8, bytes: Option<Vec<u8>>) -> Option<Write<'v>> {
    let bytes = bytes?;
    Some(Box::new(move |out| append(out, Value::Binary(Binary { subtype, bytes: &bytes }))))
}

fn uuid(text: &str) -> Option<Vec<u8>> {
    let digits: String = text.chars().filter(|&letter| letter != '-').collect();
    decode_hex(&digits).filter(|bytes| bytes.len() == 16)
}
