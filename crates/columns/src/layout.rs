//! Layouts: the structure of a document, without its values.

use quire_error::Result;

use crate::bytes::{Reader, damaged, put_varint};

/// The number of a column.
pub(crate) type ColumnId = u32;

/// The column of the times.
pub(crate) const TIME: ColumnId = 0;

/// The column of the meta value, in a bucket that has one.
pub(crate) const META: ColumnId = 1;

/// A part of a document, in the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Token {
    /// The end of an inner document or array.
    End,
    /// A value of the column, or its elements.
    Value(ColumnId),
    /// The beginning of a document, whose fields have columns of their own.
    Document(ColumnId),
    /// The beginning of an array, whose elements have columns of their own.
    Array(ColumnId),
}

impl Token {
    /// Appends the token.
    pub fn write(self, out: &mut Vec<u8>) {
        let number = match self {
            Token::End => 0,
            Token::Value(column) => 3 * u64::from(column) + 1,
            Token::Document(column) => 3 * u64::from(column) + 2,
            Token::Array(column) => 3 * u64::from(column) + 3,
        };
        put_varint(out, number);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Token> {
        let Some(number) = reader.varint()?.checked_sub(1) else { return Ok(Token::End) };
        let column = ColumnId::try_from(number / 3).map_err(|_| damaged("a token"))?;
        Ok(match number % 3 {
            0 => Token::Value(column),
            1 => Token::Document(column),
            _ => Token::Array(column),
        })
    }
}

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The values of a field.
    Field,
    /// Elements that belong to no other column.
    Elements,
}

/// The identity of a column.
#[derive(Clone, Debug)]
pub(crate) struct Field<N> {
    pub role: Role,
    /// The column of the document or array around it; `None` at the top.
    pub parent: Option<ColumnId>,
    /// How many fields of the same name stand before it in its document.
    pub occurrence: u32,
    pub name: N,
}

/// Reads the tokens of a layout, and checks them against the columns.
///
/// A layout has each column at most once, each below its parent, and all of the first `fixed`
/// columns at the top.
pub(crate) fn read_layout<N>(
    bytes: &[u8],
    fields: &[Field<N>],
    fixed: usize,
) -> Result<Vec<Token>> {
    let mut reader = Reader::new(bytes);
    let mut tokens = Vec::new();
    let mut seen = vec![false; fields.len()];
    let mut open = Vec::new();
    while reader.left() > 0 {
        let token = Token::read(&mut reader)?;
        tokens.push(token);
        let column = match token {
            Token::End => {
                open.pop().ok_or_else(|| damaged("a layout"))?;
                continue;
            }
            Token::Value(column) | Token::Document(column) | Token::Array(column) => column,
        };
        let is_value = matches!(token, Token::Value(_));
        let at = column as usize;
        let (Some(field), Some(seen)) = (fields.get(at), seen.get_mut(at)) else {
            return Err(damaged("a layout"));
        };
        let fits = field.parent == open.last().copied()
            && !std::mem::replace(seen, true)
            && (is_value || (field.role == Role::Field && at >= fixed));
        if !fits {
            return Err(damaged("a layout"));
        }
        if !is_value {
            open.push(column);
        }
    }
    if !open.is_empty() || seen.iter().take(fixed).any(|seen| !seen) {
        return Err(damaged("a layout"));
    }
    Ok(tokens)
}
