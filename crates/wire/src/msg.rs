//! OP_MSG: flags, one body, up to two document sequences, a checksum.

use crate::Malformed;
use crate::cursor::{Cursor, invalid};
use crate::limits::{CHECKSUM_BYTES, HEADER_BYTES, SEQUENCES_MAX};
use quire_document::Doc;
use quire_error::{Error, ErrorCode};

/// The most documents for which room is made before they are read.
const EXPECTED_MAX: usize = 1000;

/// The flag bits of an OP_MSG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// A CRC-32C of the message follows the sections.
    pub const CHECKSUM_PRESENT: Flags = Flags(1);
    /// The sender sends more without waiting: a request without a reply, or a reply that others
    /// follow.
    pub const MORE_TO_COME: Flags = Flags(1 << 1);
    /// The client accepts several replies to this request.
    pub const EXHAUST_ALLOWED: Flags = Flags(1 << 16);

    /// The bits that a receiver must refuse if it does not know them; it ignores unknown bits of
    /// the upper half.
    const REQUIRED: u32 = 0xFFFF;

    /// Returns true if all bits of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these flags, with those of `other` added if `set` is true.
    pub const fn with(self, other: Flags, set: bool) -> Flags {
        if set { Flags(self.0 | other.0) } else { self }
    }

    const fn unknown_required(self) -> bool {
        self.0 & Self::REQUIRED & !(Self::CHECKSUM_PRESENT.0 | Self::MORE_TO_COME.0) != 0
    }
}

/// A parsed OP_MSG, borrowing from the message's bytes.
#[derive(Debug)]
pub struct Msg<'a> {
    /// The flags of the message.
    pub flags: Flags,
    /// The command document.
    pub body: Doc<'a>,
    /// The document sequences. Their names are unique, and none is a field of the body.
    pub sequences: Vec<Sequence<'a>>,
}

/// One section of kind 1: an argument that is a list of documents.
#[derive(Debug)]
pub struct Sequence<'a> {
    /// The argument's name.
    pub name: &'a str,
    /// The documents in order.
    pub documents: Vec<Doc<'a>>,
}

pub(crate) fn parse(message: &[u8]) -> Result<Msg<'_>, Malformed> {
    let mut start = Cursor::new(message);
    start.take(HEADER_BYTES)?;
    let flags = Flags(start.u32()?);
    if flags.unknown_required() {
        let text = format!("Message contains illegal flags value: Ob{:032b}", flags.0);
        return Err(Malformed::HangUp(Error::new(ErrorCode::IllegalOpMsgFlag, text)));
    }
    let mut sections = Cursor::new(checked_sections(flags, message, start.rest())?);
    let mut body = None;
    let mut sequences: Vec<Sequence<'_>> = Vec::new();
    while !sections.is_empty() {
        match sections.u8()? {
            0 if body.is_some() => {
                return Err(location(40430, "Multiple body sections in message"));
            }
            0 => body = Some(sections.document()?),
            1 => {
                let next = sequence(&mut sections, &sequences)?;
                sequences.push(next);
            }
            other => return Err(location(40432, format!("Unknown section kind {other}"))),
        }
    }
    let body = body.ok_or_else(|| location(40587, "OP_MSG messages must have a body"))?;
    if let Some(clash) = sequences.iter().find(|sequence| body.contains(sequence.name)) {
        let text = format!("Duplicate field between body and document sequence {}", clash.name);
        return Err(location(40433, text));
    }
    Ok(Msg { flags, body, sequences })
}

/// Returns the bytes of the sections, without the checksum, which must match the message.
fn checked_sections<'a>(
    flags: Flags,
    message: &'a [u8],
    rest: &'a [u8],
) -> Result<&'a [u8], Malformed> {
    if !flags.has(Flags::CHECKSUM_PRESENT) {
        return Ok(rest);
    }
    let (sections, sent) = rest
        .split_last_chunk::<CHECKSUM_BYTES>()
        .ok_or_else(|| Malformed::hang_up("the message has no room for its checksum"))?;
    let covered = message.get(..message.len() - CHECKSUM_BYTES).unwrap_or(message);
    if crc32c::crc32c(covered) != u32::from_le_bytes(*sent) {
        let error =
            Error::new(ErrorCode::ChecksumMismatch, "OP_MSG checksum does not match contents");
        return Err(Malformed::HangUp(error));
    }
    Ok(sections)
}

fn sequence<'a>(
    sections: &mut Cursor<'a>,
    before: &[Sequence<'a>],
) -> Result<Sequence<'a>, Malformed> {
    if before.len() >= SEQUENCES_MAX {
        let text = "Too many document sequences in OP_MSG";
        return Err(Malformed::Answer(Error::new(ErrorCode::TooManyDocumentSequences, text)));
    }
    let size = usize::try_from(sections.i32()?).ok().and_then(|size| size.checked_sub(4));
    let size = size.ok_or_else(|| Malformed::hang_up("a document sequence has a bad length"))?;
    let mut inner = Cursor::new(sections.take(size)?);
    let name = inner.name()?;
    if name.is_empty() {
        return Err(invalid("a document sequence has no name"));
    }
    if before.iter().any(|sequence| sequence.name == name) {
        return Err(location(40431, format!("Duplicate document sequence: {name}")));
    }
    let mut documents = Vec::new();
    while !inner.is_empty() {
        let document = inner.document()?;
        if documents.is_empty() {
            // The documents of a sequence are mostly alike.
            let others = inner.rest().len() / document.len().max(1);
            documents.reserve_exact(1 + others.min(EXPECTED_MAX));
        }
        documents.push(document);
    }
    Ok(Sequence { name, documents })
}

fn location(code: i32, message: impl Into<String>) -> Malformed {
    Malformed::Answer(Error::location(code, message))
}
