//! `cargo xtask cases`: runs case files against a server, records replies, and rewrites the list of
//! expected failures.

use quire_testkit::case::{CaseFile, load_all};
use quire_testkit::client::{AtAddress, Connect, InProcess};
use quire_testkit::expected::Expected;
use quire_testkit::{runner, servers, variants};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cases check [HOST:PORT|memory] [PART-OF-FILE-NAME...]   compares, SHOW=n differences
       cases record HOST:PORT FILE...                        writes the server's replies into the files
       cases --variants [PART-OF-FILE-NAME...]               compares reads with every index, none, small batches, spilled
       cases expect [PART-OF-FILE-NAME...]                   notes what differs now in expected.txt, without a reason";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let result = match args.first().map(String::as_str) {
        Some("check") => check(&root, &args[1..]),
        Some("--variants") => run_variants(&root, &args[1..]),
        Some("record") => record(&root, &args[1..]),
        Some("expect") => expect(&root, &args[1..]),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn server(address: &str) -> Box<dyn Connect> {
    match address {
        "memory" => Box::new(InProcess(servers::memory())),
        address => Box::new(AtAddress(address.to_owned())),
    }
}

fn picked(root: &Path, parts: &[String]) -> Result<Vec<CaseFile>, String> {
    let mut files = load_all(root).map_err(|error| error.to_string())?;
    files.retain(|file| {
        parts.is_empty() || parts.iter().any(|part| file.name.contains(part.as_str()))
    });
    Ok(files)
}

fn check(root: &Path, args: &[String]) -> Result<bool, String> {
    let address = args.first().map_or("memory", String::as_str);
    let server = server(address);
    let expected = Expected::load(&root.join("expected.txt")).map_err(|error| error.to_string())?;
    let show: usize = std::env::var("SHOW").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let (mut passed, mut failed, mut shown, mut wording) = (0, 0, 0, 0);
    for file in picked(root, args.get(1..).unwrap_or(&[]))? {
        let (mut agree, mut differ) = (0, 0);
        for case in file.cases.iter().filter(|case| !case.older) {
            let outcome = runner::run(&*server, &file, case)?;
            wording += usize::from(outcome.wording);
            let Some(found) = outcome.difference else {
                agree += 1;
                continue;
            };
            differ += 1;
            let known = expected.reason(&file.name, &case.title);
            if shown < show && known.is_none() {
                shown += 1;
                println!("{}:{} [{}]", file.name, found.line, case.title);
                println!("  > {}\n  want {}\n  got  {}", found.command, found.want, found.got);
            }
        }
        println!("{agree:5} passed {differ:5} failed  {}", file.name);
        passed += agree;
        failed += differ;
    }
    println!(
        "CASES passed {passed} failed {failed} (of the passed, {wording} differ in errmsg wording only)"
    );
    Ok(failed == 0)
}

/// Runs the reads of the cases in other ways. Fails if a result differs.
fn run_variants(root: &Path, parts: &[String]) -> Result<bool, String> {
    let server = server("memory");
    let (mut compared, mut differ) = (0, 0);
    for file in picked(root, parts)? {
        for case in file.cases.iter().filter(|case| variants::is_repeatable(case)) {
            let report = variants::run(&*server, &file, case)?;
            compared += report.compared;
            differ += report.differences.len();
            report.differences.iter().for_each(|text| println!("[{}] {text}", case.title));
        }
    }
    println!("VARIANTS compared {compared} answers, {differ} differ");
    Ok(differ == 0)
}

fn record(root: &Path, args: &[String]) -> Result<bool, String> {
    let (address, paths) = args.split_first().ok_or(USAGE)?;
    let server = server(address);
    for path in paths {
        let mut file = CaseFile::load(root, Path::new(path)).map_err(|error| error.to_string())?;
        let mut cases = std::mem::take(&mut file.cases);
        for case in &mut cases {
            runner::record(&*server, &file, case)?;
        }
        file.cases = cases;
        file.save().map_err(|error| error.to_string())?;
    }
    Ok(true)
}

fn expect(root: &Path, parts: &[String]) -> Result<bool, String> {
    let list = root.join("expected.txt");
    let old = Expected::load(&list).map_err(|error| error.to_string())?;
    let mut new = Expected::default();
    let server = server("memory");
    let all = load_all(root).map_err(|error| error.to_string())?;
    for file in &all {
        let chosen = parts.is_empty() || parts.iter().any(|part| file.name.contains(part.as_str()));
        for case in file.cases.iter().filter(|case| !case.older) {
            let known = old.reason(&file.name, &case.title);
            if !chosen {
                if let Some(reason) = known {
                    new.insert(&file.name, &case.title, reason);
                }
                continue;
            }
            if let Some(found) = runner::run(&*server, file, case)?.difference {
                let guess = reason(&file.name, &case.title, &found.got);
                new.insert(&file.name, &case.title, known.unwrap_or(&guess));
            }
        }
    }
    println!("{} cases on the list, {} before", new.len(), old.len());
    new.save(&list).map_err(|error| error.to_string())?;
    Ok(true)
}

/// Returns the missing feature that the reply names, else a mark that a person must check the case.
fn reason(file: &str, _title: &str, got: &str) -> String {
    if let Some((before, _)) = got.split_once(" is not supported yet") {
        let feature = before.rsplit("errmsg: \"").next().unwrap_or(before);
        return format!("waits for {feature}");
    }
    format!("unexplained: {}", file.rsplit_once('/').map_or(file, |(folder, _)| folder))
}
