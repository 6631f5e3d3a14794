//! `quire eject`: the script that it prints has each pattern as aggregations of a plain MongoDB, and
//! `--remove` leaves plain collections.

use crate::{Serving, quire, text};
use quire_document::extjson;
use quire_document::{DocBuf, Value, doc};

fn works(server: &Serving, command: DocBuf) -> DocBuf {
    let reply = server.run(command.clone());
    assert!(reply.get("ok").and_then(|ok| ok.to_f64()) == Some(1.0), "{command:?}: {reply:?}");
    reply
}

fn declare(server: &Serving) {
    let customer = doc! {
        "name": "customer", "type": "reference", "from": "customers", "localField": "customerId",
        "as": "customer", "fields": { "name": "sync" }, "onDelete": "setNull"
    };
    works(server, doc! { "create": "orders", "patterns": [&customer], "$db": "shop" });
    let orders = doc! {
        "name": "orders", "type": "rollup", "from": "orders", "foreignField": "customerId",
        "set": { "orders": { "$count": {} } }
    };
    works(server, doc! { "create": "customers", "patterns": [&orders], "$db": "shop" });
}

/// Returns the patterns in a script, one document a line.
fn patterns(script: &str) -> Vec<DocBuf> {
    let rows = script.lines().filter(|line| line.starts_with("{\"name\""));
    rows.map(|row| {
        let parsed = extjson::parse(row.trim_end_matches(',')).unwrap();
        parsed.as_value().as_document().unwrap().to_owned()
    })
    .collect()
}

#[test]
fn patterns_become_a_script_and_can_be_removed() {
    let server = Serving::start(&["--memory"]);
    let uri = server.uri();
    let none = quire(&["eject", "shop", "--uri", &uri]);
    assert_eq!(none.status.code(), Some(100));
    assert!(text(&none.stderr).contains("the database 'shop' has no patterns"));
    declare(&server);
    works(
        &server,
        doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "Li" }], "$db": "shop" },
    );
    works(
        &server,
        doc! { "insert": "orders", "documents": [{ "_id": 1, "customerId": 1 }], "$db": "shop" },
    );
    let ejected = quire(&["eject", "shop", "--uri", &uri, "--remove"]);
    assert!(ejected.status.success(), "{}", text(&ejected.stderr));
    let script = text(&ejected.stdout);
    assert!(script.contains("const database = \"shop\";") && script.contains("function watch()"));
    let found = patterns(&script);
    let name = |row: &DocBuf| row.get("name").unwrap().as_str().unwrap().to_owned();
    assert_eq!(found.iter().map(name).collect::<Vec<_>>(), ["orders", "customer"]);
    assert_eq!(found[1].get("onDelete").unwrap().as_str(), Some("setNull"));
    // The patterns are gone, and what they have written is there: the script finds it as it should be.
    for row in &found {
        let owner = row.get("collection").unwrap().as_str().unwrap();
        let run = |of: &str| {
            let stages = row.get(of).unwrap();
            let command = doc! {
                "aggregate": owner, "pipeline": stages, "cursor": {}, "$db": "shop"
            };
            let reply = works(&server, command);
            let cursor = reply.get("cursor").unwrap().as_document().unwrap().to_owned();
            cursor.get("firstBatch").unwrap().as_array().unwrap().count()
        };
        assert_eq!(run("compute"), 0, "{owner}");
    }
    let order = doc! { "q": { "_id": 1 }, "u": { "$set": { "customer.name": "plain" } } };
    works(&server, doc! { "update": "orders", "updates": [&order], "$db": "shop" });
    let stages = found[1].get("compute").unwrap();
    let reply = works(
        &server,
        doc! {
            "aggregate": "orders", "pipeline": stages, "cursor": {}, "$db": "shop"
        },
    );
    let cursor = reply.get("cursor").unwrap().as_document().unwrap().to_owned();
    assert_eq!(cursor.get("firstBatch").unwrap().as_array().unwrap().count(), 1);
    let left = works(&server, doc! { "count": "quire.patterns", "$db": "shop" });
    assert!(matches!(left.get("n"), Some(Value::Int32(0))), "{left:?}");
}
