//! The report as a page for a browser. It is one file that needs nothing from a network, and every
//! text of the data is escaped by the library that writes it (docs/adr/0038-advice-by-measured-rules.md).

mod distributions;
mod findings;
mod relations;
mod shapes;
mod treemap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use quire_advisor::Extent;
use quire_advisor::findings::labels::number;
use quire_advisor::findings::{Advice, Input, Language, Severity, Text};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What the page shows: styles and one script of its own, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// What the parts of the page need.
pub(super) struct Page<'p> {
    pub(super) input: &'p Input<'p>,
    pub(super) advice: &'p Advice,
    pub(super) language: Language,
}

impl Page<'_> {
    /// Returns a text in the language of the page.
    pub(super) fn say(&self, en: &'static str, zh: &'static str) -> &'static str {
        Text { en, zh }.in_language(self.language)
    }
}

/// Returns the page.
pub(super) fn page(input: &Input<'_>, advice: &Advice, language: Language, origin: &str) -> String {
    let page = Page { input, advice, language };
    let title = format!("{} - {}", input.database, page.say("advice", "建议"));
    let lang = page.say("en", "zh-Hans");
    let markup = html! {
        (DOCTYPE)
        html lang=(lang) {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (page.heading(origin))
                    (findings::section(&page))
                    (relations::section(&page))
                    (treemap::section(&page))
                    (distributions::section(&page))
                    (shapes::section(&page))
                    footer { (page.say(
                        "Written by quire advise. What every rule means: docs/rules.md.",
                        "由 quire advise 生成。各规则的含义见 docs/rules.md。",
                    )) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
}

impl Page<'_> {
    fn heading(&self, origin: &str) -> Markup {
        let count = |severity: Severity| {
            self.advice.findings.iter().filter(|finding| finding.severity == severity).count()
        };
        html! {
            header {
                h1 { (self.input.database) }
                p.facts {
                    (self.input.profile.collections.len()) " " (self.say("collections", "个集合"))
                    @if let Extent::Sample(size) = self.input.profile.extent {
                        ", " (number(size as f64)) " "
                        (self.say("random documents of each at most", "个随机文档（每个集合最多）"))
                    }
                    @if let Some(seconds) = self.input.seconds {
                        ", " (number(seconds)) " " (self.say("seconds of requests from", "秒的请求，来自"))
                        " " (origin)
                    } @else {
                        ", " (self.say("no requests known", "没有请求记录"))
                    }
                }
                ul.tally {
                    @for severity in [Severity::High, Severity::Medium, Severity::Low] {
                        li class=(severity.name()) {
                            b { (count(severity)) } " " (super::screen::severity(severity, self.language))
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_advisor::findings::{Silenced, advise};
    use quire_advisor::{CollectionProfile, DatabaseProfile, Limits, SourceCollection};
    use quire_document::doc;

    /// Names and values of the data are text, whatever they are.
    #[test]
    fn nothing_of_the_data_becomes_markup() {
        let evil = "<img src=x onerror=alert(1)>";
        let mut profile = CollectionProfile::new(Limits::default());
        for at in 0..200 {
            profile.add(doc! { "_id": at, evil: { evil: "2024-05-11" }, "d": format!("2024-05-{:02}", 1 + at % 28).as_str() }.as_doc());
        }
        let index = doc! { "key": { "</script><b>": 1 }, "name": "</script><b>" };
        let source = SourceCollection {
            name: evil.to_owned(),
            documents: Some(200),
            indexes: vec![index],
            ..SourceCollection::default()
        };
        let found = DatabaseProfile {
            collections: vec![(source, profile)],
            extent: Extent::All,
            references: Vec::new(),
            copies: Vec::new(),
        };
        let input = Input::new(evil, &found, None, 0);
        let advice = advise(&input, &Silenced::default());
        assert!(advice.findings.len() >= 2, "{:?}", advice.findings);
        for language in [Language::English, Language::Chinese] {
            let text = page(&input, &advice, language, "");
            assert!(!text.contains("<img") && !text.contains("</script><b>"), "{text}");
            assert_eq!(text.matches("<script").count(), 1);
            assert!(
                !text.contains("http:") && !text.contains("https:") && !text.contains("src=\"")
            );
        }
    }
}
