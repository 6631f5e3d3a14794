//! What a month of sensors takes. `examples/month.rs` measures the whole month.

use crate::points::{Measures, Sensor};
use crate::round_trip::round_trip;
use quire_document::DocBuf;

/// Returns the bytes of a point in buckets of a thousand.
fn bytes_a_point(measures: Measures, shuffled: bool) -> f64 {
    let (mut bytes, mut count) = (0, 0);
    for sensor in [0, 1, 57, 99] {
        let mut sensor = Sensor::new(sensor, measures, shuffled);
        let points: Vec<DocBuf> =
            (0..1000).map(|_| sensor.next_point(&["_id", "t", "h", "p"])).collect();
        bytes += round_trip(&points, "at", Some("sensor")).len();
        count += points.len();
    }
    bytes as f64 / f64::from(count as u32)
}

#[test]
fn a_month_of_sensors_takes_little() {
    // 20 MB for 100 sensors of 43,200 minutes would be 4.6 bytes a point. Three walks of 101 steps
    // are 20 bits.
    let bytes = bytes_a_point(Measures::Walk, false);
    assert!(bytes <= 3.0, "{bytes}");
    let bytes = bytes_a_point(Measures::Walk, true);
    assert!(bytes <= 4.1, "{bytes}");
}

#[test]
fn doubles_without_structure_take_hardly_more_than_themselves() {
    let bytes = bytes_a_point(Measures::Random, false);
    assert!(bytes <= 24.0, "{bytes}");
}
