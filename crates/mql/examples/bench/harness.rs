//! The method of measurement: documents of 1 and 10 KB, and the shortest of many short runs.

use quire_document::{Doc, DocBuf};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Returns documents of about 1 and 10 KB.
pub fn documents() -> [DocBuf; 2] {
    [document(20), document(235)]
}

/// Returns a document of about `fields` times 55 bytes: numbers, texts, a nested document, an
/// array.
fn document(fields: usize) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("_id", 1).append("first", 5).append("status", "active");
        for at in 0..fields {
            let name = format!("field_{at}");
            match at % 4 {
                0 => writer.append(&name, at as i32),
                1 => writer.append(&name, at as f64 * 1.5),
                _ => writer.append(&name, "a text of some thirty letters here, more or less"),
            };
        }
        let mut address = writer.document("address");
        address.append("city", "Bern").append("zip", 3000);
        address.finish();
        let mut tags = writer.array("tags");
        for tag in ["red", "green", "blue", "black"] {
            tags.push(tag);
        }
        tags.finish();
        writer.append("last", 7);
    })
}

/// The number of calls whose instructions are counted.
const COUNTED: u32 = 100;

/// Returns the time of one call of `work` in nanoseconds: that of the shortest of many short runs,
/// because it is disturbed least by other processes. If `QUIRE_COUNTED` is set, nothing is timed;
/// callgrind counts the calls inside `counted`.
pub fn nanoseconds(mut work: impl FnMut()) -> f64 {
    if std::env::var_os("QUIRE_COUNTED").is_some() {
        (0..20).for_each(|_| work());
        counted(&mut work);
        return 0.0;
    }
    let mut rounds = 1u32;
    while {
        let start = Instant::now();
        (0..rounds).for_each(|_| work());
        start.elapsed() < Duration::from_micros(200)
    } {
        rounds *= 2;
    }
    (0..99)
        .map(|_| {
            let start = Instant::now();
            (0..rounds).for_each(|_| work());
            start.elapsed().as_nanos() as f64 / f64::from(rounds)
        })
        .fold(f64::INFINITY, f64::min)
}

/// Calls `work` `COUNTED` times. Callgrind selects the calls by the name of this function
/// (docs/benchmarks.md).
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    (0..COUNTED).for_each(|_| work());
    black_box(COUNTED);
}

/// Prints the heads of the columns: nanoseconds for a document, thousands of documents per second
/// and core.
pub fn head(title: &str, docs: &[DocBuf; 2]) {
    let [small, large] = docs.each_ref().map(|doc| doc.as_bytes().len());
    println!("\n{title:40} {small:>7} B {large:>7} B {:>10} {:>10}", "k docs/s", "k docs/s");
}

/// Measures `work` on each document and prints a row.
pub fn row(name: &str, docs: &[DocBuf; 2], mut work: impl FnMut(Doc<'_>)) {
    let [small, large] = docs.each_ref().map(|doc| nanoseconds(|| work(black_box(doc.as_doc()))));
    let rate = |nanos: f64| 1e6 / nanos;
    println!("{name:40} {small:9.0} {large:9.0} {:10.0} {:10.0}", rate(small), rate(large));
}
