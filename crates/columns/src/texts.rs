//! Byte strings of different lengths: one after another, compressed by zstd, or as positions in a
//! dictionary, whichever takes the fewest bytes.

use quire_error::Result;
use std::collections::HashMap;

use crate::bytes::{Reader, damaged, put_blob, put_varint};
use crate::integers;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
const DICTIONARY: u8 = 2;

/// Below this total length zstd does not gain enough to be tried.
const ZSTD_BYTES_MIN: usize = 64;

/// zstd's level: higher ones cost much more time and gain little on a few kilobytes.
const LEVEL: i32 = 3;

/// Byte strings in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// Start and end of each in `bytes`.
    spans: Vec<(u32, u32)>,
}

impl Texts {
    /// Returns the text at `at`, empty if there are not as many.
    pub fn get(&self, at: usize) -> &[u8] {
        let span = self.spans.get(at);
        span.and_then(|(from, to)| self.bytes.get(*from as usize..*to as usize)).unwrap_or_default()
    }

    /// Returns the texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.spans.len()).map(|at| self.get(at))
    }
}

/// Appends `texts`, whose total length must be below 4 GiB.
pub(crate) fn encode(texts: &[&[u8]], out: &mut Vec<u8>) {
    if texts.is_empty() {
        return;
    }
    let plain = encode_plain(texts);
    match encode_dictionary(texts, plain.len()) {
        Some(bytes) if bytes.len() < plain.len() => out.extend_from_slice(&bytes),
        _ => out.extend_from_slice(&plain),
    }
}

/// Returns the texts one after another, compressed if that is shorter.
fn encode_plain(texts: &[&[u8]]) -> Vec<u8> {
    let lengths: Vec<i64> = texts.iter().map(|text| text.len() as i64).collect();
    let mut bytes = vec![PLAIN];
    integers::encode(&lengths, &mut bytes);
    let all = texts.concat();
    if all.len() >= ZSTD_BYTES_MIN {
        let mut compressed = Vec::with_capacity(zstd_safe::compress_bound(all.len()));
        let done = zstd_safe::compress(&mut compressed, &all, LEVEL);
        if done.is_ok() && compressed.len() + 3 < all.len() {
            bytes[0] = ZSTD;
            put_blob(&mut bytes, &compressed);
            return bytes;
        }
    }
    bytes.extend_from_slice(&all);
    bytes
}

/// Returns the different texts and the position of each; `None` if that cannot take less than `size`
/// bytes.
fn encode_dictionary(texts: &[&[u8]], size: usize) -> Option<Vec<u8>> {
    let mut different = Vec::new();
    let mut positions = Vec::with_capacity(texts.len());
    let mut known: HashMap<&[u8], i64> = HashMap::new();
    for text in texts {
        let position = *known.entry(text).or_insert_with(|| {
            different.push(*text);
            different.len() as i64 - 1
        });
        if different.len() * 2 > texts.len() + 1 || different.len() > size {
            return None;
        }
        positions.push(position);
    }
    let mut bytes = vec![DICTIONARY];
    put_varint(&mut bytes, different.len() as u64);
    bytes.extend_from_slice(&encode_plain(&different));
    integers::encode(&positions, &mut bytes);
    Some(bytes)
}

/// Reads `count` texts that [`encode`] wrote. Their total length must be at most `room`, which gets
/// smaller by it.
pub(crate) fn decode(reader: &mut Reader<'_>, count: usize, room: &mut usize) -> Result<Texts> {
    if count == 0 {
        return Ok(Texts::default());
    }
    let method = reader.byte()?;
    if method != DICTIONARY {
        return decode_plain(reader, count, method, room);
    }
    let entries = reader.count(count)?;
    let method = reader.byte()?;
    let Texts { bytes, spans: different } =
        decode_plain(reader, entries, method, &mut room.clone())?;
    let mut spans = Vec::with_capacity(count);
    for position in integers::decode(reader, count)? {
        let span = usize::try_from(position).ok().and_then(|at| different.get(at));
        let span = *span.ok_or_else(|| damaged("a position in a dictionary"))?;
        charge(room, (span.1 - span.0) as usize)?;
        spans.push(span);
    }
    Ok(Texts { bytes, spans })
}

fn decode_plain(
    reader: &mut Reader<'_>,
    count: usize,
    method: u8,
    room: &mut usize,
) -> Result<Texts> {
    let mut spans = Vec::with_capacity(count);
    let mut end = 0u32;
    for length in integers::decode(reader, count)? {
        let length = usize::try_from(length).map_err(|_| damaged("a length"))?;
        charge(room, length)?;
        let start = end;
        end = u32::try_from(length)
            .ok()
            .and_then(|length| start.checked_add(length))
            .ok_or_else(|| damaged("a length"))?;
        spans.push((start, end));
    }
    let total = end as usize;
    let bytes = match method {
        PLAIN => reader.take(total)?.to_vec(),
        ZSTD => {
            let mut bytes = Vec::with_capacity(total);
            zstd_safe::decompress(&mut bytes, reader.blob()?)
                .map_err(|_| damaged("compressed texts"))?;
            bytes
        }
        _ => return Err(damaged("a method of texts")),
    };
    if bytes.len() != total {
        return Err(damaged("compressed texts"));
    }
    Ok(Texts { bytes, spans })
}

/// Takes `bytes` from `room`.
fn charge(room: &mut usize, bytes: usize) -> Result<()> {
    *room = room.checked_sub(bytes).ok_or_else(|| damaged("more bytes than it has documents"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(texts: &[&[u8]]) -> usize {
        let mut bytes = Vec::new();
        encode(texts, &mut bytes);
        let mut room = texts.concat().len();
        let mut reader = Reader::new(&bytes);
        let back = decode(&mut reader, texts.len(), &mut room).unwrap();
        assert_eq!(back.iter().collect::<Vec<_>>(), texts);
        assert_eq!((reader.left(), room), (0, 0));
        let mut small = texts.concat().len().saturating_sub(1);
        assert_eq!(
            decode(&mut Reader::new(&bytes), texts.len(), &mut small).is_err(),
            !texts.concat().is_empty()
        );
        bytes.len()
    }

    #[test]
    fn texts_come_back() {
        round_trip(&[]);
        round_trip(&[b""]);
        round_trip(&[b"", b"a", b"", b"abc"]);
        let long = "the same words again and again, ".repeat(40);
        assert!(round_trip(&[long.as_bytes(), b"x"]) < 100);
    }

    #[test]
    fn few_different_texts_are_a_dictionary() {
        let texts: Vec<&[u8]> =
            (0..1000).map(|at| [&b"open"[..], b"closed", b"unknown"][at * 7 % 3]).collect();
        assert!(round_trip(&texts) < 1000 * 2 / 8 + 60);
    }
}
