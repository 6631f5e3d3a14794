//! Tests of the collation documents that are valid, and of the orders that they define.

use super::*;
use crate::context::{InterruptCheck, interruptible};
use quire_document::testing::Generator;
use quire_document::{Value, doc};
use quire_error::{Error, ErrorCode};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
fn invalid_collations_are_refused_with_a_reason() {
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

/// Code points that are difficult for collation algorithms: letters with tailorings and
/// contractions, marks of many combining classes, digits of several scripts, ignorable, unassigned
/// and private code points, non-characters, conjoining jamo, supplementary planes.
const RANGES: &[(u32, u32)] = &[
    (0x00, 0x7f),
    (0x61, 0x7a),
    (0x30, 0x39),
    (0x80, 0x24f),
    (0x300, 0x36f),
    (0x378, 0x380),
    (0x3b1, 0x3c9),
    (0x430, 0x45f),
    (0x591, 0x5f4),
    (0x620, 0x669),
    (0x900, 0x96f),
    (0x9bc, 0x9df),
    (0xe01, 0xe5b),
    (0xeb0, 0xebd),
    (0xf71, 0xf84),
    (0x1100, 0x11ff),
    (0x1e00, 0x1eff),
    (0x2000, 0x2064),
    (0x3041, 0x30ff),
    (0x4e00, 0x4e40),
    (0xac00, 0xac40),
    (0xe000, 0xe003),
    (0xfdd0, 0xfdd3),
    (0xff10, 0xff19),
    (0xff61, 0xff9f),
    (0xfffd, 0xffff),
    (0x1_0378, 0x1_037b),
    (0x1_d15e, 0x1_d172),
    (0x1_d7ce, 0x1_d7d7),
    (0x1_f600, 0x1_f610),
    (0x2_0000, 0x2_0003),
    (0xe_0080, 0xe_0083),
    (0x10_fffd, 0x10_ffff),
];
/// Sequences that a locale treats as one letter, and sequences that are not in the form FCD.
const SEQUENCES: &[&str] = &[
    "ch",
    "CH",
    "Ch",
    "ll",
    "aa",
    "AA",
    "dz",
    "dzs",
    "nj",
    "lj",
    "ss",
    "ß",
    "æ",
    "ij",
    "rr",
    "w",
    "a\u{301}\u{316}",
    "a\u{316}\u{301}",
    "\u{301}\u{316}",
    "\u{f71}\u{f72}",
    "\u{f73}",
    "\u{f81}",
    "o\u{31b}\u{323}",
    "\u{e40}\u{e01}",
    "\u{0}",
    "\u{34f}",
    "00",
    "009",
    "9",
    "10",
    "\u{ac00}\u{11a8}",
];

/// Returns a text of at most 8 pieces, and rarely a long one.
fn text(random: &mut Generator) -> String {
    let pieces = if random.one_in(40) { random.below(400) } else { random.below(8) };
    let mut text = String::new();
    while (text.chars().count() as u64) < pieces {
        match random.below(4) {
            0 => text.push_str(random.pick(SEQUENCES).unwrap()),
            _ => {
                let (first, last) = *random.pick(RANGES).unwrap();
                let code = first + random.below(u64::from(last - first) + 1) as u32;
                text.extend(char::from_u32(code));
            }
        }
    }
    text
}

/// Returns a text that differs little from another one, so that the first levels are often equal.
fn like(text: &str, random: &mut Generator) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = random.below(chars.len() as u64 + 1) as usize;
    match random.below(4) {
        0 => {
            chars.insert(at, *random.pick(&['\u{0}', '\u{ad}', '\u{316}', '\u{301}', ' ']).unwrap())
        }
        1 if at < chars.len() => drop(chars.remove(at)),
        2 if at + 1 < chars.len() => chars.swap(at, at + 1),
        _ => return text.to_uppercase(),
    }
    chars.into_iter().collect()
}

fn random_spec(locale: &str, random: &mut Generator) -> Option<Arc<Collation>> {
    let mut one_of = |words: &[&'static str]| *random.pick(words).unwrap();
    let case_first = one_of(&["off", "upper", "lower"]);
    let alternate = one_of(&["non-ignorable", "shifted"]);
    let max_variable = one_of(&["punct", "space"]);
    let spec = doc! {
        "locale": locale,
        "strength": (1 + random.below(5) as i32),
        "caseLevel": random.one_in(3),
        "caseFirst": case_first,
        "numericOrdering": random.one_in(3),
        "alternate": alternate,
        "maxVariable": max_variable,
        "normalization": random.one_in(2),
        "backwards": random.one_in(3),
    };
    Collation::parse(spec.as_doc()).ok().flatten()
}

/// Indexes, hashes and sorts use sort keys; filters and expressions use comparisons. Both must have
/// the same order for every locale and every option.
#[test]
fn sort_keys_are_in_the_order_of_comparisons() {
    let mut random = Generator::new(0x5eed);
    let key_of = |collation: &Collation, text: &str| {
        let mut key = Vec::new();
        collation.sort_key(text, &mut key);
        key
    };
    for (locale, variant) in locales::all() {
        let name = variant.map_or(locale.to_owned(), |v| format!("{locale}@collation={v}"));
        let specs: Vec<_> = (0..3).filter_map(|_| random_spec(&name, &mut random)).collect();
        for collation in specs {
            for _ in 0..40 {
                let one = text(&mut random);
                let other = match random.one_in(2) {
                    true => like(&one, &mut random),
                    false => text(&mut random),
                };
                let by_keys = key_of(&collation, &one).cmp(&key_of(&collation, &other));
                let compared = collation.compare(&one, &other);
                assert_eq!(compared, by_keys, "{one:?} {other:?} {collation:?}");
                let reverse = collation.compare(&other, &one).reverse();
                assert_eq!(compared, reverse, "{one:?} {other:?} {collation:?}");
                let as_long = collation.order.compare_long(&one, &other);
                assert_eq!(compared, as_long, "{one:?} {other:?} {collation:?}");
            }
        }
    }
}

/// For these the library's comparison differed from the order of its sort keys, so a filter found
/// other documents with an index than without one.
#[test]
fn a_shared_beginning_changes_no_order() {
    for (spec, one, other) in [
        (doc! { "locale": "en", "strength": 5 }, "\u{592}\u{356}", "\u{592}\0\u{356}"),
        (doc! { "locale": "en", "strength": 5 }, "\u{5f3}\u{5ac}", "\u{5f3}\u{5ac}\u{316}"),
        (
            doc! { "locale": "en", "strength": 2, "alternate": "shifted" },
            "\u{2059}d",
            "\u{2059}\0\u{301}d",
        ),
        (
            doc! { "locale": "en", "strength": 4, "alternate": "shifted" },
            "\u{2049}\u{f7e}H",
            "\u{2049}H",
        ),
        (doc! { "locale": "en", "strength": 3, "backwards": true }, "ọ갿", "ọ\u{34f}\u{316}갿"),
        (
            doc! { "locale": "en", "strength": 3, "caseLevel": true, "caseFirst": "upper" },
            "abcdefghijklmnopqrs",
            "ABCDEFGHIJKLMNOPQRS",
        ),
    ] {
        let collation = parse(spec);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        collation.sort_key(one, &mut left);
        collation.sort_key(other, &mut right);
        assert_eq!(collation.compare(one, other), left.cmp(&right), "{one:?} {collation:?}");
    }
}

/// A long string has the key that the library makes at once, and the same order.
#[test]
fn a_long_string_has_the_usual_key_and_order() {
    let collation = parse(doc! { "locale": "en", "strength": 5 });
    let text = "Wörter, 12 and \u{1f600} \0".repeat(3_000);
    let (mut made, mut plain) = (vec![7], vec![7]);
    collation.sort_key(&text, &mut made);
    collation.order.short_key(&text, &mut plain);
    assert!(made == plain);
    for (other, order) in [
        (text.clone(), Ordering::Equal),
        (format!("{text}a"), Ordering::Less),
        (text.to_uppercase(), Ordering::Less),
        (text.replace('\0', ""), Ordering::Less),
        ("Z".to_owned(), Ordering::Less),
        (String::new(), Ordering::Greater),
    ] {
        assert_eq!(collation.compare(&text, &other), order, "{:.20}", other);
        assert_eq!(collation.compare(&other, &text), order.reverse(), "{:.20}", other);
    }
}

/// Strings of characters that write nothing to the key before its end.
fn strings_without_primary_weights() -> [String; 3] {
    [
        "\u{1}".repeat((1 << 20) + 1),
        format!("a{}", "\u{301}\u{316}".repeat(1 << 19)),
        format!("{}b", "\u{915}\u{93c}".repeat(1 << 18)),
    ]
}

/// A string of megabytes has the key that the library makes at once, and the same order.
#[test]
fn a_key_from_its_own_thread_is_the_usual_one() {
    let specs = [
        doc! { "locale": "de" },
        doc! { "locale": "en", "strength": 2, "backwards": true },
        doc! { "locale": "en", "strength": 1 },
    ];
    for (spec, text) in specs.into_iter().zip(strings_without_primary_weights()) {
        let collation = parse(spec);
        let (mut made, mut plain) = (vec![7], vec![7]);
        collation.sort_key(&text, &mut made);
        collation.order.short_key(&marks::divided(&text), &mut plain);
        assert!(made == plain, "{:.4}", text);
        assert_eq!(collation.compare(&text, &format!("{text}z")), Ordering::Less);
    }
}

/// A regression test: an operation ended only with the key of such a string, 0.3 s late.
#[test]
fn an_operation_ends_within_a_string_without_primary_weights() {
    let collation = parse(doc! { "locale": "de" });
    let killed: Arc<dyn InterruptCheck> =
        Arc::new(|| Err(Error::new(ErrorCode::Interrupted, "killed")));
    for text in strings_without_primary_weights().map(|text| text.repeat(4)) {
        let made = interruptible(&killed, || {
            collation.sort_key(&text, &mut Vec::new());
            Ok(())
        });
        assert_eq!(made.unwrap_err().code(), ErrorCode::Interrupted, "{:.4}", text);
    }
}

/// Returns how often the interrupt is checked while `work` runs.
fn looks(work: impl FnOnce()) -> u64 {
    let looks = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&looks);
    let counting: Arc<dyn InterruptCheck> = Arc::new(move || {
        seen.fetch_add(1, Relaxed);
        Ok(())
    });
    interruptible(&counting, || {
        work();
        Ok(())
    })
    .unwrap();
    looks.load(Relaxed)
}

/// A list of ten strings of 60,000 digits took 8 seconds to sort without a check, because strings
/// below 64 KiB were not counted.
#[test]
fn each_comparison_of_strings_of_kilobytes_checks_the_interrupt() {
    let specs = [
        doc! { "locale": "en" },
        doc! { "locale": "en", "numericOrdering": true },
        doc! { "locale": "en", "alternate": "shifted" },
        doc! { "locale": "en", "strength": 5 },
        doc! { "locale": "en", "backwards": true },
        doc! { "locale": "fr_CA" },
        doc! { "locale": "en", "caseLevel": true, "caseFirst": "upper" },
    ];
    for spec in specs {
        let collation = parse(spec.clone());
        for part in [
            "word ",
            "1234567891",
            "0",
            "e\u{301}",
            "\u{301}\u{316}",
            "\u{1}",
            " ",
            "\u{f71}\u{f80}",
        ] {
            let text = part.repeat(2000 / part.len());
            let (a, b) = (format!("{text}a"), format!("{text}b"));
            let seen = looks(|| {
                for _ in 0..10 {
                    assert_eq!(collation.compare(&a, &b), Ordering::Less, "{spec:?} {part}");
                    collation.sort_key(&a, &mut Vec::new());
                }
            });
            assert!(seen >= 20, "{spec:?} {part:?}: {seen} looks");
        }
    }
}

/// Short strings are counted too, each by its bytes.
#[test]
fn comparisons_of_short_strings_are_counted() {
    let collation = parse(doc! { "locale": "en", "strength": 5 });
    let (a, b) = ("a".repeat(100), "b".repeat(100));
    let seen = looks(|| (0..1000).for_each(|_| assert!(collation.compare(&a, &b).is_lt())));
    assert!((5..100).contains(&seen), "{seen}");
}

/// A letter with 30,000 marks took seconds, without a check.
#[test]
fn long_sequences_of_marks_keep_their_order() {
    for spec in [doc! { "locale": "en" }, doc! { "locale": "en", "strength": 5 }] {
        let collation = parse(spec);
        let marks = "\u{f71}\u{f80}".repeat(5000);
        let [a, b, c] = ["a", "\u{fb2}", "b"].map(|first| format!("{first}{marks}"));
        for (left, right) in [(&a, &c), (&a, &b), (&c, &b)] {
            assert_eq!(collation.compare(left, right), Ordering::Less);
            assert_eq!(collation.compare(right, left), Ordering::Greater);
            let (mut left_key, mut right_key) = (Vec::new(), Vec::new());
            collation.sort_key(left, &mut left_key);
            collation.sort_key(right, &mut right_key);
            assert!(left_key < right_key);
        }
    }
}
