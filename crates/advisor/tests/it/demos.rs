//! The applications of the guides to schema design, before anybody applied a pattern to them: the
//! advice names the pattern that the guide gives them, first, at the place where it belongs.

use crate::planted::{Did, NOW_MS, World, id, index, shape};
use quire_advisor::findings::RelationForm;
use quire_advisor::workload::Kind;
use quire_document::{ArrayBuf, DocBuf, Value, array, doc};

/// An application: its name, how it is built, and the pattern with its place.
type Demo = (&'static str, fn(&mut World), &'static str, &'static str);

const DEMOS: &[Demo] = &[
    ("sensors of an IoT application", sensors, "P9", "sensor_data.sensor_id"),
    ("a product page with all its reviews", reviews, "P5", "products.reviews"),
    ("a social network with a star", followers, "P10", "users.followers"),
    ("likes of an article", likes, "P8", "articles.likes"),
    ("a hierarchy of categories", categories, "P15", "categories"),
    ("phones, laptops and headphones", specifications, "P11", "products.specs"),
    ("sessions that end after an hour", sessions, "P17", "sessions.expiresAt"),
    ("an index on sensor_id over documents with sensor_od", misspelt, "A11", "sensor.sensor_id"),
    ("the sales of a month", sales, "P7", "sales"),
    ("notifications by mail, message and push", notifications, "P12", "emails"),
    ("pages of an article list", pages, "A7", "articles.created"),
    ("comments within a post, without end", comments, "A1", "posts.comments"),
    ("health checks that changed their form", health, "P13", "checks"),
    ("orders that show the name of their customer", orders, "A5", "orders.customer_id"),
];

#[test]
fn each_demo_database_gets_the_pattern_of_its_guide() {
    for (name, build, rule, place) in DEMOS {
        let mut world = World::empty();
        build(&mut world);
        let advice = world.advice();
        let found: Vec<String> =
            advice.findings.iter().map(|one| format!("{} {}", one.rule, one.place())).collect();
        let first = advice.findings.first().unwrap_or_else(|| panic!("{name}: nothing found"));
        assert_eq!(first.rule, *rule, "{name}: {found:?}");
        assert!(first.place().starts_with(place), "{name}: {found:?}");
        assert!(!first.apply.is_empty(), "{name}");
    }
}

/// A host has millions of log lines: they refer to it, and an array of them is forbidden.
#[test]
fn log_lines_refer_to_their_host() {
    let mut world = World::empty();
    let hosts: Vec<DocBuf> = (0..20)
        .map(|at| doc! { "_id": id(1, at, 20), "name": format!("host{at}").as_str(), "ipaddr": "127.66.66.66" })
        .collect();
    world.collection("hosts", hosts, vec![]);
    let lines: Vec<DocBuf> = (0..2_000_u32)
        .map(|at| {
            let message = format!("cpu is on fire {at}");
            doc! { "_id": id(2, at, 2_000), "message": message.as_str(), "host": id(1, at % 20, 20) }
        })
        .collect();
    world.collection("logmsg", lines, vec![index("host", 1)]);
    world.claims("logmsg", 40_000_000);
    world.find("logmsg", doc! { "host": { "$eq": "?objectId" } }, Did::served(500, 1_000));
    world.find("hosts", doc! { "_id": { "$eq": "?objectId" } }, Did::served(5_000, 1));
    world.write(Kind::Insert, "logmsg", shape("insert", "logmsg"), 90_000);
    let advice = world.advice();
    let relation = advice.relations.iter().find(|one| one.from == "logmsg").unwrap();
    assert_eq!((relation.present, relation.answer()), (RelationForm::Refer, "right"));
    assert!(!relation.forbidden.is_empty(), "{relation:?}");
}

fn sensors(world: &mut World) {
    let readings: Vec<DocBuf> = (0..800_u32)
        .map(|at| {
            let sensor = format!("sensor_{:03}", at % 8);
            doc! {
                "_id": id(3, at, 800), "sensor_id": sensor.as_str(),
                "timestamp": Value::Date(NOW_MS - i64::from(at) * 60_000),
                "temperature": 20.0 + f64::from(at % 37) / 10.0, "humidity": f64::from(at % 41) / 50.0,
            }
        })
        .collect();
    let key = doc! { "v": 2, "key": { "sensor_id": 1, "timestamp": 1 }, "name": "by_sensor" };
    world.collection("sensor_data", readings, vec![key]);
    world.claims("sensor_data", 4_320_000);
    let filter = doc! {
        "$and": [{ "sensor_id": { "$eq": "?string" } }, { "timestamp": { "$gte": "?date" } }],
    };
    world.find("sensor_data", filter, Did::served(200, 60));
    world.write(Kind::Insert, "sensor_data", shape("insert", "sensor_data"), 100_000);
}

fn reviews(world: &mut World) {
    let products: Vec<DocBuf> = (0..80_u32)
        .map(|at| {
            let reviews: Vec<DocBuf> = (0..60 + at as i32 % 20)
                .map(|one| doc! { "user": one, "rating": 1 + one % 5, "text": "it works as described ".repeat(20).as_str() })
                .collect();
            let reviews: ArrayBuf = reviews.iter().collect();
            let name = format!("product {}", at * 31 % 97);
            doc! { "_id": format!("p{at}").as_str(), "name": name.as_str(), "price": f64::from(at), "reviews": &reviews }
        })
        .collect();
    world.collection("products", products, vec![]);
    let mut page = shape("find", "products");
    page.append("filter", &doc! { "_id": { "$eq": "?string" } });
    page.append("projection", &doc! { "name": true, "price": true });
    world.shape(Kind::Find, "products", page, Did::served(50_000, 1));
    world.find("products", doc! { "_id": { "$eq": "?string" } }, Did::served(900, 1));
}

fn followers(world: &mut World) {
    let users: Vec<DocBuf> = (0..300_u32)
        .map(|at| {
            let count = if at == 77 { 9_000 } else { 2 + at as i32 % 7 };
            let followers: ArrayBuf = (0..count).collect::<Vec<i32>>().into_iter().collect();
            doc! { "_id": format!("u{at}").as_str(), "name": format!("name {}", at * 7 % 311).as_str(), "followers": &followers }
        })
        .collect();
    world.collection("users", users, vec![]);
    world.find("users", doc! { "_id": { "$eq": "?string" } }, Did::served(9_000, 1));
}

fn articles(world: &mut World) {
    let articles: Vec<DocBuf> = (0..400_u32)
        .map(|at| {
            let title = format!("article {}", at * 131 % 409);
            let created = Value::Date(NOW_MS - i64::from(at) * 3_600_000);
            doc! { "_id": id(4, at, 400), "title": title.as_str(), "created": created, "likes": (at * 17 % 90) as i32 }
        })
        .collect();
    world.collection("articles", articles, vec![index("created", -1)]);
    world.find("articles", doc! { "_id": { "$eq": "?objectId" } }, Did::served(4_000, 1));
}

fn likes(world: &mut World) {
    articles(world);
    let mut add = shape("update", "articles");
    add.append("filter", &doc! { "_id": { "$eq": "?objectId" } });
    add.append("update", &doc! { "$inc": { "likes": "?number" } });
    world.write(Kind::Update, "articles", add, 900_000);
}

fn pages(world: &mut World) {
    articles(world);
    let mut page = shape("find", "articles");
    page.append("filter", &doc! {}).append("sort", &doc! { "created": -1 });
    page.append("skip", "?number").append("limit", "?number");
    let did = Did { count: 2_000, examined: 2_500_020, returned: 20, scans: false };
    world.shape(Kind::Find, "articles", page, did);
    let measures = &mut world.shapes.last_mut().unwrap().measures;
    (0..100).for_each(|_| measures.skip.note(2_500_000));
}

fn categories(world: &mut World) {
    let names = ["electronics", "computer parts", "storage", "ssd", "books", "programming"];
    let categories: Vec<DocBuf> = (0..120)
        .map(|at: i32| {
            let name = format!("{} {at}", names[at as usize % names.len()]);
            let mut one = doc! { "_id": format!("c{at}").as_str(), "name": name.as_str() };
            if at > 0 {
                one.append("parent", format!("c{}", (at - 1) / 4).as_str());
            }
            one
        })
        .collect();
    world.collection("categories", categories, vec![index("parent", 1)]);
    let below = doc! { "$graphLookup": {
        "from": "categories", "startWith": "$_id", "connectFromField": "_id", "connectToField": "parent", "as": "below",
    } };
    let pipeline = array![{ "$match": { "_id": { "$eq": "?string" } } }, &below];
    let did = Did { count: 8_000, examined: 60, returned: 1, scans: false };
    world.aggregate("categories", pipeline, did);
}

fn specifications(world: &mut World) {
    let fields = ["ram", "screen", "driver", "battery", "cpu", "weight", "ports", "color"];
    let products: Vec<DocBuf> = (0..240)
        .map(|at: i32| {
            let field = fields[at as usize % fields.len()];
            let value = format!("{} units", at % 9);
            let specs = doc! { field: value.as_str() };
            let name = format!("device {}", at * 37 % 241);
            doc! { "_id": at, "type": ["phone", "laptop", "headphone"][at as usize % 3], "name": name.as_str(), "specs": &specs }
        })
        .collect();
    let indexes = fields.iter().take(5).map(|field| index(&format!("specs.{field}"), 1)).collect();
    world.collection("products", products, indexes);
    for field in fields.iter().take(5) {
        let mut filter = DocBuf::new();
        filter.append(&format!("specs.{field}"), &doc! { "$eq": "?string" });
        world.find("products", filter, Did::served(900, 4));
    }
}

fn sessions(world: &mut World) {
    let sessions: Vec<DocBuf> = (0..500_u32)
        .map(|at| {
            let user = format!("user{}", at % 90);
            let ends = NOW_MS + (i64::from(at) - 400) * 60_000;
            doc! { "_id": id(5, at, 500), "user": user.as_str(), "expiresAt": Value::Date(ends) }
        })
        .collect();
    world.collection("sessions", sessions, vec![index("user", 1)]);
    world.find("sessions", doc! { "user": { "$eq": "?string" } }, Did::served(3_000, 5));
}

fn misspelt(world: &mut World) {
    let readings: Vec<DocBuf> = (0..300)
        .map(|at: i32| {
            let time = format!("2021-07-05 10:{:02}", at % 60);
            doc! { "_id": at, "sensor_od": format!("SENSOR-{}", at % 5).as_str(), "temperature": 20.36, "note": time.as_str() }
        })
        .collect();
    world.collection("sensor", readings, vec![index("sensor_id", 1)]);
}

fn sales(world: &mut World) {
    let sales: Vec<DocBuf> = (0..600_u32)
        .map(|at| {
            let sold = Value::Date(NOW_MS - i64::from(at) * 3_600_000);
            let month = if at < 300 { "2025-05" } else { "2025-04" };
            doc! { "_id": id(6, at, 600), "sold": sold, "month": month, "product": format!("p{}", at % 40).as_str(), "amount": f64::from(at % 83) }
        })
        .collect();
    world.collection("sales", sales, vec![index("sold", 1)]);
    world.claims("sales", 400_000);
    let pipeline = array![
        { "$match": { "month": { "$eq": "?string" } } },
        { "$group": { "_id": "$product", "total": { "$sum": "$amount" } } },
        { "$sort": { "total": -1 } },
    ];
    let did = Did { count: 900, examined: 30_000, returned: 10, scans: false };
    world.aggregate("sales", pipeline, did);
    world.write(Kind::Insert, "sales", shape("insert", "sales"), 400);
}

fn notifications(world: &mut World) {
    let names = ["emails", "messages", "pushes"];
    for (kind, name) in names.into_iter().enumerate() {
        let all = (0..90).map(|at: i32| {
            let text = format!("hello {}", at * 7 % 91);
            doc! { "_id": at * 3 + kind as i32, "user": at % 30, "text": text.as_str(), "sent": at % 2 == 0 }
        });
        world.collection(name, all.collect(), vec![index("user", 1)]);
    }
    let of_user = |name: &str| {
        let matching = array![{ "$match": { "user": { "$eq": "?number" } } }];
        doc! { "$unionWith": { "coll": name, "pipeline": &matching } }
    };
    let (messages, pushes) = (of_user("messages"), of_user("pushes"));
    let pipeline = array![{ "$match": { "user": { "$eq": "?number" } } }, &messages, &pushes];
    let did = Did { count: 5_000, examined: 9, returned: 9, scans: false };
    world.aggregate("emails", pipeline, did);
}

fn comments(world: &mut World) {
    let posts: Vec<DocBuf> = (0..200_u32)
        .map(|at| {
            // The older a post, the more comments it has.
            let comments: Vec<DocBuf> = (0..(200 - at as i32) * 3)
                .map(|one| doc! { "user": one % 50, "text": "I think so too" })
                .collect();
            let comments: ArrayBuf = comments.iter().collect();
            let title = format!("post {}", at * 13 % 211);
            doc! { "_id": id(7, at, 200), "title": title.as_str(), "comments": &comments }
        })
        .collect();
    world.collection("posts", posts, vec![]);
    world.find("posts", doc! { "_id": { "$eq": "?objectId" } }, Did::served(900, 1));
    let mut push = shape("update", "posts");
    push.append("filter", &doc! { "_id": { "$eq": "?objectId" } });
    push.append("update", &doc! { "$push": { "comments": "?object" } });
    world.write(Kind::Update, "posts", push, 4_000);
}

fn health(world: &mut World) {
    let checks: Vec<DocBuf> = (0..300_u32)
        .map(|at| {
            let mut one = doc! { "_id": id(8, at, 300), "patient": (at % 70) as i32, "done": true };
            match at < 160 {
                true => one.append("pressure", "120/80"),
                false => one.append("measured", &doc! { "systolic": 120, "diastolic": 80 }),
            };
            one
        })
        .collect();
    world.collection("checks", checks, vec![index("patient", 1)]);
    world.find("checks", doc! { "patient": { "$eq": "?number" } }, Did::served(900, 4));
}

fn orders(world: &mut World) {
    let customers: Vec<DocBuf> = (0..100_u32)
        .map(|at| {
            doc! {
                "_id": id(1, at, 100), "name": format!("customer {}", at * 7 % 101).as_str(),
                "phone": format!("138-{at:04}").as_str(), "city": ["Rome", "Oslo", "Lima"][at as usize % 3],
                "level": (at % 4) as i32,
            }
        })
        .collect();
    world.collection("customers", customers, vec![]);
    let orders: Vec<DocBuf> = (0..900_u32)
        .map(|at| {
            doc! {
                "_id": id(2, at, 900), "customer_id": id(1, at * 7 % 100, 100), "amount": f64::from(at % 300),
                "status": ["paid", "sent", "done"][at as usize % 3],
            }
        })
        .collect();
    world.collection("orders", orders, vec![index("customer_id", 1), index("status", 1)]);
    let join = doc! { "$lookup": {
        "from": "customers", "localField": "customer_id", "foreignField": "_id", "as": "customer",
    } };
    let pipeline = array![{ "$match": { "status": { "$eq": "?string" } } }, &join];
    world.aggregate("orders", pipeline, Did::served(100_000, 20));
    world.find("customers", doc! { "_id": { "$eq": "?objectId" } }, Did::served(4_000, 1));
    world.find("orders", doc! { "customer_id": { "$eq": "?objectId" } }, Did::served(3_000, 9));
    world.write(Kind::Insert, "orders", shape("insert", "orders"), 3_000);
    let mut rename = shape("update", "customers");
    rename.append("filter", &doc! { "_id": { "$eq": "?objectId" } });
    rename.append("update", &doc! { "$set": { "phone": "?string" } });
    world.write(Kind::Update, "customers", rename, 20);
}
