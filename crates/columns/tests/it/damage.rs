//! Damaged bytes are errors, and absurd ones with a right checksum take no more memory than stated.

use quire_columns::{Bucket, pack};
use quire_document::testing::Generator;
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::ErrorCode;
use twox_hash::XxHash3_64;

fn small_bucket() -> Vec<u8> {
    let mut generator = Generator::new(7);
    let points: Vec<DocBuf> = (0..12)
        .map(|time| {
            let mut point = doc! {
                "at": Value::Date(time * 1000 + time % 3), "sensor": "s1", "t": 20.5 + time as f64 / 100.0,
                "n": time as i32, "s": ["on", "off"][time as usize % 2], "d": { "x": time, "y": [1, 2] },
            };
            if time > 8 {
                point.append("any", &generator.value());
            }
            point
        })
        .collect();
    let docs: Vec<Doc<'_>> = points.iter().map(DocBuf::as_doc).collect();
    pack(&docs, "at", Some("sensor")).unwrap()
}

/// Reads everything, and ignores errors.
fn read_all(bytes: &[u8]) {
    let Ok(bucket) = Bucket::open(bytes) else { return };
    let _ = (bucket.meta().map(|meta| meta.kind()), bucket.times());
    for field in ["at", "sensor", "t", "n", "s", "d", "d.x", "any", "none"] {
        let _ = (bucket.bounds(field).is_some(), bucket.column(field));
    }
    if let Ok(points) = bucket.points() {
        let total: usize = points.map(|point| point.as_bytes().len()).sum();
        assert!(total <= 4 * bucket.size(), "{total} of {}", bucket.size());
    }
}

#[test]
fn every_flipped_bit_is_an_error() {
    let bytes = small_bucket();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let error = Bucket::open(&damaged).unwrap_err();
            assert_eq!(error.code(), ErrorCode::DataCorruptionDetected);
        }
    }
    for length in 0..bytes.len() {
        assert!(Bucket::open(&bytes[..length]).is_err());
    }
}

#[test]
fn wrong_bytes_with_a_right_checksum_do_not_panic() {
    let bytes = small_bucket();
    let mut generator = Generator::new(8);
    let content = bytes.len() - 8;
    let sign = |bytes: &mut Vec<u8>| {
        let content = bytes.len() - 8;
        let checksum = XxHash3_64::oneshot(&bytes[..content]);
        bytes[content..].copy_from_slice(&checksum.to_le_bytes());
    };
    for at in 0..content {
        for _ in 0..40 {
            let mut damaged = bytes.clone();
            damaged[at] = generator.bits() as u8;
            if generator.one_in(3) {
                let other = generator.below(content as u64) as usize;
                damaged[other] ^= 1 << generator.below(8);
            }
            sign(&mut damaged);
            read_all(&damaged);
        }
    }
    for _ in 0..2000 {
        let mut damaged = bytes.clone();
        let from = generator.below(content as u64) as usize;
        let to = (from + generator.below(9) as usize).min(content);
        damaged.drain(from..to);
        sign(&mut damaged);
        read_all(&damaged);
    }
}
