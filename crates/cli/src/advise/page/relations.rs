//! The relations: a diagram with measured fan-out, and for each the answer to embed or refer with
//! all inputs of the formula.

use super::Page;
use crate::advise::screen::answer;
use maud::{Markup, html};
use quire_advisor::findings::Relation;
use quire_advisor::findings::labels::{bytes, label, number, shown};
use std::collections::{BTreeMap, BTreeSet};

/// The size of a collection in the diagram, and the room around it.
const WIDTH: usize = 170;
const HEIGHT: usize = 34;
const GAP_X: usize = 150;
const GAP_Y: usize = 26;

pub(super) fn section(page: &Page<'_>) -> Markup {
    if page.input.profile.references.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { (page.say("Relations", "关系")) }
            p { (page.say(
                "An arrow leads from the collection that refers. Its numbers are the documents that refer to one: median and most.",
                "箭头从引用方集合出发，数字为引用同一文档的文档数：中位数与最大值。",
            )) }
            div.wide { (diagram(page)) }
            @for relation in &page.advice.relations { (one(page, relation)) }
        }
    }
}

fn one(page: &Page<'_>, relation: &Relation) -> Markup {
    let most = relation.costs.iter().map(|(_, cost)| *cost).fold(0.0, f64::max);
    html! {
        details.relation {
            summary {
                code { (relation.title()) } ": " b { (answer(relation.answer(), page.language)) }
                @if relation.answer() == "better" { " (" (relation.best.name()) ")" }
            }
            dl {
                @for (key, value) in &relation.inputs {
                    div { dt { (label(key, page.language)) } dd { (shown(value, page.language)) } }
                }
            }
            div.costs {
                @for (form, cost) in &relation.costs {
                    div.cost {
                        span.name { (form.name()) }
                        span.track { span.now style=(format!("width:{:.1}%", cost / most.max(1e-9) * 100.0)) {} }
                        span.number { (bytes(*cost)) (page.say("/s", "/秒")) }
                    }
                }
            }
            @if !relation.forbidden.is_empty() {
                p { (page.say("Not to be embedded: ", "不可内嵌：")) (relation.forbidden.join(", ")) }
            }
        }
    }
}

/// The places of the collections: those that are referred to stand left of those that refer.
fn places<'p>(page: &Page<'p>) -> BTreeMap<&'p str, (usize, usize)> {
    let references = &page.input.profile.references;
    let names: BTreeSet<&str> =
        references.iter().flat_map(|one| [one.from.as_str(), one.to.as_str()]).collect();
    let mut depths: BTreeMap<&str, usize> = names.iter().map(|name| (*name, 0)).collect();
    // A circle of references ends after as many rounds as there are collections.
    for _ in 0..names.len() {
        for one in references.iter().filter(|one| one.from != one.to) {
            let wanted =
                depths.get(one.to.as_str()).map_or(0, |depth| depth + 1).min(names.len().min(4));
            if let Some(depth) = depths.get_mut(one.from.as_str()) {
                *depth = (*depth).max(wanted);
            }
        }
    }
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    depths
        .into_iter()
        .map(|(name, depth)| {
            let row = rows.entry(depth).or_default();
            *row += 1;
            (name, (depth * (WIDTH + GAP_X) + 10, (*row - 1) * (HEIGHT + GAP_Y) + 16))
        })
        .collect()
}

fn diagram(page: &Page<'_>) -> Markup {
    let places = places(page);
    let width = places.values().map(|(x, _)| x + WIDTH + 40).max().unwrap_or(0);
    let height = places.values().map(|(_, y)| y + HEIGHT + 20).max().unwrap_or(0);
    let at = |name: &str| places.get(name).copied().unwrap_or((0, 0));
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img" {
            title { (page.say("Relations between collections", "集合之间的关系")) }
            @for one in &page.input.profile.references {
                @let ((from_x, from_y), (to_x, to_y)) = (at(&one.from), at(&one.to));
                @let (x1, y1) = (from_x, from_y + HEIGHT / 2);
                @let (x2, y2) = (to_x + WIDTH, to_y + HEIGHT / 2);
                @let [half, .., most] = one.fan_out;
                @let text = format!("{} {} / {}", one.path, number(half as f64), number(most as f64));
                @if one.from == one.to {
                    path.line d=(format!("M{} {y1} c 34 -24 34 24 0 4", x1 + WIDTH)) {}
                } @else {
                    path.line d=(format!("M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}", x1.saturating_sub(60), x2 + 60)) {}
                    path.head d=(format!("M{x2} {y2} l9 -4 v8 z")) {}
                    text.edge x=((x1 + x2) / 2) y=((y1 + y2) / 2 - 4) { (text) }
                }
            }
            @for (name, (x, y)) in &places {
                rect.node x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="6" {}
                text.name x=(x + WIDTH / 2) y=(y + 15) { (short(name)) }
                text.count x=(x + WIDTH / 2) y=(y + 28) { (number(page.input.documents(name))) }
            }
        }
    }
}

/// Returns a name that fits into its box.
fn short(name: &str) -> String {
    match name.chars().count() > 22 {
        true => name.chars().take(21).chain(['…']).collect(),
        false => name.to_owned(),
    }
}
