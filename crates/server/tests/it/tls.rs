//! Encrypted connections: modes, versions, certificates that must be refused, and logins by
//! certificate.

use crate::certificates::{Authority, Unusual};
use crate::{Client, eventually, listen, ok, ping, service_with};
use quire_document::{DocBuf, Value, doc};
use quire_server::{Encryption, Server, ServerOptions, TlsMode};
use quire_tls::{ClientFiles, ClientTls, ServerFiles, ServerTls, Versions};
use quire_wire::client::{Request, parse_response};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
/// The limit of the tests in which a client's first message does not come.
const SHORT: Duration = Duration::from_millis(500);

/// A server with encryption, and the authority of its clients.
struct Secured {
    server: Server,
    address: SocketAddr,
    authority: Authority,
}

impl Secured {
    fn new(mode: TlsMode, change: impl FnOnce(&Authority, &mut ServerFiles)) -> Secured {
        Secured::within(PATIENCE, mode, change)
    }

    /// Returns a server that ends a connection whose first message is not there `limit` after its
    /// start. Only tests of that limit choose a short one: on a busy machine any client may be late.
    fn within(
        limit: Duration,
        mode: TlsMode,
        change: impl FnOnce(&Authority, &mut ServerFiles),
    ) -> Secured {
        let authority = Authority::new("the authority");
        let mut files = ServerFiles {
            certificate_key: authority.sign("s.pem", "server", &["localhost"], Unusual::default()),
            password: None,
            authorities: authority.file(),
            revoked: None,
            clients_without_certificate: false,
            versions: Versions::default(),
        };
        change(&authority, &mut files);
        let encryption = Arc::new(Encryption { mode, tls: ServerTls::open(files).unwrap() });
        let service = service_with(Some(encryption.clone()), false);
        let options = ServerOptions {
            encryption: Some(encryption),
            handshake_limit: limit,
            ..ServerOptions::default()
        };
        let (server, address) = listen(service, options);
        Secured { server, address, authority }
    }

    /// Returns the files of a client with this certificate.
    fn client(&self, certificate_key: Option<PathBuf>) -> ClientFiles {
        let authorities = Some(self.authority.file());
        ClientFiles { authorities, certificate_key, ..ClientFiles::default() }
    }

    fn good_client(&self) -> ClientFiles {
        let file = self.authority.sign("c.pem", "client", &[], Unusual::default());
        self.client(Some(file))
    }

    /// Connects without a login and runs a command: in TLS 1.3 a client learns only then that its
    /// certificate was refused.
    fn try_ping(&self, files: &ClientFiles) -> io::Result<()> {
        let mut stream = connect(self.address, files)?;
        let reply = run(&mut stream, ping())?;
        assert!(ok(&reply), "{reply:?}");
        Ok(())
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

fn connect(address: SocketAddr, files: &ClientFiles) -> io::Result<Box<dyn Stream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let tls = ClientTls::open(files).map_err(io::Error::other)?;
    Ok(Box::new(tls.connect(stream, "localhost")?))
}

fn run(stream: &mut dyn Stream, body: DocBuf) -> io::Result<DocBuf> {
    stream.write_all(&Request::new(1, body).to_bytes().unwrap())?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut message = length.to_vec();
    message.resize(i32::from_le_bytes(length) as usize, 0);
    stream.read_exact(&mut message[4..])?;
    Ok(parse_response(&message).map_err(io::Error::other)?.body)
}

#[test]
fn both_versions_are_spoken_and_counted() {
    let secured = Secured::new(TlsMode::Required, |_, _| {});
    let mut files = secured.good_client();
    secured.try_ping(&files).unwrap();
    files.versions = Versions::without("TLS1_3").unwrap();
    secured.try_ping(&files).unwrap();
    let transport = &secured.server.service().metrics.transport;
    assert_eq!((transport.tls12.get(), transport.tls13.get()), (1, 1));
}

#[test]
fn a_disabled_version_is_refused() {
    let secured = Secured::new(TlsMode::Required, |_, files| {
        files.versions = Versions::without("TLS1_2").unwrap();
    });
    let mut files = secured.good_client();
    files.versions = Versions::without("TLS1_3").unwrap();
    let error = secured.try_ping(&files).unwrap_err();
    assert!(error.to_string().contains("ProtocolVersion"), "{error}");
    files.versions = Versions::default();
    secured.try_ping(&files).unwrap();
}

#[test]
fn a_plain_client_is_served_or_disconnected_as_the_mode_says() {
    let secured = Secured::new(TlsMode::Optional, |_, _| {});
    assert!(ok(&Client::new(secured.address).run(ping())));
    secured.try_ping(&secured.good_client()).unwrap();

    let secured = Secured::new(TlsMode::Required, |_, _| {});
    let mut plain = Client::new(secured.address);
    let request = plain.request(ping());
    let began = Instant::now();
    plain.send(&request);
    assert!(plain.is_closed());
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_tls_client_of_a_plain_server_gets_an_alert() {
    let (_server, address) = crate::server(ServerOptions::default());
    let error = connect(address, &ClientFiles { any_certificate: true, ..ClientFiles::default() })
        .map(drop)
        .unwrap_err();
    assert!(error.to_string().contains("HandshakeFailure"), "{error}");
}

#[test]
fn certificates_that_are_not_good_do_not_get_in() {
    let secured = Secured::new(TlsMode::Required, |authority, files| {
        files.revoked = Some(authority.revoke(&[77], false));
    });
    let sign = |file: &str, unusual| Some(secured.authority.sign(file, "client", &[], unusual));
    let refused = |certificate: Option<PathBuf>, reason: &str| {
        let error = secured.try_ping(&secured.client(certificate)).unwrap_err();
        assert!(error.to_string().contains(reason), "{reason}: {error}");
    };
    let expired = Unusual { expired: true, ..Unusual::default() };
    refused(sign("expired.pem", expired), "CertificateExpired");
    let revoked = Unusual { serial: Some(77), ..Unusual::default() };
    refused(sign("revoked.pem", revoked), "CertificateRevoked");
    let other = Authority::new("another authority");
    refused(Some(other.sign("o.pem", "client", &[], Unusual::default())), "UnknownCA");
    refused(None, "CertificateRequired");
    let fine = Unusual { serial: Some(78), ..Unusual::default() };
    secured.try_ping(&secured.client(sign("fine.pem", fine))).unwrap();
}

#[test]
fn an_expired_revocation_list_refuses_every_client() {
    let secured = Secured::new(TlsMode::Required, |authority, files| {
        files.revoked = Some(authority.revoke(&[], true));
    });
    assert!(secured.try_ping(&secured.good_client()).is_err());
}

#[test]
fn clients_may_be_allowed_without_a_certificate() {
    let secured = Secured::new(TlsMode::Required, |_, files| {
        files.clients_without_certificate = true;
    });
    secured.try_ping(&secured.client(None)).unwrap();
    let other = Authority::new("another authority");
    let foreign = other.sign("o.pem", "client", &[], Unusual::default());
    assert!(secured.try_ping(&secured.client(Some(foreign))).is_err());
}

#[test]
fn a_client_refuses_a_server_of_another_name_or_authority() {
    let secured = Secured::new(TlsMode::Required, |authority, files| {
        files.certificate_key =
            authority.sign("elsewhere.pem", "server", &["elsewhere"], Unusual::default());
    });
    let mut files = secured.good_client();
    let error = secured.try_ping(&files).unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
    files.any_name = true;
    secured.try_ping(&files).unwrap();
    let other = Authority::new("another authority");
    files.authorities = Some(other.file());
    let error = secured.try_ping(&files).unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    files.any_certificate = true;
    secured.try_ping(&files).unwrap();
}

#[test]
fn a_half_open_handshake_ends() {
    for first in [&b""[..], &[22], &[22, 3, 1, 2, 0, 1]] {
        let secured = Secured::within(SHORT, TlsMode::Required, |_, _| {});
        let mut stream = TcpStream::connect(secured.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(first).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        eventually("the connection is gone", || secured.server.connections() == 0);
    }
}

#[test]
fn unencrypted_records_end_the_connection() {
    let secured = Secured::new(TlsMode::Required, |_, _| {});
    let files = secured.good_client();
    let stream = TcpStream::connect(secured.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut below = stream.try_clone().unwrap();
    let mut stream = ClientTls::open(&files).unwrap().connect(stream, "localhost").unwrap();
    assert!(ok(&run(&mut stream, ping()).unwrap()));
    below.write_all(&[23, 3, 3, 0, 30]).unwrap();
    below.write_all(&[1; 30]).unwrap();
    let mut byte = [0];
    assert!(matches!(stream.read(&mut byte), Ok(0) | Err(_)));
    eventually("the connection is gone", || secured.server.connections() == 0);
}

#[test]
fn large_messages_go_both_ways() {
    let secured = Secured::new(TlsMode::Required, |_, _| {});
    let mut stream = connect(secured.address, &secured.good_client()).unwrap();
    let text = "x".repeat(12 << 20);
    let stored =
        doc! { "insert": "c", "documents": [{ "_id": 1, "text": text.as_str() }], "$db": "d" };
    let reply = run(&mut stream, stored).unwrap();
    assert!(ok(&reply), "{reply:?}");
    let reply = run(&mut stream, doc! { "find": "c", "$db": "d" }).unwrap();
    assert!(reply.as_bytes().len() > text.len());
}

#[test]
fn a_disconnect_ends_the_client_s_operation() {
    let secured = Secured::new(TlsMode::Required, |_, _| {});
    let mut stream = connect(secured.address, &secured.good_client()).unwrap();
    let first = run(&mut stream, doc! { "hello": 1, "$db": "admin" }).unwrap();
    let version = first.get("topologyVersion").unwrap();
    let wait =
        doc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 60_000, "$db": "admin" };
    stream.write_all(&Request::new(2, wait).to_bytes().unwrap()).unwrap();
    drop(stream);
    eventually("the connection is gone", || secured.server.connections() == 0);
}

#[test]
fn rotated_certificates_are_for_new_connections() {
    let secured = Secured::new(TlsMode::Required, |_, _| {});
    let files = secured.good_client();
    let mut old = connect(secured.address, &files).unwrap();
    let subject = || {
        let certificate = secured.server.service().certificate().unwrap();
        certificate.subject()
    };
    assert_eq!(subject(), "CN=server,O=Quire\\, tests");
    secured.authority.sign("s.pem", "renewed", &["localhost"], Unusual::default());
    assert!(ok(&run(&mut old, doc! { "rotateCertificates": 1, "$db": "admin" }).unwrap()));
    assert_eq!(subject(), "CN=renewed,O=Quire\\, tests");
    std::fs::write(secured.authority.directory().join("s.pem"), "nonsense").unwrap();
    let reply = run(&mut old, doc! { "rotateCertificates": 1, "$db": "admin" }).unwrap();
    assert_eq!(crate::code(&reply), 140);
    assert_eq!(subject(), "CN=renewed,O=Quire\\, tests");
    secured.try_ping(&files).unwrap();
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let authority = Authority::new("the authority");
    let good = authority.sign("s.pem", "server", &["localhost"], Unusual::default());
    let open = |certificate_key: &Path, password: Option<&str>| {
        ServerTls::open(ServerFiles {
            certificate_key: certificate_key.to_owned(),
            password: password.map(str::to_owned),
            authorities: authority.file(),
            revoked: None,
            clients_without_certificate: false,
            versions: Versions::default(),
        })
        .map(drop)
        .map_err(|error| error.to_string())
    };
    let refused = |path: &Path, password, reason: &str| {
        let error = open(path, password).unwrap_err();
        assert!(error.contains(reason), "{reason}: {error}");
    };
    refused(Path::new("/nowhere.pem"), None, "cannot read");
    refused(&authority.file(), None, "there is no private key");
    let text = std::fs::read_to_string(&good).unwrap();
    let key = text.find("-----BEGIN PRIVATE KEY").unwrap();
    let write = |text: String| {
        let path = authority.directory().join("changed.pem");
        std::fs::write(&path, text).unwrap();
        path
    };
    refused(&write(text[key..].to_owned()), None, "there is no certificate");
    let other = std::fs::read_to_string(authority.sign("t.pem", "t", &[], Unusual::default()));
    let other = other.unwrap();
    let other_key = &other[other.find("-----BEGIN PRIVATE KEY").unwrap()..];
    refused(&write(format!("{}{other_key}", &text[..key])), None, "cannot be used");
    let locked = Unusual { password: Some("secret"), ..Unusual::default() };
    let locked = authority.sign("locked.pem", "server", &["localhost"], locked);
    refused(&locked, None, "there is no password");
    refused(&locked, Some("wrong"), "the password may be wrong");
    open(&locked, Some("secret")).unwrap();
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n";
    refused(&write(format!("{}{old}", &text[..key])), None, "old encryption");
}

/// The user in the certificate of `good_client`.
const SUBJECT: &str = "CN=client,O=Quire\\, tests";

/// Returns the number of logged-in users.
fn users(stream: &mut dyn Stream) -> usize {
    let reply = run(stream, doc! { "connectionStatus": 1, "$db": "admin" }).unwrap();
    let info = reply.get("authInfo").and_then(|info| info.as_document()).unwrap();
    let users = info.get("authenticatedUsers").and_then(|users| users.as_array()).unwrap();
    users.iter().count()
}

#[test]
fn a_certificate_logs_its_user_in() {
    let secured = Secured::new(TlsMode::Required, |_, _| {});
    let files = secured.good_client();
    let mut stream = connect(secured.address, &files).unwrap();
    let login = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external" };
    // No user has this name yet.
    assert_eq!(crate::code(&run(&mut stream, login.clone()).unwrap()), 11);
    let user = doc! {
        "createUser": SUBJECT, "roles": [{ "role": "root", "db": "admin" }], "$db": "$external",
    };
    let reply = run(&mut stream, user).unwrap();
    assert!(ok(&reply), "{reply:?}");
    let reply = run(&mut stream, login.clone()).unwrap();
    assert!(ok(&reply), "{reply:?}");
    assert!(matches!(reply.get("user"), Some(Value::String(SUBJECT))), "{reply:?}");
    assert!(matches!(reply.get("dbname"), Some(Value::String("$external"))), "{reply:?}");
    assert_eq!(users(&mut stream), 1);

    // Inside a hello, with or without the name; some drivers, such as PyMongo, omit the database.
    for (user, db) in [(Some(SUBJECT), Some("$external")), (None, Some("$external")), (None, None)]
    {
        let mut attempt = doc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
        if let Some(user) = user {
            attempt.append("user", user);
        }
        if let Some(db) = db {
            attempt.append("db", db);
        }
        let hello = doc! { "hello": 1, "speculativeAuthenticate": &attempt, "$db": "admin" };
        let mut stream = connect(secured.address, &files).unwrap();
        let reply = run(&mut stream, hello).unwrap();
        let done = reply.get("speculativeAuthenticate").and_then(|done| done.as_document());
        assert!(done.is_some_and(|done| done.get("user").is_some()), "{reply:?}");
        assert_eq!(users(&mut stream), 1);
    }
    let counts = &secured.server.service().metrics.x509;
    assert_eq!((counts.received.get(), counts.successful.get()), (5, 4));
    assert_eq!(counts.speculative_successful.get(), 3);

    // A name that is not the certificate's, another database, another mechanism.
    let mut stream = connect(secured.address, &files).unwrap();
    let named = doc! {
        "authenticate": 1, "mechanism": "MONGODB-X509", "user": "CN=boss", "$db": "$external",
    };
    assert_eq!(crate::code(&run(&mut stream, named).unwrap()), 18);
    let elsewhere = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "admin" };
    assert_eq!(crate::code(&run(&mut stream, elsewhere).unwrap()), 17);
    let other = doc! { "authenticate": 1, "mechanism": "MONGODB-CR", "$db": "$external" };
    assert_eq!(crate::code(&run(&mut stream, other).unwrap()), 18);
    assert_eq!(users(&mut stream), 0);
}

#[test]
fn a_login_by_certificate_needs_a_certificate() {
    let secured = Secured::new(TlsMode::Optional, |_, files| {
        files.clients_without_certificate = true;
    });
    let mut owner = connect(secured.address, &secured.good_client()).unwrap();
    let user = doc! {
        "createUser": SUBJECT, "roles": [{ "role": "root", "db": "admin" }], "$db": "$external",
    };
    assert!(ok(&run(&mut owner, user).unwrap()));
    let login = doc! {
        "authenticate": 1, "mechanism": "MONGODB-X509", "user": SUBJECT, "$db": "$external",
    };
    let mut plain = Client::new(secured.address);
    assert_eq!(crate::code(&plain.run(login.clone())), 18);
    let mut bare = connect(secured.address, &secured.client(None)).unwrap();
    assert_eq!(crate::code(&run(&mut bare, login).unwrap()), 18);
}

/// Each byte of an incomplete record restarted the time limit of the first message.
#[test]
fn the_first_message_must_come_soon_inside_a_record_too() {
    let secured = Secured::within(SHORT, TlsMode::Required, |_, _| {});
    let stream = TcpStream::connect(secured.address).unwrap();
    let tls = ClientTls::open(&secured.good_client()).unwrap();
    let mut stream = tls.connect(stream, "localhost").unwrap();
    stream.conn.writer().write_all(&[7; 8 << 10]).unwrap();
    let mut record = Vec::new();
    while stream.conn.wants_write() {
        stream.conn.write_tls(&mut record).unwrap();
    }
    let began = Instant::now();
    let sent = record.iter().take_while(|byte| {
        std::thread::sleep(Duration::from_millis(20));
        stream.sock.write_all(std::slice::from_ref(byte)).is_ok()
    });
    let sent = sent.take_while(|_| began.elapsed() < Duration::from_secs(10)).count();
    assert!(sent < 200, "{sent} bytes were taken");
    eventually("the connection is gone", || secured.server.connections() == 0);
}
