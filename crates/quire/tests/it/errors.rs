//! Errors: codes, labels, positions, and that a failed write changes nothing.

use crate::on_both_engines;
use quire::bson::{Document, RawDocumentBuf, doc};
use quire::error::{ErrorKind, WriteFailure};
use serde::{Deserialize, Serialize};

#[test]
fn commands_answer_with_codes() {
    on_both_engines(|client| {
        let db = client.database("test");
        let error = db.run_command(doc! { "nonsense": 1 }).run().unwrap_err();
        let ErrorKind::Command(answer) = &*error.kind else { panic!("{error:?}") };
        assert_eq!((answer.code, answer.code_name.as_str()), (59, "CommandNotFound"));
        assert!(error.to_string().contains("no such command: 'nonsense'"), "{error}");
        let error = db.collection::<Document>("c").find(doc! { "$bad": 1 }).run().unwrap_err();
        assert_eq!(error.code(), Some(2));
        assert_eq!(db.run_command(doc! {}).run().unwrap_err().code(), Some(59));
        let error = db.collection::<Document>("c").list_indexes().run().unwrap_err();
        assert_eq!(error.code(), Some(26));
        let error = client.database("a b").collection::<Document>("c").find(doc! {}).run();
        assert_eq!(error.unwrap_err().code(), Some(73));
    });
}

#[test]
fn writes_tell_which_document_failed() {
    on_both_engines(|client| {
        let c = client.database("test").collection::<Document>("c");
        c.insert_one(doc! { "_id": 3 }).run().unwrap();
        let error = c.insert_one(doc! { "_id": 3 }).run().unwrap_err();
        let ErrorKind::Write(WriteFailure::WriteError(write)) = &*error.kind else {
            panic!("{error:?}")
        };
        assert_eq!(write.code, 11000);
        assert!(error.is_duplicate_key());

        let documents: Vec<_> = (1..=5).map(|id| doc! { "_id": id }).collect();
        let error = c.insert_many(&documents).run().unwrap_err();
        let ErrorKind::InsertMany(many) = &*error.kind else { panic!("{error:?}") };
        let failed = many.write_errors.as_ref().unwrap();
        assert_eq!((failed.len(), failed[0].index, failed[0].code), (1, 2, 11000));
        assert_eq!(many.inserted_ids.len(), 2);
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 3);

        let error = c.insert_many(&documents).ordered(false).run().unwrap_err();
        let ErrorKind::InsertMany(many) = &*error.kind else { panic!("{error:?}") };
        let failed: Vec<_> = many.write_errors.iter().flatten().map(|error| error.index).collect();
        assert_eq!(failed, [0, 1, 2]);
        let mut inserted: Vec<_> = many.inserted_ids.keys().copied().collect();
        inserted.sort_unstable();
        assert_eq!(inserted, [3, 4]);
        let none: [Document; 0] = [];
        let error = c.insert_many(none).run().unwrap_err();
        assert!(matches!(&*error.kind, ErrorKind::InvalidArgument { .. }));
    });
}

#[test]
fn documents_must_fit_their_type() {
    #[derive(Debug, Serialize, Deserialize)]
    struct Counted {
        n: i32,
    }
    on_both_engines(|client| {
        let raw = client.database("test").collection::<Document>("c");
        raw.insert_many([doc! { "n": 1 }, doc! { "n": "one" }, doc! { "n": 2 }]).run().unwrap();
        let typed = raw.clone_with_type::<Counted>();
        let found: Vec<_> = typed.find(doc! {}).run().unwrap().collect();
        let [Ok(Counted { n: 1 }), Err(error), Ok(Counted { n: 2 })] = &found[..] else {
            panic!("{found:?}")
        };
        assert!(matches!(&*error.kind, ErrorKind::BsonDeserialization(_)), "{error:?}");
        let number = client.database("test").collection::<i32>("c");
        let error = number.insert_one(5).run().unwrap_err();
        assert!(matches!(&*error.kind, ErrorKind::BsonSerialization(_)), "{error:?}");
    });
}

#[test]
fn bad_bytes_are_refused() {
    on_both_engines(|client| {
        let c = client.database("test").collection::<RawDocumentBuf>("c");
        // An element of the type 0x7E, which does not exist.
        let bytes = vec![9, 0, 0, 0, 0x7E, b'a', 0, 0, 0];
        let document = RawDocumentBuf::from_bytes(bytes).unwrap();
        c.insert_one(document).run().unwrap_err();
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 0);
    });
}

/// A thread of a program has a stack of 2 MiB, a connection of the server twice as much: deep
/// nesting must not overflow it.
#[test]
fn deep_nesting_is_answered_on_a_small_stack() {
    on_both_engines(|client| {
        let c = client.database("test").collection::<Document>("c");
        let nested = |leaf: Document, name: &str, levels: usize| {
            (0..levels).fold(leaf, |inner, _| doc! { name: inner })
        };
        let run = || {
            let deep = nested(doc! { "x": 1 }, "a", 170);
            c.insert_one(deep.clone()).run().unwrap();
            // Read as bytes: bson's own reader takes 30 KB of stack for each level in a debug
            // build.
            let raw = c.clone_with_type::<RawDocumentBuf>();
            let found = raw.find_one(deep).run().unwrap().unwrap();
            assert!(found.as_bytes().len() > 170 * 8);
            let abs = nested(doc! { "$add": [1, 2] }, "$abs", 90);
            let sum = c.aggregate([doc! { "$project": { "x": abs } }]).run().unwrap();
            let sums: Vec<_> = sum.flatten().collect();
            assert_eq!(sums[0].get_i32("x").unwrap(), 3);
            let not = (0..90).fold(doc! { "x": 1 }, |inner, _| doc! { "$nor": [inner] });
            c.find(not).run().unwrap().count();
        };
        std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    });
}
