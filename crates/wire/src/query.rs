//! OP_QUERY, which only carries handshakes today, and the opcodes that MongoDB has removed.

use crate::cursor::Cursor;
use crate::limits::HEADER_BYTES;
use crate::{Malformed, OpCode};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode};

const UPGRADE: &str = "The client driver may require an upgrade. For more details see \
                       https://dochub.mongodb.org/core/legacy-opcode-removal";

/// A handshake command in an OP_QUERY.
#[derive(Debug)]
pub struct Query<'a> {
    /// The database: the namespace without `.$cmd`.
    pub database: &'a str,
    /// The command. If the client wrapped it in `$query`, the wrapped document.
    pub body: Doc<'a>,
}

pub(crate) fn parse(message: &[u8]) -> Result<Query<'_>, Malformed> {
    let mut cursor = Cursor::new(message);
    cursor.take(HEADER_BYTES)?;
    cursor.u32()?;
    let namespace = cursor.name()?;
    cursor.i32()?;
    let count = cursor.i32()?;
    let query = cursor.document()?;
    if !cursor.is_empty() {
        cursor.document()?;
    }
    if !cursor.is_empty() {
        return Err(Malformed::hang_up("OP_QUERY has bytes after its documents"));
    }
    let Some(database) = namespace.strip_suffix(".$cmd") else {
        return Err(removed(OpCode::Query));
    };
    if count != 1 && count != -1 {
        let text = format!("bad numberToReturn ({count}) for $cmd type ns - can only be 1 or -1");
        return Err(Malformed::Answer(Error::location(16979, text)));
    }
    let body = match query.get("$query").or_else(|| query.get("query")) {
        Some(Value::Document(inner)) => inner,
        _ => query,
    };
    let command = body.first().map_or("", |element| element.key());
    if !matches!(command, "hello" | "isMaster" | "ismaster") {
        let text = format!("Unsupported OP_QUERY command: {command}. {UPGRADE}");
        let error = Error::new(ErrorCode::UnsupportedOpQueryCommand, text);
        return Err(Malformed::Answer(error));
    }
    Ok(Query { database, body })
}

/// Returns the error for an opcode that MongoDB 5.1 removed.
pub(crate) fn removed(opcode: OpCode) -> Malformed {
    let (name, code) = match opcode {
        OpCode::Query => ("OP_QUERY", 5_739_101),
        OpCode::GetMore => ("OP_GET_MORE", 5_745_702),
        OpCode::Insert => ("OP_INSERT", 5_745_702),
        OpCode::Update => ("OP_UPDATE", 5_745_702),
        OpCode::Delete => ("OP_DELETE", 5_745_702),
        OpCode::KillCursors => ("OP_KILL_CURSORS", 5_745_702),
        OpCode::Reply => ("OP_REPLY", 5_745_702),
        OpCode::Compressed => ("OP_COMPRESSED", 5_745_702),
        OpCode::Msg => ("OP_MSG", 5_745_702),
    };
    let error = Error::location(code, format!("{name} is no longer supported. {UPGRADE}"));
    match opcode {
        OpCode::Query | OpCode::GetMore => Malformed::Answer(error),
        _ => Malformed::Ignore(error),
    }
}
