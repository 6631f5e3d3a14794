//! OP_COMPRESSED: a message that contains another message, compressed by one of four compressors.

use crate::cursor::Cursor;
use crate::limits::{COMPRESSED_PREFIX_BYTES, HEADER_BYTES, MESSAGE_BYTES_MAX};
use crate::{Header, Malformed, OpCode};
use quire_error::{Error, ErrorCode};

/// A compressor that client and server agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Compressor {
    /// Copies the bytes unchanged; for tests.
    Noop = 0,
    /// Fast, with a low compression ratio.
    Snappy = 1,
    /// Slow, but supported by most drivers.
    Zlib = 2,
    /// Faster than zlib, with a higher compression ratio.
    Zstd = 3,
}

impl Compressor {
    /// Returns the compressor with this number on the wire.
    pub const fn from_number(number: u8) -> Option<Compressor> {
        Some(match number {
            0 => Compressor::Noop,
            1 => Compressor::Snappy,
            2 => Compressor::Zlib,
            3 => Compressor::Zstd,
            _ => return None,
        })
    }

    /// Returns the name that the handshake uses.
    pub const fn name(self) -> &'static str {
        match self {
            Compressor::Noop => "noop",
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    /// Appends `data`, compressed, to `out`.
    ///
    /// # Errors
    /// `InternalError` if the compressor fails, which does not happen for messages of legal size.
    pub fn compress(self, data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        match self {
            Compressor::Noop => out.extend_from_slice(data),
            Compressor::Snappy => {
                out.resize(start + snap::raw::max_compress_len(data.len()), 0);
                let room = out.get_mut(start..).unwrap_or_default();
                let written = snap::raw::Encoder::new()
                    .compress(data, room)
                    .map_err(|error| failed("snappy", &error))?;
                out.truncate(start + written);
            }
            Compressor::Zlib => {
                out.extend_from_slice(&miniz_oxide::deflate::compress_to_vec_zlib(data, 6));
            }
            Compressor::Zstd => {
                out.resize(start + zstd_safe::compress_bound(data.len()), 0);
                let room = out.get_mut(start..).unwrap_or_default();
                let written = zstd_safe::compress(room, data, zstd_safe::CLEVEL_DEFAULT)
                    .map_err(|code| failed("zstd", &zstd_safe::get_error_name(code)))?;
                out.truncate(start + written);
            }
        }
        Ok(())
    }

    /// Decompresses `data`, which must fill `room` exactly.
    fn decompress(self, data: &[u8], room: &mut [u8]) -> Result<(), Malformed> {
        let written = match self {
            Compressor::Noop if data.len() == room.len() => {
                room.copy_from_slice(data);
                Some(data.len())
            }
            Compressor::Noop => None,
            Compressor::Snappy => snap::raw::Decoder::new().decompress(data, room).ok(),
            Compressor::Zlib => miniz_oxide::inflate::decompress_slice_iter_to_slice(
                room,
                std::iter::once(data),
                true,
                false,
            )
            .ok(),
            Compressor::Zstd => zstd_safe::decompress(room, data).ok(),
        };
        if written == Some(room.len()) {
            return Ok(());
        }
        let text = format!("{} data does not decompress to the announced size", self.name());
        Err(Malformed::HangUp(Error::bad_value(text)))
    }
}

/// Returns the decompressed size that an OP_COMPRESSED message announces, in bytes: at most that of
/// the largest message, and 0 if it announces none.
pub fn expanded_bytes(message: &[u8]) -> u64 {
    let size = message.get(HEADER_BYTES + 4..).and_then(|rest| rest.first_chunk::<4>());
    let size = size.map_or(0, |size| u64::try_from(i32::from_le_bytes(*size)).unwrap_or(0));
    size.min(MESSAGE_BYTES_MAX as u64)
}

/// Decompresses a whole OP_COMPRESSED message into `out`, as the original message with its header.
/// Returns that header and the client's compressor.
///
/// # Errors
/// [`Malformed::HangUp`] for an unknown compressor, for a size beyond the limit (checked before
/// memory is allocated), and for data that does not decompress to that size.
pub fn expand(
    header: &Header,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Result<(Header, Compressor), Malformed> {
    let mut cursor = Cursor::new(message);
    cursor.take(HEADER_BYTES)?;
    let opcode = OpCode::from_number(cursor.i32()?)
        .filter(|opcode| *opcode != OpCode::Compressed)
        .ok_or_else(|| Malformed::hang_up("OP_COMPRESSED holds an unknown opcode"))?;
    let size = usize::try_from(cursor.i32()?).unwrap_or(usize::MAX);
    let number = cursor.u8()?;
    let compressor = Compressor::from_number(number)
        .ok_or_else(|| Malformed::hang_up(format!("unknown compressor {number}")))?;
    if size > MESSAGE_BYTES_MAX - HEADER_BYTES {
        let text = "Decompressed message would be larger than maximum message size";
        return Err(Malformed::HangUp(Error::bad_value(text)));
    }
    let data = cursor.rest();
    if compressor == Compressor::Snappy && snap::raw::decompress_len(data).ok() != Some(size) {
        let text = "snappy data does not have the announced size";
        return Err(Malformed::HangUp(Error::bad_value(text)));
    }
    let inner = Header { length: (HEADER_BYTES + size) as u32, opcode, ..*header };
    out.clear();
    out.extend_from_slice(&inner.to_bytes());
    out.resize(HEADER_BYTES + size, 0);
    compressor.decompress(data, out.get_mut(HEADER_BYTES..).unwrap_or_default())?;
    Ok((inner, compressor))
}

/// Compresses a whole message into `out`, as OP_COMPRESSED.
///
/// # Errors
/// As [`Compressor::compress`].
pub(crate) fn pack(
    header: &Header,
    content: &[&[u8]],
    compressor: Compressor,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let content = content.concat();
    out.clear();
    out.resize(HEADER_BYTES, 0);
    out.extend_from_slice(&header.opcode.number().to_le_bytes());
    out.extend_from_slice(&(content.len() as i32).to_le_bytes());
    out.push(compressor as u8);
    debug_assert_eq!(out.len(), COMPRESSED_PREFIX_BYTES);
    compressor.compress(&content, out)?;
    let outer = Header { length: out.len() as u32, opcode: OpCode::Compressed, ..*header };
    if let Some(slot) = out.get_mut(..HEADER_BYTES) {
        slot.copy_from_slice(&outer.to_bytes());
    }
    Ok(())
}

fn failed(name: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorCode::InternalError, format!("{name}: {error}"))
}
