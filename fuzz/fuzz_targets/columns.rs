//! Bytes that are no bucket are errors; generated points come back byte for byte. What is unpacked of a bucket of MongoDB is BSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quire_columns::{Bucket, pack, unpack};
use quire_document::testing::Generator;
use quire_document::limits::Limits;
use quire_document::{Binary, Doc, DocBuf, Value, doc, validate};
use twox_hash::XxHash3_64;

/// Reads everything, and ignores errors.
fn read_all(bytes: &[u8]) {
    let Ok(bucket) = Bucket::open(bytes) else { return };
    let _ = (bucket.meta().map(|meta| meta.kind()), bucket.times(), bucket.bounds("a.b").is_some());
    for field in ["at", "a", "b", "c", ""] {
        let _ = (bucket.column(field), bucket.bounds(field).is_some());
    }
    let _ = bucket.points().map(Iterator::count);
}

/// Unpacks a bucket of MongoDB with these bytes as its columns: its points are BSON.
fn unpack_bucket(bytes: &[u8]) {
    let (times, values) = bytes.split_at(bytes.len() / 2);
    let [times, values] = [times, values].map(|bytes| Binary { subtype: 7, bytes });
    let bucket = doc! {
        "control": { "version": 2 }, "meta": 1,
        "data": { "at": Value::Binary(times), "a": Value::Binary(values) },
    };
    let Ok(points) = unpack(bucket.as_doc(), "at", Some("m")) else { return };
    for point in points.iter() {
        let limits = Limits { bytes_max: usize::MAX, ..Limits::WIRE };
        assert!(validate(point.as_bytes(), &limits).is_ok(), "{point:?}");
    }
}

/// Returns a few points of generated fields.
fn generate(seed: u64) -> Vec<DocBuf> {
    let mut generator = Generator::new(seed);
    let (meta, count) = (generator.value(), 1 + generator.below(300));
    let pool: Vec<_> = (0..4).map(|_| generator.value()).collect();
    (0..count)
        .map(|time| {
            DocBuf::build(|writer| {
                writer.append("at", Value::Date(time as i64)).append("m", &meta);
                for _ in 0..generator.below(6) {
                    let name = generator.name();
                    writer.append_some(&name, generator.pick(&pool).map(Value::from));
                }
            })
        })
        .collect()
}

fuzz_target!(|bytes: &[u8]| {
    read_all(bytes);
    unpack_bucket(bytes);
    let mut signed = bytes.to_vec();
    signed.extend_from_slice(&XxHash3_64::oneshot(bytes).to_le_bytes());
    read_all(&signed);
    let Some(seed) = bytes.first_chunk() else { return };
    let points = generate(u64::from_le_bytes(*seed));
    let docs: Vec<Doc<'_>> = points.iter().map(DocBuf::as_doc).collect();
    let mut packed = pack(&docs, "at", Some("m")).unwrap();
    let back: Vec<DocBuf> = Bucket::open(&packed).unwrap().points().unwrap().collect();
    assert_eq!(back, points);
    // The rest of the input changes bytes of the bucket.
    let content = packed.len() - 8;
    for change in bytes[8..].chunks_exact(3) {
        packed[usize::from(u16::from_le_bytes([change[0], change[1]])) % content] ^= change[2];
    }
    let checksum = XxHash3_64::oneshot(&packed[..content]);
    packed[content..].copy_from_slice(&checksum.to_le_bytes());
    read_all(&packed);
});
