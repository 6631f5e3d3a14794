//! Geometry equals itself without an index: random points, lines and polygons, also at the poles and the
//! date line, asked by every predicate with a 2dsphere or 2d index and with none; and `$near` equals a sort
//! by distance of all documents.
//!
//! `QUIRE_GEO_SEEDS` sets the number of rounds, `QUIRE_GEO_SEED` the first one.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Client, Server, at, code};
use quire_document::{Array, ArrayBuf, DocBuf, Value, array, doc};
use quire_geometry::{Near, Stored};
use quire_mql::filter::geometries;
use quire_storage::rng::Rng;

/// The rounds of a run in CI.
const ROUNDS: u64 = 4;
const DOCUMENTS: i64 = 60;
const QUERIES: u64 = 25;

/// A place near one of a few centers, so that geometries meet each other.
fn place(random: &mut Rng) -> (f64, f64) {
    let centers = [(0.0, 0.0), (179.9, 10.0), (13.4, 52.5), (30.0, 89.0), (-70.0, -88.5)];
    let (x, y) = centers[random.below(centers.len() as u64) as usize];
    let width = [0.01, 1.0, 30.0][random.below(3) as usize];
    let shift = |random: &mut Rng| (random.below(2001) as f64 / 1000.0 - 1.0) * width;
    let (x, y): (f64, f64) = (x + shift(random), y + shift(random));
    ((x + 540.0).rem_euclid(360.0) - 180.0, y.clamp(-90.0, 90.0))
}

fn pair((x, y): (f64, f64)) -> ArrayBuf {
    array![x, y]
}

/// A ring around a place.
fn ring(random: &mut Rng) -> ArrayBuf {
    let (x, y) = place(random);
    let radius = [0.005, 0.5, 8.0][random.below(3) as usize];
    let corners = 3 + random.below(5);
    let corner = |number: u64| {
        let angle = std::f64::consts::TAU * number as f64 / corners as f64;
        let latitude = (y + radius * angle.sin()).clamp(-90.0, 90.0);
        let longitude = x + radius * angle.cos() / latitude.to_radians().cos().max(0.1);
        ((longitude + 540.0).rem_euclid(360.0) - 180.0, latitude)
    };
    let ring: Vec<ArrayBuf> = (0..=corners).map(|number| pair(corner(number % corners))).collect();
    ring.iter().collect()
}

fn geometry(random: &mut Rng) -> DocBuf {
    match random.below(5) {
        0 => doc! { "type": "LineString", "coordinates": &line(random) },
        1 => doc! { "type": "Polygon", "coordinates": &array![&ring(random)] },
        2 => doc! { "type": "MultiPoint", "coordinates": &line(random) },
        _ => doc! { "type": "Point", "coordinates": &pair(place(random)) },
    }
}

fn line(random: &mut Rng) -> ArrayBuf {
    let places: Vec<ArrayBuf> = (0..2 + random.below(3)).map(|_| pair(place(random))).collect();
    places.iter().collect()
}

fn document(random: &mut Rng, id: i64) -> DocBuf {
    let mut doc = doc! { "_id": id, "k": random.below(3) as i32, "xy": &pair(place(random)) };
    match random.below(8) {
        0 => {}
        1 => {
            doc.append("g", &array![&geometry(random), &geometry(random)]);
        }
        2 => {
            doc.append("g", &pair(place(random)));
        }
        _ => {
            doc.append("g", &geometry(random));
        }
    }
    doc
}

/// A collection with indexes of geometries, and the documents that the server took.
struct Round {
    client: Client,
    documents: BTreeMap<i64, DocBuf>,
    seed: u64,
}

impl Round {
    fn new(server: &Server, seed: u64) -> (Self, Rng) {
        let mut random = Rng::new(seed);
        let mut client = server.client(seed);
        client.run(doc! { "drop": "g", "$db": "test" });
        let keys = [doc! { "g": "2dsphere" }, doc! { "k": 1, "g": "2dsphere" }];
        let sphere = &keys[random.below(2) as usize];
        let indexes = array![
            &doc! { "key": sphere, "name": "sphere" },
            &doc! { "key": &doc! { "xy": "2d", "k": 1 }, "name": "plane" }
        ];
        client.works(doc! { "createIndexes": "g", "indexes": &indexes, "$db": "test" });
        let mut documents = BTreeMap::new();
        for id in 0..DOCUMENTS {
            let doc = document(&mut random, id);
            let insert = doc! { "insert": "g", "documents": [&doc], "$db": "test" };
            // A random ring can be no polygon: then the index refuses it.
            if client.run(insert).get("writeErrors").is_none() {
                documents.insert(id, doc);
            }
        }
        (Round { client, documents, seed }, random)
    }

    fn ids(&mut self, find: DocBuf) -> Vec<i64> {
        let reply = self.client.works(find);
        let batch = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
        let id =
            |row: Value<'_>| row.as_document().unwrap().get("_id").unwrap().exact_i64().unwrap();
        Array::iter(batch).map(id).collect()
    }

    fn check_predicate(&mut self, random: &mut Rng) {
        let center = array![&pair(place(random)), [0.001, 0.1, 1.0][random.below(3) as usize]];
        let corners = array![&pair(place(random)), &pair(place(random))];
        let polygon = doc! { "$geometry": &doc! { "type": "Polygon", "coordinates": &array![&ring(random)] } };
        let condition = match random.below(6) {
            0 => doc! { "g": &doc! { "$geoWithin": &doc! { "$centerSphere": &center } } },
            1 => doc! { "xy": &doc! { "$geoWithin": &doc! { "$centerSphere": &center } } },
            2 => doc! { "xy": &doc! { "$geoWithin": &doc! { "$box": &corners } } },
            3 => doc! { "g": &doc! { "$geoWithin": &polygon } },
            4 => doc! { "xy": &doc! { "$geoWithin": &doc! { "$polygon": &ring(random) } } },
            _ => doc! { "g": &doc! { "$geoIntersects": &doc! { "$geometry": &geometry(random) } } },
        };
        let mut filter = condition;
        if random.one_in(3) {
            filter.append("k", random.below(3) as i32);
        }
        let find = doc! { "find": "g", "filter": &filter, "batchSize": 1000, "$db": "test" };
        let mut natural = find.clone();
        natural.append("hint", &doc! { "$natural": 1 });
        if self.client.run(natural.clone()).get("ok").and_then(|ok| ok.to_f64()) == Some(0.0) {
            // A random ring can be no polygon.
            return;
        }
        let expected = self.ids(natural);
        let mut found = self.ids(find);
        found.sort_unstable();
        assert_eq!(found, expected, "seed {}: {filter:?}", self.seed);
    }

    fn check_near(&mut self, random: &mut Rng) {
        let (path, name, operand) = match random.below(3) {
            0 => ("xy", "$near", doc! { "$near": &pair(place(random)) }),
            1 => ("xy", "$nearSphere", doc! { "$nearSphere": &pair(place(random)) }),
            _ => {
                let point = doc! { "type": "Point", "coordinates": &pair(place(random)) };
                ("g", "$near", doc! { "$near": &doc! { "$geometry": &point } })
            }
        };
        let near = Near::parse(name, operand.get(name).unwrap(), [None, None]).unwrap();
        let limit = 1 + random.below(20);
        let k = random.one_in(3).then(|| random.below(3) as i32);
        let mut filter = doc! { path: &operand };
        if let Some(k) = k {
            filter.append("k", k);
        }
        let distance = |doc: &DocBuf| {
            let stored: Vec<Stored> = doc.get(path).map(geometries).unwrap_or_default();
            let all = stored.iter().filter_map(|stored| near.distance(stored));
            all.min_by(f64::total_cmp)
        };
        let passes = |doc: &DocBuf| {
            k.is_none_or(|k| doc.get("k").unwrap().exact_i64() == Some(i64::from(k)))
        };
        let mut expected: Vec<(f64, i64)> = self
            .documents
            .iter()
            .filter(|(_, doc)| passes(doc))
            .filter_map(|(id, doc)| Some((distance(doc)?, *id)))
            .collect();
        expected.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let distances: BTreeMap<i64, f64> = expected.iter().map(|(far, id)| (*id, *far)).collect();
        expected.truncate(limit as usize);
        let find = doc! {
            "find": "g", "filter": &filter, "limit": limit as i32, "batchSize": 1000, "$db": "test"
        };
        let expected: Vec<i64> = expected.into_iter().map(|(_, id)| id).collect();
        let found = self.ids(find);
        // A 2d index computes with cosines: what is equally far up to their rounding may change places.
        let close = |one: &i64, other: &i64| {
            path == "xy" && (distances[one] - distances[other]).abs() < 1e-7
        };
        let agree = found.len() == expected.len()
            && found.iter().collect::<BTreeSet<_>>().len() == found.len()
            && found.iter().zip(&expected).all(|(one, other)| one == other || close(one, other));
        assert!(agree, "seed {}: {filter:?}: {found:?}, not {expected:?}", self.seed);
    }

    /// Changes a document, as the index must notice.
    fn change(&mut self, random: &mut Rng) {
        let id = random.below(DOCUMENTS as u64) as i64;
        let doc = document(random, id);
        let update = doc! { "q": &doc! { "_id": id }, "u": &doc, "upsert": true };
        let reply = self.client.run(doc! { "update": "g", "updates": [&update], "$db": "test" });
        if reply.get("writeErrors").is_none() {
            self.documents.insert(id, doc);
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn indexes_change_no_answer_and_near_is_a_sort_by_distance() {
    let server = Server::new();
    let first = setting("QUIRE_GEO_SEED", 1);
    for seed in first..first + setting("QUIRE_GEO_SEEDS", ROUNDS) {
        let (mut round, mut random) = Round::new(&server, seed);
        for _ in 0..QUERIES {
            round.check_predicate(&mut random);
            round.check_near(&mut random);
            round.change(&mut random);
        }
        let validated = round.client.works(doc! { "validate": "g", "full": true, "$db": "test" });
        assert_eq!(
            validated.get("valid").and_then(|valid| valid.as_bool()),
            Some(true),
            "{validated:?}"
        );
    }
}

#[test]
fn a_search_near_a_point_needs_an_index_and_gives_distances() {
    let server = Server::new();
    let mut client = server.client(1);
    let point = |x: f64| doc! { "type": "Point", "coordinates": &array![x, 0.0] };
    let documents: Vec<DocBuf> =
        (0..200).map(|id| doc! { "_id": id, "p": &point(f64::from(id) / 10.0) }).collect();
    let documents: ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": "n", "documents": &documents, "$db": "test" });
    let near = doc! { "p": &doc! { "$near": &doc! { "$geometry": &point(3.0) } } };
    let find = doc! { "find": "n", "filter": &near, "limit": 3, "$db": "test" };
    let refused = client.run(find.clone());
    assert_eq!(code(&refused), 291);
    // parse-server and others make an index on the path that the message names.
    let text = at(&refused, "errmsg").unwrap().as_str().unwrap();
    let tree = "ns=test.nTree: GEONEAR  field=p maxdist=1.79769e+308 isNearSphere=0\n";
    assert!(
        text.contains(tree) && text.ends_with("unable to find index for $geoNear query"),
        "{text}"
    );
    let index = doc! { "key": &doc! { "p": "2dsphere" }, "name": "p" };
    client.works(doc! { "createIndexes": "n", "indexes": [&index], "$db": "test" });
    let reply = client.works(find);
    let batch = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
    let ids: Vec<i64> = batch
        .iter()
        .map(|row| row.as_document().unwrap().get("_id").unwrap().exact_i64().unwrap())
        .collect();
    // The others are at equal distances but for rounding.
    assert!(ids == [30, 29, 31] || ids == [30, 31, 29], "{ids:?}");
    let stage = doc! { "near": &point(3.0), "distanceField": "at.d", "includeLocs": "at.p", "maxDistance": 12_000 };
    let pipeline = array![&doc! { "$geoNear": &stage }, &doc! { "$limit": 2 }];
    let reply =
        client.works(doc! { "aggregate": "n", "pipeline": &pipeline, "cursor": {}, "$db": "test" });
    let batch = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
    let second = batch.get(1).unwrap().as_document().unwrap();
    let at_it = second.get("at").unwrap().as_document().unwrap();
    let meters = at_it.get("d").unwrap().to_f64().unwrap();
    assert!((meters - 11_131.9).abs() < 1.0, "{meters}");
    assert!(at_it.contains("p"));
}
