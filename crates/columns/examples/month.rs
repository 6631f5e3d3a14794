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

/// What the buckets of some points take.
#[derive(Default)]
struct Cost {
    points: usize,
    bytes: usize,
    packing: Duration,
    unpacking: Duration,
    /// The values of `column`, and the time that it took.
    values: usize,
    reading: Duration,
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
    let each = |time: Duration, count: usize| time.as_nanos() as f64 / count.max(1) as f64;
    println!(
        "{:>8.3} bytes a point, pack {:.0} ns, unpack {:.0} ns a point, a column {:.2} ns a value",
        cost.bytes as f64 / cost.points as f64,
        each(cost.packing, cost.points),
        each(cost.unpacking, cost.points),
        each(cost.reading, cost.values),
    );
}

fn measure(
    sensors: u32,
    measures: Measures,
    shuffled: bool,
    fields: &[&str],
    bucket: usize,
) -> Cost {
    let mut cost = Cost::default();
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
        self.packing += start.elapsed();
        self.points += points.len();
        self.bytes += bytes.len();
        let start = Instant::now();
        let bucket = Bucket::open(&bytes).unwrap();
        let mut out = Vec::with_capacity(bucket.size());
        let mut unpacked = bucket.points().unwrap();
        while unpacked.write_next(&mut out) {}
        self.unpacking += start.elapsed();
        assert_eq!(out.len(), bucket.size());
        let start = Instant::now();
        for field in ["t", "h", "p"] {
            if let Column::Doubles(values) = bucket.column(field).unwrap() {
                self.values += black_box(values).len();
            }
        }
        self.reading += start.elapsed();
    }
}
