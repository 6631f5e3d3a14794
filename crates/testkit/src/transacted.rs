//! Runs the CRUD statements of a case again inside transactions, on a second server. Each reply
//! must be that of the plain run, and so must be what a transaction reads of its own writes and
//! what others read after its commit.
//!
//! Consecutive statements share a transaction. A statement that fails has its own transaction, and
//! then runs outside, because an unordered batch continues after its first error only there.

use crate::case::{Case, CaseFile};
use crate::client::{Client, Connect};
use crate::compare::{Seen, scrub};
use crate::node::Node;
use crate::runner::Run;
use crate::variants::{Report, UNSTABLE, alike, answer, is_repeatable, session_id};
use quire_document::{ValueBuf, doc};

/// Words that mark cases with sessions of their own, or collections that a transaction cannot
/// write.
const OUTSIDE: &[&str] = &[
    "lsid",
    "txnNumber",
    "autocommit",
    "apiVersion",
    "capped",
    "Capped",
    "timeseries",
    "system.",
    "tailable",
];

/// Words that mark statements that a transaction does not accept, or accepts only as its first
/// statement.
const STANDALONE: &[&str] =
    &["$out", "$merge", "$unionWith", "explain:", "readConcern:", "writeConcern:"];

/// Runs the case on `plain`, and on `other` with its CRUD statements in transactions.
///
/// # Errors
/// The case cannot be parsed.
pub fn run(
    plain: &dyn Connect,
    other: &dyn Connect,
    file: &CaseFile,
    case: &Case,
) -> Result<Report, String> {
    let is_outside =
        |text: &str| OUTSIDE.iter().any(|word| text.contains(word)) || text.contains("w: 0");
    if !is_repeatable(case) || case.steps().any(|step| is_outside(&step.command)) {
        return Ok(Report::default());
    }
    let mut pair = Pair {
        plain: Run::new(plain, file, case),
        other: Run::new(other, file, case),
        readers: [plain.connect(), other.connect()],
        session: session_id(),
        number: 0,
        is_open: false,
        report: Report::default(),
        place: String::new(),
    };
    for step in case.steps() {
        pair.place = format!("{}:{}", file.name, step.line);
        let (plain, other) = (pair.plain.command(step)?, pair.other.command(step)?);
        if let (Some(plain), Some(other)) = (plain, other) {
            pair.step(plain, other);
        }
    }
    pair.commit();
    pair.plain.finish();
    pair.other.finish();
    Ok(pair.report)
}

/// The use of a statement in a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    Read,
    /// It cannot run in a transaction, or its reply differs between runs.
    Other,
}

impl Kind {
    fn of(command: &Node) -> Kind {
        let text = command.show();
        let db = command.get("$db").and_then(Node::as_str).unwrap_or_default();
        let has_word = |words: &[&str]| words.iter().any(|word| text.contains(word));
        match name(command) {
            _ if has_word(STANDALONE) => Kind::Other,
            "bulkWrite" => Kind::Write,
            _ if matches!(db, "admin" | "config" | "local") => Kind::Other,
            "insert" | "update" | "delete" | "findAndModify" | "findandmodify" => Kind::Write,
            "find" | "aggregate" | "distinct" if !has_word(UNSTABLE) => Kind::Read,
            _ => Kind::Other,
        }
    }
}

fn name(command: &Node) -> &str {
    command.fields().and_then(<[_]>::first).map_or("", |(name, _)| name)
}

/// The case on two servers: unchanged, and with transactions.
struct Pair<'r> {
    plain: Run<'r>,
    other: Run<'r>,
    readers: [Box<dyn Client>; 2],
    session: Node,
    number: i64,
    /// True while transaction `number` is open.
    is_open: bool,
    report: Report,
    place: String,
}

impl Pair<'_> {
    fn step(&mut self, command: Node, same: Node) {
        let kind = Kind::of(&command);
        let want = self.plain.send(command.clone());
        let reply = self.plain.exchange().map(|(_, reply)| reply.clone());
        let works = reply.as_ref().is_some_and(|reply| first_error(reply).is_none());
        let is_whole = reply.as_ref().is_some_and(|reply| !has_cursor(reply));
        match (kind, works) {
            (Kind::Write | Kind::Read, true) if is_whole => self.inside(kind, same, &want),
            (Kind::Write, false) if is_whole => {
                let error = reply.as_ref().and_then(first_error);
                self.alone(same, error.unwrap_or_default());
            }
            _ => {
                self.commit();
                self.other.send(same);
            }
        }
    }

    /// Runs a statement in the open transaction, or in a new one.
    fn inside(&mut self, kind: Kind, command: Node, want: &[String]) {
        let within = self.within(command.clone());
        let got = self.other.send(within);
        self.note(&command, &want.join("\n"), &got.join("\n"));
        if want != got {
            // The transaction is aborted, or the servers' states differ.
            self.is_open = false;
            self.other.send(command);
        } else if kind == Kind::Write && name(&command) != "bulkWrite" {
            self.compare_contents(&command);
        }
    }

    /// Runs a failing statement in its own transaction, and then outside.
    fn alone(&mut self, command: Node, want: String) {
        self.commit();
        let within = self.within(command.clone());
        self.other.send(within);
        let error = self.other.exchange().and_then(|(_, reply)| first_error(reply));
        self.note(&command, &want, &error.unwrap_or_default());
        self.end("abortTransaction");
        self.other.send(command);
    }

    /// Compares the collection of a write as the transaction and the plain server return it.
    fn compare_contents(&mut self, write: &Node) {
        let Some((_, collection)) = write.fields().and_then(<[_]>::first) else { return };
        let mut find = Node::Doc(vec![("find".into(), collection.clone())]);
        if let Some(db) = write.get("$db") {
            find.set("$db", db.clone());
        }
        let inside = self.within(find.clone());
        let [plain, other] = &mut self.readers;
        let read = |client: &mut Box<dyn Client>, command: &Node| {
            let reply = client.call(command.to_doc().as_doc()).ok()?;
            let shown = scrub(&Node::from_doc(reply.as_doc()), &mut Seen::default());
            answer("find", &shown)
        };
        let Some(want) = read(plain, &find) else { return };
        let got = read(other, &inside).unwrap_or_default();
        match alike(&want, &got, false) {
            true => self.report.compared += 1,
            false => self.note(&find, &want.join(", "), &got.join(", ")),
        }
    }

    /// Returns the command as a statement of the open transaction, or as the first one of a new
    /// transaction.
    fn within(&mut self, mut command: Node) -> Node {
        if !self.is_open {
            self.number += 1;
            self.is_open = true;
            command.set("startTransaction", Node::Leaf(ValueBuf::new(true)));
        }
        self.identify(&mut command);
        command
    }

    fn identify(&self, command: &mut Node) {
        command.set("lsid", self.session.clone());
        command.set("txnNumber", Node::Leaf(ValueBuf::new(self.number)));
        command.set("autocommit", Node::Leaf(ValueBuf::new(false)));
    }

    /// Commits the open transaction, which must succeed.
    fn commit(&mut self) {
        if let Some(reply) = self.end("commitTransaction") {
            let error = first_error(&reply).unwrap_or_default();
            self.note(&Node::text("commitTransaction"), "", &error);
        }
    }

    /// Ends the open transaction; `None` if none is open.
    fn end(&mut self, how: &str) -> Option<Node> {
        if !std::mem::take(&mut self.is_open) {
            return None;
        }
        let mut command = Node::from_doc(doc! { how: 1, "$db": "admin" }.as_doc());
        self.identify(&mut command);
        let reply = self.readers[1].call(command.to_doc().as_doc()).ok()?;
        Some(Node::from_doc(reply.as_doc()))
    }

    fn note(&mut self, command: &Node, want: &str, got: &str) {
        self.report.compared += 1;
        if want != got {
            self.report.differences.push(format!(
                "{} (written in a transaction)\n  > {}\n  want {want}\n  got  {got}",
                self.place,
                command.show()
            ));
        }
    }
}

/// Returns true if a reply leaves a cursor open.
fn has_cursor(reply: &Node) -> bool {
    let id = reply.at("cursor.id").and_then(Node::as_leaf);
    id.is_some_and(|id| id.exact_i64() != Some(0))
}

/// Returns the first error in a reply as text; `None` if there is none.
fn first_error(reply: &Node) -> Option<String> {
    let is_ok = |node: &Node| {
        node.get("ok").and_then(Node::as_leaf).and_then(|ok| ok.exact_i64()) == Some(1)
    };
    if !is_ok(reply) {
        let told = ["code", "codeName", "errmsg", "errInfo"];
        let fields = told.iter().filter_map(|name| reply.get(name)).map(Node::show);
        return Some(fields.collect::<Vec<_>>().join(" "));
    }
    if let Some(error) = reply.at("writeErrors.0") {
        return Some(error.show());
    }
    match reply.get("nErrors").and(reply.at("cursor.firstBatch")) {
        Some(Node::Array(items)) => items.iter().find(|item| !is_ok(item)).map(Node::show),
        _ => None,
    }
}
