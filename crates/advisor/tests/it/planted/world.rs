//! A clean database with its traffic, whose names, sizes and values come from a seed. The plants
//! change it.

use crate::{Memory, Unseen};
use quire_advisor::findings::{Advice, Input, Silenced, advise};
use quire_advisor::workload::{Cause, Kind, Measures, ShapeUse};
use quire_advisor::{DatabaseProfile, Extent, IndexUse, Limits, Workload, profile_database};
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, DocBuf, ObjectId, Value, doc};

/// The time of the advice: 2025-06-01.
pub const NOW_MS: i64 = 1_748_736_000_000;
/// The seconds of the workload.
pub const SECONDS: u64 = 1_000;
const DAY: u32 = 86_400;
/// The age of the oldest documents in days.
pub const DAYS: u32 = 400;

/// A database.
pub struct World {
    pub data: Memory,
    pub shapes: Vec<ShapeUse>,
    pub random: Generator,
    /// The names of the collections and of the reference between the first two.
    pub parents: String,
    pub children: String,
    pub goods: String,
    pub reference: String,
}

/// What a statement examined and returned, on average.
pub struct Did {
    pub count: u64,
    pub examined: u64,
    pub returned: u64,
    pub scans: bool,
}

impl Did {
    /// Statements that an index serves.
    pub fn served(count: u64, returned: u64) -> Did {
        Did { count, examined: returned, returned, scans: false }
    }

    /// Statements that read the collection.
    pub fn scanned(count: u64, examined: u64, returned: u64) -> Did {
        Did { count, examined, returned, scans: true }
    }
}

impl World {
    /// Returns the clean database of a seed.
    pub fn new(seed: u64) -> World {
        let mut random = Generator::new(seed ^ 0x5EED);
        let mut pick = |names: &[&str]| {
            let at = random.below(names.len() as u64) as usize;
            names[at].to_owned()
        };
        let parents = pick(&["customers", "members", "accounts", "tenants", "guests"]);
        let children = pick(&["orders", "invoices", "bookings", "tickets", "payments"]);
        let goods = pick(&["products", "articles", "rooms", "courses", "parts"]);
        let ending = pick(&["Id", "_id", "Ref"]);
        let reference = format!("{}{ending}", parents.trim_end_matches('s'));
        let mut world = World {
            data: Memory::default(),
            shapes: Vec::new(),
            random,
            parents,
            children,
            goods,
            reference,
        };
        world.fill();
        world.ask();
        world
    }

    /// Returns a database without collections and traffic.
    pub fn empty() -> World {
        World {
            data: Memory::default(),
            shapes: Vec::new(),
            random: Generator::new(1),
            parents: String::new(),
            children: String::new(),
            goods: String::new(),
            reference: String::new(),
        }
    }

    fn fill(&mut self) {
        let cities = ["Rome", "Oslo", "Lima", "Cairo", "Quito", "Turin", "Bern", "Doha"];
        let count = 130 + self.below(40) as u32;
        let parents = (0..count).map(|at| {
            doc! {
                "_id": id(1, at, count), "name": format!("name {}", at * 7919 % 100_003).as_str(),
                "email": format!("u{at}@example.org").as_str(), "city": cities[at as usize % 8],
                "level": (at % 5) as i32, "since": date(at, count),
            }
        });
        let parents: Vec<DocBuf> = parents.collect();
        let children: Vec<DocBuf> = (0..560)
            .map(|at| {
                let parent = id(1, (self.below(count.into())) as u32, count);
                self.child(at, parent)
            })
            .collect();
        let goods: Vec<DocBuf> = (0..60)
            .map(|at| {
                doc! {
                    "_id": format!("G-{at}").as_str(), "title": format!("thing {}", at * 31 % 97).as_str(),
                    "price": 1.5 + f64::from(at), "stock": at * 3 % 50,
                }
            })
            .collect();
        let email = doc! { "v": 2, "key": { "email": 1 }, "name": "email_1", "unique": true };
        self.collection(&self.parents.clone(), parents, vec![email]);
        let by_parent = index(&self.reference, 1);
        let by_state =
            doc! { "v": 2, "key": { "status": 1, "created": -1 }, "name": "status_1_created_-1" };
        self.collection(&self.children.clone(), children, vec![by_parent, by_state]);
        self.collection(&self.goods.clone(), goods, vec![]);
    }

    /// Returns a child of a parent.
    pub fn child(&mut self, at: u32, parent: ObjectId) -> DocBuf {
        let states = ["new", "paid", "sent", "closed"];
        let lines: Vec<DocBuf> = (0..1 + self.below(4))
            .map(|line| {
                let good = format!("G-{}", self.below(60));
                doc! { "good": good.as_str(), "quantity": (1 + line) as i32 }
            })
            .collect();
        let lines: ArrayBuf = lines.iter().collect();
        let mut child = doc! { "_id": id(2, at, 560) };
        let total = 1.25 + self.below(10_000) as f64;
        child.append(&self.reference, parent);
        child.append("status", states[self.below(4) as usize]).append("total", total);
        child.append("created", date(at, 560)).append("lines", &lines);
        child
    }

    /// Adds a collection with a validator; its indexes are in use.
    pub fn collection(&mut self, name: &str, documents: Vec<DocBuf>, indexes: Vec<DocBuf>) {
        let id = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
        let indexes = std::iter::once(id).chain(indexes).collect();
        self.data.add(name, documents, indexes);
        let (_, described) = self.data.0.get_mut(name).unwrap();
        described.options = doc! { "validator": { "$jsonSchema": { "bsonType": "object" } } };
        for index in described.indexes.clone() {
            let name = index.get("name").and_then(|name| name.as_str()).unwrap().to_owned();
            described.uses.push(used(&name, 500));
        }
    }

    /// Adds an index that was used so often in 30 days.
    pub fn index(&mut self, collection: &str, spec: DocBuf, uses: u64) {
        let name = spec.get("name").and_then(|name| name.as_str()).unwrap().to_owned();
        let (_, described) = self.data.0.get_mut(collection).unwrap();
        described.indexes.push(spec);
        described.uses.push(used(&name, uses));
    }

    /// Changes each document of a collection.
    pub fn change(
        &mut self,
        collection: &str,
        mut change: impl FnMut(usize, &mut DocBuf, &mut Generator),
    ) {
        let (documents, _) = self.data.0.get_mut(collection).unwrap();
        for (at, document) in documents.iter_mut().enumerate() {
            change(at, document, &mut self.random);
        }
    }

    /// Says that the collection has more documents than were read.
    pub fn claims(&mut self, collection: &str, documents: u64) {
        self.data.0.get_mut(collection).unwrap().1.documents = Some(documents);
    }

    fn ask(&mut self) {
        let (parents, children, goods) =
            (self.parents.clone(), self.children.clone(), self.goods.clone());
        let by_id = doc! { "_id": { "$eq": "?objectId" } };
        self.find(&parents, by_id.clone(), Did::served(40_000, 1));
        self.find(&parents, doc! { "email": { "$eq": "?string" } }, Did::served(3_000, 1));
        self.find(&goods, doc! { "_id": { "$eq": "?string" } }, Did::served(30_000, 1));
        let mut filter = DocBuf::new();
        filter.append(&self.reference, &doc! { "$eq": "?objectId" });
        self.find(&children, filter, Did::served(20_000, 4));
        let mut state = shape("find", &children);
        state.append("filter", &doc! { "status": { "$eq": "?string" } });
        state.append("sort", &doc! { "created": -1 }).append("limit", "?number");
        self.shape(Kind::Find, &children, state, Did::served(2_000, 20));
        let mut update = shape("update", &children);
        update.append("filter", &by_id).append("update", &doc! { "$set": { "status": "?string" } });
        self.write(Kind::Update, &children, update, 4_000);
        self.write(Kind::Insert, &children, shape("insert", &children), 5_000);
        self.write(Kind::Insert, &parents, shape("insert", &parents), 100);
    }

    /// Adds a find by a filter.
    pub fn find(&mut self, collection: &str, filter: DocBuf, did: Did) {
        let mut found = shape("find", collection);
        found.append("filter", &filter);
        self.shape(Kind::Find, collection, found, did);
    }

    /// Adds an aggregate.
    pub fn aggregate(&mut self, collection: &str, pipeline: ArrayBuf, did: Did) {
        let mut found = shape("aggregate", collection);
        found.append("pipeline", &pipeline);
        self.shape(Kind::Aggregate, collection, found, did);
    }

    /// Adds writes that change a document each.
    pub fn write(&mut self, kind: Kind, collection: &str, shape: DocBuf, count: u64) {
        self.shape(kind, collection, shape, Did::served(count, 0));
        let measures = &mut self.shapes.last_mut().unwrap().measures;
        match kind {
            Kind::Insert => measures.inserted = count,
            _ => {
                measures.matched.sum = count;
                measures.modified.sum = count;
                measures.docs_examined.sum = count;
            }
        }
    }

    /// Adds statements of a shape.
    pub fn shape(&mut self, kind: Kind, collection: &str, shape: DocBuf, did: Did) {
        let mut measures = Measures { count: did.count, ..Measures::default() };
        let bytes = self.mean_bytes(collection) as u64;
        measures.docs_examined.sum = did.count * did.examined;
        measures.bytes_read.sum = did.count * did.examined * bytes;
        measures.returned.sum = did.count * did.returned;
        measures.collection_scans = if did.scans { did.count } else { 0 };
        self.shapes.push(ShapeUse {
            namespace: format!("shop.{collection}"),
            kind,
            cause: Cause::Client,
            shape,
            samples: Vec::new(),
            measures,
        });
    }

    fn mean_bytes(&self, collection: &str) -> usize {
        let Some((documents, _)) = self.data.0.get(collection) else { return 200 };
        let bytes: usize = documents.iter().map(|document| document.as_bytes().len()).sum();
        bytes / documents.len().max(1)
    }

    /// Removes the recorded statements on a collection for which this holds.
    pub fn forget(&mut self, collection: &str, is_one: impl Fn(&ShapeUse) -> bool) {
        let namespace = format!("shop.{collection}");
        self.shapes.retain(|one| one.namespace != namespace || !is_one(one));
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// Returns what was recorded: the workload, and the profile of the data.
    pub fn recorded(mut self) -> (Workload, DatabaseProfile) {
        let limits = Limits::default();
        let profile = profile_database(&mut self.data, &[], Extent::All, limits, &mut Unseen);
        let workload = Workload {
            begins_ms: NOW_MS - SECONDS as i64 * 1000,
            ends_ms: NOW_MS,
            shapes: self.shapes,
            ..Workload::default()
        };
        (workload, profile.unwrap_or_else(|error| panic!("{error}")))
    }

    /// Returns the advice.
    pub fn advice(self) -> Advice {
        let (workload, profile) = self.recorded();
        let input = Input::new("shop", &profile, Some(&workload), NOW_MS);
        advise(&input, &Silenced::default())
    }
}

/// Returns the beginning of a shape.
pub fn shape(command: &str, collection: &str) -> DocBuf {
    doc! { "cmdNs": { "db": "shop", "coll": collection }, "command": command }
}

/// Returns an index of one field.
pub fn index(field: &str, direction: i32) -> DocBuf {
    let name = format!("{field}_{direction}");
    doc! { "v": 2, "key": { field: direction }, "name": name.as_str() }
}

fn used(name: &str, uses: u64) -> IndexUse {
    let seconds = 30.0 * f64::from(DAY);
    IndexUse { name: name.to_owned(), uses: Some(uses), seconds, bytes: Some(40_960) }
}

/// Returns the ObjectId of document `at` of `count`: they were born evenly in the last days.
pub fn id(kind: u8, at: u32, count: u32) -> ObjectId {
    ObjectId::from_parts(born(at, count), [kind; 5], at)
}

fn date(at: u32, count: u32) -> Value<'static> {
    Value::Date(i64::from(born(at, count)) * 1000)
}

fn born(at: u32, count: u32) -> u32 {
    let now = (NOW_MS / 1000) as u32;
    let step = u64::from(DAYS) * u64::from(DAY) / u64::from(count);
    now - DAYS * DAY + (u64::from(at) * step) as u32
}
