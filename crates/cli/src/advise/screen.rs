//! The advice for people at a terminal: the most worthwhile findings on one screen.

use quire_advisor::Extent;
use quire_advisor::findings::labels::{bytes, label, number, shown};
use quire_advisor::findings::{Advice, Confidence, Finding, Input, Language, Severity, Text, rule};
use std::fmt::Write;

/// The findings on one screen.
const SHOWN: usize = 10;
/// The numbers of a finding on one screen.
const EVIDENCE: usize = 4;

/// Returns the text.
pub(super) fn screen(
    input: &Input<'_>,
    advice: &Advice,
    (language, shows_all): (Language, bool),
    origin: &str,
) -> String {
    let mut text = heading(input, advice, language, origin);
    let most = if shows_all { advice.findings.len() } else { SHOWN };
    for (place, finding) in advice.findings.iter().take(most).enumerate() {
        text.push('\n');
        write_finding(&mut text, place + 1, finding, language);
    }
    let more = advice.findings.len().saturating_sub(most);
    if more > 0 {
        let said = Text { en: "more: --all-findings", zh: "更多：--all-findings" };
        let _ = writeln!(text, "\n{more} {}", said.in_language(language));
    }
    if !advice.relations.is_empty() {
        text.push('\n');
        for relation in &advice.relations {
            let _ = write!(
                text,
                "{}: {}",
                plain(&relation.title()),
                answer(relation.answer(), language)
            );
            if relation.answer() == "better" {
                let _ = write!(text, " ({})", relation.best.name());
            }
            text.push('\n');
        }
    }
    text
}

fn heading(input: &Input<'_>, advice: &Advice, language: Language, origin: &str) -> String {
    let of = |text: Text| text.in_language(language);
    let collections = input.profile.collections.len();
    let mut text = format!("{}: {collections} ", input.database);
    text.push_str(of(Text { en: "collections", zh: "个集合" }));
    if let Extent::Sample(size) = input.profile.extent {
        let sample =
            of(Text { en: "documents of each at most", zh: "个文档（每个集合最多）" });
        let _ = write!(text, ", {} {sample}", number(size as f64));
    }
    match input.seconds {
        Some(seconds) => {
            let said = of(Text { en: "seconds of requests from", zh: "秒的请求，来自" });
            let _ = writeln!(text, ", {} {said} {origin}", number(seconds));
        }
        None => {
            let said = Text {
                en: "\nNo requests are known, so that costs are those of the data alone: see --log and --workload.",
                zh: "\n没有请求记录，只能给出数据本身的成本：见 --log 和 --workload。",
            };
            let _ = writeln!(text, "{}", of(said));
        }
    }
    if advice.findings.is_empty() {
        let said = Text {
            en: "Already right: no rule found a problem.",
            zh: "一切正常：没有规则发现问题。",
        };
        let _ = writeln!(text, "{}", of(said));
    }
    text
}

/// Returns a severity in a language.
pub(super) fn severity(severity: Severity, language: Language) -> &'static str {
    let text = match severity {
        Severity::High => Text { en: "high", zh: "高" },
        Severity::Medium => Text { en: "medium", zh: "中" },
        Severity::Low => Text { en: "low", zh: "低" },
    };
    text.in_language(language)
}

/// Returns how sure the numbers are, in a language.
pub(super) fn confidence(confidence: Confidence, language: Language) -> String {
    let of = |text: Text| text.in_language(language);
    match confidence {
        Confidence::Measured => of(Text { en: "measured", zh: "实测" }).to_owned(),
        Confidence::Modelled => {
            of(Text { en: "estimated by formula", zh: "按公式估算" }).to_owned()
        }
        Confidence::Executed { copied, of: all } => format!(
            "{} {} / {}",
            of(Text { en: "run with the change on", zh: "已在副本上执行" }),
            number(copied as f64),
            number(all as f64)
        ),
        Confidence::Sampled { read, of: all } => format!(
            "{} {} / {}",
            of(Text { en: "sampled", zh: "抽样" }),
            number(read as f64),
            number(all as f64)
        ),
    }
}

/// Returns the answer for a relation in a language.
pub(super) fn answer(answer: &str, language: Language) -> &'static str {
    let text = match answer {
        "right" => Text { en: "already right", zh: "已经合适" },
        "tie" => Text {
            en: "a tie: another form saves less than 20 %",
            zh: "持平：另一种形式节省不到 20 %",
        },
        "better" => Text { en: "another form is cheaper", zh: "另一种形式更便宜" },
        _ => Text { en: "unknown without requests", zh: "没有请求记录，无法判断" },
    };
    text.in_language(language)
}

/// Returns what a finding costs and what the change saves.
pub(super) fn saving(finding: &Finding, language: Language) -> Option<String> {
    let (now, after) = finding.cost?;
    let of = |text: Text| text.in_language(language);
    let mut parts = Vec::new();
    let arrow = |left: String, right: String| format!("{left} -> {right}");
    if now.docs_examined > 0.0 {
        let what = of(Text { en: "documents examined/s", zh: "检查文档/秒" });
        parts.push(format!(
            "{} {what}",
            arrow(number(now.docs_examined), number(after.docs_examined))
        ));
    }
    for (left, right, what) in [
        (now.bytes_read, after.bytes_read, Text { en: "read/s", zh: "读取/秒" }),
        (now.bytes_written, after.bytes_written, Text { en: "written/s", zh: "写入/秒" }),
        (now.storage, after.storage, Text { en: "stored", zh: "存储" }),
    ] {
        if left > 0.0 || right > 0.0 {
            parts.push(format!("{} {}", arrow(bytes(left), bytes(right)), of(what)));
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn write_finding(text: &mut String, place: usize, finding: &Finding, language: Language) {
    let title = rule(finding.rule).map_or("", |rule| rule.title.in_language(language));
    let severity = severity(finding.severity, language);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{place}. [{severity}] {} {title}: {}",
        finding.rule,
        plain(&finding.place())
    );
    let evidence = finding.evidence.iter().take(EVIDENCE);
    let evidence: Vec<String> = evidence
        .map(|(key, value)| format!("{} {}", label(key, language), plain(&shown(value, language))))
        .collect();
    let _ =
        writeln!(text, "   {} ({})", evidence.join(", "), confidence(finding.confidence, language));
    if let Some(saving) = saving(finding, language) {
        let _ = writeln!(text, "   {saving}");
    }
    for command in &finding.apply {
        let _ = writeln!(text, "   > {}", plain(command));
    }
}

/// Returns a text without control characters, which a name of the data may have: a terminal would
/// obey them.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
