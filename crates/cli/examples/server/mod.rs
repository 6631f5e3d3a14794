//! A separate server process for a measurement, and a minimal client. Linux.

#![allow(dead_code)]

use quire_access::Mechanism;
use quire_access::scram::ClientLogin;
use quire_document::{Binary, DocBuf, Value, doc};
use quire_wire::client::{Request, parse_response};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns the server's binary: the first argument, or the one built beside the example.
pub fn program() -> Result<PathBuf, Box<dyn Error>> {
    let given = std::env::args().nth(1).map(PathBuf::from);
    let beside = std::env::current_exe()?.with_file_name("../quire");
    Ok(given.unwrap_or(beside))
}

pub struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts a server on a free port.
    pub fn start(program: &Path, directory: &Path) -> Result<Server, Box<dyn Error>> {
        Server::spawn(Command::new(program), directory)
    }

    /// Starts a server with a command that runs the program.
    pub fn spawn(command: Command, directory: &Path) -> Result<Server, Box<dyn Error>> {
        Server::spawn_with(command, directory, &[])
    }

    /// Starts a server with a command that runs the program, with more options.
    pub fn spawn_with(
        mut command: Command,
        directory: &Path,
        options: &[&str],
    ) -> Result<Server, Box<dyn Error>> {
        std::fs::create_dir_all(directory)?;
        command.args(["serve", "--quiet", "--port", "0", "--dbpath"]).arg(directory).args(options);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
        Ok(Server { child, port: port.ok_or("it did not start")?.parse()? })
    }

    pub fn connect(&self) -> Result<TcpStream, Box<dyn Error>> {
        Ok(TcpStream::connect(("127.0.0.1", self.port))?)
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the resident memory in kB.
    pub fn resident_kb(&self) -> Result<i64, Box<dyn Error>> {
        self.status_kb("VmRSS:")
    }

    /// Returns the peak of the resident memory since the last call of `forget_peak`, in kB.
    pub fn peak_kb(&self) -> Result<i64, Box<dyn Error>> {
        self.status_kb("VmHWM:")
    }

    pub fn forget_peak(&self) -> Result<(), Box<dyn Error>> {
        Ok(std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }

    fn status_kb(&self, name: &str) -> Result<i64, Box<dyn Error>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with(name)).ok_or("no such line")?;
        Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
    }

    /// Returns the user and system time so far, in steps of 10 ms.
    pub fn cpu(&self) -> Result<Duration, Box<dyn Error>> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit_once(')').ok_or("no stat")?.1;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        Ok(Duration::from_millis(ticks.sum::<Result<u64, _>>()? * 10))
    }

    /// Ends the server. Returns how long that took.
    pub fn stop(mut self) -> Result<Duration, Box<dyn Error>> {
        let began = Instant::now();
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        self.child.wait()?;
        Ok(began.elapsed())
    }
}

/// Creates the first user of a server with `--auth`, with all rights.
pub fn make_root(stream: &mut (impl Read + Write + ?Sized)) -> Result<(), Box<dyn Error>> {
    let user = doc! { "createUser": "root", "pwd": "r", "roles": ["root"], "$db": "admin" };
    command(stream, user).map(drop)
}

/// Logs in as that user.
pub fn log_in(stream: &mut (impl Read + Write + ?Sized)) -> Result<(), Box<dyn Error>> {
    let mechanism = Mechanism::Sha256;
    let login = ClientLogin::new(mechanism, "root", "r")?;
    let binary = |text| Value::Binary(Binary { subtype: 0, bytes: text });
    let first = login.first();
    let start = doc! {
        "saslStart": 1, "mechanism": mechanism.name(), "payload": binary(first.as_bytes()),
        "options": { "skipEmptyExchange": true }, "$db": "admin"
    };
    let reply = command(stream, start)?;
    let Some(Value::Binary(challenge)) = reply.get("payload") else {
        return Err("no payload".into());
    };
    let (_, proof) = login.prove(challenge.bytes)?;
    let last = doc! {
        "saslContinue": 1, "conversationId": 1, "payload": binary(proof.as_bytes()), "$db": "admin"
    };
    command(stream, last).map(drop)
}

/// Runs a command and returns its reply; an error reply is an error.
pub fn command(
    stream: &mut (impl Read + Write + ?Sized),
    body: DocBuf,
) -> Result<DocBuf, Box<dyn Error>> {
    stream.write_all(&Request::new(1, body).to_bytes()?)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut message = length.to_vec();
    message.resize(i32::from_le_bytes(length) as usize, 0);
    stream.read_exact(message.get_mut(4..).ok_or("an empty message")?)?;
    let reply = parse_response(&message)?.body;
    match reply.get("ok") {
        Some(Value::Double(1.0)) if reply.get("writeErrors").is_none() => Ok(reply),
        _ => Err(format!("{reply:?}").into()),
    }
}
