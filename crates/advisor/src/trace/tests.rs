//! Tests over planted traffic: what an application does is found, and what only looks like it is not.

use super::*;
use quire_document::doc;
use quire_document::testing::Generator;

/// Writes a trace, one statement a millisecond.
#[derive(Default)]
struct Writer {
    entries: Vec<Entry>,
    session: u64,
}

impl Writer {
    fn add(&mut self, namespace: &str, kind: Kind, shape: DocBuf) -> &mut Entry {
        self.entries.push(Entry {
            at_micros: self.entries.len() as u64 * 1000,
            micros: 500,
            session: self.session,
            name: kind.name().to_owned(),
            namespace: namespace.to_owned(),
            kind: Some(kind),
            shape,
            statement: 1,
            ..Entry::default()
        });
        self.entries.last_mut().unwrap()
    }

    fn find(&mut self, namespace: &str, asked: &[(&str, &[i64])], returned: &[(&str, &[i64])]) {
        let entry = self.add(namespace, Kind::Find, doc! { "command": "find" });
        entry.asked = paths(asked);
        entry.returned = paths(returned);
    }

    fn update(&mut self, namespace: &str, by: (&str, i64), path: &str, multi: bool) {
        let set = DocBuf::build(|out| {
            out.append(path, "?string");
        });
        let shape = DocBuf::build(|out| {
            out.append("update", &doc! { "$set": &set });
            if multi {
                out.append("multi", true);
            }
        });
        let entry = self.add(namespace, Kind::Update, shape);
        entry.asked = paths(&[(by.0, &[by.1])]);
    }
}

fn paths(list: &[(&str, &[i64])]) -> Vec<PathHashes> {
    let one = |(path, hashes): &(&str, &[i64])| PathHashes {
        path: (*path).to_owned(),
        hashes: hashes.to_vec(),
    };
    list.iter().map(one).collect()
}

#[test]
fn entries_are_read_back() {
    let mut writer = Writer { session: u64::MAX, ..Writer::default() };
    writer.find("shop.orders", &[("user", &[1, -2])], &[("_id", &[3])]);
    let mut entry = writer.entries.remove(0);
    entry.command = Some(doc! { "find": "orders" });
    (entry.failed, entry.cursor, entry.returned_docs) = (true, 9, 4);
    for entry in [entry, Entry { name: "ping".to_owned(), ..Entry::default() }] {
        assert_eq!(Entry::from_document(entry.to_document().as_doc()).unwrap(), entry);
    }
    let head = Head { begins_ms: 5, values: Values::Hash };
    assert_eq!(Head::from_document(head.to_document().as_doc()).unwrap(), head);
    assert!(Head::from_document(doc! { "quireTrace": 2 }.as_doc()).is_err());
}

/// Orders are read by user, then their products by `$in`, and each customer one by one.
fn shop() -> Writer {
    let mut writer = Writer::default();
    let mut random = Generator::new(1);
    for round in 0..20 {
        writer.session = round % 3;
        let base = 1000 * (round as i64 + 1);
        let products = [base + 1, base + 2, base + 3];
        let customers = [base + 11, base + 12];
        let state = [random.below(3) as i64];
        writer.find(
            "shop.orders",
            &[("day", &[base + 500])],
            &[
                ("product", &products),
                ("customer", &customers),
                ("state", &state),
                ("_id", &[base]),
            ],
        );
        writer.find("shop.products", &[("_id", &products)], &[("name", &[base + 21])]);
        for customer in customers {
            writer.find("shop.customers", &[("_id", &[customer])], &[("name", &[base + 31])]);
        }
    }
    writer
}

#[test]
fn joins_of_the_application_are_found_with_fan_out() {
    let joins = app_joins(&shop().entries);
    let shown: Vec<String> = joins
        .iter()
        .map(|join| format!("{}.{} {}.{}", join.from, join.from_path, join.to, join.to_path))
        .collect();
    assert_eq!(
        shown,
        ["shop.orders.customer shop.customers._id", "shop.orders.product shop.products._id"]
    );
    assert_eq!((joins[0].fan_out, joins[0].round_trips, joins[0].share), (2.0, 2.0, 1.0));
    assert_eq!((joins[1].fan_out, joins[1].round_trips, joins[1].matches), (3.0, 1.0, 20));
}

#[test]
fn values_that_were_known_before_are_no_join() {
    let mut writer = Writer::default();
    for user in 0..20 {
        // The user's id comes from the login; the orders contain it, because they were found by it.
        writer.find(
            "shop.orders",
            &[("user", &[user])],
            &[("user", &[user]), ("_id", &[100 + user])],
        );
        writer.find("shop.users", &[("_id", &[user])], &[]);
    }
    assert_eq!(app_joins(&writer.entries), []);
}

#[test]
fn values_of_a_small_domain_agree_by_chance_and_are_no_join() {
    let mut writer = Writer::default();
    let mut random = Generator::new(5);
    let levels: Vec<i64> = (0..8).collect();
    for at in 0..60 {
        writer.find("shop.orders", &[("day", &[500 + at])], &[("level", &levels)]);
        writer.find("shop.prices", &[("level", &[random.below(8) as i64])], &[]);
    }
    assert_eq!(app_joins(&writer.entries), []);
}

#[test]
fn values_of_another_session_or_of_long_ago_are_no_join() {
    let mut writer = Writer::default();
    for at in 0..20 {
        writer.session = 1;
        writer.find("shop.orders", &[], &[("product", &[at])]);
        writer.session = 2;
        writer.find("shop.products", &[("_id", &[at])], &[]);
    }
    assert_eq!(app_joins(&writer.entries), []);
    let mut late = shop();
    late.entries.iter_mut().enumerate().for_each(|(at, entry)| {
        entry.at_micros = at as u64 * 60_000_000;
    });
    assert_eq!(app_joins(&late.entries), []);
}

#[test]
fn a_path_that_is_mostly_asked_otherwise_is_no_join() {
    let mut writer = shop();
    for at in 0..100 {
        writer.find("shop.products", &[("_id", &[90_000 + at])], &[]);
    }
    let joins = app_joins(&writer.entries);
    assert_eq!(joins.len(), 1);
    assert_eq!(joins[0].to, "shop.customers");
}

#[test]
fn copies_kept_by_hand_are_found() {
    let mut writer = Writer::default();
    for user in 0..5 {
        writer.update("shop.users", ("_id", user), "name", false);
        writer.update("shop.orders", ("user.id", user), "user.name", true);
    }
    let copies = hand_copies(&writer.entries);
    assert_eq!(copies.len(), 1);
    let copy = &copies[0];
    assert_eq!((copy.from.as_str(), copy.to.as_str()), ("shop.users", "shop.orders"));
    assert_eq!((copy.from_path.as_str(), copy.to_path.as_str()), ("_id", "user.id"));
    assert_eq!(
        (&*copy.written_from, &*copy.written_to),
        (&["name".into()][..], &["user.name".into()][..])
    );
    assert_eq!((copy.matches, copy.share), (5, 1.0));
}

#[test]
fn other_pairs_of_statements_are_no_copies() {
    let mut writer = Writer::default();
    for user in 0..5 {
        // A read before, an update of one document after, another value, another session.
        writer.find("shop.users", &[("_id", &[user])], &[]);
        writer.update("shop.orders", ("user", user), "seen", true);
        writer.update("shop.users", ("_id", 100 + user), "name", false);
        writer.update("shop.carts", ("user", 100 + user), "name", false);
        writer.update("shop.users", ("_id", 200 + user), "name", false);
        writer.update("shop.logs", ("user", 300 + user), "name", true);
        writer.update("shop.users", ("_id", 400 + user), "name", false);
        writer.session += 1;
        writer.update("shop.notes", ("user", 400 + user), "name", true);
    }
    assert_eq!(hand_copies(&writer.entries), []);
}

#[test]
fn repeated_aggregations_are_found_unless_something_was_written() {
    let mut writer = Writer::default();
    let lookup = doc! { "$lookup": { "from": "users", "localField": "u", "foreignField": "_id", "as": "x" } };
    let shape = doc! { "command": "aggregate", "pipeline": [&lookup] };
    let insert = |writer: &mut Writer, namespace: &str| {
        writer.add(namespace, Kind::Insert, doc! { "command": "insert" });
    };
    for statement in [7, 7, 7, 8, 7] {
        writer.add("shop.orders", Kind::Aggregate, shape.clone()).statement = statement;
        insert(&mut writer, "shop.other");
    }
    let found = repeats(&writer.entries);
    assert_eq!((found[0].runs, found[0].repeats, found[0].micros), (5, 3, 1500));
    for written in ["shop.orders", "shop.users"] {
        let mut writer = Writer::default();
        for _ in 0..6 {
            writer.add("shop.orders", Kind::Aggregate, shape.clone()).statement = 7;
            insert(&mut writer, written);
        }
        assert_eq!(repeats(&writer.entries), [], "{written}");
    }
}
