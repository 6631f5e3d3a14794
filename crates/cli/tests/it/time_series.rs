//! Time-series collections with buckets: tools and restarts see every point, and closing gives the space of the records
//! back.

use crate::{Directory, Serving, exchange, quire, text};
use quire_document::{ArrayBuf, DocBuf, Value, doc};
use rustix::process::Signal;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The end of a wait for the server's background work, on a machine that does other work too.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Sends commands that must succeed.
struct Client(TcpStream);

impl Client {
    fn of(server: &Serving) -> Client {
        Client(TcpStream::connect(("127.0.0.1", server.port())).unwrap())
    }

    fn works(&mut self, command: DocBuf) -> DocBuf {
        let reply = exchange(&mut self.0, command.clone());
        let is_ok = matches!(reply.get("ok"), Some(Value::Double(1.0)));
        assert!(is_ok && reply.get("writeErrors").is_none(), "{command:?}: {reply:?}");
        reply
    }

    fn create(&mut self) {
        let series = doc! { "timeField": "t", "metaField": "m", "granularity": "seconds" };
        self.works(doc! { "create": "s", "timeseries": &series, "$db": "test" });
    }

    fn insert(&mut self, name: &str, points: &[DocBuf]) {
        let list: ArrayBuf = points.iter().collect();
        self.works(doc! { "insert": name, "documents": &list, "$db": "test" });
    }

    /// Closes all points. Returns the number of buckets.
    fn close(&mut self) -> i64 {
        self.works(doc! { "compact": "s", "force": true, "$db": "test" });
        self.bucket_count()
    }

    fn bucket_count(&mut self) -> i64 {
        let stats = self.works(doc! { "collStats": "s", "$db": "test" });
        let series = stats.get("timeseries").and_then(|series| series.as_document()).unwrap();
        series.get("bucketCount").and_then(|count| count.exact_i64()).unwrap()
    }
}

fn point(n: i32) -> DocBuf {
    let (time, value) = (Value::Date(i64::from(n) * 1000), f64::from(n) / 100.0);
    doc! { "t": time, "m": { "id": (n % 3) }, "_id": n, "v": value, "w": "x" }
}

/// Returns the exported points, sorted.
fn exported(server: &Serving, directory: &Directory) -> Vec<String> {
    let file = directory.join("points.json");
    let (uri, to) = (server.uri(), file.to_str().unwrap());
    let words = ["export", "--uri", &uri, "-c", "s", "--jsonFormat", "canonical", "-o", to];
    let output = quire(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(&file).unwrap();
    let mut points: Vec<String> = written.lines().map(str::to_owned).collect();
    points.sort();
    points
}

fn assert_sound(data: &Path) {
    let output = quire(&["check", data.to_str().unwrap()]);
    let told = format!("{} {}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}");
}

#[test]
fn exports_backups_and_restarts_have_the_points_of_buckets() {
    let directory = Directory::new();
    let (data, copy) = (directory.join("db"), directory.join("copy"));
    let words = ["--dbpath", data.to_str().unwrap()];
    let server = Serving::start(&words);
    let mut client = Client::of(&server);
    client.create();
    client.insert("s", &(0..900).map(point).collect::<Vec<_>>());
    let before = exported(&server, &directory);
    assert_eq!(before.len(), 900);
    let buckets = client.close();
    assert_eq!(buckets, 3);
    assert_eq!(exported(&server, &directory), before);
    // A late point, and one in the middle of a backup that has both.
    client.insert("s", &[point(-5)]);
    let output = quire(&["backup", "--uri", &server.uri(), copy.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let all = exported(&server, &directory);
    assert_eq!(all.len(), 901);

    server.signal(Signal::KILL);
    drop(server);
    for data in [&data, &copy] {
        let server = Serving::start(&["--dbpath", data.to_str().unwrap()]);
        let mut client = Client::of(&server);
        assert_eq!(client.bucket_count(), buckets);
        assert_eq!(exported(&server, &directory), all);
        assert_eq!(client.close(), buckets + 1);
        assert_eq!(exported(&server, &directory), all);
        assert!(server.end().success());
        assert_sound(data);
    }
}

/// Returns the bytes of the tables.
fn table_bytes(data: &Path) -> u64 {
    let mut bytes = 0;
    for keyspace in std::fs::read_dir(data.join("data/keyspaces")).unwrap() {
        let tables = keyspace.unwrap().path().join("tables");
        // A merge removes files meanwhile.
        let files = std::fs::read_dir(tables).unwrap().filter_map(Result::ok);
        bytes += files.filter_map(|file| Some(file.metadata().ok()?.len())).sum::<u64>();
    }
    bytes
}

fn wait_until(what: &str, is_reached: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_reached() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Numbers that compression does not make smaller, and whose differences are small.
fn walk(n: i32, field: i32) -> f64 {
    f64::from((n * 7 + field * 131) % 23 + n / 3 + field * 1000) / 100.0
}

#[test]
fn closing_gives_the_space_of_the_records_back() {
    let directory = Directory::new();
    let data = directory.join("db");
    let server = Serving::start(&["--dbpath", data.to_str().unwrap()]);
    let mut client = Client::of(&server);
    client.create();
    for batch in 0..16 {
        let points = (0..500).map(|at| {
            let n = batch * 500 + at;
            DocBuf::build(|writer| {
                let time = Value::Date(i64::from(n) * 1000);
                writer.append("t", time).append("m", 1).append("_id", n);
                for field in 0..60 {
                    writer.append(&format!("f{field}"), walk(n, field));
                }
            })
        });
        client.insert("s", &points.collect::<Vec<_>>());
    }
    client.works(doc! { "fsync": 1, "$db": "admin" });
    client.works(doc! { "compact": "s", "dryRun": true, "force": true, "$db": "test" });
    let records = table_bytes(&data);
    assert!(records > 1 << 20, "{records}");
    assert!(client.close() >= 8);
    let settled = || table_bytes(&data) < records / 2;
    wait_until("the removed records stay on disk", settled);
    assert!(server.end().success());
    assert_sound(&data);
}

#[test]
fn documents_that_are_rewritten_again_and_again_keep_their_size() {
    let directory = Directory::new();
    let data = directory.join("db");
    let server = Serving::start(&["--dbpath", data.to_str().unwrap()]);
    let mut client = Client::of(&server);
    let mut number = 1_u64;
    let mut noise = || {
        let words = (0..5_000).map(|_| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:08x}", number >> 32)
        });
        words.collect::<String>()
    };
    let docs: Vec<DocBuf> = (0..60).map(|id| doc! { "_id": id, "v": (noise().as_str()) }).collect();
    client.insert("b", &docs);
    for round in 0..8 {
        let updates = (0..60).map(|id| {
            doc! { "q": { "_id": id }, "u": { "$set": { "n": round, "v": (noise().as_str()) } } }
        });
        let updates: Vec<DocBuf> = updates.collect();
        let updates: ArrayBuf = updates.iter().collect();
        client.works(doc! { "update": "b", "updates": &updates, "$db": "test" });
        client.works(doc! { "compact": "b", "dryRun": true, "force": true, "$db": "test" });
    }
    let doc_bytes = || {
        let tables = std::fs::read_dir(data.join("data/keyspaces/2/tables")).unwrap();
        tables.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum::<u64>()
    };
    // Compression does not make the random letters much smaller.
    let living = 60 * 40_000;
    wait_until("old versions stay on disk", || doc_bytes() < living * 14 / 10);
    assert!(server.end().success());
}
