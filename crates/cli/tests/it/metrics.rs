//! `--metricsPort`: what Prometheus reads.

use crate::{Directory, QUIRE, Serving, quire, text};
use quire_document::doc;
use std::io::{Read, Write};
use std::net::TcpStream;

/// A server whose metrics are read, and the address of its metrics.
fn served() -> (Serving, String, Directory) {
    let directory = Directory::new();
    let log = directory.join("log");
    let log_path = log.to_str().unwrap();
    let words = ["serve", "--memory", "--port", "0", "--metricsPort", "0", "--logpath", log_path];
    let serving = Serving::start_program(QUIRE.as_ref(), &words, "ready: ");
    let written = std::fs::read_to_string(&log).unwrap();
    let url = written.split("http://").nth(1).unwrap();
    let address = url.split('/').next().unwrap().to_owned();
    (serving, address, directory)
}

/// Sends bytes, and returns the reply.
fn http(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    // The server closes; a request that it has not read to its end can reset the connection.
    let _ = stream.read_to_string(&mut reply);
    reply
}

fn get(address: &str, path: &str) -> String {
    http(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

/// Returns the number of a metric with its labels.
fn number(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[test]
fn numbers_follow_what_clients_do() {
    let (serving, address, _directory) = served();
    let before = get(&address, "/metrics");
    assert!(before.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text;"));
    assert!(before.ends_with("# EOF\n"), "{before}");
    serving.run(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "test" });
    serving.run(doc! { "find": "c", "filter": { "_id": { "$gt": 0 } }, "$db": "test" });
    let after = get(&address, "/metrics?x=1");
    for (name, grown) in [
        ("quire_documents_total{action=\"inserted\"}", 2.0),
        ("quire_documents_total{action=\"returned\"}", 2.0),
        ("quire_operations_total{type=\"query\"}", 1.0),
        ("quire_connections_created_total", 2.0),
        ("quire_catalog{kind=\"collections\"}", 1.0),
    ] {
        assert_eq!(number(&after, name) - number(&before, name), grown, "{name}");
    }
    assert!(number(&after, "quire_uptime_seconds") > 0.0);
    assert!(number(&after, "quire_memory_bytes{kind=\"resident\"}") > 1_048_576.0);
    assert!(number(&after, "quire_latency_seconds_total{class=\"reads\"}") > 0.0);
    assert_eq!(serving.end().code(), Some(0));
}

#[test]
fn other_requests_are_answered_with_the_reason() {
    let (serving, address, _directory) = served();
    assert!(get(&address, "/").starts_with("HTTP/1.1 404 "));
    let post = "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    assert!(http(&address, post).starts_with("HTTP/1.1 405 "));
    let head = http(&address, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(http(&address, "\u{1}\u{2}\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000));
    http(&address, &long);
    // A client that says nothing does not keep the next one for long.
    let silent = TcpStream::connect(&address).unwrap();
    assert!(get(&address, "/metrics").starts_with("HTTP/1.1 200 "));
    drop(silent);
    assert_eq!(serving.end().code(), Some(0));
}

#[test]
fn wrong_options_are_refused() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port().to_string();
    for (words, why) in [
        (&["--metricsBindIp", "127.0.0.1"][..], "--metricsBindIp needs --metricsPort"),
        (&["--metricsPort", "70000"], "--metricsPort must be between 0 and 65535"),
        (&["--metricsPort", "0", "--metricsBindIp", "here"], "takes an IP address"),
        (&["--metricsPort", &port], "in use"),
    ] {
        let mut line = vec!["serve", "--memory", "--port", "0"];
        line.extend_from_slice(words);
        let ended = quire(&line);
        assert_ne!(ended.status.code(), Some(0));
        assert!(text(&ended.stderr).contains(why), "{}", text(&ended.stderr));
    }
}
