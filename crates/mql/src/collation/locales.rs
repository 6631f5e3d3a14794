//! The locales in MongoDB's manual ("Collation Locales and Default Parameters"), with the defaults
//! and the variants of each.

use super::spec::{Alternate, CaseFirst};

/// A locale that a collation may have.
#[derive(Debug)]
pub(super) struct Locale {
    /// The name in ICU's spelling: `fr_CA`, `sr_Latn`.
    pub name: &'static str,
    /// The values that may follow `@collation=`.
    pub variants: &'static [&'static str],
    /// True if ICU's data enables normalization.
    pub normalization: bool,
}

/// Variants for which the library has no data (docs/adr/0008-collation.md).
const WITHOUT_DATA: &[&str] = &["search", "searchjl", "big5han", "gb2312han"];

/// ICU's other names of locales. MongoDB refuses them with an error that contains the known name.
const ALIASES: &[(&str, &str)] = &[
    ("no", "nb"),
    ("iw", "he"),
    ("in", "id"),
    ("mo", "ro"),
    ("sh", "sr_Latn"),
    ("tl", "fil"),
    ("zh_TW", "zh_Hant"),
    ("zh_HK", "zh_Hant"),
    ("zh_MO", "zh_Hant"),
];

impl Locale {
    /// Returns the default of `caseFirst`.
    pub fn case_first(&self) -> CaseFirst {
        match self.name {
            "da" | "mt" => CaseFirst::Upper,
            _ => CaseFirst::Off,
        }
    }

    /// Returns the default of `alternate`.
    pub fn alternate(&self) -> Alternate {
        match self.name {
            "th" => Alternate::Shifted,
            _ => Alternate::NonIgnorable,
        }
    }

    /// Returns the default of `backwards`.
    pub fn backwards(&self) -> bool {
        self.name == "fr_CA"
    }
}

/// The result of looking up a name.
pub(super) enum Named {
    /// A known locale, with the variant if the name has one.
    Known(&'static Locale, Option<&'static str>),
    /// Not a valid name; ICU would fall back to this locale.
    Fallback(&'static str),
    /// A name that ICU does not know.
    Unknown,
}

/// Looks up a locale as MongoDB does: only names in ICU's canonical spelling are valid.
pub(super) fn find(text: &str) -> Named {
    let (name, keywords) = match text.split_once('@') {
        Some((name, keywords)) => (name, Some(keywords)),
        None => (text, None),
    };
    let Some(locale) = LOCALES.iter().find(|locale| locale.name == name) else {
        return fallback(name).map_or(Named::Unknown, Named::Fallback);
    };
    let variant = keywords.map(|keywords| keywords.strip_prefix("collation=").unwrap_or_default());
    match variant {
        None => Named::Known(locale, None),
        Some(variant) => match locale.variants.iter().find(|known| **known == variant) {
            Some(variant) => Named::Known(locale, Some(variant)),
            None => Named::Fallback(locale.name),
        },
    }
}

/// Returns true if the library has data for a variant.
pub(super) fn has_data(variant: &str) -> bool {
    !WITHOUT_DATA.contains(&variant)
}

/// Returns the locale to which ICU falls back from an unknown name; `None` for the root locale.
fn fallback(name: &str) -> Option<&'static str> {
    let mut parts: Vec<String> = name.split(['_', '-']).map(str::to_owned).collect();
    let language = parts.first_mut()?;
    if !(2..=3).contains(&language.len()) {
        return None;
    }
    language.make_ascii_lowercase();
    for part in parts.iter_mut().skip(1) {
        part.make_ascii_uppercase();
        if part.len() == 4 && part.is_ascii() {
            part[1..].make_ascii_lowercase();
        }
    }
    while !parts.is_empty() {
        let candidate = parts.join("_");
        let alias = ALIASES.iter().find(|(alias, _)| *alias == candidate);
        let candidate = alias.map_or(candidate.as_str(), |(_, name)| name);
        if let Some(locale) = LOCALES.iter().find(|locale| locale.name == candidate) {
            return Some(locale.name);
        }
        parts.pop();
    }
    None
}

const fn plain(name: &'static str) -> Locale {
    Locale { name, variants: &[], normalization: false }
}

/// Returns a locale whose script needs normalization.
const fn normalized(name: &'static str) -> Locale {
    Locale { name, variants: &[], normalization: true }
}

impl Locale {
    const fn with(mut self, variants: &'static [&'static str]) -> Self {
        self.variants = variants;
        self
    }
}

const LOCALES: &[Locale] = &[
    plain("af"),
    plain("am"),
    plain("ar").with(&["compat"]),
    normalized("as"),
    plain("az").with(&["search"]),
    plain("be"),
    plain("bg"),
    normalized("bn").with(&["traditional"]),
    normalized("bo"),
    plain("bs").with(&["search"]),
    plain("bs_Cyrl"),
    plain("ca").with(&["search"]),
    plain("chr"),
    plain("cs").with(&["search"]),
    plain("cy"),
    plain("da").with(&["search"]),
    plain("de").with(&["eor", "phonebook", "search"]),
    plain("de_AT").with(&["phonebook"]),
    plain("dsb"),
    plain("dz"),
    plain("ee"),
    normalized("el"),
    plain("en"),
    plain("en_US"),
    plain("en_US_POSIX"),
    plain("eo"),
    plain("es").with(&["search", "traditional"]),
    plain("et"),
    normalized("fa"),
    normalized("fa_AF"),
    plain("fi").with(&["search", "traditional"]),
    plain("fil"),
    plain("fo").with(&["search"]),
    plain("fr"),
    plain("fr_CA"),
    plain("ga"),
    plain("gl").with(&["search"]),
    normalized("gu"),
    plain("ha"),
    plain("haw"),
    normalized("he").with(&["search"]),
    normalized("hi"),
    plain("hr").with(&["search"]),
    plain("hsb"),
    plain("hu"),
    plain("hy"),
    plain("id"),
    normalized("ig"),
    plain("is").with(&["search"]),
    plain("it"),
    plain("ja").with(&["unihan"]),
    plain("ka"),
    plain("kk"),
    plain("kl").with(&["search"]),
    normalized("km"),
    normalized("kn").with(&["traditional"]),
    plain("ko").with(&["search", "searchjl", "unihan"]),
    normalized("kok"),
    plain("ky"),
    plain("lb"),
    plain("lkt"),
    plain("ln").with(&["phonetic"]),
    plain("lo"),
    plain("lt"),
    plain("lv"),
    plain("mk"),
    plain("ml"),
    plain("mn"),
    normalized("mr"),
    plain("ms"),
    plain("mt"),
    normalized("my"),
    plain("nb").with(&["search"]),
    plain("ne"),
    plain("nl"),
    plain("nn").with(&["search"]),
    plain("om"),
    normalized("or"),
    normalized("pa"),
    plain("pl"),
    normalized("ps"),
    plain("pt"),
    plain("ro"),
    plain("ru"),
    plain("se").with(&["search"]),
    normalized("si").with(&["dictionary"]),
    plain("sk").with(&["search"]),
    plain("sl"),
    plain("smn").with(&["search"]),
    plain("sq"),
    plain("sr"),
    plain("sr_Latn").with(&["search"]),
    plain("sv").with(&["search"]),
    plain("sw"),
    normalized("ta"),
    normalized("te"),
    normalized("th"),
    plain("to"),
    plain("tr").with(&["search"]),
    plain("ug"),
    plain("uk"),
    plain("ur"),
    normalized("vi").with(&["traditional"]),
    plain("wae"),
    normalized("yi").with(&["search"]),
    normalized("yo"),
    plain("zh").with(&["big5han", "gb2312han", "stroke", "unihan", "zhuyin"]),
    plain("zh_Hant").with(&["big5han", "gb2312han", "pinyin", "unihan", "zhuyin"]),
    plain("zu"),
];

/// Returns every locale with each of its variants that has data.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    LOCALES.iter().flat_map(|locale| {
        let variants = locale.variants.iter().filter(|variant| has_data(variant));
        let variants = variants.map(|variant| Some(*variant));
        std::iter::once(None).chain(variants).map(|variant| (locale.name, variant))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_names_are_known() {
        let shown = |text| match find(text) {
            Named::Known(locale, variant) => {
                format!("{}/{}", locale.name, variant.unwrap_or_default())
            }
            Named::Fallback(name) => format!("{name}?"),
            Named::Unknown => "-".to_owned(),
        };
        for (text, answer) in [
            ("en", "en/"),
            ("de@collation=phonebook", "de/phonebook"),
            ("EN", "en?"),
            ("en-US", "en_US?"),
            ("en_us_posix", "en_US_POSIX?"),
            ("en_US_FOO", "en_US?"),
            ("en_GB", "en?"),
            ("zh@collation=pinyin", "zh?"),
            ("zh_TW@collation=stroke", "zh_Hant?"),
            ("zh_HANT", "zh_Hant?"),
            ("de@;collation=phonebook", "de?"),
            ("de@collation", "de?"),
            ("no", "nb?"),
            ("xx", "-"),
            ("english", "-"),
            ("@collation=phonebook", "-"),
            ("x_test", "-"),
        ] {
            assert_eq!(shown(text), answer, "{text}");
        }
    }
}
