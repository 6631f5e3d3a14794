//! The binary itself: start, stop, exit codes, names.

#![allow(clippy::unwrap_used)]

mod advise;
mod audit;
mod backup;
mod bank_crash;
mod build_crash;
mod capped_crash;
#[path = "../../../server/tests/it/certificates.rs"]
#[allow(dead_code)] // What only the tests of the server use.
mod certificates;
mod check;
mod compatibility;
mod counter_crash;
mod crash;
mod damaged_catalog;
mod eject;
mod export;
mod full_disk;
mod import;
mod jobs_crash;
mod login;
mod metrics;
mod names;
mod profile;
mod refusals;
mod retries;
mod serving;
mod status;
mod streams_crash;
mod time_series;
mod tls;
mod top;
mod tour;
mod trace;

use quire_document::DocBuf;
use quire_wire::client::{Request, parse_response};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const QUIRE: &str = env!("CARGO_BIN_EXE_quire");

/// Runs the program to its end; kills it after a minute.
fn quire(words: &[&str]) -> Output {
    let mut command = Command::new(QUIRE);
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = Pid::from_child(&child);
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let killer = std::thread::spawn(move || {
        if end.recv_timeout(Duration::from_secs(60)).is_err() {
            let _ = kill_process(id, Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    let _ = ended.send(());
    killer.join().unwrap();
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A temporary directory of a test. Dropping the value removes it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("quire-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server. Dropping the value kills it.
struct Serving {
    child: Child,
    /// The line that reports that it is ready.
    ready: String,
}

impl Serving {
    /// Starts `quire serve` on a free port and waits until it is ready.
    fn start(words: &[&str]) -> Serving {
        let words = [&["serve", "--port", "0"], words].concat();
        Serving::start_program(Path::new(QUIRE), &words, "ready: ")
    }

    fn start_program(program: &Path, words: &[&str], sign: &str) -> Serving {
        let mut command = Command::new(program);
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        if words.contains(&"--dbpath") {
            command.arg("--create");
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.find_map(|line| line.ok().filter(|line| line.contains(sign)));
        let Some(ready) = ready else {
            let mut log = String::new();
            child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
            panic!("it ended: {log}");
        };
        // The pipes are read so that they do not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        let mut log = child.stderr.take().unwrap();
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Serving { child, ready }
    }

    fn port(&self) -> u16 {
        let address = self.ready.split("mongodb://127.0.0.1:").nth(1).unwrap();
        address.split('/').next().unwrap().parse().unwrap()
    }

    fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/", self.port())
    }

    fn run(&self, body: DocBuf) -> DocBuf {
        run(TcpStream::connect(("127.0.0.1", self.port())).unwrap(), body)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.child.wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs one command on its own connection.
fn run(mut stream: impl Read + Write, body: DocBuf) -> DocBuf {
    exchange(&mut stream, body)
}

/// Runs one command on a connection.
fn exchange(stream: &mut (impl Read + Write), body: DocBuf) -> DocBuf {
    try_exchange(stream, body).unwrap()
}

/// Runs one command on a connection; `None` if the connection breaks.
fn try_exchange(stream: &mut (impl Read + Write), body: DocBuf) -> Option<DocBuf> {
    stream.write_all(&Request::new(1, body).to_bytes().unwrap()).ok()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut message = length.to_vec();
    message.resize(i32::from_le_bytes(length) as usize, 0);
    stream.read_exact(message.get_mut(4..)?).ok()?;
    Some(parse_response(&message).unwrap().body)
}
