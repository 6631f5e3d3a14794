//! Random values, of which many are no valid geometries: parsing ends with a geometry or a fault, relations
//! agree with each other, and the cells of an index find all that a query finds.
//!
//! `QUIRE_GEO_SEEDS` sets the number of rounds, `QUIRE_GEO_SEED` the first one.

use quire_document::testing::Generator;
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, array, doc};
use quire_geometry::{
    CellRange, Fault, Intersecting, Near, Region, Stored, cells_of, ranges_of, ranges_within,
};

const FREE: &dyn Fn(u32) -> quire_error::Result<()> = &|_| Ok(());
/// The rounds of a run in CI.
const ROUNDS: u64 = 300;

fn number(random: &mut Generator) -> f64 {
    let odd = [f64::NAN, f64::INFINITY, 1e300, -1e-300, 181.0, 90.000_1, -0.0];
    match random.below(200) {
        0 => odd[random.below(odd.len() as u64) as usize],
        _ => random.below(2001) as f64 / 1000.0 - 1.0,
    }
}

/// A place near one of a few centers: the middle of the map, the date line, the poles.
fn place(random: &mut Generator) -> [f64; 2] {
    let centers = [[0.0, 0.0], [180.0, 10.0], [13.4, 52.5], [30.0, 89.5], [-70.0, -90.0]];
    let [x, y] = centers[random.below(5) as usize];
    let width = [0.0, 1e-7, 0.01, 1.0, 40.0][random.below(5) as usize];
    let (x, y) = (x + number(random) * width, y + number(random) * width);
    let x = if x > 180.0 { x - 360.0 } else { x };
    [x, if y.abs() < 91.0 { y.clamp(-90.0, 90.0) } else { y }]
}

fn pair([x, y]: [f64; 2]) -> ArrayBuf {
    array![x, y]
}

fn list(items: &[ArrayBuf]) -> ArrayBuf {
    items.iter().collect()
}

fn line(random: &mut Generator) -> ArrayBuf {
    let count = [0, 1, 2, 3, 5, 20][random.below(6) as usize];
    list(&(0..count).map(|_| pair(place(random))).collect::<Vec<_>>())
}

/// A ring: round, of random places, or one that is not closed.
fn ring(random: &mut Generator) -> ArrayBuf {
    let ([x, y], corners) = (place(random), 3 + random.below(30));
    let radius = [1e-8, 1e-4, 0.5, 10.0, 80.0][random.below(5) as usize];
    let kind = random.below(12);
    let mut ring: Vec<ArrayBuf> = (0..corners)
        .map(|number| {
            let angle = std::f64::consts::TAU * number as f64 / corners as f64;
            let latitude = (y + radius * angle.sin()).clamp(-90.0, 90.0);
            let longitude = x + radius * angle.cos() / latitude.to_radians().cos().max(0.05);
            pair([(longitude + 540.0).rem_euclid(360.0) - 180.0, latitude])
        })
        .collect();
    match kind {
        0 => return line(random),
        1 => ring.push(ring[1].clone()),
        2 => {}
        _ => ring.push(ring[0].clone()),
    }
    if kind.is_multiple_of(2) {
        ring.reverse();
    }
    list(&ring)
}

fn geometry(random: &mut Generator) -> ValueBuf {
    let of_kind = |kind: &str, coordinates: &ArrayBuf| {
        let doc = doc! { "type": kind, "coordinates": coordinates };
        ValueBuf::new(&doc)
    };
    match random.below(16) {
        0 => ValueBuf::new(number(random)),
        1 => ValueBuf::new(&pair(place(random))),
        2 => ValueBuf::new(&doc! { "x": number(random) * 90.0, "y": number(random) * 90.0 }),
        3 => of_kind("LineString", &line(random)),
        4 => of_kind("MultiPoint", &line(random)),
        5 => of_kind("MultiLineString", &array![&line(random), &line(random)]),
        6 => of_kind("Polygon", &array![&ring(random), &ring(random)]),
        7 => of_kind("MultiPolygon", &array![&array![&ring(random)], &array![&ring(random)]]),
        8 => {
            let members = array![geometry(random).as_value(), geometry(random).as_value()];
            ValueBuf::new(&doc! { "type": "GeometryCollection", "geometries": &members })
        }
        9 => of_kind(["Circle", "", "point"][random.below(3) as usize], &line(random)),
        10 | 11 => of_kind("Point", &pair(place(random))),
        _ => of_kind("Polygon", &array![&ring(random)]),
    }
}

fn strict(random: &mut Generator) -> DocBuf {
    let name = doc! { "name": "urn:x-mongodb:crs:strictwinding:EPSG:4326" };
    let crs = doc! { "type": "name", "properties": &name };
    doc! { "type": "Polygon", "coordinates": &array![&ring(random)], "crs": &crs }
}

fn stored(random: &mut Generator) -> Option<Stored> {
    match Stored::parse(geometry(random).as_value(), FREE) {
        Ok(stored) => Some(stored),
        Err(Fault::Invalid(_)) => None,
        Err(Fault::Ended(error)) => panic!("{error}"),
    }
}

/// The operand of a `$geoWithin` or a `$geoIntersects`.
fn operand(random: &mut Generator) -> DocBuf {
    let radius = [0.0, 1e-9, 0.01, 1.0, 1.58, 3.0, 4.0][random.below(7) as usize];
    match random.below(4) {
        0 => doc! { "$centerSphere": &array![&pair(place(random)), radius] },
        1 => doc! { "$geometry": &strict(random) },
        _ => doc! { "$geometry": geometry(random).as_value() },
    }
}

fn are_in(cells: &[u64], ranges: &[CellRange]) -> bool {
    // An index stores the ids as signed longs.
    let is_in = |cell: &u64| {
        let cell = cell.cast_signed();
        ranges.iter().any(|(low, high)| (low.cast_signed()..=high.cast_signed()).contains(&cell))
    };
    cells.iter().any(is_in)
}

fn check(random: &mut Generator, seed: u64) {
    let Some(value) = stored(random) else { return };
    let Some(geometry) = value.on_sphere() else { return };
    let cells = cells_of(&geometry, FREE).unwrap();
    assert!(!cells.is_empty(), "seed {seed}: {value:?}");
    for _ in 0..8 {
        let operand = operand(random);
        let shown = Value::Document(operand.as_doc());
        if let Ok(region) = Region::parse(shown, FREE)
            && region.contains(&value, FREE).unwrap()
            && let Some(ranges) = ranges_within(&region, FREE).unwrap()
        {
            assert!(are_in(&cells, &ranges), "seed {seed}: {value:?} in {operand:?}");
        }
        if let Ok(other) = Intersecting::parse(shown, FREE)
            && other.meets(&value, FREE).unwrap()
        {
            let ranges = ranges_of(&other, FREE).unwrap();
            assert!(are_in(&cells, &ranges), "seed {seed}: {value:?} meets {operand:?}");
        }
    }
    check_near(random, &value, &cells, seed);
}

fn check_near(random: &mut Generator, value: &Stored, cells: &[u64], seed: u64) {
    let center = pair(place(random));
    let Ok(near) = Near::parse("$nearSphere", Value::Array(center.as_array()), [None, None]) else {
        return;
    };
    let distance = near.distance(value, FREE).unwrap().unwrap();
    assert!((0.0..=3.15).contains(&distance), "seed {seed}: {distance} of {value:?}");
    let ranges = near.center.ranges(distance).unwrap();
    assert!(are_in(cells, &ranges), "seed {seed}: {value:?} near {center:?}");
    let point = doc! { "$geometry": &center };
    let point = Intersecting::parse(Value::Document(point.as_doc()), FREE).unwrap();
    if point.meets(value, FREE).unwrap() {
        assert!(distance < 1e-8, "seed {seed}: {distance} of {value:?} from {center:?}");
    }
}

/// Geometries that meet do so from both sides.
fn check_symmetry(random: &mut Generator, seed: u64) {
    let (one, other) = (geometry(random), geometry(random));
    let meets = |one: &ValueBuf, other: &ValueBuf| {
        let operand = doc! { "$geometry": other.as_value() };
        let other = Intersecting::parse(Value::Document(operand.as_doc()), FREE).ok()?;
        let stored = Stored::parse(one.as_value(), FREE).ok()?;
        stored.on_sphere()?;
        Some(other.meets(&stored, FREE).unwrap())
    };
    if let (Some(there), Some(back)) = (meets(&one, &other), meets(&other, &one)) {
        assert_eq!(there, back, "seed {seed}: {one:?} and {other:?}");
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn cells_find_all_that_a_query_finds() {
    let first = setting("QUIRE_GEO_SEED", 1);
    for seed in first..first + setting("QUIRE_GEO_SEEDS", ROUNDS) {
        let mut random = Generator::new(seed);
        for _ in 0..4 {
            check(&mut random, seed);
            check_symmetry(&mut random, seed);
        }
    }
}
