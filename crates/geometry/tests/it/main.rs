//! Geometries of very many vertices: they count their work, end when they are told to, and take work in
//! proportion to their size.

#![allow(clippy::unwrap_used)]

mod fuzz;

use std::cell::Cell;

use quire_document::{DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_geometry::{
    Fault, Geometry, Intersecting, Near, Region, Stored, cells_of, parse_geojson, ranges_of,
    ranges_within,
};

/// Returns a polygon of many vertices. `waves` of them reach from the center to the edge: with half of
/// the vertices it is a comb, whose teeth all lie side by side.
fn polygon(vertices: u32, waves: u32) -> DocBuf {
    let corner = |number: u32| {
        let turn = f64::from(number % vertices) / f64::from(vertices);
        let radius = 10.0 + 8.0 * (std::f64::consts::TAU * turn * f64::from(waves)).sin();
        let angle = std::f64::consts::TAU * turn;
        [13.0 + radius * angle.cos(), 40.0 + radius * angle.sin()]
    };
    let ring: Vec<[f64; 2]> = (0..=vertices).map(corner).collect();
    of_ring(&ring)
}

fn of_ring(ring: &[[f64; 2]]) -> DocBuf {
    let pairs = ring.iter().map(|[x, y]| quire_document::array![*x, *y]);
    let ring: quire_document::ArrayBuf = pairs.collect::<Vec<_>>().iter().collect();
    doc! { "type": "Polygon", "coordinates": &quire_document::array![&ring] }
}

/// Returns the units of work that `run` counts.
fn counted<T>(run: impl Fn(&dyn Fn(u32) -> Result<()>) -> T) -> (T, u64) {
    let units = Cell::new(0);
    let result = run(&|more| {
        units.set(units.get() + u64::from(more));
        Ok(())
    });
    (result, units.get())
}

/// Checks that `run` ends with the error of its work, wherever that comes, and counts nothing after it.
fn ends<T>(run: impl Fn(&dyn Fn(u32) -> Result<()>) -> Result<T>) {
    let (_, all) = counted(|work| run(work).map(drop).unwrap());
    for share in [0, 6] {
        let (units, ended) = (Cell::new(0), Cell::new(false));
        let result = run(&|more| {
            assert!(!ended.get(), "it works on after {share} tenths");
            units.set(units.get() + u64::from(more));
            if units.get() <= all * share / 10 {
                return Ok(());
            }
            ended.set(true);
            Err(Error::new(ErrorCode::Interrupted, "killed"))
        });
        let code = result.map(drop).unwrap_err().code();
        assert_eq!(code, ErrorCode::Interrupted, "after {share} tenths");
    }
}

fn parse(doc: &DocBuf, work: &dyn Fn(u32) -> Result<()>) -> Result<Geometry> {
    Ok(parse_geojson(Value::Document(doc.as_doc()), work)?)
}

fn stored(doc: &DocBuf) -> Stored {
    Stored::parse(Value::Document(doc.as_doc()), &|_| Ok(())).unwrap()
}

#[test]
fn every_step_on_a_large_polygon_counts_its_work_and_ends_when_told_to() {
    const VERTICES: u32 = 2000;
    for waves in [7, VERTICES / 20] {
        let large = polygon(VERTICES, waves);
        let operand = doc! { "$geometry": &large };
        let operand = Value::Document(operand.as_doc());
        let (_, units) = counted(|work| parse(&large, work).unwrap());
        assert!(units > 16 * u64::from(VERTICES), "{units}");
        ends(|work| parse(&large, work));
        ends(|work| Region::parse(operand, work));
        ends(|work| Intersecting::parse(operand, work));

        let free: &dyn Fn(u32) -> Result<()> = &|_| Ok(());
        let region = Region::parse(operand, free).unwrap();
        let other = Intersecting::parse(operand, free).unwrap();
        let (value, point) = (stored(&large), stored(&doc! { "x": 13.5, "y": 40.5 }));
        ends(|work| region.contains(&value, work));
        ends(|work| region.contains(&point, work));
        ends(|work| other.meets(&value, work));
        ends(|work| other.meets(&point, work));
        let center = quire_document::array![100, 10];
        let near = Near::parse("$nearSphere", Value::Array(center.as_array()), [None, None]);
        let near = near.unwrap();
        ends(|work| near.distance(&value, work));
        let geometry = parse(&large, free).unwrap();
        ends(|work| cells_of(&geometry, work));
        ends(|work| ranges_within(&region, work));
        ends(|work| ranges_of(&other, work));
    }
}

#[test]
fn work_is_in_proportion_to_the_vertices() {
    let units = |vertices: u32| {
        let doc = polygon(vertices, 7);
        let (geometry, parsing) = counted(|work| parse(&doc, work).unwrap());
        let (_, covering) = counted(|work| cells_of(&geometry, work).unwrap());
        let region = doc! { "$geometry": &doc };
        let region = Region::parse(Value::Document(region.as_doc()), &|_| Ok(())).unwrap();
        let point = stored(&doc! { "x": 13.5, "y": 40.5 });
        let (is_in, point) = counted(|work| region.contains(&point, work).unwrap());
        assert!(is_in);
        (parsing, covering, point)
    };
    let (small, large) = (units(1000), units(30_000));
    // Thirty times the vertices; the logarithm in the work of the parts grows, too.
    assert!(large.0 < small.0 * 90, "{small:?} {large:?}");
    assert!(large.1 < small.1 * 30, "{small:?} {large:?}");
    assert!(large.2 < small.2 * 20, "{small:?} {large:?}");
}

#[test]
fn a_ring_that_crosses_itself_is_found_among_many_edges() {
    let mut ring: Vec<[f64; 2]> = (0..5000_u32)
        .map(|number| {
            let angle = std::f64::consts::TAU * f64::from(number) / 5000.0;
            [10.0 * angle.cos(), 10.0 * angle.sin()]
        })
        .collect();
    ring.swap(2500, 2504);
    ring.push(ring[0]);
    let fault = Stored::parse(Value::Document(of_ring(&ring).as_doc()), &|_| Ok(()));
    assert!(matches!(fault, Err(Fault::Invalid(text)) if text.contains("Edges cross")));
}
