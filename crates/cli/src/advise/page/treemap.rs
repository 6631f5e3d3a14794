//! The bytes of a collection by path, as a treemap: the area of a rectangle is its share of the
//! bytes (squarified; Bruls and others, 2000).

use super::Page;
use maud::{Markup, html};
use quire_advisor::findings::labels::{bytes, percent};
use quire_advisor::profile::PathProfile;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
/// Smaller rectangles have no text.
const TEXT_WIDTH: f64 = 60.0;
const TEXT_HEIGHT: f64 = 16.0;
/// The collections that are shown, the largest first.
const COLLECTIONS: usize = 30;
/// The fields of one level that are shown.
const FIELDS: usize = 40;

pub(super) fn section(page: &Page<'_>) -> Markup {
    let mut all: Vec<_> = page.input.collections().collect();
    let size = |name: &str| page.input.documents(name) * page.input.mean_bytes(name);
    all.sort_by(|left, right| size(&right.0.name).total_cmp(&size(&left.0.name)));
    html! {
        section {
            h2 { (page.say("Bytes by path", "各路径的字节")) }
            @for (source, profile) in all.into_iter().take(COLLECTIONS) {
                h3 { code { (source.name) } " " small { (bytes(size(&source.name))) } }
                div.wide {
                    svg.map viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" {
                        title { (source.name) }
                        @for cell in cells(profile.root(), profile.bytes()) { (rectangle(&cell)) }
                    }
                }
            }
        }
    }
}

/// A rectangle of the map.
#[derive(Clone, Debug)]
struct Cell {
    path: String,
    share: f64,
    depth: usize,
    area: Area,
}

#[derive(Clone, Copy, Debug)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

fn cells(root: &PathProfile, total: f64) -> Vec<Cell> {
    let mut cells = Vec::new();
    let area = Area { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
    divide(root, "", (total.max(1.0), 0), area, &mut cells);
    cells
}

/// Adds the rectangles of the fields of a path within its own.
fn divide(
    parent: &PathProfile,
    path: &str,
    (total, depth): (f64, usize),
    area: Area,
    cells: &mut Vec<Cell>,
) {
    let of_elements = parent.items().into_iter().flat_map(|items| items.fields());
    let mut fields: Vec<(&str, &PathProfile)> = parent.fields().chain(of_elements).collect();
    fields.sort_by_key(|(_, values)| std::cmp::Reverse(values.bytes()));
    fields.truncate(FIELDS);
    let sizes: Vec<f64> = fields.iter().map(|(_, values)| values.bytes().max(1) as f64).collect();
    for ((name, values), area) in fields.into_iter().zip(squarify(&sizes, area)) {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        cells.push(Cell { path: path.clone(), share: values.bytes() as f64 / total, depth, area });
        let inner = Area {
            x: area.x + 3.0,
            y: area.y + TEXT_HEIGHT,
            width: area.width - 6.0,
            height: area.height - TEXT_HEIGHT - 3.0,
        };
        if inner.width > 24.0 && inner.height > 14.0 && depth < 4 {
            divide(values, &path, (total, depth + 1), inner, cells);
        }
    }
}

/// Returns rectangles with these sizes, the largest first, that fill the area and are near squares.
fn squarify(sizes: &[f64], mut area: Area) -> Vec<Area> {
    let total: f64 = sizes.iter().sum();
    let unit = area.width * area.height / total.max(1e-9);
    let mut areas = Vec::with_capacity(sizes.len());
    let mut rest = sizes;
    while !rest.is_empty() {
        let side = area.width.min(area.height).max(1e-9);
        let worst = |row: &[f64]| {
            let sum: f64 = row.iter().sum::<f64>() * unit;
            let thickness = sum / side;
            row.iter()
                .map(|size| {
                    let length = size * unit / thickness.max(1e-9);
                    (length / thickness.max(1e-9)).max(thickness / length.max(1e-9))
                })
                .fold(0.0, f64::max)
        };
        let mut count = 1;
        while count < rest.len()
            && worst(rest.get(..=count).unwrap_or(rest)) <= worst(rest.get(..count).unwrap_or(rest))
        {
            count += 1;
        }
        let (row, others) = rest.split_at(count);
        area = lay(row, unit, area, &mut areas);
        rest = others;
    }
    areas
}

/// Lays a row along the shorter side and returns the area that is left.
fn lay(row: &[f64], unit: f64, area: Area, areas: &mut Vec<Area>) -> Area {
    let sum: f64 = row.iter().sum::<f64>() * unit;
    let stands = area.width >= area.height;
    let side = if stands { area.height } else { area.width }.max(1e-9);
    let thickness = sum / side;
    let mut along = 0.0;
    for size in row {
        let length = size * unit / thickness.max(1e-9);
        areas.push(match stands {
            true => Area { x: area.x, y: area.y + along, width: thickness, height: length },
            false => Area { x: area.x + along, y: area.y, width: length, height: thickness },
        });
        along += length;
    }
    match stands {
        true => Area { x: area.x + thickness, width: (area.width - thickness).max(0.0), ..area },
        false => Area { y: area.y + thickness, height: (area.height - thickness).max(0.0), ..area },
    }
}

fn rectangle(cell: &Cell) -> Markup {
    let Area { x, y, width, height } = cell.area;
    let name = cell.path.rsplit('.').next().unwrap_or(&cell.path);
    let room = (width / 7.0) as usize;
    let text: String = name.chars().take(room.saturating_sub(1)).collect();
    html! {
        g {
            title { (cell.path) " " (percent(cell.share)) }
            rect class=(format!("depth{}", cell.depth)) x=(format!("{x:.1}")) y=(format!("{y:.1}"))
                width=(format!("{:.1}", (width - 1.0).max(0.0))) height=(format!("{:.1}", (height - 1.0).max(0.0))) {}
            @if width >= TEXT_WIDTH && height >= TEXT_HEIGHT {
                text x=(format!("{:.1}", x + 4.0)) y=(format!("{:.1}", y + 12.0)) {
                    (text) @if room > name.chars().count() + 6 { " " (percent(cell.share)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_fill_the_area_by_their_sizes() {
        let area = Area { x: 0.0, y: 0.0, width: 600.0, height: 400.0 };
        let sizes = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let areas = squarify(&sizes, area);
        assert_eq!(areas.len(), sizes.len());
        for (size, area) in sizes.iter().zip(&areas) {
            let part = area.width * area.height / (600.0 * 400.0);
            assert!((part - size / 24.0).abs() < 1e-6, "{size}: {area:?}");
            let ratio = area.width.max(area.height) / area.width.min(area.height);
            assert!(ratio < 4.0, "{size}: {area:?}");
        }
    }
}
