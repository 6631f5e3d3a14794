//! Measures connections: with and without a login, with and without TLS. Four clients connect as
//! fast as they can. The server's CPU time for one connection depends less on other work of the
//! machine than the rate does. `cargo run --release -p quire-cli --example connections`, after
//! `cargo build --release -p quire-cli`; Linux. The results are in docs/benchmarks.md.

#[allow(dead_code, clippy::unwrap_used)] // Made for tests, some of it for them only.
#[path = "../../server/tests/it/certificates.rs"]
mod certificates;
mod server;

use certificates::{Authority, Unusual};
use quire_document::doc;
use quire_tls::{ClientFiles, ClientTls};
use server::{Server, command, log_in, make_root, program};
use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const CLIENTS: usize = 4;
const CONNECTIONS: usize = 250;
const IDLE: usize = 1000;
const READS: i32 = 20_000;
const DOCUMENTS: i32 = 1000;

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// How a client connects.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    tls: bool,
    login: bool,
}

const WAYS: [Way; 4] = [
    Way { name: "plain", tls: false, login: false },
    Way { name: "SCRAM-SHA-256", tls: false, login: true },
    Way { name: "TLS 1.3", tls: true, login: false },
    Way { name: "TLS 1.3, SCRAM-SHA-256", tls: true, login: true },
];

/// A server and its address.
struct Place {
    server: Server,
    tls: Option<ClientTls>,
    login: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let program = program()?;
    let authority = Authority::new("bench");
    let pem = authority.sign("server.pem", "server", &["localhost"], Unusual::default());
    for way in WAYS {
        let place = Place::start(&program, way, &authority, &pem)?;
        place.connections(way.name)?;
        if way.login == way.tls {
            place.reads(way.name)?;
            place.idle(way.name)?;
        }
        place.server.stop()?;
    }
    Ok(())
}

impl Place {
    fn start(
        program: &Path,
        way: Way,
        authority: &Authority,
        pem: &Path,
    ) -> Result<Place, Box<dyn Error>> {
        let directory = authority.directory().join(way.name.replace([' ', ','], "-"));
        let (pem, ca) = (pem.display().to_string(), authority.file().display().to_string());
        let mut options = Vec::new();
        if way.login {
            options.push("--auth");
        }
        if way.tls {
            let without = "--tlsAllowConnectionsWithoutCertificates";
            options.extend(["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", &pem]);
            options.extend(["--tlsCAFile", &ca, without]);
        }
        let server = Server::spawn_with(Command::new(program), &directory, &options)?;
        let files = ClientFiles { authorities: Some(authority.file()), ..ClientFiles::default() };
        let tls = way.tls.then(|| ClientTls::open(&files)).transpose()?;
        let place = Place { server, tls, login: false };
        if way.login {
            make_root(&mut *place.connect()?)?;
        }
        Ok(Place { login: way.login, ..place })
    }

    fn connect(&self) -> Result<Box<dyn Stream>, Box<dyn Error>> {
        let stream = self.server.connect()?;
        stream.set_nodelay(true)?;
        let mut stream: Box<dyn Stream> = match &self.tls {
            Some(tls) => Box::new(tls.connect(stream, "localhost")?),
            None => Box::new(stream),
        };
        command(&mut *stream, doc! { "hello": 1, "$db": "admin" })?;
        if self.login {
            log_in(&mut *stream)?;
        }
        Ok(stream)
    }

    /// Measures connections a second, and the server's CPU time for one.
    fn connections(&self, name: &str) -> Result<(), Box<dyn Error>> {
        let (began, cpu) = (Instant::now(), self.server.cpu()?);
        std::thread::scope(|scope| -> Result<(), String> {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    scope.spawn(|| {
                        (0..CONNECTIONS).try_for_each(|_| {
                            self.connect().map(drop).map_err(|error| error.to_string())
                        })
                    })
                })
                .collect();
            let mut ended = clients.into_iter().map(|client| client.join());
            ended.try_for_each(|end| end.unwrap_or_else(|_| Err("a client panicked".to_owned())))
        })?;
        let count = (CLIENTS * CONNECTIONS) as u32;
        let (rate, cpu) = (per_second(count, began), (self.server.cpu()? - cpu) / count);
        println!("{name}: {rate} connections a second, {cpu:?} of the server's CPU for one");
        Ok(())
    }

    /// Measures reads of one document by its `_id` over one connection.
    fn reads(&self, name: &str) -> Result<(), Box<dyn Error>> {
        let mut stream = self.connect()?;
        let text = "x".repeat(1000);
        for id in 0..DOCUMENTS {
            let docs = doc! { "insert": "c", "documents": [{ "_id": id, "t": text.as_str() }], "$db": "test" };
            command(&mut *stream, docs)?;
        }
        let (began, cpu) = (Instant::now(), self.server.cpu()?);
        for at in 0..READS {
            let filter = doc! { "_id": at % DOCUMENTS };
            command(&mut *stream, doc! { "find": "c", "filter": &filter, "$db": "test" })?;
        }
        let count = READS as u32;
        let (rate, cpu) = (per_second(count, began), (self.server.cpu()? - cpu) / count);
        println!("{name}: {rate} reads of 1 KB a second, {cpu:?} of the server's CPU for one");
        Ok(())
    }

    /// Measures the memory of idle connections.
    fn idle(&self, name: &str) -> Result<(), Box<dyn Error>> {
        let before = self.server.resident_kb()?;
        let streams: Result<Vec<_>, _> = (0..IDLE).map(|_| self.connect()).collect();
        let streams = streams?;
        std::thread::sleep(Duration::from_secs(1));
        let kb = (self.server.resident_kb()? - before) / IDLE as i64;
        println!(
            "{name}: {kb} KB of resident memory for one of {} idle connections",
            streams.len()
        );
        Ok(())
    }
}

fn per_second(count: u32, began: Instant) -> u32 {
    (f64::from(count) / began.elapsed().as_secs_f64()).round() as u32
}
