//! Collations: an index scan, a sort and pairwise comparisons give the same order, and filters find
//! the same documents with and without an index, for random strings and specifications.

use super::*;
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, doc};
use quire_executor::open;
use quire_mql::Collation;
use quire_mql::collation::{AskedCollation, VERSION};
use quire_mql::context::Collator;
use quire_planner::{FindRequest, Hint};

const NAME: &str = "db.c";
const LOCALES: &[&str] =
    &["en", "fr", "fr_CA", "da", "de@collation=phonebook", "th", "zh", "lt", "tr", "sv", "ja"];
/// Texts that differ in one level only, or have several characters that form one letter in a
/// locale.
const PARTS: &[&str] = &[
    "a",
    "A",
    "á",
    "a\u{301}",
    "aa",
    "å",
    "b",
    "B",
    "ch",
    "c",
    "CH",
    "é",
    "e",
    "i",
    "I",
    "ı",
    "İ",
    "ß",
    "ss",
    "ø",
    "o",
    "ö",
    "10",
    "9",
    "09",
    " ",
    "-",
    "_",
    "y",
    "z",
    "龍",
    "一",
    "ア",
    "あ",
    "ｱ",
    "น",
    "เก",
    "\u{0}",
    "\u{1}",
    "\u{ad}",
    "🦀",
    "",
    "\u{316}\u{301}",
    "\u{34f}\u{301}",
    "\u{f73}",
    "\u{378}",
    "\u{ac00}\u{11a8}",
    "\u{10fffe}",
    "the quick brown fox jumps over the lazy dog",
    "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG",
];

fn text(random: &mut Generator) -> String {
    (0..random.below(5)).map(|_| *random.pick(PARTS).unwrap()).collect()
}

/// Returns a random specification; `None` for a combination that is refused.
fn spec(random: &mut Generator) -> Option<Arc<Collation>> {
    let mut one_of = |words: &[&'static str]| *random.pick(words).unwrap();
    let (locale, case) = (one_of(LOCALES), one_of(&["off", "upper", "lower"]));
    let alternate = one_of(&["shifted", "non-ignorable"]);
    let variable = one_of(&["punct", "space"]);
    let spec = doc! {
        "locale": locale,
        "strength": (1 + random.below(5) as i32),
        "caseLevel": random.one_in(3),
        "caseFirst": case,
        "numericOrdering": random.one_in(3),
        "alternate": alternate,
        "maxVariable": variable,
        "normalization": random.one_in(2),
        "backwards": random.one_in(3),
        "version": VERSION,
    };
    Collation::parse(spec.as_doc()).ok().flatten()
}

fn found(store: &Arc<Store>, request: FindRequest) -> Vec<(i32, String)> {
    let views = FreshViews::new(store).unwrap();
    let mut execution = open(&request, &views, params()).unwrap();
    let rows = drain(store, &mut execution, 7).into_iter();
    rows.map(|row| match (row.get("_id"), row.get("s")) {
        (Some(Value::Int32(id)), Some(Value::String(text))) => (id, text.to_owned()),
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn an_index_a_sort_and_comparisons_agree() {
    let mut random = Generator::new(18);
    for round in 0..60 {
        let Some(collation) = spec(&mut random) else { continue };
        let store = store();
        let texts: Vec<String> = (0..40).map(|_| text(&mut random)).collect();
        let docs: Vec<DocBuf> = texts
            .iter()
            .enumerate()
            .map(|(id, text)| doc! { "_id": (id as i32), "s": text.as_str() })
            .collect();
        insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
        let key = doc! { "s": 1, "_id": 1 };
        let index = doc! { "key": &key, "name": "s", "collation": &collation.to_document() };
        create_indexes(&store, NAME, std::iter::once(index.as_doc())).unwrap();
        let request = |filter: DocBuf, hint: Hint| FindRequest {
            namespace: NAME.to_owned(),
            filter,
            sort: key.clone(),
            hint: Some(hint),
            collation: AskedCollation::Own(Some(Arc::clone(&collation))),
            ..FindRequest::default()
        };
        let (by_index, by_scan) = (Hint::Name("s".to_owned()), Hint::Natural(true));
        let walked = found(&store, request(DocBuf::new(), by_index.clone()));
        let sorted = found(&store, request(DocBuf::new(), by_scan.clone()));
        assert_eq!(walked, sorted, "round {round}: {collation:?}");
        for pair in walked.windows(2) {
            let order = collation.compare(&pair[0].1, &pair[1].1).then(pair[0].0.cmp(&pair[1].0));
            assert!(order.is_lt(), "round {round}: {pair:?} {collation:?}");
        }
        for _ in 0..10 {
            let (one, other) = (text(&mut random), text(&mut random));
            let condition = match random.below(4) {
                0 => ValueBuf::new(one.as_str()),
                1 => ValueBuf::new(&doc! { "$gt": one.as_str() }),
                2 => ValueBuf::new(&doc! { "$lte": one.as_str(), "$ne": other.as_str() }),
                _ => ValueBuf::new(&doc! { "$in": [one.as_str(), other.as_str(), "a"] }),
            };
            let filter = doc! { "s": &condition };
            assert_eq!(
                found(&store, request(filter.clone(), by_index.clone())),
                found(&store, request(filter.clone(), by_scan.clone())),
                "round {round}: {filter:?} {collation:?}"
            );
        }
    }
}

#[test]
fn an_index_of_another_collation_serves_no_strings() {
    let store = store();
    let docs = [
        doc! { "_id": 1, "s": "b" },
        doc! { "_id": 2, "s": "A" },
        doc! { "_id": 3, "s": "a" },
        doc! { "_id": 4, "s": "B" },
    ];
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    let english = doc! { "locale": "en", "strength": 2 };
    let index = doc! { "key": { "s": 1 }, "name": "s", "collation": &english };
    create_indexes(&store, NAME, std::iter::once(index.as_doc())).unwrap();
    let ids = |filter: DocBuf, projection: DocBuf, collation: AskedCollation| -> Vec<DocBuf> {
        let request = FindRequest {
            namespace: NAME.to_owned(),
            filter,
            projection,
            sort: doc! { "s": 1 },
            hint: Some(Hint::Name("s".to_owned())),
            collation,
            ..FindRequest::default()
        };
        let views = FreshViews::new(&store).unwrap();
        let mut execution = open(&request, &views, params()).unwrap();
        drain(&store, &mut execution, 3)
    };
    let own = || AskedCollation::parse(english.as_doc()).unwrap();
    let only_text = doc! { "s": 1, "_id": 0 };
    // The keys do not contain the strings: the results come from the documents.
    let given = ids(doc! { "s": { "$gte": "a" } }, only_text.clone(), own());
    let given: Vec<DocBuf> = given.into_iter().collect();
    assert_eq!(given, [doc! { "s": "A" }, doc! { "s": "a" }, doc! { "s": "b" }, doc! { "s": "B" }]);
    let simple = ids(doc! { "s": { "$gte": "a" } }, only_text, AskedCollation::Default);
    assert_eq!(simple, [doc! { "s": "a" }, doc! { "s": "b" }]);
    let prefix = doc! { "s": { "$regex": "^A" } };
    assert_eq!(ids(prefix, doc! { "_id": 1 }, own()), [doc! { "_id": 2 }]);
}

/// In 8.2, according to `functional-tests`, a `$expr` that is a `$in` of a path in a list of
/// constants compares bytes; any other `$expr` uses the collation.
#[test]
fn an_expr_in_of_a_path_and_constants_compares_bytes() {
    let store = store();
    let docs =
        [doc! { "_id": 1, "s": "apple", "list": ["Apple"] }, doc! { "_id": 2, "s": "Apple" }];
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    let english = doc! { "locale": "en", "strength": 2 };
    let ids = |expression: DocBuf, collation: &DocBuf| -> Vec<i32> {
        let request = FindRequest {
            namespace: NAME.to_owned(),
            filter: doc! { "$expr": &expression },
            projection: doc! { "s": 1 },
            sort: doc! { "_id": 1 },
            collation: AskedCollation::parse(collation.as_doc()).unwrap(),
            ..FindRequest::default()
        };
        found(&store, request).into_iter().map(|(id, _)| id).collect()
    };
    let in_constants = || doc! { "$in": ["$s", ["Apple", "Pear"]] };
    assert_eq!(ids(in_constants(), &english), [2]);
    assert_eq!(ids(in_constants(), &DocBuf::new()), [2]);
    assert_eq!(ids(doc! { "$in": ["APPLE", ["$s"]] }, &english), [1, 2]);
    assert_eq!(ids(doc! { "$in": ["$s", ["APPLE", "$s"]] }, &english), [1, 2]);
    assert_eq!(ids(doc! { "$eq": ["$s", "APPLE"] }, &english), [1, 2]);
    assert_eq!(ids(doc! { "$and": [&in_constants()] }, &english), [1, 2]);
}
