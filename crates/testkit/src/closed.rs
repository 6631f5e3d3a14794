//! Runs the cases with time-series collections on a second server, on which all points are closed after each statement.
//! The replies must be those of the plain run, whose points are records.

use crate::case::{Case, CaseFile};
use crate::client::{Client, Connect};
use crate::compare::{Seen, scrub};
use crate::node::Node;
use crate::runner::Run;
use crate::variants::{Report, UNSTABLE, alike, answer};
use quire_document::doc;

/// Words that mark commands whose reply tells how points are stored.
const OF_STORAGE: &[&str] =
    &["explain", "ollStats", "dbStats", "validate:", "compact:", "serverStatus", "listCollections"];

/// Runs the case on `plain`, and on `other` with closed points.
///
/// # Errors
/// The case cannot be parsed.
pub fn run(
    plain: &dyn Connect,
    other: &dyn Connect,
    file: &CaseFile,
    case: &Case,
) -> Result<Report, String> {
    if case.older || !case.steps().any(|step| step.command.contains("timeseries")) {
        return Ok(Report::default());
    }
    let mut plain = Run::new(plain, file, case);
    let mut series = Series { client: other.connect(), found: Vec::new() };
    let mut other = Run::new(other, file, case);
    let mut report = Report::default();
    for step in case.steps() {
        let (Some(command), Some(same)) = (plain.command(step)?, other.command(step)?) else {
            continue;
        };
        let (want, got) = (plain.send(command.clone()), other.send(same));
        if is_compared(&command) {
            report.compared += 1;
            if want != got && !is_reordered(&command, &plain, &other) {
                let place = format!("{}:{}", file.name, step.line);
                let (text, want, got) = (command.show(), want.join("\n"), got.join("\n"));
                let text =
                    format!("{place} (closed points)\n  > {text}\n  want {want}\n  got  {got}");
                report.differences.push(text);
            }
        }
        series.close_after(&command);
    }
    plain.finish();
    other.finish();
    Ok(report)
}

/// The time-series collections of a case.
struct Series {
    client: Box<dyn Client>,
    /// Databases and collections.
    found: Vec<(String, String)>,
}

impl Series {
    /// Closes all points after a command, which may have created a collection.
    fn close_after(&mut self, command: &Node) {
        let text = |name: &str| command.get(name).and_then(Node::as_str).map(str::to_owned);
        if command.get("timeseries").is_some() {
            self.found.extend(text("$db").zip(text("create")));
        }
        for (db, collection) in &self.found {
            let close = doc! { "compact": &**collection, "force": true, "$db": &**db };
            // It may be dropped.
            let _ = self.client.call(close.as_doc());
        }
    }
}

fn is_compared(command: &Node) -> bool {
    let text = command.show();
    !OF_STORAGE.iter().chain(UNSTABLE).any(|word| text.contains(word))
}

/// Returns true if the last replies are the same results in another order: points with equal times have none.
fn is_reordered(command: &Node, plain: &Run<'_>, other: &Run<'_>) -> bool {
    let name = command.fields().and_then(<[_]>::first).map_or("", |(name, _)| name);
    let results = |run: &Run<'_>| {
        let (_, reply) = run.exchange()?;
        answer(name, &scrub(reply, &mut Seen::default()))
    };
    results(plain).zip(results(other)).is_some_and(|(want, got)| alike(&want, &got, false))
}
