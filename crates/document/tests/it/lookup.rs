//! The search for a field by name, and the count of fields, give the same result as reading every
//! field.

use quire_document::testing::Generator;
use quire_document::{Doc, DocBuf, Type, doc};

/// Returns the element with the name after reading each element.
fn by_looking<'a>(doc: Doc<'a>, name: &str) -> Option<(u8, &'a [u8])> {
    let element = doc.iter().find(|element| element.key_bytes() == name.as_bytes())?;
    Some((element.kind().byte(), element.value_bytes()))
}

fn agrees(doc: Doc<'_>, name: &str) {
    let found = doc.find(name).map(|element| (element.kind().byte(), element.value_bytes()));
    assert_eq!(found, by_looking(doc, name), "{name:?} in {doc:?}");
    let named = doc.iter().filter(|element| element.key_bytes() == name.as_bytes()).count();
    for kind in [Type::Timestamp, Type::Regex, Type::Int32] {
        let has_kind = doc.iter().any(|element| element.kind() == kind);
        assert_eq!(doc.tally(name, kind), (named, has_kind), "{name:?}, {kind:?} in {doc:?}");
    }
}

const NAMES: [&str; 16] = [
    "",
    "a",
    "b",
    "ab",
    "abc",
    "a\0",
    "\0",
    "seven77",
    "eight888",
    "eight888\0",
    "eight8888",
    "nine99999",
    "nine99999 and more of it",
    "nine99999 and more",
    "\u{e4}",
    "_id",
];

#[test]
fn fields_of_any_length_and_type() {
    let mut generator = Generator::new(31);
    for _ in 0..5_000 {
        let doc = generator.document();
        let own: Vec<String> = doc.as_doc().iter().map(|field| field.key().to_owned()).collect();
        for name in own.iter().map(String::as_str).chain(NAMES) {
            agrees(doc.as_doc(), name);
        }
    }
}

#[test]
fn names_that_begin_alike_and_values_that_look_like_names() {
    let docs: [DocBuf; 7] = [
        doc! { "nine99999 and more of it": 1, "eight88": 2, "eight8888": 3, "eight888": 4, "nine99999": 5 },
        doc! { "eight888": "8", "nine99999 and": 1, "nine99999 and more": 2, "": 3, "a": 4 },
        doc! { "a": "b", "ab": 1, "abc": true, "seven77": 7, "seven778": 8, "eight888": 9, "": 2 },
        doc! { "nine99999": 1, "a": false },
        doc! { "x": 97, "b": 0x62_0000 },
        doc! { "a": 1, "a": 2 },
        doc! {},
    ];
    for doc in &docs {
        NAMES.iter().for_each(|name| agrees(doc.as_doc(), name));
    }
}

#[test]
fn damaged_documents() {
    let mut generator = Generator::new(32);
    for _ in 0..20_000 {
        let mut bytes = generator.document().into_bytes();
        let at = generator.below(bytes.len() as u64) as usize;
        bytes[at] = generator.bits() as u8;
        let cut = generator.below(bytes.len() as u64 + 1) as usize;
        for bytes in [&bytes[..], &bytes[..cut]] {
            NAMES.iter().for_each(|name| agrees(Doc::from_valid_bytes(bytes), name));
        }
    }
}
