//! Packs a month of 100 sensors, a point a minute, and prints what it takes: bytes for each column,
//! and nanoseconds. `cargo run --release -p quire-columns --example month [points in a bucket]`.

#![allow(clippy::unwrap_used)]

#[path = "../tests/it/points.rs"]
mod points;

use points::{Measures, Sensor};
use quire_columns::{Bucket, Column, pack};
use quire_document::{Doc, DocBuf};
use std::hint::black_box;
use std::time::{Duration, Instant};

const SENSORS: u32 = 100;
const MINUTES: usize = 43_200;
const FIELDS: [&str; 4] = ["_id", "t", "h", "p"];

/// What the buckets of some points take. Times are those of the fastest bucket, in nanoseconds, since
/// other processes only make a bucket slower.
struct Cost {
    points: usize,
    bytes: usize,
    /// For each point.
    packing: f64,
    unpacking: f64,
    /// For each value of `column`.
    reading: f64,
}

fn main() {
    let bucket = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let whole = measure(SENSORS, Measures::Walk, false, &FIELDS, bucket);
    println!("the month, {bucket} points in a bucket:");
    print(&whole);
    println!("{:>8.2} MB", whole.bytes as f64 / 1e6);
    println!("columns, bytes a point (of 5 sensors):");
    let base = bytes(Measures::Walk, false, &[], bucket);
    println!("  at, head {base:>6.3}");
    for field in FIELDS {
        println!("  {field:8} {:>6.3}", bytes(Measures::Walk, false, &[field], bucket) - base);
    }
    let shuffled = bytes(Measures::Walk, true, &["_id"], bucket) - base;
    println!("  _id, sensors in random order {shuffled:>6.3}");
    let random = bytes(Measures::Random, false, &["t"], bucket) - base;
    println!("  a random double {random:>6.3}");
    println!("random doubles:");
    print(&measure(5, Measures::Random, false, &FIELDS, bucket));
}

/// Returns the bytes of a point.
fn bytes(measures: Measures, shuffled: bool, fields: &[&str], bucket: usize) -> f64 {
    let cost = measure(5, measures, shuffled, fields, bucket);
    cost.bytes as f64 / cost.points as f64
}

fn print(cost: &Cost) {
    println!(
        "{:>8.3} bytes a point, pack {:.0} ns, unpack {:.0} ns a point, a column {:.2} ns a value",
        cost.bytes as f64 / cost.points as f64,
        cost.packing,
        cost.unpacking,
        cost.reading,
    );
}

fn measure(
    sensors: u32,
    measures: Measures,
    shuffled: bool,
    fields: &[&str],
    bucket: usize,
) -> Cost {
    let most = f64::INFINITY;
    let mut cost = Cost { points: 0, bytes: 0, packing: most, unpacking: most, reading: most };
    for sensor in 0..sensors {
        let mut sensor = Sensor::new(sensor, measures, shuffled);
        let mut left = MINUTES;
        while left > 0 {
            let count = left.min(bucket);
            left -= count;
            let points: Vec<DocBuf> = (0..count).map(|_| sensor.next_point(fields)).collect();
            cost.add(&points);
        }
    }
    cost
}

impl Cost {
    /// Packs points, reads them, and adds what that takes.
    fn add(&mut self, points: &[DocBuf]) {
        let docs: Vec<Doc<'_>> = points.iter().map(DocBuf::as_doc).collect();
        let start = Instant::now();
        let bytes = pack(&docs, "at", Some("sensor")).unwrap();
        self.packing = self.packing.min(each(start.elapsed(), points.len()));
        self.points += points.len();
        self.bytes += bytes.len();
        let start = Instant::now();
        let bucket = Bucket::open(&bytes).unwrap();
        let mut out = Vec::with_capacity(bucket.size());
        let mut unpacked = bucket.points().unwrap();
        while unpacked.write_next(&mut out) {}
        self.unpacking = self.unpacking.min(each(start.elapsed(), points.len()));
        assert_eq!(out.len(), bucket.size());
        let (start, mut values) = (Instant::now(), 0);
        for field in ["t", "h", "p"] {
            if let Column::Doubles(column) = bucket.column(field).unwrap() {
                values += black_box(column).len();
            }
        }
        self.reading = self.reading.min(each(start.elapsed(), values));
    }
}

fn each(time: Duration, count: usize) -> f64 {
    time.as_nanos() as f64 / count.max(1) as f64
}
