//! Parses literals: a recursive descent that writes BSON while it parses.

use super::brackets::Brackets;
use super::scan::{
    LiteralError, Mistake, Scanned, Scanner, append, decode_base64, decode_hex, fault,
};
use crate::calendar::parse_iso;
use crate::doc::decode;
use crate::{
    Binary, CodeWithScope, DbPointer, Decimal128, Doc, DocBuf, ObjectId, Regex, Timestamp, Type,
    Value, ValueBuf,
};

/// Parses a single value. Text after it is an error.
pub fn parse(text: &str) -> Result<ValueBuf, LiteralError> {
    let mut parser = Parser::new(text);
    let value = parser.whole_value().map_err(|fault| parser.scan.locate(fault))?;
    parser.scan.space();
    match parser.scan.is_done() {
        true => Ok(value),
        false => Err(parser.scan.locate(Mistake("text after the value".into()))),
    }
}

/// Parses a single document. Text after it is an error.
pub fn parse_doc(text: &str) -> Result<DocBuf, LiteralError> {
    let value = parse(text)?;
    match value.as_value() {
        Value::Document(doc) => Ok(doc.to_owned()),
        _ => Err(Parser::new(text).scan.locate(Mistake("expected a document".into()))),
    }
}

/// Parses the value at the start of `text` and returns its length in bytes too.
pub fn parse_prefix(text: &str) -> Result<(ValueBuf, usize), LiteralError> {
    let mut parser = Parser::new(text);
    let value = parser.whole_value().map_err(|fault| parser.scan.locate(fault))?;
    Ok((value, parser.scan.at))
}

struct Parser<'t> {
    scan: Scanner<'t>,
}

/// The arguments of a call, as owned values.
struct Arguments(Vec<ValueBuf>);

impl<'t> Brackets<'t> for Parser<'t> {
    const TRAILING_COMMA: bool = true;

    fn scan(&mut self) -> &mut Scanner<'t> {
        &mut self.scan
    }

    fn value(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        self.scan.space();
        match self.scan.peek() {
            Some(b'{') => self.fields(out),
            Some(b'[') => self.array(out),
            Some(b'"') => {
                let text = self.scan.string()?;
                Ok(append(out, Value::String(&text)))
            }
            Some(b'/') => self.regex(out),
            Some(b'-' | b'0'..=b'9') => self.number(out),
            Some(b'A'..=b'Z' | b'a'..=b'z') => self.word(out),
            _ => fault("expected a value"),
        }
    }

    fn name(&mut self, out: &mut Vec<u8>) -> Scanned<()> {
        match self.scan.peek() {
            Some(b'"') => self.quoted_name(out),
            Some(b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$') => {
                out.extend_from_slice(self.scan.take_while(is_word).as_bytes());
                Ok(())
            }
            _ => fault("expected a field name"),
        }
    }
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        Parser { scan: Scanner::new(text) }
    }

    fn whole_value(&mut self) -> Scanned<ValueBuf> {
        let mut bytes = Vec::with_capacity(128);
        let kind = self.value(&mut bytes)?;
        Ok(ValueBuf::new(decode(kind, &bytes)))
    }

    fn regex(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        self.scan.at += 1;
        let mut pattern = String::new();
        loop {
            pattern
                .push_str(self.scan.take_while(|byte| !matches!(byte, b'/' | b'\\' | b'\n' | 0)));
            match self.scan.peek() {
                Some(b'/') => break,
                Some(b'\\') => {
                    let next =
                        self.scan.text.get(self.scan.at + 1..).and_then(|rest| rest.chars().next());
                    match next {
                        Some('/') => pattern.push('/'),
                        Some('\n' | '\0') | None => return fault("bad regular expression"),
                        Some(letter) => pattern.extend(['\\', letter]),
                    }
                    self.scan.at += 1 + next.map_or(0, char::len_utf8);
                }
                _ => return fault("bad regular expression"),
            }
        }
        if pattern.is_empty() {
            return fault("empty regular expression");
        }
        self.scan.at += 1;
        let mut options: Vec<char> =
            self.scan.take_while(|byte| byte.is_ascii_lowercase()).chars().collect();
        options.sort_unstable();
        let options: String = options.into_iter().collect();
        Ok(append(out, Value::Regex(Regex { pattern: &pattern, options: &options })))
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        if self.scan.take_text("-Infinity") {
            return Ok(append(out, Value::Double(f64::NEG_INFINITY)));
        }
        let text = self.scan.number()?;
        if text.contains(['.', 'e', 'E']) {
            let number: f64 = text.parse().map_err(|_| Mistake("bad number".into()))?;
            return Ok(append(out, Value::Double(number)));
        }
        let number: i64 = text.parse().map_err(|_| Mistake("number out of range".into()))?;
        Ok(append(out, i32::try_from(number).map_or(Value::Int64(number), Value::Int32)))
    }

    fn word(&mut self, out: &mut Vec<u8>) -> Scanned<Type> {
        let start = self.scan.at;
        let word = self.scan.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            "undefined" => Value::Undefined,
            "NaN" => Value::Double(f64::NAN),
            "Infinity" => Value::Double(f64::INFINITY),
            "MinKey" => Value::MinKey,
            "MaxKey" => Value::MaxKey,
            _ => {
                self.scan.space();
                if self.scan.peek() != Some(b'(') {
                    self.scan.at = start;
                    return Err(Mistake(format!("unknown word {word}")));
                }
                let mut arguments = Vec::new();
                self.list(b')', |parser| {
                    arguments.push(parser.whole_value()?);
                    Ok(())
                })?;
                let result = call(word, &Arguments(arguments), out);
                if result.is_err() {
                    self.scan.at = start;
                }
                return result;
            }
        };
        Ok(append(out, value))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

impl Arguments {
    fn get(&self, at: usize) -> Option<Value<'_>> {
        self.0.get(at).map(ValueBuf::as_value)
    }

    fn text(&self, at: usize) -> Option<&str> {
        match self.get(at)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an integer argument, given as a number or a string.
    fn integer(&self, at: usize) -> Option<i64> {
        match self.get(at)? {
            Value::Int32(number) => Some(number as i64),
            Value::Int64(number) => Some(number),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn document(&self, at: usize) -> Option<Doc<'_>> {
        self.get(at)?.as_document()
    }
}

/// Appends the value of the call `word(arguments)`.
fn call(word: &str, arguments: &Arguments, out: &mut Vec<u8>) -> Scanned<Type> {
    let known = match word {
        "Code" | "RegExp" => (1..=2).contains(&arguments.0.len()),
        "Timestamp" | "BinData" | "DBPointer" => arguments.0.len() == 2,
        _ => arguments.0.len() == 1,
    };
    let kind = if known { construct(word, arguments, out) } else { None };
    kind.ok_or_else(|| Mistake(format!("unknown word or wrong arguments: {word}(...)")))
}

fn construct(word: &str, arguments: &Arguments, out: &mut Vec<u8>) -> Option<Type> {
    Some(match word {
        "ObjectId" => append(out, Value::ObjectId(ObjectId::parse(arguments.text(0)?)?)),
        "NumberInt" => append(out, Value::Int32(arguments.integer(0)?.try_into().ok()?)),
        "NumberLong" => append(out, Value::Int64(arguments.integer(0)?)),
        "NumberDecimal" => {
            let decimal = match arguments.get(0)? {
                Value::String(text) => Decimal128::parse(text)?,
                Value::Double(number) => {
                    Decimal128::parse(&crate::number::shortest_double(number))?
                }
                _ => Decimal128::parse(&arguments.integer(0)?.to_string())?,
            };
            append(out, Value::Decimal(decimal))
        }
        "ISODate" => append(out, Value::Date(parse_iso(arguments.text(0)?)?)),
        "Date" => append(out, Value::Date(arguments.integer(0)?)),
        "Timestamp" => {
            let seconds = arguments.integer(0)?.try_into().ok()?;
            let increment = arguments.integer(1)?.try_into().ok()?;
            append(out, Value::Timestamp(Timestamp { seconds, increment }))
        }
        "BinData" => {
            let subtype = arguments.integer(0)?.try_into().ok()?;
            let bytes = decode_base64(arguments.text(1)?)?;
            append(out, Value::Binary(Binary { subtype, bytes: &bytes }))
        }
        "UUID" => {
            let digits: String = arguments.text(0)?.chars().filter(|&c| c != '-').collect();
            let bytes = decode_hex(&digits).filter(|bytes| bytes.len() == 16)?;
            append(out, Value::Binary(Binary { subtype: 4, bytes: &bytes }))
        }
        "RegExp" => {
            let options = if arguments.0.len() == 2 { arguments.text(1)? } else { "" };
            let pattern = arguments.text(0)?;
            if pattern.contains('\0') || options.contains('\0') {
                return None;
            }
            append(out, Value::Regex(Regex { pattern, options }))
        }
        "Code" if arguments.0.len() == 2 => {
            let (code, scope) = (arguments.text(0)?, arguments.document(1)?);
            append(out, Value::CodeWithScope(CodeWithScope { code, scope }))
        }
        "Code" => append(out, Value::Code(arguments.text(0)?)),
        "Symbol" => append(out, Value::Symbol(arguments.text(0)?)),
        "DBPointer" => {
            let Value::ObjectId(id) = arguments.get(1)? else {
                return None;
            };
            let namespace = arguments.text(0)?;
            append(out, Value::DbPointer(DbPointer { namespace, id }))
        }
        _ => return None,
    })
}
