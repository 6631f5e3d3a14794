//! The plants: for each rule a problem, and a near miss that no rule may report.

use super::world::{DAYS, Did, NOW_MS, World, id, index, shape};
use quire_advisor::workload::Kind;
use quire_document::{ArrayBuf, DocBuf, Value, ValueKey, array, doc};

/// Plants the problem of a rule, or its near miss if `near`.
type Plant = fn(&mut World, bool);

/// The rules with their plants.
pub const PLANTS: &[(&str, Plant)] = &[
    ("A1", growing_array),
    ("A2", many_collections),
    ("A3", unused_index),
    ("A3P", redundant_index),
    ("A4", bloated),
    ("A5", separated),
    ("A6", pattern),
    ("A7", skip),
    ("A8", names),
    ("A9", types),
    ("A10", dates),
    ("A11", dead_key),
    ("A11Q", unknown_path),
    ("A12", orphans),
    ("A12C", drift),
    ("A13", unindexed),
    ("A14", link_table),
    ("A15", no_validator),
    ("I1", scan),
    ("N1", negation),
    ("P5", subset),
    ("P6", cold),
    ("P7", totals),
    ("P8", counter),
    ("P9", measurements),
    ("P10", outliers),
    ("P11", attributes),
    ("P12", union),
    ("P13", versions),
    ("P15", tree),
    ("P17", expired),
    ("P18", natural_key),
];

fn numbers(count: u64) -> ArrayBuf {
    let elements: Vec<DocBuf> =
        (0..count).map(|at| doc! { "n": at as i32, "text": "a remark of some length" }).collect();
    elements.iter().collect()
}

fn growing_array(world: &mut World, near: bool) {
    let (parents, each) = (world.parents.clone(), 1 + world.below(2));
    let (documents, _) = &world.data.0[&parents];
    let count = documents.len() as u64;
    world.change(&parents, |at, document, random| {
        let age = u64::from(DAYS) * (count - at as u64) / count;
        let length = if near { 180 + random.below(60) } else { age * each + random.below(9) };
        document.append("remarks", &numbers(length));
    });
    let mut push = shape("update", &parents);
    push.append("update", &doc! { "$push": { "remarks": "?object" } });
    world.write(Kind::Update, &parents, push, 3_000);
}

fn many_collections(world: &mut World, near: bool) {
    for month in 0..if near { 5 } else { 14 } {
        let name = format!("log_{}_{:02}", 2023 + month / 12, 1 + month % 12);
        let documents = (0..30).map(|at| doc! { "_id": at, "text": "went well", "rank": at % 3 });
        world.collection(&name, documents.collect(), vec![]);
    }
}

fn unused_index(world: &mut World, near: bool) {
    let parents = world.parents.clone();
    world.index(&parents, index("level", 1), 0);
    if near {
        // It was created the day before yesterday.
        let uses = &mut world.data.0.get_mut(&parents).unwrap().1.uses;
        uses.last_mut().unwrap().seconds = 2.0 * 86_400.0;
    }
}

fn redundant_index(world: &mut World, near: bool) {
    let mut spec = index("status", 1);
    if near {
        spec.append("partialFilterExpression", &doc! { "total": { "$gt": 9_000 } });
    }
    let children = world.children.clone();
    world.index(&children, spec, 700);
}

fn bloated(world: &mut World, near: bool) {
    let goods = world.goods.clone();
    let size = if near { 90_000 } else { 230_000 + world.below(60_000) as usize };
    world.change(&goods, |_, document, _| {
        document.append("manual", "words ".repeat(size / 6).as_str());
    });
}

fn separated(world: &mut World, near: bool) {
    let (parents, children) = (world.parents.clone(), world.children.clone());
    let reference = world.reference.clone();
    let count = if near { 400 } else { 120_000 };
    if world.below(2) == 0 {
        // The page of a parent shows its children, which nothing else reads.
        world.forget(&children, |one| !one.kind.writes());
        let join = doc! { "$lookup": {
            "from": children.as_str(), "localField": "_id", "foreignField": reference.as_str(), "as": "all",
        } };
        let pipeline = array![{ "$match": { "_id": { "$eq": "?objectId" } } }, &join];
        world.aggregate(&parents, pipeline, Did::served(count, 1));
        return;
    }
    let join = doc! { "$lookup": {
        "from": parents.as_str(), "localField": reference.as_str(), "foreignField": "_id", "as": "p",
    } };
    let pipeline = array![{ "$match": { "status": { "$eq": "?string" } } }, &join];
    world.aggregate(&children, pipeline, Did::served(count, 20));
}

fn pattern(world: &mut World, near: bool) {
    let parents = world.parents.clone();
    let did = if near { Did::served(4_000, 3) } else { Did::scanned(4_000, 150, 2) };
    world.find(&parents, doc! { "name": { "$regex": "?string", "$options": "?string" } }, did);
    if near {
        world.index(&parents, index("name", 1), 90);
    }
}

fn skip(world: &mut World, near: bool) {
    let children = world.children.clone();
    let depth = if near { 60 } else { 4_000 + world.below(3_000) };
    let mut page = shape("find", &children);
    page.append("filter", &doc! { "status": { "$eq": "?string" } });
    page.append("sort", &doc! { "created": -1 });
    page.append("skip", "?number").append("limit", "?number");
    world.shape(
        Kind::Find,
        &children,
        page,
        Did { count: 3_000, examined: depth + 20, returned: 20, scans: false },
    );
    let measures = &mut world.shapes.last_mut().unwrap().measures;
    (0..100).for_each(|_| measures.skip.note(depth));
}

fn names(world: &mut World, near: bool) {
    let parents = world.parents.clone();
    world.change(&parents, |_, document, random| {
        let days = DocBuf::build(|out| {
            for day in 0..if near { 6 } else { 60 } {
                if near || random.one_in(6) {
                    let name = if near {
                        format!("kind{}", ["a", "b", "c", "d", "e", "f"][day])
                    } else {
                        format!("2025-{:02}-{:02}", 1 + day / 28, 1 + day % 28)
                    };
                    out.append(&name, random.below(9) as i32);
                }
            }
        });
        document.append("visits", &days);
    });
}

fn types(world: &mut World, near: bool) {
    let children = world.children.clone();
    let every = if near { 400 } else { 7 + world.below(10) as usize };
    world.change(&children, |at, document, _| {
        match at % every == 3 {
            true => document.append("weight", "12.5"),
            false => document.append("weight", 3.25 + at as f64),
        };
    });
    world.index(&children, index("weight", 1), 60);
}

fn dates(world: &mut World, near: bool) {
    let goods = world.goods.clone();
    world.change(&goods, |at, document, _| {
        let text = match near {
            true => format!("2024-{}-{at}", ["A", "B", "C"][at % 3]),
            false => format!("2024-{:02}-{:02} 10:0{}:00", 1 + at % 12, 1 + at % 28, at % 10),
        };
        document.append("added", text.as_str());
    });
}

/// Gives a few documents the field `remark`.
fn with_rare_field(world: &mut World, collection: &str) {
    world.change(collection, |at, document, _| {
        if at % 30 == 0 {
            document.append("remark", format!("remark {at}").as_str());
        }
    });
}

fn dead_key(world: &mut World, near: bool) {
    let children = world.children.clone();
    if near {
        with_rare_field(world, &children);
    }
    world.index(&children, index(if near { "remark" } else { "statsu" }, 1), 12);
}

fn unknown_path(world: &mut World, near: bool) {
    let children = world.children.clone();
    if near {
        with_rare_field(world, &children);
        world.find(&children, doc! { "remark": { "$eq": "?string" } }, Did::served(2_000, 1));
        world.index(&children, index("remark", 1), 12);
    } else {
        let filter = doc! { "statuss": { "$eq": "?string" } };
        world.find(&children, filter, Did::scanned(2_000, 560, 0));
    }
}

fn orphans(world: &mut World, near: bool) {
    let (children, reference) = (world.children.clone(), world.reference.clone());
    world.change(&children, |at, document, _| {
        if at % 9 == 4 {
            let lost = if near { Value::Null } else { Value::ObjectId(id(9, at as u32 % 14, 14)) };
            *document = replaced(document, &reference, lost);
        }
    });
}

/// Returns the document with another value of a field.
fn replaced(document: &DocBuf, field: &str, value: Value<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for (name, old) in document.as_doc().fields() {
            out.append(name, if name == field { value } else { old });
        }
    })
}

fn drift(world: &mut World, near: bool) {
    let (parents, children) = (world.parents.clone(), world.children.clone());
    let reference = world.reference.clone();
    let names: Vec<(ValueKey, String)> = world.data.0[&parents]
        .0
        .iter()
        .map(|parent| {
            let name = parent.get("name").and_then(|name| name.as_str()).unwrap().to_owned();
            match parent.get("_id") {
                Some(id) => (ValueKey::new(id), name),
                None => panic!("no id"),
            }
        })
        .collect();
    // In a near miss the copies are right, or they are old on purpose.
    let old_each = if near { [0, 3][world.below(2) as usize] } else { 40 };
    world.change(&children, |at, document, _| {
        let parent = ValueKey::new(document.get(&reference).unwrap());
        let (_, name) = names.iter().find(|(id, _)| *id == parent).unwrap();
        let is_old = old_each > 0 && at % old_each == 0;
        let name = if is_old { format!("{name} of old") } else { name.clone() };
        document.append("parentName", name.as_str());
    });
}

fn unindexed(world: &mut World, near: bool) {
    let (children, reference) = (world.children.clone(), world.reference.clone());
    let (_, described) = world.data.0.get_mut(&children).unwrap();
    let name = format!("{reference}_1");
    described.indexes.retain(|index| index.get("name").and_then(|one| one.as_str()) != Some(&name));
    described.uses.retain(|used| used.name != name);
    described.documents = Some(20_000);
    world.forget(&children, |one| {
        one.shape.get("filter").is_some_and(|filter| {
            filter.as_document().is_some_and(|filter| filter.contains(&reference))
        })
    });
    if !near {
        let mut filter = DocBuf::new();
        filter.append(&reference, &doc! { "$eq": "?objectId" });
        world.find(&children, filter, Did::scanned(500, 20_000, 4));
    }
}

fn link_table(world: &mut World, near: bool) {
    let (parents, goods) = (world.parents.clone(), world.goods.clone());
    let count = world.data.0[&parents].0.len() as u32;
    let links: Vec<DocBuf> = (0..300)
        .map(|at| {
            let good = format!("G-{}", at * 7 % 60);
            let mut link = doc! { "_id": at, "whose": id(1, (at * 13) as u32 % count, count), "good": good.as_str() };
            if near {
                link.append("role", ["owner", "buyer"][at as usize % 2]).append("weight", at % 9);
            }
            link
        })
        .collect();
    let name = format!("{parents}_{goods}");
    world.collection(&name, links, vec![index("whose", 1), index("good", 1)]);
    world.find(&name, doc! { "whose": { "$eq": "?objectId" } }, Did::served(1_000, 3));
}

fn no_validator(world: &mut World, near: bool) {
    let children = world.children.clone();
    if near {
        world.change(&children, |at, document, _| {
            if at % 3 == 0 {
                document.append("remark", "x");
            }
        });
    }
    world.data.0.get_mut(&children).unwrap().1.options = DocBuf::new();
}

fn scan(world: &mut World, near: bool) {
    let children = world.children.clone();
    let mut found = shape("find", &children);
    found.append(
        "filter",
        &doc! { "$and": [
            { "lines.good": { "$eq": "?string" } }, { "total": { "$gte": "?number" } },
        ] },
    );
    found.append("sort", &doc! { "created": -1 });
    let did = if near { Did::scanned(50, 560, 200) } else { Did::scanned(3_000, 560, 5) };
    world.shape(Kind::Find, &children, found, did);
}

fn negation(world: &mut World, near: bool) {
    let children = world.children.clone();
    let did = if near { Did::scanned(800, 560, 420) } else { Did::scanned(2_000, 560, 8) };
    world.find(&children, doc! { "status": { "$ne": "?string" } }, did);
}

/// Makes all reads of a collection return the one field, and adds some that return whole documents.
fn project(world: &mut World, collection: &str, field: &str, whole: u64) {
    world.forget(collection, |one| !one.kind.writes());
    let mut found = shape("find", collection);
    found.append("filter", &doc! { "_id": { "$eq": "?objectId" } });
    found.append("projection", &doc! { field: true });
    world.shape(Kind::Find, collection, found, Did::served(30_000, 1));
    world.find(collection, doc! { "_id": { "$eq": "?objectId" } }, Did::served(whole, 1));
}

fn subset(world: &mut World, near: bool) {
    let parents = world.parents.clone();
    world.change(&parents, |_, document, random| {
        let events: Vec<DocBuf> = (0..50 + random.below(30))
            .map(|at| doc! { "n": at as i32, "text": "something happened ".repeat(25).as_str() })
            .collect();
        let events: ArrayBuf = events.iter().collect();
        document.append("events", &events);
    });
    project(world, &parents, "name", if near { 60_000 } else { 1_500 });
}

fn cold(world: &mut World, near: bool) {
    let goods = world.goods.clone();
    world.change(&goods, |_, document, random| {
        let size = 300 + random.below(200) as usize;
        document.append("description", "long words ".repeat(size).as_str());
    });
    project(world, &goods, "title", if near { 20_000 } else { 600 });
}

fn totals(world: &mut World, near: bool) {
    let children = world.children.clone();
    let (count, examined) = if near { (600, 30) } else { (6_000, 560) };
    world.change(&children, |_, document, random| {
        document.append("channel", ["web", "phone", "shop"][random.below(3) as usize]);
    });
    let pipeline = array![
        { "$match": { "channel": { "$eq": "?string" } } },
        { "$group": { "_id": "$status", "all": { "$sum": "$total" } } },
    ];
    world.aggregate(&children, pipeline, Did { count, examined, returned: 4, scans: false });
}

fn counter(world: &mut World, near: bool) {
    let goods = world.goods.clone();
    let mut add = shape("update", &goods);
    add.append("filter", &doc! { "_id": { "$eq": "?string" } });
    add.append("update", &doc! { "$inc": { "views": "?number" } });
    world.write(Kind::Update, &goods, add, if near { 8_000 } else { 600_000 });
}

fn measurements(world: &mut World, near: bool) {
    let readings: Vec<DocBuf> = (0..600_u32)
        .map(|at| {
            let time = Value::Date(NOW_MS - i64::from(at) * 60_000);
            let mut reading = doc! {
                "_id": id(5, at, 600), "sensor": format!("s{}", at % 9).as_str(), "at": time,
                "value": f64::from(at % 83) * 0.25,
            };
            if near {
                reading.append(
                    "report",
                    "all is well with this part of the plant ".repeat(9).as_str(),
                );
            }
            reading
        })
        .collect();
    let key = doc! { "v": 2, "key": { "sensor": 1, "at": 1 }, "name": "sensor_1_at_1" };
    world.collection("readings", readings, vec![key]);
    world.claims("readings", 900_000);
    let filter =
        doc! { "$and": [{ "sensor": { "$eq": "?string" } }, { "at": { "$gte": "?date" } }] };
    world.find("readings", filter, Did::served(500, 60));
    world.write(Kind::Insert, "readings", shape("insert", "readings"), 9_000);
}

fn outliers(world: &mut World, near: bool) {
    let goods = world.goods.clone();
    let most = if near { 90 } else { 2_000 + world.below(900) };
    let place = 20 + world.below(20) as usize;
    world.change(&goods, |at, document, random| {
        let length = if at == place { most } else { 1 + random.below(4) };
        document.append("fans", &numbers(length));
    });
}

fn attributes(world: &mut World, near: bool) {
    let goods = world.goods.clone();
    let fields = ["color", "shape", "fabric", "engine", "lens", "flavor", "voltage", "grip"];
    world.change(&goods, |at, document, random| {
        let field = fields[at % 8];
        let value = format!("v{}", random.below(5));
        document.append("specs", &doc! { field: value.as_str() });
    });
    for field in fields.iter().take(if near { 1 } else { 5 }) {
        world.index(&goods, index(&format!("specs.{field}"), 1), 30);
    }
}

fn union(world: &mut World, near: bool) {
    let goods = world.goods.clone();
    let others: Vec<DocBuf> = (0..50)
        .map(|at| match near {
            true => doc! { "_id": at, "caption": "a", "pages": at % 7 },
            false => doc! { "_id": at, "title": format!("old {at}").as_str(), "price": 2.5, "stock": at % 7 },
        })
        .collect();
    world.collection("services", others, vec![]);
    let pipeline = array![
        { "$match": { "price": { "$gt": "?number" } } },
        { "$unionWith": { "coll": "services", "pipeline": [{ "$match": { "price": { "$gt": "?number" } } }] } },
    ];
    world.aggregate(
        &goods,
        pipeline,
        Did { count: 3_000, examined: 110, returned: 30, scans: false },
    );
}

fn versions(world: &mut World, near: bool) {
    let parents = world.parents.clone();
    let count = world.data.0[&parents].0.len();
    let border = count / 2 + world.below(20) as usize;
    world.change(&parents, |at, document, _| match (at < border, near) {
        (true, false) => drop(document.append("phone", "555-0100")),
        (false, false) => drop(document.append("phones", &array!["555-0100"])),
        (false, true) => drop(document.append("nick", "nick")),
        (true, true) => {}
    });
}

fn tree(world: &mut World, near: bool) {
    let categories: Vec<DocBuf> = (0..90)
        .map(|at| {
            let mut one = doc! { "_id": format!("k{at}").as_str(), "title": format!("kind {}", at * 17 % 101).as_str() };
            if at > 0 {
                one.append("parent", format!("k{}", at / 3).as_str());
            }
            if near {
                one.append("ancestors", &array![format!("k{}", at / 3).as_str()]);
            }
            one
        })
        .collect();
    world.collection("categories", categories, vec![index("parent", 1)]);
    let walk = doc! { "$graphLookup": {
        "from": "categories", "startWith": "$_id", "connectFromField": "_id", "connectToField": "parent", "as": "below",
    } };
    let pipeline = array![{ "$match": { "_id": { "$eq": "?string" } } }, &walk];
    world.aggregate(
        "categories",
        pipeline,
        Did { count: 5_000, examined: 40, returned: 1, scans: false },
    );
}

fn expired(world: &mut World, near: bool) {
    let share = if near { 12 } else { 2 };
    let sessions: Vec<DocBuf> = (0..400_u32)
        .map(|at| {
            let distance = i64::from(1 + at) * 3_600_000;
            let end = if at % share == 0 { NOW_MS - distance } else { NOW_MS + distance };
            doc! { "_id": id(6, at, 400), "user": format!("u{at}").as_str(), "expiresAt": Value::Date(end) }
        })
        .collect();
    world.collection("sessions", sessions, vec![index("user", 1)]);
    world.find("sessions", doc! { "user": { "$eq": "?string" } }, Did::served(1_000, 1));
}

fn natural_key(world: &mut World, near: bool) {
    let codes: Vec<DocBuf> = (0..400_u32)
        .map(|at| doc! { "_id": id(7, at, 400), "code": format!("C{}", at * 37).as_str(), "rate": f64::from(at) * 0.5 })
        .collect();
    let unique = doc! { "v": 2, "key": { "code": 1 }, "name": "code_1", "unique": true };
    world.collection("rates", codes, vec![unique]);
    world.claims("rates", 300_000);
    world.find("rates", doc! { "code": { "$eq": "?string" } }, Did::served(8_000, 1));
    if near {
        world.find("rates", doc! { "_id": { "$eq": "?objectId" } }, Did::served(100, 1));
    }
}
