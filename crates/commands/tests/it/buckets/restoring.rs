//! Buckets of MongoDB that are inserted into `system.buckets`, as `mongorestore` does: each becomes the points that it holds.

use super::{all, bucket_count, close, closing_server, create, insert, sorted};
use crate::{Client, Server, at, code, number, text};
use quire_collections::check;
use quire_document::{ArrayBuf, Binary, Doc, DocBuf, ObjectId, Value, ValueBuf, doc};

const RESTORED: &str = "system.buckets.s";

/// Returns a column of BSON with these values, each in full; `None` is a missing one.
fn column(values: &[Option<Value<'_>>]) -> ValueBuf {
    let mut bytes = Vec::new();
    for value in values {
        match value {
            Some(value) => {
                let doc = doc! { "": *value };
                bytes.extend_from_slice(doc.as_doc().element_bytes());
            }
            // A block with one number, all of whose bits are set.
            None => bytes.extend_from_slice(&[0x80, 0xFE, 255, 255, 255, 255, 255, 255, 255]),
        }
    }
    bytes.push(0);
    ValueBuf::new(Value::Binary(Binary { subtype: 7, bytes: &bytes }))
}

fn id(number: u8) -> ObjectId {
    ObjectId([number; 12])
}

fn control(version: i32, count: Option<i32>) -> DocBuf {
    DocBuf::build(|control| {
        control.append("version", version);
        control.append("min", &doc! { "t": Value::Date(0) });
        control.append("max", &doc! { "t": Value::Date(9000) });
        control.append_some("count", count.map(Value::Int32));
    })
}

/// Returns a bucket of version 1 with two points, in which one lacks a field.
fn plain(number: u8) -> DocBuf {
    doc! {
        "_id": id(number), "control": &control(1, None), "meta": { "b": 1, "a": 2 },
        "data": {
            "t": { "0": Value::Date(2000), "1": Value::Date(1000) },
            "v": { "1": "text" }, "_id": { "0": 1, "1": 2 },
        },
    }
}

/// Returns the same bucket compressed.
fn packed(number: u8, version: i32) -> DocBuf {
    let times = column(&[Some(Value::Date(2000)), Some(Value::Date(1000))]);
    let values = column(&[None, Some(Value::String("text"))]);
    let ids = column(&[Some(Value::Int32(1)), Some(Value::Int32(2))]);
    doc! {
        "_id": id(number), "control": &control(version, Some(2)), "meta": { "b": 1, "a": 2 },
        "data": { "t": &times, "v": &values, "_id": &ids },
    }
}

fn restore(client: &mut Client, buckets: &[DocBuf], ordered: bool) -> DocBuf {
    let list: ArrayBuf = buckets.iter().collect();
    client.run(doc! {
        "insert": RESTORED, "documents": &list, "ordered": ordered,
        "bypassDocumentValidation": true, "$db": "test",
    })
}

fn points(client: &mut Client) -> Vec<DocBuf> {
    all(client, doc! { "find": "s" }, 100)
}

fn expected() -> Vec<DocBuf> {
    let meta = doc! { "a": 2, "b": 1 };
    vec![
        doc! { "t": Value::Date(1000), "m": &meta, "v": "text", "_id": 2 },
        doc! { "t": Value::Date(2000), "m": &meta, "_id": 1 },
    ]
}

#[test]
fn a_bucket_of_each_version_becomes_its_points() {
    for bucket in [plain(1), packed(1, 2), packed(1, 3)] {
        let server = closing_server();
        let mut client = server.client(1);
        create(&mut client, "s");
        let reply = restore(&mut client, std::slice::from_ref(&bucket), true);
        assert_eq!(number(&reply, "n"), Some(1), "{reply:?}");
        assert_eq!(points(&mut client), expected());
        // They are points as others are: they are closed, and can be read as buckets.
        close(&mut client, "s");
        assert_eq!(points(&mut client), expected());
        let counted = client.works(doc! { "count": RESTORED, "$db": "test" });
        assert_eq!(number(&counted, "n"), Some(1));
        assert!(check(server.0.store(), false).unwrap().findings.is_empty());
        // What is known of a restored bucket: it does not come twice.
        let again = restore(&mut client, &[bucket], true);
        assert_eq!(number(&again, "writeErrors.0.code"), Some(11000), "{again:?}");
        let message = text(&again, "writeErrors.0.errmsg").unwrap();
        let shown = "E11000 duplicate key error collection: test.system.buckets.s dup key: { _id: \
                     ObjectId('010101010101010101010101') }";
        assert_eq!(message, shown);
        assert_eq!(points(&mut client).len(), 2);
        // With the collection that is forgotten.
        client.works(doc! { "drop": RESTORED, "$db": "test" });
        create(&mut client, "s");
        assert_eq!(number(&restore(&mut client, &[packed(1, 2)], true), "n"), Some(1));
    }
}

#[test]
fn nothing_of_a_malformed_bucket_is_written() {
    let server = Server::new();
    let mut client = server.client(1);
    create(&mut client, "s");
    let with = |name: &str, value: &dyn Fn() -> ValueBuf| {
        let bucket = packed(9, 2);
        DocBuf::build(|changed| {
            for (field, own) in bucket.as_doc().fields().filter(|(field, _)| *field != name) {
                changed.append(field, own);
            }
            changed.append(name, &value());
        })
    };
    let data = |data: DocBuf| with("data", &|| ValueBuf::from(data.clone()));
    let times = column(&[Some(Value::Date(1)), Some(Value::Date(2))]);
    let wrong = [
        (doc! { "_id": 1, "x": 1 }, 121),
        (with("_id", &|| ValueBuf::new(1)), 121),
        (with("more", &|| ValueBuf::new(1)), 121),
        (with("control", &|| ValueBuf::from(doc! { "version": 2 })), 121),
        (with("control", &|| ValueBuf::from(control(2, Some(0)))), 121),
        (with("control", &|| ValueBuf::from(control(7, Some(2)))), 2),
        (with("control", &|| ValueBuf::from(control(2, Some(3)))), 6_067_601),
        (data(doc! {}), 2),
        (data(doc! { "t": { "0": Value::Date(1) } }), 2),
        (data(doc! { "t": &times, "v": &column(&[None]) }), 6_067_601),
        (data(doc! { "t": &times, "v": Value::Binary(Binary { subtype: 7, bytes: &[1] }) }), 378),
        // The second point is wrong, the first was good.
        (data(doc! { "t": &times, "_id": &column(&[None, Some(Value::Undefined)]) }), 53),
    ];
    let buckets: Vec<DocBuf> = wrong.iter().map(|(bucket, _)| bucket.clone()).collect();
    let reply = restore(&mut client, &buckets, false);
    assert_eq!(number(&reply, "n"), Some(0), "{reply:?}");
    for (at, (bucket, expected)) in wrong.iter().enumerate() {
        let found = number(&reply, &format!("writeErrors.{at}.code"));
        assert_eq!(found, Some(*expected), "{bucket:?} {reply:?}");
    }
    assert!(points(&mut client).is_empty());
    let counts = client.works(doc! { "count": "s", "$db": "test" });
    assert_eq!(number(&counts, "n"), Some(0));
    // The others of the command are restored, up to the first error or all.
    let some = [packed(1, 2), doc! { "_id": 1 }, packed(2, 2)];
    assert_eq!(number(&restore(&mut client, &some, true), "n"), Some(1));
    assert_eq!(number(&restore(&mut client, &some[1..], false), "n"), Some(1));
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
    let missing = client.run(doc! {
        "insert": "system.buckets.x", "documents": [{ "_id": 1 }], "$db": "test",
    });
    assert_eq!(number(&missing, "writeErrors.0.code"), Some(20), "{missing:?}");
}

#[test]
fn a_retried_insert_restores_once() {
    let server = Server::new();
    let mut client = server.client(1);
    create(&mut client, "s");
    let session = Value::Binary(Binary { subtype: 4, bytes: &[5; 16] });
    let command = doc! {
        "insert": RESTORED, "documents": [&packed(1, 2), &packed(2, 2)],
        "lsid": { "id": session }, "txnNumber": 1_i64, "$db": "test",
    };
    for _ in 0..2 {
        let reply = client.works(command.clone());
        assert_eq!(number(&reply, "n"), Some(2), "{reply:?}");
        assert_eq!(points(&mut client).len(), 4);
    }
}

#[test]
fn the_buckets_of_one_server_restore_into_another() {
    let (from, to) = (closing_server(), closing_server());
    let (mut source, mut target) = (from.client(1), to.client(1));
    create(&mut source, "s");
    // Fields of many types, of which some are missing, and a type that changes.
    let point = |number: i32| {
        DocBuf::build(|point| {
            point.append("_id", number).append("t", Value::Date(i64::from(number) * 700));
            point.append("m", &doc! { "s": number % 3 });
            match number % 4 {
                0 => point.append("v", number),
                1 => point.append("v", "text").append("w", f64::from(number) / 8.0),
                2 => point.append("list", &doc! { "a": [number, "b"] }),
                _ => point,
            };
        })
    };
    let made: Vec<DocBuf> = (0..300).map(point).collect();
    insert(&mut source, "s", &made[..250]);
    assert!(close(&mut source, "s") > 0);
    insert(&mut source, "s", &made[250..]);
    let buckets = all(&mut source, doc! { "find": RESTORED }, 100);
    create(&mut target, "s");
    let reply = restore(&mut target, &buckets, false);
    assert_eq!(number(&reply, "n"), Some(buckets.len() as i64), "{reply:?}");
    let found = sorted(all(&mut target, doc! { "find": "s" }, 100));
    assert_eq!(found, sorted(all(&mut source, doc! { "find": "s" }, 100)));
    close(&mut target, "s");
    assert!(bucket_count(&mut target, "s") > 0);
    assert_eq!(sorted(all(&mut target, doc! { "find": RESTORED }, 100)), sorted(buckets));
}

#[test]
fn buckets_are_listed_read_and_refused_as_a_collection() {
    let server = Server::new();
    let mut client = server.client(1);
    create(&mut client, "s");
    restore(&mut client, &[plain(1)], true);
    let listed = client.works(doc! {
        "listCollections": 1, "filter": { "name": RESTORED }, "$db": "test",
    });
    let row = |path: &str| {
        let value = at(&listed, &format!("cursor.firstBatch.0.{path}"));
        value.map(ValueBuf::new)
    };
    assert_eq!(row("type"), Some(ValueBuf::new("collection")));
    assert_eq!(row("options.clusteredIndex"), Some(ValueBuf::new(true)));
    assert_eq!(row("options.timeseries.metaField"), Some(ValueBuf::new("m")));
    let of_time = "options.validator.$jsonSchema.properties.control.properties.min.required.0";
    assert_eq!(row(of_time), Some(ValueBuf::new("t")));
    assert!(row("info.uuid").is_some() && row("idIndex").is_none());
    let distinct = client.works(doc! { "distinct": RESTORED, "key": "meta.a", "$db": "test" });
    assert_eq!(number(&distinct, "values.0"), Some(2));
    for explained in [
        doc! { "find": RESTORED, "filter": { "meta.a": 2 } },
        doc! { "count": RESTORED },
        doc! { "distinct": RESTORED, "key": "meta" },
        doc! { "aggregate": RESTORED, "pipeline": [{ "$match": { "meta.a": 2 } }], "cursor": {} },
    ] {
        let shown = client.works(doc! {
            "explain": &explained, "verbosity": "executionStats", "$db": "test",
        });
        let series = text(&shown, "stages.0.$_internalPackBuckets.of");
        assert_eq!(series, Some("s"), "{shown:?}");
    }
    let indexes = client.works(doc! { "listIndexes": RESTORED, "$db": "test" });
    let key = at(&indexes, "cursor.firstBatch.0.key").and_then(|key| key.as_document());
    let expected = doc! { "meta": 1, "control.min.t": 1, "control.max.t": 1 };
    assert_eq!(key.map(Doc::to_owned), Some(expected));
    let update = doc! { "q": {}, "u": { "$set": { "meta": 1 } } };
    let updated = client.run(doc! { "update": RESTORED, "updates": [&update], "$db": "test" });
    assert_eq!(number(&updated, "writeErrors.0.code"), Some(115), "{updated:?}");
    let modified = client.run(doc! {
        "findAndModify": RESTORED, "query": {}, "remove": true, "$db": "test",
    });
    assert_eq!(code(&modified), 115, "{modified:?}");
    let mixed = |name: &str, flag: bool| {
        doc! { "collMod": name, "timeseriesBucketsMayHaveMixedSchemaData": flag, "$db": "test" }
    };
    client.works(mixed("s", true));
    assert_eq!(code(&client.run(mixed("s", false))), 72);
    client.works(doc! { "create": "plain", "$db": "test" });
    assert_eq!(code(&client.run(mixed("plain", true))), 72);
    let catalog = client.works(doc! {
        "aggregate": RESTORED, "pipeline": [{ "$listCatalog": {} }], "cursor": {}, "$db": "test",
    });
    let flag = at(&catalog, "cursor.firstBatch.0.md.timeseriesBucketsMayHaveMixedSchemaData");
    assert_eq!(flag.and_then(|flag| flag.as_bool()), Some(true), "{catalog:?}");
    let hashes = client.works(doc! { "dbHash": 1, "$db": "test" });
    let hashes = at(&hashes, "collections").and_then(|hashes| hashes.as_document()).unwrap();
    assert!(hashes.contains(RESTORED) && !hashes.contains("s"));
    let cloned = client.run(doc! {
        "cloneCollectionAsCapped": RESTORED, "toCollection": "c", "size": 4096, "$db": "test",
    });
    assert_eq!(code(&cloned), 20);
    let fusion =
        doc! { "$rankFusion": { "input": { "pipelines": { "a": [{ "$sort": { "b": 1 } }] } } } };
    let fused = client.run(doc! {
        "aggregate": RESTORED, "pipeline": [&fusion], "cursor": {}, "$db": "test",
    });
    assert_eq!(code(&fused), 10_557_301);
    // MongoDB's oplog creates a time-series collection by these options of its buckets.
    let mut created = doc! { "create": "system.buckets.again" };
    let options = row("options").unwrap();
    created.extend(|command| {
        command.append_all(options.as_value().as_document().unwrap()).append("$db", "test");
    });
    client.works(created);
    let listed = client.works(doc! {
        "listCollections": 1, "filter": { "name": "again" }, "$db": "test",
    });
    assert_eq!(text(&listed, "cursor.firstBatch.0.type"), Some("timeseries"));
    let mut object = doc! { "create": "system.buckets.third" };
    object.extend(|object| {
        object.append_all(options.as_value().as_document().unwrap());
    });
    let uuid = Value::Binary(Binary { subtype: 4, bytes: &[9; 16] });
    let entry = doc! { "op": "c", "ns": "test.$cmd", "ui": uuid, "o": &object };
    assert_eq!(number(&apply(&mut client, &[entry]), "applied"), Some(1));
    let listed = client.works(doc! {
        "listCollections": 1, "filter": { "name": "third" }, "$db": "test",
    });
    assert_eq!(text(&listed, "cursor.firstBatch.0.type"), Some("timeseries"));
    client.works(doc! { "drop": RESTORED, "$db": "test" });
    assert_eq!(code(&client.run(doc! { "listIndexes": RESTORED, "$db": "test" })), 26);
    assert_eq!(code(&client.run(doc! { "listIndexes": "s", "$db": "test" })), 26);
}

#[test]
fn a_delete_of_buckets_deletes_their_points() {
    let server = closing_server();
    let mut client = server.client(1);
    create(&mut client, "s");
    let point = |number: i32, meta: Option<i32>| {
        DocBuf::build(|point| {
            point.append("_id", number).append("t", Value::Date(i64::from(number) * 1000));
            point.append_some("m", meta.map(Value::Int32));
        })
    };
    // Two buckets of each source; times at which the buckets of several sources meet.
    let made = (0..20).flat_map(|number| [point(number, Some(1)), point(number, None)]);
    let made: Vec<DocBuf> = made.collect();
    insert(&mut client, "s", &made);
    close(&mut client, "s");
    insert(&mut client, "s", &[point(5, Some(2)), point(6, Some(2))]);
    let session = Value::Binary(Binary { subtype: 4, bytes: &[6; 16] });
    let mut delete = |filter: DocBuf, limit: i32, again: Option<i64>| {
        let statement = doc! { "q": &filter, "limit": limit };
        let mut command = doc! { "delete": RESTORED, "deletes": [&statement] };
        if let Some(number) = again {
            command.append("lsid", &doc! { "id": session }).append("txnNumber", number);
        }
        command.append("$db", "test");
        let reply = client.works(command);
        let left = all(&mut client, doc! { "find": "s" }, 100);
        (number(&reply, "n"), left.len())
    };
    assert_eq!(delete(doc! { "meta": 3 }, 0, None), (Some(0), 42));
    assert_eq!(delete(doc! { "meta": 2 }, 0, None), (Some(1), 40));
    let first = doc! { "control.min.t": Value::Date(0) };
    for _ in 0..2 {
        assert_eq!(delete(first.clone(), 1, Some(1)), (Some(1), 30));
    }
    assert_eq!(delete(first, 0, None), (Some(1), 20));
    assert_eq!(delete(doc! { "meta": { "$exists": false } }, 0, None), (Some(1), 10));
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
}

/// The `_id` was the place of a bucket in the read, so a new source gave it to another bucket.
#[test]
fn a_bucket_keeps_its_id_while_others_come() {
    let server = Server::new();
    let mut client = server.client(1);
    let point = |id: i32, meta: i32| doc! { "_id": id, "t": Value::Date(1000), "m": meta };
    let ids = |client: &mut Client| -> Vec<(i32, ObjectId)> {
        let buckets = all(client, doc! { "find": RESTORED }, 100);
        let of = |bucket: &DocBuf| match (bucket.get("meta"), bucket.get("_id")) {
            (Some(Value::Int32(meta)), Some(Value::ObjectId(id))) => (meta, id),
            other => panic!("{other:?}"),
        };
        buckets.iter().map(of).collect()
    };
    create(&mut client, "s");
    insert(&mut client, "s", &[point(1, 5), point(2, 7)]);
    let before = ids(&mut client);
    insert(&mut client, "s", &[point(3, 1), point(4, 6)]);
    let after = ids(&mut client);
    assert_eq!(after.len(), 4);
    assert!(before.iter().all(|bucket| after.contains(bucket)), "{before:?} {after:?}");
    let (_, id) = before[0];
    let delete = |hint: bool| {
        let statement = DocBuf::build(|statement| {
            statement.append("q", &doc! { "_id": id }).append("limit", 1);
            if hint {
                statement.append("hint", "m_1_t_1");
            }
        });
        doc! { "delete": RESTORED, "deletes": [&statement], "$db": "test" }
    };
    assert_eq!(number(&client.run(delete(true)), "writeErrors.0.code"), Some(2));
    assert_eq!(number(&client.works(delete(false)), "n"), Some(1));
    let left: Vec<i32> = ids(&mut client).into_iter().map(|(meta, _)| meta).collect();
    assert_eq!(left, [1, 6, 7]);
}

fn apply(client: &mut Client, entries: &[DocBuf]) -> DocBuf {
    let list: ArrayBuf = entries.iter().collect();
    client.run(doc! { "applyOps": &list, "$db": "admin" })
}

#[test]
fn entries_of_an_oplog_add_points_to_a_restored_bucket_once() {
    let server = Server::new();
    let mut client = server.client(1);
    create(&mut client, "s");
    restore(&mut client, &[plain(1)], true);
    let namespace = format!("test.{RESTORED}");
    let update = |diff: DocBuf| {
        doc! {
            "op": "u", "ns": &*namespace, "o2": { "_id": id(1) }, "o": { "$v": 2, "diff": &diff },
        }
    };
    let entries = [
        // A point that the bucket has.
        update(doc! { "sdata": { "st": { "i": { "1": Value::Date(1000) } } } }),
        update(doc! {
            "scontrol": { "smax": { "u": { "t": Value::Date(3000) } } },
            "sdata": {
                "st": { "i": { "2": Value::Date(3000) } }, "s_id": { "i": { "2": 3 } },
                "i": { "new": { "2": 5 } },
            },
        }),
        doc! { "op": "i", "ns": &*namespace, "o": &packed(2, 2) },
    ];
    let mut wanted = expected();
    wanted.push(doc! {
        "t": Value::Date(3000), "m": { "a": 2, "b": 1 }, "_id": 3, "new": 5,
    });
    wanted.extend(expected());
    for _ in 0..2 {
        let reply = apply(&mut client, &entries);
        assert_eq!(number(&reply, "applied"), Some(3), "{reply:?}");
        assert_eq!(sorted(points(&mut client)), sorted(wanted.clone()));
    }
    for (refused, expected) in [
        (update(doc! { "sdata": { "sv": { "u": { "1": "other" } } } }), 115),
        (update(doc! { "sdata": { "sv": { "b": 1 } } }), 115),
        (update(doc! { "d": { "meta": false } }), 115),
        (update(doc! { "sdata": { "st": { "i": { "9": Value::Date(1) } } } }), 2),
        (doc! { "op": "d", "ns": &*namespace, "o": { "_id": id(1) } }, 115),
        (doc! { "op": "i", "ns": &*namespace, "o": { "_id": id(9), "diff": {} } }, 121),
        (
            doc! {
                "op": "u", "ns": &*namespace, "o2": { "_id": id(7) },
                "o": { "$v": 2, "diff": {} },
            },
            8,
        ),
    ] {
        let reply = apply(&mut client, std::slice::from_ref(&refused));
        assert_eq!(code(&reply), expected, "{refused:?} {reply:?}");
    }
    assert_eq!(points(&mut client).len(), wanted.len());
    // A bucket that is closed is replaced by a compressed one with the same points.
    let closed = doc! {
        "op": "u", "ns": &*namespace, "o2": { "_id": id(2) }, "o": &packed(2, 2),
    };
    assert_eq!(number(&apply(&mut client, &[closed]), "applied"), Some(1));
    assert_eq!(points(&mut client).len(), wanted.len());
}
