//! Validation accepts the output of builders, and everything that it accepts can be read to its
//! end.

use quire_document::limits::Limits;
use quire_document::testing::Generator;
use quire_document::{Doc, Value, validate};

fn walk(doc: Doc<'_>) -> usize {
    let mut size = 0;
    for element in doc.iter() {
        size += 2 + element.key_bytes().len() + element.value_bytes().len();
        match element.value() {
            Value::Document(inner) => assert_eq!(walk(inner), inner.element_bytes().len()),
            Value::Array(inner) => {
                assert_eq!(walk(inner.as_doc()), inner.as_doc().element_bytes().len());
            }
            _ => {}
        }
    }
    size
}

#[test]
fn written_documents_are_valid() {
    let mut generator = Generator::new(11);
    for _ in 0..10_000 {
        let doc = generator.document();
        validate(doc.as_bytes(), &Limits::WIRE).expect("what the builder wrote");
        assert_eq!(walk(doc.as_doc()), doc.as_doc().element_bytes().len());
    }
}

#[test]
fn damaged_documents_are_refused_or_whole() {
    let mut generator = Generator::new(12);
    for _ in 0..40_000 {
        let mut bytes = generator.document().into_bytes();
        for _ in 0..=generator.below(2) {
            let at = generator.below(bytes.len() as u64) as usize;
            bytes[at] = generator.bits() as u8;
        }
        if let Ok(doc) = validate(&bytes, &Limits::WIRE) {
            assert_eq!(walk(doc), doc.element_bytes().len());
        }
        // Reading must not panic even without validation.
        Doc::from_valid_bytes(&bytes).iter().for_each(|element| {
            std::hint::black_box(element.value());
        });
    }
}
