//! Runs one case against one server.

use crate::case::{Case, CaseFile, Part, Step};
use crate::client::{Client, Connect};
use crate::compare::{Seen, alike, scrub, without_messages};
use crate::node::Node;
use quire_document::{Binary, Value, ValueBuf, doc, literal};
use std::collections::BTreeMap;
use std::time::Duration;

/// The result of a case.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The first step with a different reply.
    pub difference: Option<Difference>,
    /// True if the text of an error differs, which does not fail the case.
    pub wording: bool,
}

/// A step with a different reply.
#[derive(Debug)]
pub struct Difference {
    /// The command's line in the file.
    pub line: usize,
    /// The text of the command.
    pub command: String,
    /// The recorded reply.
    pub want: String,
    /// The actual reply.
    pub got: String,
}

/// A running case: its connection, and the ids in the replies so far.
pub(crate) struct Run<'r> {
    server: &'r dyn Connect,
    client: Box<dyn Client>,
    db: String,
    seen: Seen,
    saved: BTreeMap<String, Node>,
    sent: Option<Node>,
    last: Option<Node>,
}

/// Runs the case up to its first difference.
///
/// # Errors
/// The case cannot be parsed.
pub fn run(server: &dyn Connect, file: &CaseFile, case: &Case) -> Result<Outcome, String> {
    let mut run = Run::new(server, file, case);
    let mut outcome = Outcome::default();
    for step in case.steps() {
        let Some(lines) =
            run.step(step).map_err(|error| format!("{}:{}: {error}", file.name, step.line))?
        else {
            continue;
        };
        match run.compare(step, &lines)? {
            Verdict::Equal => {}
            Verdict::Wording => outcome.wording = true,
            Verdict::Different => {
                outcome.difference = Some(Difference {
                    line: step.line,
                    command: step.command.clone(),
                    want: step.reply.join("\n"),
                    got: lines.join("\n"),
                });
                break;
            }
        }
    }
    run.finish();
    Ok(outcome)
}

/// Runs the case and replaces its replies by the actual ones.
pub fn record(server: &dyn Connect, file: &CaseFile, case: &mut Case) -> Result<(), String> {
    let mut run = Run::new(server, file, case);
    for part in &mut case.parts {
        if let Part::Step(step) = part
            && let Some(lines) = run.step(step)?
        {
            step.reply = lines;
        }
    }
    run.finish();
    Ok(())
}

enum Verdict {
    Equal,
    Wording,
    Different,
}

impl<'r> Run<'r> {
    pub(crate) fn new(server: &'r dyn Connect, file: &CaseFile, case: &Case) -> Self {
        let db = file.database(case);
        let mut client = server.connect();
        let _ = client.call(doc! { "dropDatabase": 1, "$db": db.as_str() }.as_doc());
        let (seen, saved) = (Seen::default(), BTreeMap::new());
        Run { server, client, db, seen, saved, sent: None, last: None }
    }

    /// Runs a step; `None` if it sends nothing.
    pub(crate) fn step(&mut self, step: &Step) -> Result<Option<Vec<String>>, String> {
        Ok(self.command(step)?.map(|command| self.send(command)))
    }

    /// Returns the command of a step, with placeholders replaced. A step that sends nothing is
    /// executed, and the result is `None`.
    pub(crate) fn command(&mut self, step: &Step) -> Result<Option<Node>, String> {
        let parsed = literal::parse(&step.command).map_err(|error| error.to_string())?;
        let mut command = self.fill(&Node::from_value(parsed.as_value()));
        if let Some(ms) = command.get("$sleepMs").and_then(Node::as_leaf) {
            let ms = if let Value::Int32(ms) = ms { ms } else { 0 };
            std::thread::sleep(Duration::from_millis(ms as u64));
            return Ok(None);
        }
        if let Some(Node::Doc(wanted)) = command.get("$save") {
            for (name, path) in wanted {
                let found = path.as_str().and_then(|path| self.last.as_ref()?.at(path));
                let null = Node::Leaf(ValueBuf::new(Value::Null));
                self.saved.insert(name.clone(), found.cloned().unwrap_or(null));
            }
            return Ok(None);
        }
        if command.get("$db").is_none() {
            command.set("$db", Node::text(&self.db));
        }
        Ok(Some(command))
    }

    /// Sends a command, and returns the lines of its reply.
    pub(crate) fn send(&mut self, command: Node) -> Vec<String> {
        self.sent = Some(command.clone());
        let lines = match self.client.call(command.to_doc().as_doc()) {
            Ok(reply) => {
                let reply = Node::from_doc(reply.as_doc());
                let shown = scrub(&reply, &mut self.seen);
                self.last = Some(reply);
                render(&shown)
            }
            Err(reason) => {
                self.client = self.server.connect();
                self.last = None;
                vec![format!("{{connection: {reason:?}}}")]
            }
        };
        lines.iter().map(|line| line.replace(&self.db, "$db")).collect()
    }

    /// Returns the latest command and its reply; `None` before the first one and after the
    /// connection was lost.
    pub(crate) fn exchange(&self) -> Option<(&Node, &Node)> {
        Some((self.sent.as_ref()?, self.last.as_ref()?))
    }

    fn compare(&self, step: &Step, lines: &[String]) -> Result<Verdict, String> {
        if step.reply == lines {
            return Ok(Verdict::Equal);
        }
        let read = |lines: &[String]| -> Result<Node, String> {
            let parsed =
                literal::parse(&lines.join("\n")).map_err(|error| format!("reply: {error}"))?;
            Ok(alike(&Node::from_value(parsed.as_value())))
        };
        let (want, got) = (read(&step.reply)?, read(lines)?);
        Ok(if want.show() == got.show() {
            Verdict::Equal
        } else if without_messages(&want).show() == without_messages(&got).show() {
            Verdict::Wording
        } else {
            Verdict::Different
        })
    }

    /// Replaces placeholders by their values.
    fn fill(&mut self, node: &Node) -> Node {
        match node {
            Node::Leaf(value) => match value.as_value() {
                Value::String("$cursor") => {
                    Node::Leaf(ValueBuf::new(self.seen.cursor.unwrap_or(0)))
                }
                Value::String("$db") => Node::text(&self.db),
                Value::String(text) => match text.strip_prefix("$db.") {
                    Some(rest) => Node::text(&format!("{}.{rest}", self.db)),
                    None => node.clone(),
                },
                _ => node.clone(),
            },
            Node::Array(items) => Node::Array(items.iter().map(|item| self.fill(item)).collect()),
            Node::Doc(fields) => {
                if let Some(name) = node.get("$session").and_then(Node::as_str) {
                    return self.session(name);
                }
                if let Some(name) = node.get("$saved").and_then(Node::as_str) {
                    let null = Node::Leaf(ValueBuf::new(Value::Null));
                    return self.saved.get(name).cloned().unwrap_or(null);
                }
                Node::Doc(
                    fields.iter().map(|(name, value)| (name.clone(), self.fill(value))).collect(),
                )
            }
        }
    }

    fn session(&mut self, name: &str) -> Node {
        let count = self.seen.sessions.len() as u8;
        let db = self.db.clone();
        let uuid =
            self.seen.sessions.entry(name.to_owned()).or_insert_with(|| session_uuid(&db, count));
        let id = Value::Binary(Binary { subtype: 4, bytes: uuid });
        Node::from_doc(doc! { "id": id }.as_doc())
    }

    pub(crate) fn finish(mut self) {
        if self.seen.sessions.is_empty() {
            return;
        }
        let sessions = self.seen.sessions.values();
        let ids: quire_document::ArrayBuf = sessions
            .map(|uuid| doc! { "id": Value::Binary(Binary { subtype: 4, bytes: uuid }) })
            .collect::<Vec<_>>()
            .iter()
            .collect();
        let _ = self.client.call(doc! { "killSessions": &ids, "$db": "admin" }.as_doc());
    }
}

/// Returns a session id that no other case has.
fn session_uuid(db: &str, count: u8) -> [u8; 16] {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut uuid = [0; 16];
    for half in uuid.chunks_mut(8) {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write(db.as_bytes());
        hasher.write_u8(count);
        half.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    uuid
}

/// Returns the reply's text; a batch of several documents has one document on each line.
fn render(reply: &Node) -> Vec<String> {
    const MARK: &str = "\u{1}";
    let batch = |name: &str| match reply.get("cursor")?.get(name)? {
        Node::Array(items) if items.len() > 1 => Some((name.to_owned(), items.clone())),
        _ => None,
    };
    let Some((name, items)) = batch("firstBatch").or_else(|| batch("nextBatch")) else {
        return vec![reply.show()];
    };
    let mut head = reply.clone();
    if let Some(cursor) = head.get_mut("cursor") {
        cursor.set(&name, Node::text(MARK));
    }
    let text = head.show();
    let mark = Node::text(MARK).show();
    let (before, after) = text.split_once(&mark).unwrap_or((&text, ""));
    let mut lines = vec![format!("{before}[")];
    for (at, item) in items.iter().enumerate() {
        lines.push(format!("  {}{}", item.show(), if at + 1 < items.len() { "," } else { "" }));
    }
    lines.push(format!("]{after}"));
    lines
}
