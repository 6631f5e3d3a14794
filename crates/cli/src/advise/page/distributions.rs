//! Sizes of documents and lengths of arrays, on a scale of powers, with the line of 16 MB.

use super::Page;
use maud::{Markup, html};
use quire_advisor::findings::labels::{bytes, number};

/// The greatest size of a document.
const DOCUMENT_BYTES: f64 = 16_777_216.0;
/// The width of a scale.
const WIDTH: f64 = 640.0;
/// The arrays that are shown, the longest first.
const ARRAYS: usize = 40;

pub(super) fn section(page: &Page<'_>) -> Markup {
    let sizes: Vec<(String, [f64; 4])> = page
        .input
        .collections()
        .map(|(source, profile)| (source.name.clone(), RANKS.map(|rank| profile.size_at(rank))))
        .collect();
    let mut lengths: Vec<(String, [f64; 4])> = Vec::new();
    for (source, profile) in page.input.collections() {
        profile.for_each_path(&mut |path, values, _| {
            if let Some(found) = values.lengths() {
                lengths.push((format!("{}.{path}", source.name), RANKS.map(|rank| found.at(rank))));
            }
        });
    }
    lengths.sort_by(|left, right| right.1[3].total_cmp(&left.1[3]));
    lengths.truncate(ARRAYS);
    let most = lengths.first().map_or(1.0, |(_, marks)| marks[3]).max(10.0);
    html! {
        section {
            h2 { (page.say("Distributions", "分布")) }
            p { (page.say(
                "Marks: median, 90 %, 99 %, largest. The scale is one of powers; the red line is the limit of 16 MB.",
                "标记：中位数、90 %、99 %、最大值。对数刻度；红线为 16 MB 上限。",
            )) }
            h3 { (page.say("Document sizes", "文档大小")) }
            @for (name, marks) in &sizes { (scale(name, marks, (16.0, DOCUMENT_BYTES * 1.3), Some(DOCUMENT_BYTES), bytes)) }
            @if !lengths.is_empty() {
                h3 { (page.say("Array lengths", "数组长度")) }
                @for (name, marks) in &lengths { (scale(name, marks, (0.8, most * 1.2), None, number)) }
            }
        }
    }
}

const RANKS: [f64; 4] = [0.5, 0.9, 0.99, 1.0];

fn scale(
    name: &str,
    marks: &[f64; 4],
    (least, most): (f64, f64),
    limit: Option<f64>,
    shown: fn(f64) -> String,
) -> Markup {
    let at = |value: f64| {
        let share = (value.max(least) / least).ln() / (most / least).ln();
        share.clamp(0.0, 1.0) * WIDTH
    };
    let [half, .., largest] = *marks;
    html! {
        div.scale {
            code { (name) }
            svg viewBox=(format!("0 0 {WIDTH} 20")) role="img" {
                title { (name) ": " (marks.map(shown).join(", ")) }
                line.axis x1="0" x2=(WIDTH) y1="10" y2="10" {}
                line.range x1=(format!("{:.1}", at(half))) x2=(format!("{:.1}", at(largest))) y1="10" y2="10" {}
                @for (mark, radius) in marks.iter().zip([6, 4, 3, 5]) {
                    circle cx=(format!("{:.1}", at(*mark))) cy="10" r=(radius) {}
                }
                @if let Some(limit) = limit {
                    line.limit x1=(format!("{:.1}", at(limit))) x2=(format!("{:.1}", at(limit))) y1="1" y2="19" {}
                }
            }
            span { (shown(half)) " - " (shown(largest)) }
        }
    }
}
