//! Geometry, as filters, indexes and `$geoNear` need it: GeoJSON and legacy coordinate pairs, what is
//! inside of what, what meets what, and how far things are apart. Pure functions over values.
//!
//! Points of GeoJSON lie on a sphere, and its edges are the shortest ways between them. Crate `s2`
//! has the exact predicates (on which side of an edge a point is, whether two edges cross) and the
//! cells; rings, polygons and their relations are built on them here. Shapes of legacy coordinates
//! are flat (`flat`).

mod cover;
mod edges;
mod flat;
mod geojson;
mod geometry;
mod line;
mod near;
mod polygon;
mod position;
mod region;
mod ring;
mod stored;
mod work;

pub use cover::{CellRange, cells_of, ranges_of, ranges_within};
pub use geojson::parse_geojson;
pub use geometry::Geometry;
pub use near::{EARTH_RADIUS_METERS, Near, NearCenter};
pub use position::{Position, number_pair};
pub use region::{Intersecting, Region};
pub use stored::Stored;
pub use work::{Fault, Work};
