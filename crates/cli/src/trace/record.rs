//! `quire record`: asks a server for the statements of a while and writes them into a file.

use super::file::TraceWriter;
use crate::call::{Call, print};
use crate::connect::{self, Client, Target};
use crate::exit::{FAILED, Failure};
use crate::words::{Word, Words};
use quire_advisor::trace::Values;
use quire_document::{DocBuf, doc};
use std::path::PathBuf;
use std::time::Duration;

/// The pause between two readings. The server keeps what comes in between.
const PAUSE: Duration = Duration::from_millis(200);

fn help() -> String {
    format!(
        "Usage: quire record --for TIME -o FILE [OPTIONS]

Writes the statements that a server runs for a while into a file, which 'quire replay' runs
again. The server must be Quire. docs/recorder.md says what the file contains.

  --for TIME           How long: 30s, 10m, 2h.
  -o, --output FILE    The file, which must not exist.
  --values HOW         keep: whole commands with their values, which can be replayed.
                       hash: only hashes of values that are looked up or returned.
                       none: shapes and times. Default: hash.
  --quiet              Prints nothing.
  -h, --help           Shows this help.

Server:
{}",
        connect::server_help()
    )
}

struct Options {
    target: Target,
    seconds: u64,
    output: PathBuf,
    values: Values,
    quiet: bool,
}

/// Runs `quire record`.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = parse(call)? else {
        print(&help());
        return Ok(());
    };
    let door = options.target.open_server("quire record")?;
    let mut client = door.client()?;
    let (written, lost) = record(&mut client, &options)?;
    drop(client);
    door.close()?;
    if !options.quiet {
        let path = options.output.display();
        let text = format!("{written} statements in {path}, {lost} lost");
        print(&text);
    }
    Ok(())
}

fn record(client: &mut Client, options: &Options) -> Result<(u64, i64), Failure> {
    let mut call = |body: DocBuf| {
        let called = client.call("admin", body, None);
        called.map_err(|error| error.failure("cannot record"))
    };
    let seconds = i64::try_from(options.seconds).unwrap_or(i64::MAX);
    let begun = call(doc! {
        "quireRecorder": "beginTrace", "values": options.values.name(), "seconds": seconds,
    })?;
    let head = begun.get("head").and_then(|head| head.as_document());
    let id = begun.get("trace").and_then(|id| id.exact_i64());
    let (Some(head), Some(id)) = (head, id) else {
        return Err(Failure::new(FAILED, "the reply has no trace"));
    };
    let mut file = match TraceWriter::create(&options.output, head) {
        Ok(file) => file,
        Err(failure) => {
            call(doc! { "quireRecorder": "endTrace", "trace": id })?;
            return Err(failure);
        }
    };
    let mut written = 0;
    loop {
        let reply = call(doc! { "quireRecorder": "readTrace", "trace": id })?;
        let entries = reply.get("entries").and_then(|entries| entries.as_array());
        let mut any = false;
        for entry in entries.into_iter().flat_map(|entries| entries.iter()) {
            if let Some(entry) = entry.as_document() {
                file.write(entry)?;
                written += 1;
                any = true;
            }
        }
        file.flush()?;
        if reply.get("continues").and_then(|flag| flag.as_bool()) != Some(true) {
            let lost = reply.get("lost").and_then(|lost| lost.exact_i64()).unwrap_or(0);
            call(doc! { "quireRecorder": "endTrace", "trace": id })?;
            return Ok((written, lost));
        }
        if !any {
            std::thread::sleep(PAUSE);
        }
    }
}

fn parse(call: &Call) -> Result<Option<Options>, Failure> {
    let (mut target, mut values, mut quiet) = (Target::default(), Values::Hash, false);
    let (mut seconds, mut output) = (None, None);
    let mut words = Words::of(call, help());
    while let Some(word) = words.next(&mut target)? {
        let name = match word {
            Word::Help => return Ok(None),
            Word::Long(name) if name == "quiet" => {
                quiet = true;
                continue;
            }
            Word::Long(name) if matches!(name.as_str(), "for" | "output" | "values") => name,
            Word::Short('o') => "output".to_owned(),
            other => return Err(words.unexpected(other)),
        };
        let value = words.value()?;
        if name == "output" {
            output = Some(PathBuf::from(value));
            continue;
        }
        let value = words.text_of(value)?;
        match name.as_str() {
            "for" => seconds = Some(duration(&value).map_err(|text| words.wrong(text))?),
            _ => {
                let known = Values::parse(&value);
                let text = || words.wrong(format!("--values is keep, hash or none, not '{value}'"));
                values = known.ok_or_else(text)?;
            }
        }
    }
    let seconds = seconds.ok_or_else(|| words.wrong("--for says how long to record"))?;
    let output = output.ok_or_else(|| words.wrong("--output names the file"))?;
    Ok(Some(Options { target, seconds, output, values, quiet }))
}

/// Returns the seconds of `30s`, `10m`, `2h`, or of a plain number.
fn duration(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, text.chars().next_back()),
        None => (text, None),
    };
    let factor = match unit {
        Some('m') => 60,
        Some('h') => 3600,
        _ => 1,
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    match seconds {
        Some(seconds @ 1..=86_400) => Ok(seconds),
        _ => Err(format!("--for takes a time up to 24h, such as 30s, 10m or 2h, not '{text}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::tests::parsed;

    #[test]
    fn options_are_read_and_checked() {
        let read = |words: &[&str]| parsed("quire record", words, parse);
        let options = read(&["--for", "10m", "-o", "t", "--values", "keep"]).ok().unwrap();
        assert_eq!((options.seconds, options.values), (600, Values::Keep));
        let options = read(&["--for", "2h", "--output", "t"]).ok().unwrap();
        assert_eq!((options.seconds, options.values), (7200, Values::Hash));
        for wrong in [
            &["-o", "t"][..],
            &["--for", "10m"],
            &["--for", "x", "-o", "t"],
            &["--for", "30h", "-o", "t"],
            &["--for", "1s", "-o", "t", "--values", "all"],
            &["--for", "1s", "-o", "t", "--some"],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
