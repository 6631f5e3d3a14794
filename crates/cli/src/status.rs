//! `quire status`: what a server is doing, on one screen or as a line each few seconds, and what it
//! did (`status/history.rs`). The numbers are those of `serverStatus`; the rates are differences of two looks.

mod history;

use crate::call::{Call, print};
use crate::connect::{self, Client, Target};
use crate::exit::Failure;
use crate::words::{Word, Words};
use comfy_table::{CellAlignment, Table, presets};
use history::Period;
use quire_document::extjson::{self, Format};
use quire_document::{DocBuf, Value, doc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time between the two looks of one screen.
const LOOK: Duration = Duration::from_secs(1);
/// The lines after which the names of the columns are printed again.
const LINES: usize = 20;
/// The most seconds between two lines.
const SECONDS_MAX: f64 = 86_400.0;

fn help() -> String {
    format!(
        "Usage: quire status [OPTIONS]

Shows what a server is doing: connections, operations a second and their times, memory, waits; or
what it did, from the history that it keeps on disk. A user needs the role clusterMonitor.

Data:
{}

Output:
  --every SECONDS      A line each SECONDS, until the program is stopped.
  --count N            Ends after N lines.
  --json               The reply of serverStatus as JSON.
  --since TIME         The history since TIME: 30m, 2h, 7d, or a date such as
                       2026-11-29 or 2026-11-29T10:00, in UTC. Lines for --count
                       parts of that time (30), or its samples with --json.
  --until TIME         The end of that time. Default: now.
  -h, --help           Shows this help.",
        connect::HELP
    )
}

struct StatusOptions {
    target: Target,
    every: Option<Duration>,
    count: Option<u64>,
    json: bool,
    /// The time whose history is shown; `None` to show what the server is doing now.
    history: Option<Period>,
}

impl StatusOptions {
    /// Parses the command line; `None` if help was requested.
    fn parse(call: &Call) -> Result<Option<StatusOptions>, Failure> {
        let mut options = StatusOptions {
            target: Target::default(),
            every: None,
            count: None,
            json: false,
            history: None,
        };
        let mut words = Words::of(call, help());
        while let Some(word) = words.next(&mut options.target)? {
            match word {
                Word::Help => return Ok(None),
                Word::Long(name) if name == "json" => options.json = true,
                Word::Long(name) if name == "every" => {
                    let seconds: f64 = words.text()?.parse().unwrap_or(f64::NAN);
                    if !(0.1..=SECONDS_MAX).contains(&seconds) {
                        return Err(
                            words.wrong(format!("--every takes 0.1 to {SECONDS_MAX} seconds"))
                        );
                    }
                    options.every = Some(Duration::from_secs_f64(seconds));
                }
                Word::Long(name) if name == "count" => {
                    let count = words.text()?.parse();
                    options.count =
                        Some(count.map_err(|_| words.wrong("--count takes a whole number"))?);
                }
                Word::Long(name) if name == "since" || name == "until" => {
                    let text = words.text()?;
                    let Some(at) = history::parse_moment(&text, now_ms()) else {
                        let text = format!(
                            "--{name} takes 30m, 2h, 7d or a date such as 2026-11-29T10:00, not '{text}'"
                        );
                        return Err(words.wrong(text));
                    };
                    let period = options.history.get_or_insert_default();
                    match name == "since" {
                        true => period.since_ms = at,
                        false => period.until_ms = at,
                    }
                }
                other => return Err(words.unexpected(other)),
            }
        }
        if options.target.directory().is_some() {
            // A directory has nothing else to show.
            options.history.get_or_insert_default();
        }
        match options {
            StatusOptions { every: Some(_), json: true, .. } => {
                Err(words.wrong("--every and --json exclude each other"))
            }
            StatusOptions { every: Some(_), history: Some(_), .. } => {
                Err(words.wrong("--every shows what a server is doing now: it excludes --since, --until and --dbpath"))
            }
            StatusOptions { every: None, count: Some(_), history: None, .. } => {
                Err(words.wrong("--count needs --every or --since"))
            }
            options => Ok(Some(options)),
        }
    }
}

/// Runs `quire status`.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = StatusOptions::parse(call)? else {
        print(&help());
        return Ok(());
    };
    if let (Some(path), Some(period)) = (options.target.directory(), options.history) {
        options.target.check_directory_alone()?;
        history::show(history::of_directory(path, period)?, &options);
        return Ok(());
    }
    let door = options.target.open("quire status")?;
    let mut client = door.client()?;
    let done = match (options.history, options.every) {
        (Some(period), _) => {
            let samples = history::of_server(&mut client, period);
            samples.map(|samples| history::show(samples, &options))
        }
        (None, Some(every)) => lines(&mut client, every, options.count),
        (None, None) if options.json => Look::take(&mut client).map(|look| print(&look.json())),
        (None, None) => screen(&mut client),
    };
    drop(client);
    door.close()?;
    done
}

/// Returns the wall clock in milliseconds since 1970.
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// One reply of `serverStatus`; empty for the start of a server.
struct Look(DocBuf);

impl Look {
    fn take(client: &mut Client) -> Result<Look, Failure> {
        let reply = client.call("admin", doc! { "serverStatus": 1 }, None);
        reply.map(Look).map_err(|error| error.failure("cannot read the status"))
    }

    fn json(&self) -> String {
        extjson::print(self.0.as_doc(), Format { pretty: true, ..Format::default() })
    }

    fn value(&self, path: &str) -> Option<Value<'_>> {
        let mut value = Value::Document(self.0.as_doc());
        for name in path.split('.') {
            value = value.as_document()?.get(name)?;
        }
        Some(value)
    }

    fn text(&self, path: &str) -> &str {
        self.value(path).and_then(|value| value.as_str()).unwrap_or_default()
    }

    fn number(&self, path: &str) -> f64 {
        match self.value(path) {
            Some(Value::Int32(number)) => f64::from(number),
            Some(Value::Int64(number)) => number as f64,
            Some(Value::Double(number)) => number,
            _ => 0.0,
        }
    }

    /// Returns how much a counter has grown since an earlier look, or since the start of the server if
    /// that was later.
    fn grown(&self, path: &str, since: &Look) -> f64 {
        let restarted = self.number(UPTIME) < since.number(UPTIME);
        let before = if restarted { 0.0 } else { since.number(path) };
        (self.number(path) - before).max(0.0)
    }

    /// Returns how much a counter has grown each second since an earlier look.
    fn rate(&self, path: &str, since: &Look) -> f64 {
        self.grown(path, since) / (self.grown(UPTIME, since) / 1000.0).max(0.001)
    }

    /// Returns the mean time of a class of operations since an earlier look, in milliseconds.
    fn millis(&self, class: &str, since: &Look) -> Option<f64> {
        let grown = |name: &str| self.grown(&format!("opLatencies.{class}.{name}"), since);
        let operations = grown("ops");
        (operations > 0.0).then(|| grown("latency") / operations / 1000.0)
    }
}

/// The time since the start of the server, in milliseconds.
const UPTIME: &str = "uptimeMillis";

/// The types of operations: what people call them, and their counters.
const OPERATIONS: &[(&str, &str)] = &[
    ("queries", "opcounters.query"),
    ("inserts", "opcounters.insert"),
    ("updates", "opcounters.update"),
    ("deletes", "opcounters.delete"),
    ("getMores", "opcounters.getmore"),
    ("commands", "opcounters.command"),
];

/// Prints one screen.
fn screen(client: &mut Client) -> Result<(), Failure> {
    let before = Look::take(client)?;
    std::thread::sleep(LOOK);
    let now = Look::take(client)?;
    print(&format!("{}\n{}", title(&now), table(&before, &now)));
    Ok(())
}

fn title(now: &Look) -> String {
    let set = match now.text("repl.setName") {
        "" => "standalone".to_owned(),
        name => format!("replica set {name}"),
    };
    let (host, version) = (now.text("host"), now.text("version"));
    format!("{host}, {set}, follows MongoDB {version}, up {}", span(now.number("uptime")))
}

fn table(before: &Look, now: &Look) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["", "now", "a second", "since the start"]);
    (1..4).for_each(|at| {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    });
    let rate = |path: &str| amount(now.rate(path, before));
    let all = |path: &str| amount(now.number(path));
    let none = String::new;
    let connections = format!(
        "{} of {}",
        all("connections.current"),
        amount(now.number("connections.current") + now.number("connections.available"))
    );
    let created = "connections.totalCreated";
    table.add_row(["connections".to_owned(), connections, rate(created), all(created)]);
    let active = "connections.active";
    table.add_row(["running operations".to_owned(), all(active), none(), none()]);
    for (name, path) in OPERATIONS {
        table.add_row([(*name).to_owned(), none(), rate(path), all(path)]);
    }
    for class in ["reads", "writes"] {
        let millis = now.millis(class, before).map_or_else(|| "-".to_owned(), time);
        table.add_row([format!("mean time of {class}"), millis, none(), none()]);
    }
    for (name, path) in [
        ("documents returned", "metrics.document.returned"),
        ("documents examined", "metrics.queryExecutor.scannedObjects"),
        ("keys examined", "metrics.queryExecutor.scanned"),
        ("collection scans", "metrics.queryExecutor.collectionScans.total"),
        ("write conflicts", "metrics.operation.writeConflicts"),
        ("failed operations", "asserts.user"),
    ] {
        table.add_row([name.to_owned(), none(), rate(path), all(path)]);
    }
    for (name, path) in [("received", "network.bytesIn"), ("sent", "network.bytesOut")] {
        let (rate, all) = (size(now.rate(path, before)), size(now.number(path)));
        table.add_row([name.to_owned(), none(), rate, all]);
    }
    for (name, path) in [
        ("open cursors", "metrics.cursor.open.total"),
        ("open transactions", "transactions.currentOpen"),
    ] {
        table.add_row([name.to_owned(), all(path), none(), none()]);
    }
    let resident = size(now.number("mem.resident") * 1_048_576.0);
    table.add_row(["memory of the process".to_owned(), resident, none(), none()]);
    for (name, used, limit) in [
        ("memory of requests", "mem.requests.usedBytes", "mem.requests.limitBytes"),
        (
            "cache",
            "wiredTiger.cache.bytes currently in the cache",
            "wiredTiger.cache.maximum bytes configured",
        ),
    ] {
        let text = format!("{} of {}", size(now.number(used)), size(now.number(limit)));
        table.add_row([name.to_owned(), text, none(), none()]);
    }
    let mut text = table.to_string();
    if matches!(now.value("storageEngine.isShortOfSpace"), Some(Value::Bool(true))) {
        text.push_str("\n\nTHE DISK IS FULL: writes are refused until there is room.");
    }
    text
}

/// Prints a line at each look, until it has printed `count` of them.
fn lines(client: &mut Client, every: Duration, count: Option<u64>) -> Result<(), Failure> {
    let mut before = Look::take(client)?;
    let (mut printed, mut next) = (0, Instant::now());
    while count.is_none_or(|count| printed < count) {
        if printed % LINES as u64 == 0 {
            print(&names_of_columns());
        }
        next += every;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let now = Look::take(client)?;
        print(&line(&before, &now));
        (before, printed) = (now, printed + 1);
    }
    Ok(())
}

fn names_of_columns() -> String {
    let mut text = String::new();
    for (name, _) in OPERATIONS {
        text.push_str(&format!("{name:>9}"));
    }
    for name in ["read ms", "write ms", "in/s", "out/s", "active", "conn", "resident"] {
        text.push_str(&format!("{name:>10}"));
    }
    text
}

fn line(before: &Look, now: &Look) -> String {
    let mut text = String::new();
    for (_, path) in OPERATIONS {
        text.push_str(&format!("{:>9}", amount(now.rate(path, before))));
    }
    let millis = |class| {
        now.millis(class, before).map_or_else(|| "-".to_owned(), |millis| format!("{millis:.2}"))
    };
    for cell in [
        millis("reads"),
        millis("writes"),
        size(now.rate("network.bytesIn", before)),
        size(now.rate("network.bytesOut", before)),
        amount(now.number("connections.active")),
        amount(now.number("connections.current")),
        size(now.number("mem.resident") * 1_048_576.0),
    ] {
        text.push_str(&format!("{cell:>10}"));
    }
    text
}

/// Returns a number of things, short enough for a column.
fn amount(number: f64) -> String {
    match number {
        number if number >= 1e9 => format!("{:.1}G", number / 1e9),
        number if number >= 1e7 => format!("{:.1}M", number / 1e6),
        number if number < 10.0 && (0.05..0.95).contains(&number.fract()) => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

/// Returns a number of bytes in a unit that suits it.
fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1_073_741_824.0 => format!("{:.1} GiB", bytes / 1_073_741_824.0),
        bytes if bytes >= 1_048_576.0 => format!("{:.1} MiB", bytes / 1_048_576.0),
        bytes if bytes >= 1024.0 => format!("{:.1} KiB", bytes / 1024.0),
        bytes => format!("{bytes:.0} B"),
    }
}

fn time(millis: f64) -> String {
    match millis {
        millis if millis >= 1000.0 => format!("{:.2} s", millis / 1000.0),
        millis if millis >= 1.0 => format!("{millis:.1} ms"),
        millis => format!("{:.0} µs", millis * 1000.0),
    }
}

/// Returns a time in the two largest units that it has.
fn span(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (1, hours, _) => format!("1 day {hours} h"),
        (days, hours, _) => format!("{days} days {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::tests::parsed;

    #[test]
    fn options_exclude_each_other() {
        let every = |words: &[&str]| {
            parsed("quire status", words, StatusOptions::parse).map(|options| options.every)
        };
        assert_eq!(every(&[]), Ok(None));
        assert_eq!(
            every(&["--every", "0.5", "--count", "2"]),
            Ok(Some(Duration::from_millis(500)))
        );
        for wrong in [
            &["--every", "0"][..],
            &["--every", "x"],
            &["--every", "nan"],
            &["--count", "2"],
            &["--every", "1", "--json"],
            &["--dbpath", "d", "--every", "1"],
            &["--since", "2h", "--every", "1"],
            &["--since", "yesterday"],
            &["now"],
        ] {
            assert!(every(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(every(&["--help"]), Err("help".into()));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.5, 12.4, 12_345_678.0].map(amount), ["0", "0.5", "12", "12.3M"]);
        assert_eq!([10.0, 2048.0, 3_145_728.0].map(size), ["10 B", "2.0 KiB", "3.0 MiB"]);
        assert_eq!([0.25, 12.34, 1500.0].map(time), ["250 µs", "12.3 ms", "1.50 s"]);
        assert_eq!(
            [59.0, 61.0, 7260.0, 90_000.0].map(span),
            ["59 s", "1 min 1 s", "2 h 1 min", "1 day 1 h"]
        );
    }
}
