//! Every recorded case is one test, run in each of four ways: on the memory engine and on disk, in
//! process and over a socket. A case on the list of expected failures must fail. The reads of every
//! case are then repeated in other ways, all its statements inside transactions, and those on time-series collections with
//! closed points; the results must be equal.

#![allow(clippy::unwrap_used)]

use quire_testkit::case::{Case, CaseFile, load_all};
use quire_testkit::client::{Connect, InProcess};
use quire_testkit::expected::Expected;
use quire_testkit::servers::{self, Ways};
use quire_testkit::variants::Report;
use quire_testkit::{closed, runner, transacted, variants};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn main() -> ExitCode {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if std::env::args().any(|arg| arg == "--list") {
        return ExitCode::SUCCESS;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let files = load_all(&root).expect("the cases can be read");
    let expected = Expected::load(&root.join("expected.txt")).expect("the list can be read");
    let ways = Ways::open();
    let mut failed = 0;
    let mut run = 0;
    for (name, way) in ways.iter() {
        let tally = run_all(&files, &expected, way, &wanted);
        println!(
            "{name}: {} agree ({} in all but an error's wording), {} differ as expected, {} older",
            tally.agree, tally.wording, tally.known, tally.older
        );
        tally.problems.iter().take(200).for_each(|problem| println!("{name}: {problem}"));
        failed += tally.problems.len();
        run += tally.agree + tally.known;
    }
    let repeated: [(&str, &Repeat); 3] = [
        ("reads repeated in other ways", &repeat_reads),
        ("inside transactions", &transact),
        ("with closed points", &close),
    ];
    for (what, repeat) in repeated {
        let (compared, differences) = on_two_threads(&files, &wanted, repeat);
        println!("{what}: {compared}, {} differ", differences.len());
        differences.iter().take(40).for_each(|text| println!("{text}"));
        failed += differences.len();
        run += compared;
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {run} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a case again on servers of the calling thread.
type Repeat = dyn Fn(&[InProcess; 2], &CaseFile, &Case) -> Result<Report, String> + Sync;

fn repeat_reads(
    [server, _]: &[InProcess; 2],
    file: &CaseFile,
    case: &Case,
) -> Result<Report, String> {
    if variants::is_repeatable(case) {
        variants::run(server, file, case)
    } else {
        Ok(Report::default())
    }
}

fn transact(
    [plain, other]: &[InProcess; 2],
    file: &CaseFile,
    case: &Case,
) -> Result<Report, String> {
    transacted::run(plain, other, file, case)
}

fn close([plain, other]: &[InProcess; 2], file: &CaseFile, case: &Case) -> Result<Report, String> {
    closed::run(plain, other, file, case)
}

/// Runs the cases again on two threads, each with its own servers in memory. Returns the number of
/// compared results, and those that differ.
fn on_two_threads(files: &[CaseFile], wanted: &[String], repeat: &Repeat) -> (usize, Vec<String>) {
    let picked =
        |file: &&CaseFile| wanted.is_empty() || wanted.iter().any(|part| file.name.contains(part));
    let files: Vec<&CaseFile> = files.iter().filter(picked).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let servers = [(); 2].map(|()| InProcess(servers::memory()));
        let (mut compared, mut differences) = (0, Vec::new());
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            for case in &file.cases {
                match repeat(&servers, file, case) {
                    Ok(report) => {
                        compared += report.compared;
                        differences.extend(report.differences);
                    }
                    Err(error) => differences.push(error),
                }
            }
        }
        (compared, differences)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let (mut compared, mut differences) = work();
        let (more, found) = other.join().expect("no test thread panicked");
        compared += more;
        differences.extend(found);
        (compared, differences)
    })
}

#[derive(Default)]
struct Tally {
    agree: usize,
    wording: usize,
    known: usize,
    older: usize,
    problems: Vec<String>,
}

/// Runs the cases on two threads: they share a server as clients do.
fn run_all(files: &[CaseFile], expected: &Expected, way: &dyn Connect, wanted: &[String]) -> Tally {
    let picked: Vec<&CaseFile> = files
        .iter()
        .filter(|file| wanted.is_empty() || wanted.iter().any(|part| file.name.contains(part)))
        .collect();
    // Files that change parameters of the whole server run alone.
    let (alone, together): (Vec<&CaseFile>, Vec<&CaseFile>) = picked
        .into_iter()
        .partition(|file| file.name.contains("/admin/") || file.name.contains("default-rw"));
    let tally = Mutex::new(Tally::default());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(file) = together.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run_file(file, expected, way, &tally);
                }
            });
        }
    });
    alone.iter().for_each(|file| run_file(file, expected, way, &tally));
    tally.into_inner().expect("no test thread panicked")
}

fn run_file(file: &CaseFile, expected: &Expected, way: &dyn Connect, tally: &Mutex<Tally>) {
    for case in &file.cases {
        let verdict = if case.older { None } else { Some(judge(file, case, expected, way)) };
        let mut tally = tally.lock().expect("no test thread panicked");
        match verdict {
            None => tally.older += 1,
            Some(Verdict::Agrees { wording }) => {
                tally.agree += 1;
                tally.wording += usize::from(wording);
            }
            Some(Verdict::Known) => tally.known += 1,
            Some(Verdict::Problem(text)) => tally.problems.push(text),
        }
    }
}

enum Verdict {
    Agrees { wording: bool },
    Known,
    Problem(String),
}

fn judge(file: &CaseFile, case: &Case, expected: &Expected, way: &dyn Connect) -> Verdict {
    let reason = expected.reason(&file.name, &case.title);
    let place = format!("{}:{} [{}]", file.name, case.line, case.title);
    match (runner::run(way, file, case), reason) {
        (Err(error), _) => Verdict::Problem(format!("{place}: {error}")),
        (Ok(outcome), None) => match outcome.difference {
            None => Verdict::Agrees { wording: outcome.wording },
            Some(found) => Verdict::Problem(format!(
                "{place}\n  line {}: > {}\n  want {}\n  got  {}",
                found.line, found.command, found.want, found.got
            )),
        },
        (Ok(outcome), Some(reason)) => match outcome.difference {
            Some(_) => Verdict::Known,
            None => Verdict::Problem(format!("{place}: agrees, although the list says: {reason}")),
        },
    }
}
