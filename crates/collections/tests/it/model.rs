//! Random writes and index builds compared with a map of the expected documents.

use super::*;
use quire_storage::rng::Rng;
use std::collections::BTreeMap;

pub fn random_doc(dice: &mut Rng, id: i32) -> DocBuf {
    let mut doc = doc! { "_id": id };
    match dice.below(5) {
        0 => doc.append("a", dice.below(8) as i32),
        1 => doc.append("a", &quire_document::array![dice.below(4) as i32, dice.below(4) as f64]),
        2 => doc.append("a", &"long ".repeat(dice.below(400) as usize)),
        3 => doc.append("a", &doc! { "b": [dice.below(3) as i32, { "c": 1 }] }),
        _ => &mut doc,
    };
    if dice.below(3) > 0 {
        doc.append("u", dice.below(60) as i32);
    }
    doc.append("pad", &"p".repeat(dice.below(20) as usize));
    doc
}

fn round(seed: u64) {
    let mut dice = Rng::new(seed);
    let store = store();
    collection(&store, "m.c");
    let mut model: BTreeMap<i32, Vec<u8>> = BTreeMap::new();
    let specs = [
        doc! { "key": { "a": 1 }, "name": "a" },
        doc! { "key": { "a.b": -1, "u": 1 }, "name": "ab" },
        doc! { "key": { "u": 1 }, "name": "u", "unique": true, "sparse": true },
        doc! { "key": { "a.b.c": 1, "_id": 1 }, "name": "abc", "unique": true },
        doc! { "key": { "u": -1 }, "name": "p", "partialFilterExpression": { "a": { "$gte": 2 } } },
    ];
    #[allow(clippy::collapsible_match)] // A refused write must not fall into the next arm.
    for step in 0..300 {
        let id = dice.below(40) as i32;
        let doc = random_doc(&mut dice, id);
        match dice.below(10) {
            0..=4 => {
                if insert(&store, "m.c", &doc).is_ok() {
                    assert!(model.insert(id, doc.as_bytes().to_vec()).is_none());
                }
            }
            5..=7 if model.contains_key(&id) => {
                if update(&store, "m.c", id, doc.as_doc()).is_ok() {
                    model.insert(id, doc.into_bytes());
                }
            }
            8 if model.contains_key(&id) => {
                delete(&store, "m.c", id).unwrap();
                model.remove(&id);
            }
            _ if step % 20 == 0 => {
                let spec = &specs[dice.below(5) as usize];
                let _ = index(&store, "m.c", spec);
            }
            _ => {}
        }
    }
    let mut found: Vec<Vec<u8>> = all(&store, "m.c").into_iter().map(DocBuf::into_bytes).collect();
    found.sort();
    let mut expected: Vec<Vec<u8>> = model.into_values().collect();
    expected.sort();
    assert_eq!(found, expected, "seed {seed}");
    let report = check(&store, false).unwrap();
    assert!(report.is_clean(), "seed {seed}: {:#?}", report.findings);
}

#[test]
fn random_writes_agree_with_the_model() {
    (1..=40).for_each(round);
}
