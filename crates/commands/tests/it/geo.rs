//! Geometry equals itself without an index: random points, lines and polygons, also at the poles and the
//! date line, asked by every predicate with a 2dsphere or 2d index and with none; and `$near` equals a sort
//! by distance of all documents.
//!
//! `QUIRE_GEO_SEEDS` sets the number of rounds, `QUIRE_GEO_SEED` the first one.

use std::collections::BTreeMap;

use crate::{Client, Server, at, code};
use quire_document::{Array, ArrayBuf, DocBuf, Value, ValueBuf, array, doc};
use quire_geometry::{Near, Stored};
use quire_mql::filter::geometries;
use quire_storage::rng::Rng;

/// The rounds of a run in CI.
const ROUNDS: u64 = 4;
const DOCUMENTS: i64 = 60;
const QUERIES: u64 = 25;

/// A place near one of a few centers, so that geometries meet each other; some are on the date line or
/// a pole.
fn place(random: &mut Rng) -> (f64, f64) {
    let centers = [(0.0, 0.0), (179.9, 10.0), (13.4, 52.5), (30.0, 89.0), (-70.0, -88.5)];
    let (x, y) = centers[random.below(centers.len() as u64) as usize];
    let width = [0.0, 0.01, 1.0, 30.0][random.below(4) as usize];
    let shift = |random: &mut Rng| (random.below(2001) as f64 / 1000.0 - 1.0) * width;
    let (x, y): (f64, f64) = (x + shift(random), y + shift(random));
    let (x, y) = ((x + 540.0).rem_euclid(360.0) - 180.0, y.clamp(-90.0, 90.0));
    match random.below(40) {
        0 => (180.0, y),
        1 => (-180.0, y),
        2 => (x, 90.0),
        3 => (x, -90.0),
        _ => (x, y),
    }
}

fn pair((x, y): (f64, f64)) -> ArrayBuf {
    array![x, y]
}

/// A ring around a place, in one of the two directions.
fn ring_around(random: &mut Rng, (x, y): (f64, f64), radius: f64) -> ArrayBuf {
    let corners = 3 + random.below(12);
    let turned = if random.one_in(2) { 1.0 } else { -1.0 };
    let corner = |number: u64| {
        let angle = turned * std::f64::consts::TAU * number as f64 / corners as f64;
        let latitude = (y + radius * angle.sin()).clamp(-90.0, 90.0);
        let longitude = x + radius * angle.cos() / latitude.to_radians().cos().max(0.1);
        ((longitude + 540.0).rem_euclid(360.0) - 180.0, latitude)
    };
    let ring: Vec<ArrayBuf> = (0..=corners).map(|number| pair(corner(number % corners))).collect();
    ring.iter().collect()
}

fn ring(random: &mut Rng) -> ArrayBuf {
    let radius = [0.000_01, 0.005, 0.5, 8.0, 70.0][random.below(5) as usize];
    let center = place(random);
    ring_around(random, center, radius)
}

/// The rings of a polygon, at times with a hole.
fn polygon(random: &mut Rng) -> ArrayBuf {
    if !random.one_in(3) {
        return array![&ring(random)];
    }
    let (center, radius) = (place(random), [0.01, 3.0, 20.0][random.below(3) as usize]);
    array![&ring_around(random, center, radius), &ring_around(random, center, radius / 5.0)]
}

fn of_kind(kind: &str, coordinates: &ArrayBuf) -> DocBuf {
    doc! { "type": kind, "coordinates": coordinates }
}

fn geometry(random: &mut Rng) -> DocBuf {
    match random.below(9) {
        0 => of_kind("LineString", &line(random)),
        1 | 2 => of_kind("Polygon", &polygon(random)),
        3 => of_kind("MultiPoint", &line(random)),
        4 => of_kind("MultiPolygon", &array![&polygon(random), &polygon(random)]),
        5 => of_kind("MultiLineString", &array![&line(random), &line(random)]),
        6 => {
            let members = array![&of_kind("Point", &pair(place(random))), &geometry(random)];
            doc! { "type": "GeometryCollection", "geometries": &members }
        }
        _ => of_kind("Point", &pair(place(random))),
    }
}

/// A line of some points, of which neighbours may be equal.
fn line(random: &mut Rng) -> ArrayBuf {
    let first = place(random);
    let next = |random: &mut Rng| if random.one_in(6) { first } else { place(random) };
    let places: Vec<ArrayBuf> = (0..2 + random.below(3)).map(|_| pair(next(random))).collect();
    places.iter().collect()
}

/// The value of an ordinary field of an index: mostly a number, else an array.
fn number(random: &mut Rng) -> ValueBuf {
    let one = random.below(3) as i32;
    match random.below(8) {
        0 => ValueBuf::new(&array![one, random.below(3) as i32]),
        1 => ValueBuf::new(&array![&array![one, 1]]),
        2 => ValueBuf::new(&array![]),
        _ => ValueBuf::new(one),
    }
}

fn document(random: &mut Rng, id: i64) -> DocBuf {
    let mut doc = doc! { "_id": id, "xy": &pair(place(random)), "m": random.below(4) as i32 };
    if !random.one_in(8) {
        doc.append("k", number(random).as_value());
    }
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
    let at = |random: &mut Rng| doc! { "g": &geometry(random), "k": random.below(3) as i32 };
    if random.one_in(2) {
        doc.append("at", &array![&at(random), &at(random)]);
    }
    doc
}

/// A condition on an ordinary field of an index.
fn condition(random: &mut Rng) -> DocBuf {
    let one = random.below(3) as i32;
    match random.below(8) {
        0 => doc! { "k": &doc! { "$gte": 1, "$lt": 3 } },
        1 => doc! { "k": &doc! { "$in": &array![one, Value::Null] } },
        2 => doc! { "k": &array![one, 1] },
        3 => doc! { "k": Value::Null },
        4 => doc! { "m": &doc! { "$ne": one } },
        5 => doc! { "m": one, "k": &doc! { "$lte": one } },
        _ => doc! { "k": one },
    }
}

/// A collection with indexes of geometries, and the documents that the server took.
struct Round {
    client: Client,
    documents: BTreeMap<i64, DocBuf>,
    /// The ids in the order of insertion, in which `$near` gives what is equally far.
    inserted: Vec<i64>,
    /// True if an index begins with the geometries, as `$near` alone needs.
    has_near: bool,
    seed: u64,
    /// The number of the queries so far that an index answered.
    scans: usize,
}

/// Returns the condition that two conditions hold.
fn both(one: &DocBuf, other: &DocBuf) -> DocBuf {
    doc! { "$and": &array![one, other] }
}

impl Round {
    fn new(server: &Server, seed: u64) -> (Self, Rng) {
        let mut random = Rng::new(seed);
        let mut client = server.client(seed);
        client.run(doc! { "drop": "g", "$db": "test" });
        let keys = [
            doc! { "g": "2dsphere" },
            doc! { "k": 1, "g": "2dsphere" },
            doc! { "g": "2dsphere", "k": 1 },
            doc! { "k": -1, "g": "2dsphere", "m": 1 },
            doc! { "g": "2dsphere", "at.g": "2dsphere" },
        ];
        let sphere = &keys[random.below(keys.len() as u64) as usize];
        // `$near` without conditions needs the index that begins with the geometry.
        let indexes = array![
            &doc! { "key": sphere, "name": "sphere" },
            &doc! { "key": &doc! { "xy": "2d", "k": 1 }, "name": "plane" },
            &doc! { "key": &doc! { "at.k": 1, "at.g": "2dsphere" }, "name": "nested" }
        ];
        client.works(doc! { "createIndexes": "g", "indexes": &indexes, "$db": "test" });
        let has_near = sphere.as_doc().first().is_some_and(|first| first.key() == "g");
        let (mut documents, mut inserted) = (BTreeMap::new(), Vec::new());
        for id in 0..DOCUMENTS {
            let doc = document(&mut random, id);
            let insert = doc! { "insert": "g", "documents": [&doc], "$db": "test" };
            // A random ring can be no polygon: then the index refuses it.
            if client.run(insert).get("writeErrors").is_none() {
                documents.insert(id, doc);
                inserted.push(id);
            }
        }
        (Round { client, documents, inserted, has_near, seed, scans: 0 }, random)
    }

    fn ids(&mut self, find: DocBuf) -> Vec<i64> {
        let reply = self.client.works(find);
        let batch = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
        let id =
            |row: Value<'_>| row.as_document().unwrap().get("_id").unwrap().exact_i64().unwrap();
        Array::iter(batch).map(id).collect()
    }

    fn check_predicate(&mut self, random: &mut Rng) {
        let mut filter = self.predicate(random);
        match random.below(6) {
            0 | 1 => filter = both(&filter, &condition(random)),
            2 => filter = both(&filter, &self.predicate(random)),
            3 => {
                let branches = array![&filter, &both(&self.predicate(random), &condition(random))];
                filter = doc! { "$or": &branches };
            }
            4 => filter = both(&filter, &doc! { "at.k": random.below(3) as i32 }),
            _ => {}
        }
        let find = doc! { "find": "g", "filter": &filter, "batchSize": 1000, "$db": "test" };
        let mut natural = find.clone();
        natural.append("hint", &doc! { "$natural": 1 });
        let whole = self.client.run(natural.clone());
        if whole.get("ok").and_then(|ok| ok.to_f64()) == Some(0.0) {
            // A random ring can be no polygon.
            assert_eq!(code(&whole), 2, "seed {}: {filter:?}", self.seed);
            assert_eq!(code(&self.client.run(find)), 2, "seed {}: {filter:?}", self.seed);
            return;
        }
        let mut expected = self.ids(natural);
        expected.sort_unstable();
        let mut found = self.ids(find.clone());
        found.sort_unstable();
        assert_eq!(found, expected, "seed {}: {filter:?}", self.seed);
        let explain = doc! { "explain": &find, "verbosity": "queryPlanner", "$db": "test" };
        let plan = format!("{:?}", self.client.works(explain));
        self.scans += usize::from(plan.contains("IXSCAN"));
    }

    /// A predicate of geometry.
    fn predicate(&mut self, random: &mut Rng) -> DocBuf {
        let radius = [0.0, 0.001, 0.1, 1.0, 1.6, 3.0, 3.2][random.below(7) as usize];
        let center = array![&pair(place(random)), radius];
        let corners = array![&pair(place(random)), &pair(place(random))];
        let of_polygon = of_kind("Polygon", &polygon(random));
        let mut big = of_polygon.clone();
        let strict = doc! { "name": "urn:x-mongodb:crs:strictwinding:EPSG:4326" };
        big.append("crs", &doc! { "type": "name", "properties": &strict });
        let path = if random.one_in(4) { "at.g" } else { "g" };
        let test = match random.below(9) {
            0 | 1 => doc! { "$geoWithin": &doc! { "$centerSphere": &center } },
            2 => doc! { "$geoWithin": &doc! { "$geometry": &of_polygon } },
            3 => doc! { "$geoWithin": &doc! { "$geometry": &big } },
            4 => doc! { "$geoIntersects": &doc! { "$geometry": &big } },
            5 => {
                return doc! { "xy": &doc! { "$geoWithin": &doc! { "$centerSphere": &center } } };
            }
            6 => return doc! { "xy": &doc! { "$geoWithin": &doc! { "$box": &corners } } },
            7 => return doc! { "xy": &doc! { "$geoWithin": &doc! { "$polygon": &ring(random) } } },
            _ => doc! { "$geoIntersects": &doc! { "$geometry": &geometry(random) } },
        };
        doc! { path: &test }
    }

    fn check_near(&mut self, random: &mut Rng) {
        let (path, name, operand) = match random.below(3) {
            0 => ("xy", "$near", doc! { "$near": &pair(place(random)) }),
            1 => ("xy", "$nearSphere", doc! { "$nearSphere": &pair(place(random)) }),
            _ if !self.has_near => return,
            _ => {
                let point = doc! { "type": "Point", "coordinates": &pair(place(random)) };
                ("g", "$near", doc! { "$near": &doc! { "$geometry": &point } })
            }
        };
        let near = Near::parse(name, operand.get(name).unwrap(), [None, None]).unwrap();
        let limit = 1 + random.below(20);
        let m = random.one_in(3).then(|| random.below(4) as i32);
        let mut filter = doc! { path: &operand };
        if let Some(m) = m {
            filter.append("m", m);
        }
        let distance = |doc: &DocBuf| {
            let stored = doc.get(path).map(|value| geometries(value, &|_| Ok(())).unwrap());
            let stored: Vec<Stored> = stored.unwrap_or_default();
            let all =
                stored.iter().filter_map(|stored| near.distance(stored, &|_| Ok(())).unwrap());
            all.min_by(f64::total_cmp)
        };
        let passes = |doc: &DocBuf| {
            m.is_none_or(|m| doc.get("m").unwrap().exact_i64() == Some(i64::from(m)))
        };
        let mut expected: Vec<(f64, i64)> = self
            .documents
            .iter()
            .filter(|(_, doc)| passes(doc))
            .filter_map(|(id, doc)| Some((distance(doc)?, *id)))
            .collect();
        let place = |id: i64| self.inserted.iter().position(|inserted| *inserted == id);
        expected.sort_by(|a, b| a.0.total_cmp(&b.0).then(place(a.1).cmp(&place(b.1))));
        expected.truncate(limit as usize);
        let find = doc! {
            "find": "g", "filter": &filter, "limit": limit as i32, "batchSize": 1000, "$db": "test"
        };
        let expected: Vec<i64> = expected.into_iter().map(|(_, id)| id).collect();
        let found = self.ids(find);
        assert_eq!(found, expected, "seed {}: {filter:?}", self.seed);
    }

    /// Changes a document, as the index must notice.
    fn change(&mut self, random: &mut Rng) {
        let id = random.below(DOCUMENTS as u64) as i64;
        let doc = document(random, id);
        let update = doc! { "q": &doc! { "_id": id }, "u": &doc, "upsert": true };
        let reply = self.client.run(doc! { "update": "g", "updates": [&update], "$db": "test" });
        if reply.get("writeErrors").is_none() && self.documents.insert(id, doc).is_none() {
            self.inserted.push(id);
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
        assert!(round.scans > 0, "seed {seed}: no index answered a predicate");
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
