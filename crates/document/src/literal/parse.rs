//! Literals to values: a recursive descent that writes BSON as it reads.

use crate::builder::{ArrayWriter, write_value};
use crate::calendar::parse_iso;
use crate::doc::decode;
use crate::{
    Binary, CodeWithScope, DbPointer, Decimal128, Doc, DocBuf, ObjectId, Regex, Timestamp, Type,
    Value, ValueBuf,
};
use std::fmt;

/// How deep documents and arrays may nest in a literal.
pub const NESTING_MAX: usize = 400;

/// What is wrong with a literal, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralError {
    /// What was expected.
    pub message: String,
    /// Bytes before the place.
    pub offset: usize,
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
}

impl fmt::Display for LiteralError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}, column {}", self.message, self.line, self.column)
    }
}

impl std::error::Error for LiteralError {}

/// Parses one value; nothing may follow it.
pub fn parse(text: &str) -> Result<ValueBuf, LiteralError> {
    let mut parser = Parser::new(text);
    let value = parser.whole_value().map_err(|fault| parser.locate(fault))?;
    parser.space();
    match parser.at == text.len() {
        true => Ok(value),
        false => Err(parser.locate(Fault("text after the value".into()))),
    }
}

/// Parses one document; nothing may follow it.
pub fn parse_doc(text: &str) -> Result<DocBuf, LiteralError> {
    let value = parse(text)?;
    match value.as_value() {
        Value::Document(doc) => Ok(doc.to_owned()),
        _ => Err(Parser::new(text).locate(Fault("expected a document".into()))),
    }
}

/// Parses the value at the start of `text` and says how many bytes it took.
pub fn parse_prefix(text: &str) -> Result<(ValueBuf, usize), LiteralError> {
    let mut parser = Parser::new(text);
    let value = parser.whole_value().map_err(|fault| parser.locate(fault))?;
    Ok((value, parser.at))
}

struct Fault(String);

type Parsed<T> = Result<T, Fault>;

fn fault<T>(message: &str) -> Parsed<T> {
    Err(Fault(message.into()))
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

/// The arguments of a call, as owned values.
struct Arguments(Vec<ValueBuf>);

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        Parser { text, at: 0, depth: 0 }
    }

    fn locate(&self, fault: Fault) -> LiteralError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        LiteralError {
            message: fault.0,
            offset: self.at,
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    fn whole_value(&mut self) -> Parsed<ValueBuf> {
        let mut bytes = Vec::with_capacity(128);
        let kind = self.value(&mut bytes)?;
        Ok(ValueBuf::new(decode(kind, &bytes)))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// The bytes from here on that satisfy `test`.
    fn run_of(&mut self, test: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(&test) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Reads a value, appends its bytes, and answers its type.
    fn value(&mut self, out: &mut Vec<u8>) -> Parsed<Type> {
        self.space();
        match self.peek() {
            Some(b'{') => self.document(out),
            Some(b'[') => self.array(out),
            Some(b'"') => {
                let text = self.string()?;
                Ok(append(out, Value::String(&text)))
            }
            Some(b'/') => self.regex(out),
            Some(b'-' | b'0'..=b'9') => self.number(out),
            Some(b'A'..=b'Z' | b'a'..=b'z') => self.word(out),
            _ => fault("expected a value"),
        }
    }

    /// Items between brackets; the opening one stands here.
    fn list(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        self.at += 1;
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return fault("nested too deeply");
        }
        loop {
            self.space();
            if self.peek() == Some(end) {
                break;
            }
            item(self)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == end => break,
                _ => return Err(Fault(format!("expected , or {}", end as char))),
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn document(&mut self, out: &mut Vec<u8>) -> Parsed<Type> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.list(b'}', |parser| {
            let place = out.len();
            out.push(0);
            parser.name(out)?;
            parser.space();
            if parser.peek() != Some(b':') {
                return fault("expected :");
            }
            parser.at += 1;
            let kind = parser.value(out)?;
            out[place] = kind.byte();
            Ok(())
        })?;
        finish(out, start);
        Ok(Type::Document)
    }

    fn array(&mut self, out: &mut Vec<u8>) -> Parsed<Type> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let mut index = 0u32;
        self.list(b']', |parser| {
            let place = out.len();
            out.push(0);
            ArrayWriter::write_name(out, index);
            index += 1;
            let kind = parser.value(out)?;
            out[place] = kind.byte();
            Ok(())
        })?;
        finish(out, start);
        Ok(Type::Array)
    }

    /// Reads a field's name and appends it with its terminator.
    fn name(&mut self, out: &mut Vec<u8>) -> Parsed<()> {
        match self.peek() {
            Some(b'"') => {
                let name = self.string()?;
                if name.contains('\0') {
                    return fault("a field name can't contain a zero");
                }
                out.extend_from_slice(name.as_bytes());
            }
            Some(b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$') => {
                let name = self.run_of(is_word);
                out.extend_from_slice(name.as_bytes());
            }
            _ => return fault("expected a field name"),
        }
        out.push(0);
        Ok(())
    }

    fn string(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let plain = self.run_of(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
            text.push_str(plain);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                Some(_) => return fault("control character in a string"),
                None => return fault("string not closed"),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let byte = self.peek();
        self.at += byte.is_some() as usize;
        Ok(match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => {
                self.at -= byte.is_some() as usize;
                return fault("unknown escape");
            }
        })
    }

    fn unicode(&mut self) -> Parsed<char> {
        let first = self.hex4()?;
        let mut code = first;
        if (0xd800..0xdc00).contains(&first) {
            if self.text.as_bytes().get(self.at..self.at + 2) != Some(b"\\u") {
                return fault("half a surrogate pair");
            }
            self.at += 2;
            let second = self.hex4()?.wrapping_sub(0xdc00);
            if second >= 0x400 {
                return fault("half a surrogate pair");
            }
            code = 0x10000 + ((first - 0xd800) << 10) + second;
        }
        char::from_u32(code).ok_or(Fault("half a surrogate pair".into()))
    }

    fn hex4(&mut self) -> Parsed<u32> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += code.map_or(0, |_| 4);
        code.ok_or(Fault("expected four hexadecimal digits".into()))
    }

    fn regex(&mut self, out: &mut Vec<u8>) -> Parsed<Type> {
        self.at += 1;
        let mut pattern = String::new();
        loop {
            pattern.push_str(self.run_of(|byte| !matches!(byte, b'/' | b'\\' | b'\n' | 0)));
            match self.peek() {
                Some(b'/') => break,
                Some(b'\\') => {
                    let next = self.text.get(self.at + 1..).and_then(|rest| rest.chars().next());
                    match next {
                        Some('/') => pattern.push('/'),
                        Some('\n' | '\0') | None => return fault("bad regular expression"),
                        Some(letter) => pattern.extend(['\\', letter]),
                    }
                    self.at += 1 + next.map_or(0, char::len_utf8);
                }
                _ => return fault("bad regular expression"),
            }
        }
        if pattern.is_empty() {
            return fault("empty regular expression");
        }
        self.at += 1;
        let mut options: Vec<char> =
            self.run_of(|byte| byte.is_ascii_lowercase()).chars().collect();
        options.sort_unstable();
        let options: String = options.into_iter().collect();
        Ok(append(out, Value::Regex(Regex { pattern: &pattern, options: &options })))
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Parsed<Type> {
        let start = self.at;
        self.at += (self.peek() == Some(b'-')) as usize;
        if self.text[self.at..].starts_with("Infinity") {
            self.at += "Infinity".len();
            return Ok(append(out, Value::Double(f64::NEG_INFINITY)));
        }
        let digits = self.run_of(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return fault("expected a number");
        }
        let mut double = false;
        let rest = &self.text.as_bytes()[self.at..];
        if rest.first() == Some(&b'.') && rest.get(1).is_some_and(u8::is_ascii_digit) {
            double = true;
            self.at += 1;
            self.run_of(|byte| byte.is_ascii_digit());
        }
        let rest = &self.text.as_bytes()[self.at..];
        if matches!(rest.first(), Some(b'e' | b'E')) {
            let signed = matches!(rest.get(1), Some(b'+' | b'-')) as usize;
            if rest.get(1 + signed).is_some_and(u8::is_ascii_digit) {
                double = true;
                self.at += 1 + signed;
                self.run_of(|byte| byte.is_ascii_digit());
            }
        }
        let text = &self.text[start..self.at];
        let bad = |_| Fault("number out of range".into());
        if double {
            let number: f64 = text.parse().map_err(|_| Fault("bad number".into()))?;
            return Ok(append(out, Value::Double(number)));
        }
        let number: i64 = text.parse().map_err(bad)?;
        Ok(append(out, i32::try_from(number).map_or(Value::Int64(number), Value::Int32)))
    }

    fn word(&mut self, out: &mut Vec<u8>) -> Parsed<Type> {
        let start = self.at;
        let word = self.run_of(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
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
                self.space();
                if self.peek() != Some(b'(') {
                    self.at = start;
                    return Err(Fault(format!("unknown word {word}")));
                }
                let mut arguments = Vec::new();
                self.list(b')', |parser| {
                    arguments.push(parser.whole_value()?);
                    Ok(())
                })?;
                let result = call(word, &Arguments(arguments), out);
                if result.is_err() {
                    self.at = start;
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

fn append(out: &mut Vec<u8>, value: Value<'_>) -> Type {
    write_value(out, value);
    value.kind()
}

fn finish(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
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

    /// An integer, or a string that spells one.
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

/// Appends what `word(arguments)` stands for.
fn call(word: &str, arguments: &Arguments, out: &mut Vec<u8>) -> Parsed<Type> {
    let known = match word {
        "Code" | "RegExp" => (1..=2).contains(&arguments.0.len()),
        "Timestamp" | "BinData" | "DBPointer" => arguments.0.len() == 2,
        _ => arguments.0.len() == 1,
    };
    let kind = if known { construct(word, arguments, out) } else { None };
    kind.ok_or_else(|| Fault(format!("unknown word or wrong arguments: {word}(...)")))
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

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
        _ => None,
    });
    pairs.collect()
}

/// Standard base64 with padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=').as_bytes();
    if !text.len().is_multiple_of(4) || text.len() - letters.len() > 2 {
        return None;
    }
    let (mut out, mut bits, mut count) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for &letter in letters {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | six as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}
