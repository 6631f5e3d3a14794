//! The row of a command in the registry. It holds, in typed fields, every property of the command
//! on which dispatch decides, so that a new command changes one place.

use crate::frame::authorize::Requires;
use crate::frame::context::Context;
use crate::frame::usage::Class;
use foldhash::fast::RandomState;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::Result;
use quire_planner::ReadRequest;
use std::collections::HashMap;

/// Runs a command: reads the body, appends the reply's fields (without `ok`).
pub type Run = fn(&mut Context<'_>, Doc<'_>, &mut DocWriter<'_>) -> Result<()>;

/// What a command does, for the latency counters of `serverStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads documents of a collection.
    Read,
    /// Writes documents or the catalog; takes a write concern.
    Write,
    /// Neither reads nor writes documents.
    Other,
}

/// Prints the plan of one request, which `explain` passes to a command's [`Explain`].
pub type Show<'s> = dyn FnMut(ReadRequest<'_>) -> Result<DocBuf> + 's;

/// Parses the command's body and passes the request to `show`; returns what `show` printed.
pub type Explain = fn(&Context<'_>, Doc<'_>, &mut Show<'_>) -> Result<DocBuf>;

/// The read concerns that a command accepts from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadConcerns {
    /// Only an empty one and `local`.
    Plain,
    /// Every level except `snapshot`.
    ExceptSnapshot,
    /// It takes every level.
    All,
    /// Any level, without effect: the cursor keeps the concern of the command that opened it.
    OfCursor,
}

/// The use of a command in a transaction of several statements (manual: "Transactions and
/// Operations").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTransaction {
    /// The command is refused.
    Refused,
    /// The command is refused, and the error says what to do instead.
    RefusedFor(&'static str),
    /// The command may run, but not as the first statement.
    AfterFirst,
    /// The command may run as any statement.
    Anywhere,
    /// The command ends the transaction, and needs an open one.
    Ends,
}

/// The namespace that a command's log lines and `currentOp` show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The database, as `db.$cmd`.
    Database,
    /// The collection that the first field names.
    Collection,
    /// The collection that the first field names, or `db.$cmd.aggregate` without one.
    CollectionOrAggregate,
    /// The whole namespace that the first field names.
    Namespace,
    /// The collection that the field `collection` names.
    OfCursor,
}

/// An event of the audit log: its type and its parameters.
pub type AuditEvent = (&'static str, DocBuf);

/// Returns the audit event of a command of this row that has succeeded, from its body.
pub type Audit = fn(&Command, Doc<'_>) -> AuditEvent;

/// A row of the registry: a command and the properties that dispatch uses.
pub struct Command {
    /// The name in MongoDB's spelling.
    pub name: &'static str,
    /// The other names that clients may use.
    pub aliases: &'static [&'static str],
    /// One sentence that says what the command does.
    pub summary: &'static str,
    /// True if it reads or writes documents.
    pub kind: Kind,
    /// The class under which `top` and the profiler count it.
    pub class: Class,
    /// The namespace that it is logged with.
    pub target: Target,
    /// True if it stores a setting of the server, which waits for `fsyncUnlock` as a write does.
    pub stores_setting: bool,
    /// True if it runs only against `admin`.
    pub admin_only: bool,
    /// True if it runs before the client has authenticated. Such a command takes no `txnNumber`.
    pub before_login: bool,
    /// True for a handshake: it is also accepted as OP_QUERY, and it is never logged as slow,
    /// because it may wait for a change of the topology.
    pub handshake: bool,
    /// True if it is part of Stable API version 1.
    pub in_api_v1: bool,
    /// Fields that `apiStrict` refuses.
    pub outside_api_v1: &'static [&'static str],
    /// The name of the request that errors about `apiStrict` show.
    pub request_name: &'static str,
    /// The read concerns that it accepts.
    pub read_concerns: ReadConcerns,
    /// True if it takes the field `writeConcern`.
    pub takes_write_concern: bool,
    /// True if it takes a `txnNumber` outside a transaction: a session stores the results of its
    /// statements.
    pub retryable: bool,
    /// True if it runs in a transaction.
    pub in_transaction: InTransaction,
    /// True if each of its statements is logged and profiled as an operation of its own.
    pub has_statements: bool,
    /// True if it continues what another command began: `maxTimeMS` limits its wait for data and
    /// not its duration, and it needs no API version.
    pub continues_cursor: bool,
    /// True if `maxTimeMS` is a field of what it defines, and not the limit of the command.
    pub defines_max_time: bool,
    /// True if it exists only with `enableTestCommands`.
    pub test_only: bool,
    /// True if no fail point applies to it, because it turns them off.
    pub outside_fail_points: bool,
    /// Shows its plan to `explain`; `None` for a command that cannot be explained.
    pub explain: Option<Explain>,
    /// Creates its audit event; `None` for a command without an event of its own.
    pub audit: Option<Audit>,
    /// Fields that are never logged, recorded or shown.
    pub secrets: &'static [&'static str],
    /// Runs it; `None` for a command of MongoDB that is not built yet.
    pub run: Option<Run>,
}

impl Command {
    pub(crate) const fn new(
        name: &'static str,
        kind: Kind,
        run: Run,
        summary: &'static str,
    ) -> Self {
        let mut row = Command::missing(name, summary);
        row.kind = kind;
        row.run = Some(run);
        row.takes_write_concern = matches!(kind, Kind::Write);
        if !matches!(kind, Kind::Other) {
            row.target = Target::Collection;
        }
        row
    }

    pub(crate) const fn missing(name: &'static str, summary: &'static str) -> Self {
        Command {
            name,
            aliases: &[],
            summary,
            kind: Kind::Other,
            class: Class::Command,
            target: Target::Database,
            stores_setting: false,
            admin_only: false,
            before_login: false,
            handshake: false,
            in_api_v1: false,
            outside_api_v1: &[],
            request_name: name,
            read_concerns: ReadConcerns::Plain,
            takes_write_concern: false,
            retryable: false,
            in_transaction: InTransaction::Refused,
            has_statements: false,
            continues_cursor: false,
            defines_max_time: false,
            test_only: false,
            outside_fail_points: false,
            explain: None,
            audit: None,
            secrets: &[],
            run: None,
        }
    }

    pub(crate) const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    pub(crate) const fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    pub(crate) const fn stores_setting(mut self) -> Self {
        self.stores_setting = true;
        self
    }

    pub(crate) const fn admin(mut self) -> Self {
        self.admin_only = true;
        self
    }

    pub(crate) const fn before_login(mut self) -> Self {
        self.before_login = true;
        self
    }

    pub(crate) const fn handshake(mut self) -> Self {
        self.handshake = true;
        self
    }

    pub(crate) const fn v1(mut self) -> Self {
        self.in_api_v1 = true;
        self
    }

    pub(crate) const fn strict_refuses(mut self, outside_api_v1: &'static [&'static str]) -> Self {
        self.outside_api_v1 = outside_api_v1;
        self
    }

    pub(crate) const fn request_name(mut self, request_name: &'static str) -> Self {
        self.request_name = request_name;
        self
    }

    pub(crate) const fn audited(mut self, audit: Audit) -> Self {
        self.audit = Some(audit);
        self
    }

    pub(crate) const fn secrets(mut self, fields: &'static [&'static str]) -> Self {
        self.secrets = fields;
        self
    }

    pub(crate) const fn read_concerns(mut self, read_concerns: ReadConcerns) -> Self {
        self.read_concerns = read_concerns;
        self
    }

    pub(crate) const fn write_concern(mut self) -> Self {
        self.takes_write_concern = true;
        self
    }

    pub(crate) const fn refuses_write_concern(mut self) -> Self {
        self.takes_write_concern = false;
        self
    }

    pub(crate) const fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    pub(crate) const fn in_transaction(mut self, in_transaction: InTransaction) -> Self {
        self.in_transaction = in_transaction;
        self
    }

    pub(crate) const fn statements(mut self) -> Self {
        self.has_statements = true;
        self
    }

    pub(crate) const fn defines_max_time(mut self) -> Self {
        self.defines_max_time = true;
        self
    }

    pub(crate) const fn continues_cursor(mut self) -> Self {
        self.continues_cursor = true;
        self
    }

    pub(crate) const fn for_tests(mut self) -> Self {
        self.test_only = true;
        self
    }

    pub(crate) const fn outside_fail_points(mut self) -> Self {
        self.outside_fail_points = true;
        self
    }

    pub(crate) const fn explain(mut self, explain: Explain) -> Self {
        self.explain = Some(explain);
        self
    }

    /// Returns true if a read concern other than `local` has an effect.
    pub(crate) fn takes_read_concern(&self) -> bool {
        matches!(self.read_concerns, ReadConcerns::ExceptSnapshot | ReadConcerns::All)
    }
}

/// A value for each row of the table of commands, found without a search.
pub struct PerCommand<T> {
    rows: &'static [Command],
    /// In the order of the rows.
    values: Vec<T>,
}

impl<T> PerCommand<T> {
    /// Makes the value of each row.
    pub(crate) fn new(rows: &'static [Command], value: impl FnMut(&'static Command) -> T) -> Self {
        PerCommand { rows, values: rows.iter().map(value).collect() }
    }

    /// Returns the value of a row; `None` for a command that is not in the table.
    pub(crate) fn get(&self, command: &Command) -> Option<&T> {
        let start = self.rows.as_ptr().addr();
        let offset = std::ptr::from_ref(command).addr().checked_sub(start)?;
        self.values.get(offset / size_of::<Command>())
    }

    /// Returns all rows with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static Command, &T)> {
        self.rows.iter().zip(&self.values)
    }
}

impl<T> Default for PerCommand<T> {
    fn default() -> Self {
        PerCommand { rows: &[], values: Vec::new() }
    }
}

/// The table of commands with an index by name and alias.
pub struct Commands {
    rows: &'static [Command],
    by_name: HashMap<&'static str, &'static Command, RandomState>,
    requires: PerCommand<Requires>,
}

/// What a command without a row requires: a privilege that only the role `__system` has.
const UNKNOWN: Requires = Requires::Cluster(&[quire_access::Action::Internal]);

impl Commands {
    /// Indexes `rows` by their names and aliases; `requires` has the privileges that each command
    /// requires.
    pub(crate) fn new(
        rows: &'static [Command],
        requires: &'static [(&'static str, Requires)],
    ) -> Self {
        let names =
            |row: &'static Command| std::iter::once(row.name).chain(row.aliases.iter().copied());
        let by_name = rows.iter().flat_map(|row| names(row).map(move |name| (name, row))).collect();
        let requires: HashMap<&str, Requires> = requires.iter().copied().collect();
        let of_row = |row: &'static Command| requires.get(row.name).copied().unwrap_or(UNKNOWN);
        Commands { rows, by_name, requires: PerCommand::new(rows, of_row) }
    }

    /// Returns all rows in the order of the manual's chapters.
    pub fn rows(&self) -> &'static [Command] {
        self.rows
    }

    /// Returns the row of the command with this name or alias.
    pub fn find(&self, name: &str) -> Option<&'static Command> {
        self.by_name.get(name).copied()
    }

    /// Returns the privileges that the command requires. A command without a row requires one that
    /// only the role `__system` has.
    pub(crate) fn requires(&self, command: &Command) -> Requires {
        self.requires.get(command).copied().unwrap_or(UNKNOWN)
    }
}
