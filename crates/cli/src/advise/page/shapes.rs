//! The shapes of requests that take most: documents examined, bytes read.

use super::Page;
use maud::{Markup, html};
use quire_advisor::findings::Statement;
use quire_advisor::findings::labels::{bytes, number};
use quire_document::DocBuf;
use quire_document::extjson::{self, Format};

/// The shapes that are shown.
const SHAPES: usize = 20;

pub(super) fn section(page: &Page<'_>) -> Markup {
    let mut all: Vec<(&str, &Statement<'_>)> = Vec::new();
    for (source, _) in page.input.collections() {
        all.extend(
            page.input.statements(&source.name).iter().map(|one| (source.name.as_str(), one)),
        );
    }
    if all.is_empty() {
        return html! {};
    }
    let weight = |one: &Statement<'_>| {
        one.cost().weight() + one.used.measures.total_micros.sum as f64 / 1_000_000.0
    };
    all.sort_by(|left, right| weight(right.1).total_cmp(&weight(left.1)));
    html! {
        section {
            h2 { (page.say("Top shapes", "主要请求")) }
            div.wide {
                table {
                    thead {
                        tr {
                            th { (page.say("statement", "语句")) }
                            th.number { (page.say("each second", "每秒")) }
                            th.number { (page.say("examined for each", "每个结果检查")) }
                            th.number { (page.say("read/s", "读取/秒")) }
                            th { (page.say("shape", "形状")) }
                        }
                    }
                    tbody {
                        @for (name, one) in all.into_iter().take(SHAPES) {
                            tr {
                                td { (one.used.kind.name()) " " code { (name) } }
                                td.number { (number(one.per_second)) }
                                td.number { (number(one.examined_for_each())) }
                                td.number { (bytes(one.cost().bytes_read)) }
                                td { code.shape { (shape(one)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the shape without the names that the other columns show.
fn shape(one: &Statement<'_>) -> String {
    let shape = DocBuf::build(|out| {
        for (name, value) in one.used.shape.as_doc().fields() {
            if !["cmdNs", "command"].contains(&name) {
                out.append(name, value);
            }
        }
    });
    extjson::print(shape.as_doc(), Format::default())
}
