//! Points of sensors, as the tests and `examples/month.rs` pack them.

use quire_document::testing::Generator;
use quire_document::{DocBuf, ObjectId, Value};

/// 2026-03-01 in UTC.
const START: i64 = 1_772_323_200_000;
const SENSORS: u32 = 100;

/// What the three measures of a point are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measures {
    /// They walk in steps of up to half a unit, with two decimals.
    Walk,
    /// Doubles from 0 to 1 with all their bits.
    Random,
}

/// The points of one sensor among a hundred.
pub struct Sensor {
    pub number: u32,
    pub measures: Measures,
    /// True if the sensors insert in another order each minute.
    pub shuffled: bool,
    generator: Generator,
    walks: [i64; 3],
    minute: u32,
}

impl Sensor {
    pub fn new(number: u32, measures: Measures, shuffled: bool) -> Self {
        let walks = [2000, 5000, 101_300].map(|start| start + i64::from(number));
        let generator = Generator::new(u64::from(number));
        Sensor { number, measures, shuffled, generator, walks, minute: 0 }
    }

    fn measure(&mut self, at: usize) -> f64 {
        if self.measures == Measures::Random {
            return self.generator.bits() as f64 / 2f64.powi(64);
        }
        self.walks[at] += self.generator.below(101) as i64 - 50;
        self.walks[at] as f64 / 100.0
    }

    /// Returns the next point, with the `fields` that are named. One follows a minute after another,
    /// with the id of a driver that inserts for all sensors in turns.
    pub fn next_point(&mut self, fields: &[&str]) -> DocBuf {
        let time = START + i64::from(self.minute) * 60_000;
        let turn = if self.shuffled { self.generator.below(100) as u32 } else { self.number };
        let counter = (0x0012_3456 + self.minute * SENSORS + turn) & 0x00ff_ffff;
        self.minute += 1;
        let measures = [self.measure(0), self.measure(1), self.measure(2)];
        DocBuf::build(|writer| {
            writer.append("at", Value::Date(time));
            writer.append("sensor", self.number as i32);
            if fields.contains(&"_id") {
                writer
                    .append("_id", ObjectId::from_parts((time / 1000) as u32, *b"quire", counter));
            }
            for (name, measure) in ["t", "h", "p"].into_iter().zip(measures) {
                if fields.contains(&name) {
                    writer.append(name, measure);
                }
            }
        })
    }
}
