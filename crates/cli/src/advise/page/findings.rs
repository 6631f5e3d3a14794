//! The findings: what was measured, what it costs now and after, and the commands.

use super::Page;
use crate::advise::screen::{confidence, severity};
use maud::{Markup, html};
use quire_advisor::findings::labels::{bytes, label, number, shown};
use quire_advisor::findings::{Cost, Finding, rule};

pub(super) fn section(page: &Page<'_>) -> Markup {
    let findings = &page.advice.findings;
    html! {
        section {
            h2 { (page.say("Findings", "发现")) }
            @if findings.is_empty() {
                p.right { (page.say("Already right: no rule found a problem.", "一切正常：没有规则发现问题。")) }
            }
            @for finding in findings { (one(page, finding)) }
        }
    }
}

fn one(page: &Page<'_>, finding: &Finding) -> Markup {
    let language = page.language;
    let Some(rule) = rule(finding.rule) else { return html! {} };
    html! {
        article class=(finding.severity.name()) {
            h3 {
                span.mark { (severity(finding.severity, language)) }
                " " (rule.title.in_language(language)) " " code { (finding.place()) }
                " " small { (finding.rule) }
            }
            p { (rule.advice.in_language(language)) }
            dl {
                @for (key, value) in &finding.evidence {
                    div { dt { (label(key, language)) } dd { (shown(value, language)) } }
                }
                div {
                    dt { (page.say("confidence", "可信度")) }
                    dd { (confidence(finding.confidence, language)) }
                }
            }
            @if let Some((now, after)) = finding.cost { (costs(page, &now, &after)) }
            (commands(page, page.say("Apply", "执行"), &finding.apply))
            (commands(page, page.say("Undo", "撤销"), &finding.undo))
            p.effects { b { (page.say("What else changes: ", "其他影响：")) } (rule.effects.in_language(language)) }
        }
    }
}

fn costs(page: &Page<'_>, now: &Cost, after: &Cost) -> Markup {
    let each_second = page.say("/s", "/秒");
    let rows = [
        (
            page.say("documents examined", "检查的文档"),
            now.docs_examined,
            after.docs_examined,
            false,
            true,
        ),
        (page.say("bytes read", "读取字节"), now.bytes_read, after.bytes_read, true, true),
        (page.say("bytes written", "写入字节"), now.bytes_written, after.bytes_written, true, true),
        (page.say("bytes stored", "存储字节"), now.storage, after.storage, true, false),
    ];
    let shown = |value: f64, is_bytes: bool, is_rate: bool| {
        let text = if is_bytes { bytes(value) } else { number(value) };
        if is_rate { format!("{text}{each_second}") } else { text }
    };
    html! {
        div.costs {
            @for (name, now, after, is_bytes, is_rate) in rows {
                @let most = now.max(after);
                @if most > 0.0 {
                    div.cost {
                        span.name { (name) }
                        @for (value, class, when) in [
                            (now, "now", page.say("now", "当前")),
                            (after, "after", page.say("after", "之后")),
                        ] {
                            span.when { (when) }
                            span.track { span class=(class) style=(format!("width:{:.1}%", value / most * 100.0)) {} }
                            span.number { (shown(value, is_bytes, is_rate)) }
                        }
                    }
                }
            }
        }
    }
}

fn commands(page: &Page<'_>, title: &str, commands: &[String]) -> Markup {
    html! {
        @if !commands.is_empty() {
            div.commands {
                h4 { (title) button type="button" { (page.say("Copy", "复制")) } }
                pre { code { (commands.join("\n")) } }
            }
        }
    }
}
