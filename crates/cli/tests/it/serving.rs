//! A server from its ready line to its exit code.

use crate::{Directory, QUIRE, Serving, quire, run, text};
use quire_document::{Value, doc};
use quire_wire::client::Request;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

#[test]
fn it_says_where_it_is_serves_and_ends() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut serving = Serving::start(&["--memory"]);
        assert!(serving.ready.ends_with("/?replicaSet=rs0"), "{}", serving.ready);
        let reply = serving.run(doc! { "hello": 1, "$db": "admin" });
        assert_eq!(
            reply.get("setName").and_then(|name| name.as_str().map(str::to_owned)),
            Some("rs0".into())
        );
        let me = format!("127.0.0.1:{}", serving.port());
        assert_eq!(reply.get("me").and_then(|me| me.as_str().map(str::to_owned)), Some(me));
        serving.signal(signal);
        assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn names_and_addresses_are_returned() {
    let serving = Serving::start(&["--memory", "--replSet", "mine", "--advertise", "db.test:5"]);
    assert!(serving.ready.ends_with("mongodb://db.test:5/?replicaSet=mine"), "{}", serving.ready);
    assert_eq!(serving.end().code(), Some(0));
    let serving = Serving::start(&["--memory", "--standalone"]);
    let reply = serving.run(doc! { "hello": 1, "$db": "admin" });
    assert!(reply.get("setName").is_none());
    assert!(matches!(reply.get("isWritablePrimary"), Some(Value::Bool(true))));
}

#[test]
fn the_command_line_is_returned() {
    let serving =
        Serving::start(&["--memory", "--quiet", "--setParameter", "enableTestCommands=1"]);
    let reply = serving.run(doc! { "getCmdLineOpts": 1, "$db": "admin" });
    let argv = reply.get("argv").unwrap().as_array().unwrap();
    assert_eq!(argv.get(0).unwrap().as_str(), Some(QUIRE));
    assert_eq!(argv.count(), 8);
    let parsed = reply.get("parsed").unwrap().as_document().unwrap();
    let log = parsed.get("systemLog").unwrap().as_document().unwrap();
    assert!(matches!(log.get("quiet"), Some(Value::Bool(true))));
}

#[test]
fn a_configuration_file_and_a_log_file() {
    let directory = Directory::new();
    let (config, log, pid) =
        (directory.join("c.yaml"), directory.join("l.log"), directory.join("pid"));
    let content = format!(
        "storage:\n  memory: true\nsystemLog:\n  destination: file\n  path: {}\nprocessManagement:\n  \
         pidFilePath: {}\nnet:\n  unixDomainSocket:\n    pathPrefix: {}\n",
        log.display(),
        pid.display(),
        directory.0.display()
    );
    std::fs::write(&config, content).unwrap();
    std::fs::write(&log, "old\n").unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = free.to_string();
    let words = ["serve", "--port", &port, "-f", config.to_str().unwrap()];
    let serving = Serving::start_program(QUIRE.as_ref(), &words, "ready: ");
    let socket = directory.join(&format!("mongodb-{port}.sock"));
    let reply = run(UnixStream::connect(&socket).unwrap(), doc! { "ping": 1, "$db": "admin" });
    assert!(matches!(reply.get("ok"), Some(Value::Double(1.0))));
    let id = serving.child.id();
    assert_eq!(std::fs::read_to_string(&pid).unwrap(), format!("{id}\n"));
    assert_eq!(serving.end().code(), Some(0));
    assert!(!pid.exists() && !socket.exists());
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(written.contains("\"msg\":\"Waiting for connections\""));
    assert!(!written.contains("old"));
    let aside = std::fs::read_dir(&directory.0).unwrap().filter_map(|entry| entry.ok());
    let aside = aside.filter(|entry| entry.file_name().to_string_lossy().starts_with("l.log."));
    assert_eq!(aside.count(), 1, "the old log was put aside");
}

#[test]
fn a_log_rotates_on_usr1() {
    let directory = Directory::new();
    let log = directory.join("l.log");
    let serving = Serving::start(&["--memory", "--logpath", log.to_str().unwrap()]);
    serving.signal(Signal::USR1);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while std::fs::read_dir(&directory.0).unwrap().count() < 2 {
        assert!(std::time::Instant::now() < until, "no second file");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    serving.run(doc! { "ping": 1, "$db": "admin" });
    assert_eq!(serving.end().code(), Some(0));
    assert!(std::fs::read_to_string(&log).unwrap().contains("Shutting down"));
}

#[test]
fn versions_and_help() {
    let output = quire(&["serve", "--version"]);
    assert!(text(&output.stdout).starts_with("db version v8.2."));
    assert!(text(&quire(&["--version"]).stdout).starts_with("quire "));
    assert!(text(&quire(&["serve", "--help-all"]).stdout).contains("--wiredTigerCacheSizeGB"));
    for words in [&[][..], &["serve", "--help"], &["serve", "--help-all"]] {
        let output = quire(words);
        let shown = text(&output.stdout);
        assert!(shown.contains("serve"), "{shown}");
        let wide: Vec<&str> = shown.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "wider than a terminal: {wide:#?}");
    }
}

#[test]
fn sorts_and_groups_beyond_their_memory_spill() {
    let directory = Directory::new();
    let path = directory.join("db");
    for words in [vec!["--dbpath", path.to_str().unwrap()], vec!["--memory"]] {
        let serving = Serving::start(&words);
        for id in 0..200 {
            let text = "x".repeat(1000);
            let document = doc! { "_id": id, "v": (-id), "text": text.as_str() };
            serving.run(doc! { "insert": "c", "documents": [&document], "$db": "test" });
        }
        let small = doc! {
            "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 8192,
            "internalDocumentSourceGroupMaxMemoryBytes": 8192, "$db": "admin",
        };
        serving.run(small);
        let sort = doc! { "find": "c", "sort": { "v": 1 }, "$db": "test" };
        let group = doc! {
            "aggregate": "c", "pipeline": [{ "$group": { "_id": "$v", "text": { "$max": "$text" } } }],
            "cursor": {}, "$db": "test",
        };
        for command in [sort, group] {
            let reply = serving.run(command);
            let cursor = reply.get("cursor").unwrap_or_else(|| panic!("{reply:?}"));
            let batch = cursor.as_document().unwrap().get("firstBatch").unwrap();
            assert_eq!(batch.as_array().unwrap().count(), 101);
        }
    }
}

#[test]
fn data_survives_a_restart_a_kill_and_a_backup() {
    let directory = Directory::new();
    let (path, copy) = (directory.join("db"), directory.join("copy"));
    let (path, copy) = (path.to_str().unwrap(), copy.to_str().unwrap());
    let insert = |serving: &Serving, id: i32| {
        let reply = serving.run(doc! {
            "insert": "c", "documents": [{ "_id": id }], "$db": "test",
            "writeConcern": { "w": "majority" },
        });
        assert!(matches!(reply.get("n"), Some(Value::Int32(1))), "{reply:?}");
    };
    let count = |serving: &Serving| match serving.run(doc! { "count": "c", "$db": "test" }).get("n")
    {
        Some(Value::Int32(count)) => count,
        other => panic!("{other:?}"),
    };
    let serving = Serving::start(&["--dbpath", path]);
    insert(&serving, 1);
    assert_eq!(serving.end().code(), Some(0));
    let mut serving = Serving::start(&["--dbpath", path]);
    assert_eq!(count(&serving), 1);
    insert(&serving, 2);
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    let serving = Serving::start(&["--dbpath", path]);
    assert_eq!(count(&serving), 2);
    assert_eq!(serving.end().code(), Some(0));
    let output = quire(&["backup", path, copy]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let serving = Serving::start(&["--dbpath", copy]);
    assert_eq!(count(&serving), 2);
    assert_eq!(serving.end().code(), Some(0));
    assert_eq!(quire(&["check", copy]).status.code(), Some(0));
}

#[test]
fn the_shutdown_command_ends_the_process() {
    let mut serving = Serving::start(&["--memory"]);
    let mut stream = TcpStream::connect(("127.0.0.1", serving.port())).unwrap();
    let request = Request::new(1, doc! { "shutdown": 1, "$db": "admin" });
    stream.write_all(&request.to_bytes().unwrap()).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    assert!(reply.is_empty(), "the connection closes without a reply");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

/// A server whose engine had failed kept running, and did not log the failure.
#[test]
fn a_server_whose_engine_fails_says_so_and_ends() {
    let directory = Directory::new();
    let log = directory.join("log");
    let (path, data) = (log.to_str().unwrap().to_owned(), directory.join("db"));
    let mut serving = Serving::start(&["--dbpath", data.to_str().unwrap(), "--logpath", &path]);
    let insert = doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" };
    serving.run(insert);
    for keyspace in std::fs::read_dir(data.join("data/keyspaces")).unwrap() {
        let _ = std::fs::remove_dir_all(keyspace.unwrap().path().join("tables"));
    }
    serving.run(doc! { "fsync": 1, "$db": "admin" });
    assert_eq!(serving.child.wait().unwrap().code(), Some(14));
    let written = std::fs::read_to_string(&log).unwrap();
    let fatal = |line: &&str| line.contains("\"s\":\"F\"") && line.contains("storage engine");
    assert!(written.lines().any(|line| fatal(&line)), "{written}");
}

/// An option of jemalloc that is not compiled in has no effect and causes no error.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn the_allocator_has_its_options() {
    let shown = std::process::Command::new(QUIRE)
        .arg("--version")
        .env("_RJEM_MALLOC_CONF", "stats_print:true")
        .output()
        .unwrap();
    let shown = text(&shown.stderr);
    for option in ["narenas_ratio:1", "dirty_decay_ms: 10000", "tcache_max: 4096"] {
        assert!(shown.contains(option), "{option} is missing:\n{shown}");
    }
}

/// A regression test: memory of cache blocks and of rows that were read stayed with the process,
/// because only writes returned memory. Nothing happens here after the read.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_reads_have_freed_goes_back_to_the_system() {
    let serving = Serving::start(&["--memory"]);
    let resident_kb = |field: &str| -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", serving.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let groups = doc! {
        "aggregate": 1, "$db": "admin", "cursor": {},
        "pipeline": [
            { "$documents": [{ "n": { "$range": [0, GROUPS] } }] },
            { "$unwind": "$n" },
            { "$group": { "_id": "$n", "text": { "$push": "a text that is kept in each group" } } },
            { "$count": "groups" },
        ],
    };
    let before = resident_kb("VmRSS:");
    serving.run(groups);
    let taken = resident_kb("VmHWM:") - before;
    assert!(taken > 40 << 10, "the read has taken only {taken} KiB");
    let kept = || resident_kb("VmRSS:").saturating_sub(before);
    let since = std::time::Instant::now();
    while kept() > taken / 4 {
        assert!(since.elapsed().as_secs() < 60, "{} of {taken} KiB are kept", kept());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

const GROUPS: i32 = 150_000;
