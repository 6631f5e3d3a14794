//! What a month of sensors takes.

use crate::round_trip::round_trip;
use quire_document::testing::Generator;
use quire_document::{DocBuf, ObjectId, Value};

const START: i64 = 1_772_323_200_000;
const SENSORS: u32 = 100;

/// Returns `count` points, one a minute, of a sensor among a hundred whose points are inserted in
/// turns, with ids of a driver and three measures that walk randomly in steps of up to half a unit.
fn points(sensor: u32, count: u32) -> Vec<DocBuf> {
    let mut generator = Generator::new(u64::from(sensor));
    let mut walks = [2000, 5000, 101_300].map(|start| start + i64::from(sensor));
    (0..count)
        .map(|minute| {
            let time = START + i64::from(minute) * 60_000;
            let counter = 0x0012_3456 + minute * SENSORS + sensor;
            let id = ObjectId::from_parts((time / 1000) as u32, *b"quire", counter);
            for walk in &mut walks {
                *walk += generator.below(101) as i64 - 50;
            }
            DocBuf::build(|writer| {
                writer.append("at", Value::Date(time));
                writer.append("sensor", sensor as i32);
                writer.append("_id", id);
                for (name, walk) in ["t", "h", "p"].iter().zip(walks) {
                    writer.append(name, walk as f64 / 100.0);
                }
            })
        })
        .collect()
}

#[test]
fn a_month_of_sensors_takes_little() {
    let (mut bytes, mut count) = (0, 0);
    for sensor in [0, 1, 57, 99] {
        let points = points(sensor, 1000);
        bytes += round_trip(&points, "at", Some("sensor")).len();
        count += points.len();
    }
    // 20 MB for 100 sensors of 43,200 minutes would be 4.6 bytes.
    assert!(bytes <= count * 3, "{bytes} bytes for {count} points");
}
