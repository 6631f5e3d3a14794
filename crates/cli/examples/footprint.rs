//! What the server costs before it does anything: time to its first answer, memory idle and with
//! idle connections, size of the binary. `cargo run --release -p quire-cli --example footprint`,
//! after `cargo build --release -p quire-cli`; Linux. The results stand in docs/benchmarks.md.

use quire_document::doc;
use quire_wire::client::Request;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const STARTS: usize = 20;
const CONNECTIONS: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args().nth(1).map(PathBuf::from);
    let beside = std::env::current_exe()?.with_file_name("../quire");
    let program = given.unwrap_or(beside);
    let size = std::fs::metadata(&program)?.len();
    println!("binary: {:.1} MB", size as f64 / 1e6);
    let directory = std::env::temp_dir().join(format!("quire-footprint-{}", std::process::id()));
    for (name, fresh) in [("an empty directory", true), ("the same directory again", false)] {
        let mut times = Vec::new();
        let mut stops = Vec::new();
        for _ in 0..STARTS {
            if fresh {
                let _ = std::fs::remove_dir_all(&directory);
            }
            let began = Instant::now();
            let server = Server::start(&program, &directory)?;
            ping(&mut server.connect()?)?;
            times.push(began.elapsed());
            stops.push(server.stop()?);
        }
        println!("start to first reply, {name}: {}; stop: {}", middle(times), middle(stops));
    }
    let server = Server::start(&program, &directory)?;
    ping(&mut server.connect()?)?;
    std::thread::sleep(Duration::from_secs(2));
    let idle = server.resident_kb()?;
    println!("idle: {:.1} MB resident", idle as f64 / 1e3);
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = server.connect()?;
        ping(&mut client)?;
        clients.push(client);
    }
    std::thread::sleep(Duration::from_secs(3));
    let full = server.resident_kb()?;
    let each = (full - idle) as f64 / CONNECTIONS as f64;
    println!(
        "{CONNECTIONS} idle connections: {:.1} MB more, {each:.1} KB each",
        (full - idle) as f64 / 1e3
    );
    drop(clients);
    server.stop()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(program: &Path, directory: &Path) -> Result<Server, Box<dyn Error>> {
        let mut command = Command::new(program);
        command.args(["serve", "--quiet", "--port", "0", "--dbpath"]).arg(directory);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
        Ok(Server { child, port: port.ok_or("it did not start")?.parse()? })
    }

    fn connect(&self) -> Result<TcpStream, Box<dyn Error>> {
        Ok(TcpStream::connect(("127.0.0.1", self.port))?)
    }

    fn resident_kb(&self) -> Result<i64, Box<dyn Error>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
    }

    fn stop(mut self) -> Result<Duration, Box<dyn Error>> {
        let began = Instant::now();
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        self.child.wait()?;
        Ok(began.elapsed())
    }
}

fn ping(stream: &mut TcpStream) -> Result<(), Box<dyn Error>> {
    let body = doc! { "hello": 1, "$db": "admin" };
    stream.write_all(&Request::new(1, body).to_bytes()?)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut rest = vec![0; i32::from_le_bytes(length) as usize - 4];
    stream.read_exact(&mut rest)?;
    Ok(())
}

fn middle(mut times: Vec<Duration>) -> String {
    times.sort();
    let ms = |at: usize| times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    format!("median {:.1} ms, worst {:.1} ms", ms(times.len() / 2), ms(times.len() - 1))
}
