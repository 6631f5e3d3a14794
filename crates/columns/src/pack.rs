//! Packs points: documents to the bytes of a bucket.

use quire_document::{Doc, Type};
use quire_error::{Error, Result};
use twox_hash::XxHash3_64;

use crate::bounds;
use crate::bytes::{put_blob, put_signed, put_varint};
use crate::gather::{Gathering, Names, Parts, Split, gather};
use crate::header::VERSION;
use crate::layout::{Role, TIME};
use crate::limits::{BUCKET_BYTES_MAX, BUCKET_POINTS_MAX};
use crate::stream::{ELEMENTS, Gathered};
use crate::{integers, texts};

/// Returns the bucket of `points`, which come back in the same order and byte for byte.
///
/// Every point has a date in the first field named `time_field`; the points are sorted by it, ties in
/// the order of their insertion. If `meta_field` is given, the first field of that name has the same
/// bytes in all points, or is missing in all. All other fields may differ in every way.
///
/// # Errors
/// 2 BadValue if the points are none, more than [`BUCKET_POINTS_MAX`], longer together than
/// [`BUCKET_BYTES_MAX`], or are not as described above.
pub fn pack(points: &[Doc<'_>], time_field: &str, meta_field: Option<&str>) -> Result<Vec<u8>> {
    let size: usize = points.iter().map(|point| point.len()).sum();
    if points.is_empty() || points.len() > BUCKET_POINTS_MAX || size > BUCKET_BYTES_MAX {
        return Err(Error::bad_value("these are too many points for a bucket, or none"));
    }
    let names = Names { time: time_field, meta: meta_field };
    for split in [Split::All, Split::Documents, Split::Top] {
        if let Some(gathered) = gather(points, names, split)? {
            return Ok(encode(&gathered, size));
        }
    }
    Err(Error::internal("points without columns have too many layouts"))
}

/// Returns the bytes of a bucket.
fn encode(points: &Parts<'_>, size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size / 8 + 256);
    out.push(VERSION);
    put_varint(&mut out, points.layout_of.len() as u64);
    put_varint(&mut out, size as u64);
    encode_times(points, &mut out);
    match points.meta {
        Some(meta) => {
            out.push(meta.kind().byte());
            put_blob(&mut out, meta.value_bytes());
        }
        None => out.push(0),
    }
    put_varint(&mut out, points.fields.len() as u64);
    for field in &points.fields {
        out.push(u8::from(field.role == Role::Elements));
        put_varint(&mut out, field.parent.map_or(0, |parent| u64::from(parent) + 1));
        put_varint(&mut out, u64::from(field.occurrence));
        put_blob(&mut out, field.name);
    }
    encode_layouts(points, &mut out);
    bounds::encode(points, &mut out);
    let mut data = Vec::with_capacity(size / 8);
    for gathering in &points.columns {
        let start = data.len();
        encode_column(gathering, &mut data);
        put_varint(&mut out, (data.len() - start) as u64);
    }
    out.extend_from_slice(&data);
    let checksum = XxHash3_64::oneshot(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Appends the smallest and the largest time.
fn encode_times(points: &Parts<'_>, out: &mut Vec<u8>) {
    let times = points.columns.get(TIME as usize).and_then(|times| times.streams.first());
    let times = match times {
        Some(Gathered::Integers(times)) => times.as_slice(),
        _ => &[],
    };
    let least = times.iter().copied().min().unwrap_or(0);
    let most = times.iter().copied().max().unwrap_or(0);
    put_signed(out, least);
    put_varint(out, most.wrapping_sub(least) as u64);
}

fn encode_layouts(points: &Parts<'_>, out: &mut Vec<u8>) {
    let mut layouts = Vec::with_capacity(points.layouts.len());
    for layout in &points.layouts {
        let mut bytes = Vec::new();
        layout.iter().for_each(|token| token.write(&mut bytes));
        layouts.push(bytes);
    }
    put_varint(out, layouts.len() as u64);
    texts::encode(&layouts.iter().map(Vec::as_slice).collect::<Vec<_>>(), out);
    integers::encode(&points.layout_of, out);
}

fn encode_column(gathering: &Gathering<'_>, out: &mut Vec<u8>) {
    put_varint(out, gathering.kinds.len() as u64);
    out.extend(gathering.kinds.iter().map(|kind| kind.map_or(ELEMENTS, Type::byte)));
    if gathering.kinds.len() > 1 {
        let order: Vec<i64> = gathering.order.iter().map(|at| i64::from(*at)).collect();
        integers::encode(&order, out);
    }
    gathering.streams.iter().for_each(|stream| stream.encode(out));
}
