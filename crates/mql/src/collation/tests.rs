//! Which documents are collations, and what orders they make.

use super::*;
use quire_document::{Value, doc};

fn parse(doc: DocBuf) -> Arc<Collation> {
    Collation::parse(doc.as_doc()).unwrap().unwrap()
}

fn sorted<'a>(collation: &Collation, words: &[&'a str]) -> Vec<&'a str> {
    let mut words = words.to_vec();
    words.sort_by(|a, b| collation.compare(a, b));
    words
}

#[test]
fn a_locale_fills_in_its_defaults() {
    let shown = parse(doc! { "locale": "da" }).to_document();
    assert_eq!(
        shown,
        doc! {
            "locale": "da", "caseLevel": false, "caseFirst": "upper", "strength": 3,
            "numericOrdering": false, "alternate": "non-ignorable", "maxVariable": "punct",
            "normalization": false, "backwards": false, "version": "57.1",
        }
    );
    let shown = parse(doc! { "locale": "th" }).spec().clone();
    assert!(shown.alternate == Alternate::Shifted && shown.normalization);
    assert!(parse(doc! { "locale": "fr_CA" }).spec().backwards);
    let created = doc! { "locale": "th" };
    let created = Collation::parse_default(created.as_doc()).unwrap().unwrap();
    assert!(created.spec().alternate == Alternate::NonIgnorable && !created.spec().normalization);
    let simple = doc! { "locale": "simple", "strength": 1 };
    assert!(Collation::parse(simple.as_doc()).unwrap().is_none());
}

#[test]
fn what_is_no_collation_says_why() {
    for (doc, code, text) in [
        (doc! {}, 40414, "BSON field 'collation.locale' is missing but a required field"),
        (doc! { "locale": "xx" }, 2, "Field 'locale' is invalid in: { locale: \"xx\" }"),
        (
            doc! { "locale": "EN" },
            2,
            "Field 'locale' is invalid in: { locale: \"EN\" }. Did you mean 'en'?",
        ),
        (
            doc! { "locale": "" },
            2,
            "Field 'locale' cannot be the empty string in: { locale: \"\" }",
        ),
        (
            doc! { "locale": "en", "strength": 6 },
            2,
            "Enumeration value '6' for field 'collation.strength' is not a valid value.",
        ),
        (
            doc! { "locale": "en", "backwards": Value::Null },
            14,
            "Field 'backwards' should be a boolean value, but found: null",
        ),
        (
            doc! { "locale": "en", "backwards": true, "strength": 1 },
            2,
            "'backwards' is invalid with 'strength' of 1 in: { locale: \"en\", backwards: true, strength: 1 }",
        ),
        (
            doc! { "locale": "de@collation=search" },
            115,
            "the collation 'de@collation=search' is not supported yet",
        ),
    ] {
        let error = Collation::parse(doc.as_doc()).unwrap_err();
        assert_eq!((error.code().number(), error.message()), (code, text));
    }
}

#[test]
fn every_listed_locale_has_an_order() {
    for (locale, variant) in locales::all() {
        let name = variant.map_or(locale.to_owned(), |v| format!("{locale}@collation={v}"));
        let strength = doc! { "locale": name.as_str() };
        assert!(Collation::parse(strength.as_doc()).unwrap().is_some(), "{name}");
    }
}

#[test]
fn locales_and_variants_differ() {
    let by =
        |locale: &str, words: &[&'static str]| sorted(&parse(doc! { "locale": locale }), words);
    assert_eq!(by("sv", &["ö", "z"]), ["z", "ö"]);
    assert_eq!(by("de", &["of", "öf"]), ["of", "öf"]);
    assert_eq!(by("de@collation=phonebook", &["of", "öf"]), ["öf", "of"]);
    assert_eq!(by("es@collation=traditional", &["chico", "cuna"]), ["cuna", "chico"]);
    assert_eq!(by("zh", &["一", "北", "啊"]), ["啊", "北", "一"]);
    assert_eq!(by("zh_Hant", &["啊", "北", "一"]), ["一", "北", "啊"]);
    assert_eq!(by("zh@collation=stroke", &["啊", "北", "一"]), ["一", "北", "啊"]);
    assert_eq!(by("en_US_POSIX", &["a", "B"]), ["B", "a"]);
    assert_eq!(by("da", &["a", "A"]), ["A", "a"]);
}

#[test]
fn accents_compare_from_either_end() {
    let words = ["côté", "coté", "côte", "cote"];
    for (doc, order) in [
        (doc! { "locale": "fr" }, ["cote", "coté", "côte", "côté"]),
        (doc! { "locale": "fr", "backwards": true }, ["cote", "côte", "coté", "côté"]),
        (doc! { "locale": "fr_CA" }, ["cote", "côte", "coté", "côté"]),
        (doc! { "locale": "fr_CA", "backwards": false }, ["cote", "coté", "côte", "côté"]),
        (doc! { "locale": "de", "backwards": true }, ["cote", "côte", "coté", "côté"]),
    ] {
        let collation = parse(doc);
        assert_eq!(sorted(&collation, &words), order, "{collation:?}");
    }
}
