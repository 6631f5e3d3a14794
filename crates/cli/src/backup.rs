//! `quire backup`: makes a consistent copy that `quire serve` can open, from a running server or
//! from a stopped directory.

use crate::call::{Call, print};
use crate::connect::{self, Target};
use crate::exit::{FAILED, Failure};
use lexopt::{Arg, Parser};
use quire_document::doc;
use quire_storage::Interrupt;
use quire_storage_lsm::{LsmOptions, is_database};
use std::path::{Path, PathBuf};

enum Request {
    Running { target: Box<Target>, to: PathBuf },
    Stopped { from: PathBuf, to: PathBuf },
}

fn help() -> String {
    format!(
        "Usage: quire backup --uri URI DIR
       quire backup FROM TO

Makes a consistent copy of all data in a new (or empty) directory, which 'quire serve' can open.
With --uri, a running server copies its data to DIR on its own machine and keeps running; if it
asks for a login, the user needs the role backup. Without --uri, the stopped database directory
FROM is copied to TO.

  -h, --help           Shows this help.

Server:
{}",
        connect::server_help()
    )
}

/// Makes a backup.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    match parse(call)? {
        None => print(&help()),
        Some(Request::Running { target, to }) => copy_running(&target, &to)?,
        Some(Request::Stopped { from, to }) => copy_stopped(&from, &to)?,
    }
    Ok(())
}

fn copy_running(target: &Target, to: &Path) -> Result<(), Failure> {
    let to = std::path::absolute(to)
        .map_err(|error| Failure::options(format!("{}: {error}", to.display())))?;
    let Some(path) = to.to_str() else {
        return Err(Failure::options(format!("{} is not valid UTF-8", to.display())));
    };
    let door = target.open("quire backup")?;
    let reply = door
        .client()?
        .call("admin", doc! { "quireBackup": path }, None)
        .map_err(|error| error.failure("the server made no backup"))?;
    let bytes = reply.get("bytes").and_then(crate::connect::integer).unwrap_or(0);
    print(&format!("the server's data are copied to {path}: {bytes} bytes"));
    Ok(())
}

fn copy_stopped(from: &Path, to: &Path) -> Result<(), Failure> {
    let shown = from.display();
    if !is_database(from) {
        return Err(Failure::new(FAILED, format!("{shown} is not a database directory of Quire")));
    }
    let opened = crate::engine::open(from, LsmOptions::default())?;
    opened.warnings.iter().for_each(|warning| print(&format!("warning: {warning}")));
    let failed = |error| Failure::new(FAILED, format!("cannot copy {shown}: {error}"));
    opened.engine.backup(to, &Interrupt::new()).map_err(failed)?;
    opened.engine.close().map_err(failed)?;
    print(&format!("{shown} is copied to {}", to.display()));
    Ok(())
}

fn parse(call: &Call) -> Result<Option<Request>, Failure> {
    let bad = |text: String| Failure::options(format!("{text}\n\n{}", help()));
    let mut parser = Parser::from_args(call.words.iter().cloned());
    let (mut paths, mut target) = (Vec::new(), Target::default());
    while let Some(word) = parser.next().map_err(|error| bad(error.to_string()))? {
        match word {
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Value(path) => paths.push(PathBuf::from(path)),
            Arg::Long("dbpath") => return Err(bad("name the stopped directory as FROM".into())),
            word => match target.take(&word) {
                Some(taken) => {
                    target.set(taken, &mut parser).map_err(|error| bad(error.to_string()))?;
                }
                None => return Err(bad(word.unexpected().to_string())),
            },
        }
    }
    match (target.names_a_server(), <[PathBuf; 2]>::try_from(paths)) {
        (false, Ok([from, to])) => Ok(Some(Request::Stopped { from, to })),
        (false, Err(_)) => Err(bad("two directories are needed: from and to".to_owned())),
        (true, Err(paths)) => match <[PathBuf; 1]>::try_from(paths) {
            Ok([to]) => Ok(Some(Request::Running { target: Box::new(target), to })),
            Err(_) => Err(bad("one directory is needed: where the copy goes".to_owned())),
        },
        (true, Ok(_)) => Err(bad("one directory is needed: where the copy goes".to_owned())),
    }
}
