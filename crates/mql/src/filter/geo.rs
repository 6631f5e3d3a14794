//! `$geoWithin` (and its old name `$within`), `$geoIntersects`: tests of geometries; and `$near`,
//! `$nearSphere`: a search, which an index answers, nearest first. The geometry is in crate `geometry`.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::node::{Node, Test};
use super::open::{Search, ValueTest};
use super::parse::{Argument, Level, Parser};
use super::registry::{Parse, QueryOperator};
use crate::context::{Shared, count_work};
use crate::expression::six_digits;
use quire_document::path::{Leaf, Path};
use quire_document::{Doc, DocBuf, DocWriter, Value, ValueBuf};
use quire_error::{Error, Result};
use quire_geometry::{Fault, Intersecting, Near, Region, Stored, Work};

/// The registry rows of these operators.
pub(super) const OPERATORS: &[QueryOperator] = &[
    QueryOperator {
        name: "$geoWithin",
        parse: Parse::Field(|parser, argument| within("$geoWithin", parser, argument)),
        doc: "Matches geometries that lie within another one.",
        since: "2.4",
    },
    QueryOperator {
        name: "$within",
        parse: Parse::Field(|parser, argument| within("$within", parser, argument)),
        doc: "Old name of `$geoWithin`.",
        since: "1.0",
    },
    QueryOperator {
        name: "$geoIntersects",
        parse: Parse::Field(intersects),
        doc: "Matches geometries that have a point in common with another one.",
        since: "2.4",
    },
    QueryOperator {
        name: "$near",
        parse: Parse::Field(|parser, argument| near("$near", parser, argument)),
        doc: "Matches geometries near a point, nearest first, by a 2dsphere or 2d index.",
        since: "1.0",
    },
    QueryOperator {
        name: "$nearSphere",
        parse: Parse::Field(|parser, argument| near("$nearSphere", parser, argument)),
        doc: "As `$near`, with distances on a sphere.",
        since: "1.8",
    },
    QueryOperator {
        name: "$geoNear",
        parse: Parse::Field(|parser, argument| near("$near", parser, argument)),
        doc: "Old name of `$near`.",
        since: "2.4",
    },
];

/// The units of work for a value that may be a geometry.
const ELEMENT_UNITS: u32 = 8;

/// A test of a geometry.
#[derive(Clone, Debug)]
pub struct GeoTest {
    name: &'static str,
    operand: ValueBuf,
    relation: GeoRelation,
}

/// The relation between a stored geometry and that of the query.
#[derive(Clone, Debug, PartialEq)]
pub enum GeoRelation {
    /// The region contains the geometry.
    Within(Region),
    /// The two have a point in common.
    Meets(Intersecting),
}

impl GeoTest {
    /// Returns the relation that the test asks for.
    pub fn relation(&self) -> &GeoRelation {
        &self.relation
    }
}

/// Fails unless the operator is alone with its modifiers.
fn check_alone(name: &str, siblings: Doc<'_>) -> Result<()> {
    let is_extra = |other: &str| other != name && other != "$uniqueDocs";
    match siblings.fields().find(|(other, _)| is_extra(other)) {
        None => Ok(()),
        Some((other, _)) => {
            Err(Error::bad_value(format!("can't parse extra field: {other} beside {name}")))
        }
    }
}

fn test(name: &'static str, argument: Argument<'_>, relation: GeoRelation) -> Node {
    let test = GeoTest { name, operand: ValueBuf::new(argument.value), relation };
    Node::path(argument.path, Test::Open(Arc::new(test)))
}

fn within(name: &'static str, parser: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    check_alone(name, argument.siblings)?;
    let region = Region::parse(argument.value, &|units| parser.context.work_units(units))?;
    Ok(test(name, argument, GeoRelation::Within(region)))
}

fn intersects(parser: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    check_alone("$geoIntersects", argument.siblings)?;
    let other = Intersecting::parse(argument.value, &|units| parser.context.work_units(units))?;
    Ok(test("$geoIntersects", argument, GeoRelation::Meets(other)))
}

impl ValueTest for GeoTest {
    fn operator(&self) -> &'static str {
        self.name
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn test(&self, value: Value<'_>, shared: &Shared) -> Result<bool> {
        let work = &|units| shared.work(units);
        for stored in geometries(value, work)? {
            let passes = match &self.relation {
                GeoRelation::Within(region) => region.contains(&stored, work)?,
                GeoRelation::Meets(other) => other.meets(&stored, work)?,
            };
            if passes {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn leaf(&self) -> Leaf {
        Leaf::Whole
    }

    fn reason(&self, values: &[Value<'_>], passed: bool, shared: &Shared) -> Result<&'static str> {
        let mut has_geometry = false;
        for value in values {
            has_geometry |= !geometries(*value, &|units| shared.work(units))?.is_empty();
        }
        Ok(match (&self.relation, passed) {
            _ if !has_geometry => "could not find a valid geometry at the given path",
            (GeoRelation::Within(_), false) => {
                "none of the considered geometries were contained within the expression\u{2019}s geometry"
            }
            (GeoRelation::Within(_), true) => {
                "at least one of the considered geometries was contained within the expression\u{2019}s geometry"
            }
            (GeoRelation::Meets(_), false) => {
                "none of the considered geometries intersected the expression\u{2019}s geometry"
            }
            (GeoRelation::Meets(_), true) => {
                "at least one of the considered geometries intersected the expression\u{2019}s geometry"
            }
        })
    }

    fn write(&self, writer: &mut DocWriter<'_>) {
        writer.append(self.name, self.operand.as_value());
    }
}

/// Returns the geometries of a value: itself, or the elements of an array.
///
/// # Errors
/// That of `work`.
pub fn geometries(value: Value<'_>, work: Work<'_>) -> Result<Vec<Stored>> {
    match (geometry(value, work)?, value) {
        (Some(stored), _) => Ok(vec![stored]),
        (None, Value::Array(array)) => {
            array.iter().filter_map(|element| geometry(element, work).transpose()).collect()
        }
        (None, _) => Ok(Vec::new()),
    }
}

/// Returns the geometry of a value; `None` if it is no valid one. As in MongoDB, polygons with strict
/// winding are for queries only.
fn geometry(value: Value<'_>, work: Work<'_>) -> Result<Option<Stored>> {
    work(ELEMENT_UNITS)?;
    match Stored::parse(value, work) {
        Ok(stored) => Ok(Some(stored).filter(|stored| !stored.has_big_polygon())),
        Err(Fault::Invalid(_)) => Ok(None),
        Err(Fault::Ended(error)) => Err(error),
    }
}

/// A search for what is near a point.
#[derive(Clone, Debug)]
pub struct NearQuery {
    /// The operator as it was written, and the distances beside it.
    name: &'static str,
    operand: ValueBuf,
    beside: DocBuf,
    /// The path of the geometries.
    path: Path,
    /// The center and the distances.
    near: Near,
}

/// The metadata of a search near a point.
pub const NEAR_METADATA: &[&str] = &["geoNearDistance", "geoNearPoint"];

fn near(name: &'static str, parser: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    if !parser.features.near || parser.level == Level::Element {
        let text = "$geoNear, $near, and $nearSphere are not allowed in this context";
        // Below `$elemMatch` it is a bad value, elsewhere an operator in the wrong place.
        return Err(match parser.features.near {
            true => Error::bad_value(text),
            false => Error::location(5626500, text),
        });
    }
    let known = ["$near", "$nearSphere", "$geoNear", "$minDistance", "$maxDistance", "$uniqueDocs"];
    for (other, _) in argument.siblings.fields() {
        if ["$geoWithin", "$within", "$geoIntersects"].contains(&other) {
            return Err(Error::bad_value(format!("geo near must be alone, not beside {other}")));
        }
        if !known.contains(&other) {
            let text = format!("invalid argument in geo near query: {other}");
            return Err(Error::location(34413, text));
        }
    }
    let count = |names: &[&str]| {
        argument.siblings.fields().filter(|(name, _)| names.contains(name)).count()
    };
    if count(&known[..3]) > 1 {
        return Err(Error::bad_value("Too many geoNear expressions"));
    }
    let beside = ["$minDistance", "$maxDistance"].map(|name| argument.siblings.get(name));
    let near = Near::parse(name, argument.value, beside)?;
    let query = NearQuery::new(name, argument.path, argument.value, near);
    let beside = DocBuf::build(|writer| {
        let names = ["$minDistance", "$maxDistance"];
        for (name, value) in argument.siblings.fields().filter(|(name, _)| names.contains(name)) {
            writer.append(name, value);
        }
    });
    Ok(Node::Search(Arc::new(NearQuery { beside, ..query })))
}

impl NearQuery {
    /// Returns a search for the geometries at a path. `name` and `operand` are what explain shows.
    pub fn new(name: &'static str, path: &str, operand: Value<'_>, near: Near) -> Self {
        let (operand, beside) = (ValueBuf::new(operand), DocBuf::new());
        NearQuery { name, operand, beside, path: Path::new(path), near }
    }

    /// Returns the same search at another path.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        NearQuery { path: Path::new(path), ..self.clone() }
    }

    /// Returns the path of the geometries; empty if the collection's only geo index gives it.
    pub fn path(&self) -> &str {
        self.path.as_str()
    }

    /// Returns true for the search of the stage `$geoNear`.
    pub fn is_stage(&self) -> bool {
        self.name == "$geoNear"
    }

    /// Returns the center and the distances.
    pub fn near(&self) -> &Near {
        &self.near
    }

    /// Returns the distance of a document's nearest geometry within the bounds, and that geometry.
    ///
    /// # Errors
    /// The interrupt's error.
    pub fn nearest<'d>(&self, doc: Doc<'d>) -> Result<Option<(f64, Value<'d>)>> {
        let mut best: Option<(f64, Value<'_>)> = None;
        let mut take = |value: Value<'d>| -> Result<bool> {
            let Some(stored) = geometry(value, &count_work)? else { return Ok(false) };
            if let Some(distance) = self.near.distance(&stored, &count_work)?
                && best.is_none_or(|(least, _)| distance < least)
            {
                best = Some((distance, value));
            }
            Ok(true)
        };
        let visited = self.path.visit(doc, Leaf::Whole, |found| {
            let Some(value) = found.value else { return ControlFlow::Continue(()) };
            let taken = take(value).and_then(|is_geometry| match value {
                Value::Array(array) if !is_geometry => {
                    array.iter().try_for_each(|element| take(element).map(drop))
                }
                _ => Ok(()),
            });
            taken.map_or_else(ControlFlow::Break, ControlFlow::Continue)
        });
        match visited {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(best),
        }
    }

    /// Returns the metadata of a document at a distance.
    pub fn metadata(distance: f64, geometry: Value<'_>) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append(NEAR_METADATA[0], distance).append(NEAR_METADATA[1], geometry);
        })
    }
}

impl Search for NearQuery {
    fn operator(&self) -> &'static str {
        "$near"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn matches(&self, doc: Doc<'_>) -> Result<bool> {
        Ok(self.nearest(doc)?.is_some())
    }

    fn metadata(&self) -> &'static [&'static str] {
        NEAR_METADATA
    }

    fn metadata_of(&self, doc: Doc<'_>) -> Result<DocBuf> {
        let metadata = |(distance, geometry)| NearQuery::metadata(distance, geometry);
        Ok(self.nearest(doc)?.map(metadata).unwrap_or_default())
    }

    fn is_conjunct_only(&self) -> bool {
        true
    }

    fn write(&self, writer: &mut DocWriter<'_>) {
        let mut test = writer.document(self.path.as_str());
        test.append(self.name, self.operand.as_value());
        for (name, value) in self.beside.as_doc().fields() {
            test.append(name, value);
        }
    }

    fn describe(&self) -> String {
        format!(
            "GEONEAR  field={} maxdist={} isNearSphere={}",
            self.path(),
            six_digits(self.near.max.min(f64::MAX)),
            u8::from(self.name == "$nearSphere")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{EvalContext, InterruptCheck, ParseContext, interruptible};
    use crate::filter::Filter;
    use bumpalo::Bump;
    use quire_document::{ArrayBuf, array, doc};
    use quire_error::ErrorCode;

    /// Returns a polygon of 20,000 vertices, whose parsing takes longer than the time between two checks
    /// of the interrupt.
    fn large() -> DocBuf {
        let corner = |number: u32| {
            let angle = std::f64::consts::TAU * f64::from(number % 20_000) / 20_000.0;
            array![10.0 * angle.cos(), 10.0 * angle.sin()]
        };
        let corners: Vec<ArrayBuf> = (0..=20_000).map(corner).collect();
        let ring: ArrayBuf = corners.iter().collect();
        doc! { "type": "Polygon", "coordinates": &array![&ring] }
    }

    fn killed() -> Arc<dyn InterruptCheck> {
        Arc::new(|| Err(Error::new(ErrorCode::Interrupted, "killed")))
    }

    fn assert_killed<T>(result: Result<T>) {
        assert_eq!(result.map(drop).unwrap_err().code(), ErrorCode::Interrupted);
    }

    #[test]
    fn parsing_and_testing_a_large_polygon_check_the_interrupt() {
        let mut context = ParseContext::default();
        context.interrupt = Some(killed());
        let operand = doc! { "$geometry": &large() };
        for name in ["$geoWithin", "$within", "$geoIntersects"] {
            let filter = doc! { "g": &doc! { name: &operand } };
            assert_killed(Filter::parse(filter.as_doc(), &context));
        }
        let (arena, shared) = (Bump::new(), Shared::default().with_interrupt(killed()));
        let cx = EvalContext::new(&arena, Doc::empty(), &shared);
        let stored = doc! { "g": &large() };
        let circle = array![&array![0, 0], 1];
        let point = doc! { "$geometry": &doc! { "type": "Point", "coordinates": &array![0, 0] } };
        for test in [
            doc! { "$geoWithin": &doc! { "$centerSphere": &circle } },
            doc! { "$geoIntersects": &point },
        ] {
            let filter = doc! { "g": &test };
            let filter = Filter::parse(filter.as_doc(), &ParseContext::default()).unwrap();
            assert_killed(filter.matches(stored.as_doc(), &cx));
        }
        let near = doc! { "g": &doc! { "$near": &point } };
        let near = Filter::parse(near.as_doc(), &ParseContext::default()).unwrap();
        let search = near.root().search().unwrap();
        assert_killed(interruptible(&killed(), || search.matches(stored.as_doc())));
        assert!(search.matches(stored.as_doc()).unwrap());
    }
}
