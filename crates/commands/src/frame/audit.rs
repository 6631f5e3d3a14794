//! The events of the audit log, in MongoDB's form (manual: "System Event Audit Messages"): logins
//! and logouts, refused commands, and changes of collections, users and roles. If the audit log is
//! off, a command only tests one option twice.

use crate::frame::account::shown_body;
use crate::frame::accounts::write_roles;
use crate::frame::audit_log::{keep_changes, note_changes, take_changes};
use crate::frame::command::{AuditEvent, Command, Kind};
use crate::frame::host::{kernel_version, os_name};
use crate::frame::log::{LogLine, Severity};
use crate::frame::parameters::table::AUDIT_SUCCESS;
use crate::frame::service::{Connection, Request, Service, now_ms};
use quire_access::UserName;
use quire_catalog::ViewDefinition;
use quire_collections::CatalogChange;
use quire_document::{Binary, Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

/// The reason for the end of a login.
#[derive(Clone, Copy)]
pub enum LogoutReason {
    /// The client ran `logout`.
    Asked,
    /// The connection was closed.
    Disconnected,
    /// The user no longer exists, or is no longer allowed from that address.
    Removed,
}

impl Service {
    /// Starts the audit log of a new service: logs the start, and observes the catalog. Does
    /// nothing without an audit log.
    ///
    /// # Errors
    /// 1 InternalError if the store has an observer already.
    pub(crate) fn audit_start(self: &Arc<Self>) -> Result<()> {
        if self.audit.is_none() {
            return Ok(());
        }
        let param = doc! {
            "startupOptions": &self.options.parsed_options, "initialClusterServerParameters": [],
        };
        self.audit(None, "startup", &param, 0);
        let service: Weak<Service> = Arc::downgrade(self);
        self.store.observe_catalog(Box::new(move |changes| {
            if !note_changes(changes)
                && let Some(service) = service.upgrade()
            {
                changes.iter().for_each(|change| service.audit_change(None, change));
            }
        }))
    }

    /// Writes an event of a client, or of the server itself if `client` is `None`. An event that
    /// cannot be written is reported in the server's log.
    pub(crate) fn audit(
        &self,
        client: Option<&Connection>,
        atype: &str,
        param: &DocBuf,
        result: i32,
    ) {
        let Some(audit) = &self.audit else { return };
        let now = now_ms();
        let event = self.event(client, now, atype, param, result);
        if let Err(error) = audit.write(event.as_doc(), now) {
            let text = error.to_string();
            let event = self.logged_values().of(event);
            self.log().write(LogLine {
                severity: Severity::Error,
                component: "ACCESS",
                id: 3,
                context: client.map_or("audit", Connection::name),
                message: "An event could not be written to the audit log",
                attributes: doc! { "error": text.as_str(), "event": &event },
            });
        }
    }

    fn event(
        &self,
        client: Option<&Connection>,
        now: i64,
        atype: &str,
        param: &DocBuf,
        result: i32,
    ) -> DocBuf {
        DocBuf::build(|out| {
            out.append("atype", atype).append("ts", Value::Date(now));
            let uuid = client.map_or([0; 16], |client| client.uuid);
            out.append("uuid", Value::Binary(Binary { subtype: 4, bytes: &uuid }));
            write_address(out.document("local"), client.map(|client| client.info.local));
            write_address(out.document("remote"), client.map(|client| client.info.peer));
            let identity = client.and_then(|client| client.identity.as_ref());
            let users: Vec<&UserName> = identity.iter().map(|identity| &identity.name).collect();
            write_users(out, "users", &users);
            let roles = identity.map_or(&[][..], |identity| &identity.inherited.roles);
            write_roles(roles, out.array("roles"));
            out.append("param", param).append("result", result);
        })
    }

    /// Writes the event of a change of the catalog.
    fn audit_change(&self, client: Option<&Connection>, change: &CatalogChange) {
        let ns = |namespace: &quire_catalog::Namespace| doc! { "ns": namespace.as_str() };
        let (atype, param, result) = match change {
            CatalogChange::DatabaseCreated(db) => ("createDatabase", doc! { "ns": db.as_str() }, 0),
            CatalogChange::DatabaseDropped(db) => ("dropDatabase", doc! { "ns": db.as_str() }, 0),
            CatalogChange::CollectionCreated(namespace) => ("createCollection", ns(namespace), 0),
            CatalogChange::CollectionDropped(namespace) => ("dropCollection", ns(namespace), 0),
            CatalogChange::CollectionRenamed { from, to } => {
                ("renameCollection", doc! { "old": from.as_str(), "new": to.as_str() }, 0)
            }
            CatalogChange::ViewCreated(view) => ("createCollection", view_param(view), 0),
            CatalogChange::ViewDropped(view) => ("dropCollection", view_param(view), 0),
            CatalogChange::IndexStarted(namespace, index) => {
                ("createIndex", index_param(namespace, index, "IndexBuildStarted"), 0)
            }
            CatalogChange::IndexReady(namespace, index) => {
                ("createIndex", index_param(namespace, index, "IndexBuildSucceeded"), 0)
            }
            CatalogChange::IndexAborted(namespace, index) => (
                "createIndex",
                index_param(namespace, index, "IndexBuildAborted"),
                ErrorCode::IndexBuildAborted.number(),
            ),
            CatalogChange::IndexDropped(namespace, index) => {
                let param = doc! { "ns": namespace.as_str(), "indexName": index.name.as_str() };
                ("dropIndex", param, 0)
            }
        };
        self.audit(client, atype, &param, result);
    }

    /// Renames the file of the audit log, and logs the name of the old file in the new one. Does
    /// nothing without an audit log.
    ///
    /// # Errors
    /// The errors of the file operations.
    pub fn rotate_audit(&self, client: Option<&Connection>) -> std::io::Result<()> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let old = audit.rotate()?;
        let param = doc! {
            "pid": i64::from(std::process::id()),
            "osInfo": { "name": os_name().as_str(), "version": kernel_version().as_str() },
            "logRotationStatus": { "status": "OK", "rotatedLogPath": old.as_str(), "errors": [] },
        };
        self.audit(client, "rotateLog", &param, 0);
        Ok(())
    }
}

impl Connection {
    /// Writes the event of a login that succeeded, or failed with the code `result`.
    pub(crate) fn audit_login(&self, user: &UserName, mechanism: &str, result: i32) {
        if self.service.audit.is_some() {
            let param = doc! {
                "user": user.user.as_str(), "db": user.db.as_str(), "mechanism": mechanism,
            };
            self.service.audit(Some(self), "authenticate", &param, result);
        }
    }

    /// Writes the event of a logout of `user`.
    pub(crate) fn audit_logout(&self, user: &UserName, since: i64, reason: LogoutReason) {
        if self.service.audit.is_none() {
            return;
        }
        let param = DocBuf::build(|out| {
            let text = match reason {
                LogoutReason::Asked => "Logging out on user request",
                LogoutReason::Disconnected => "Client has disconnected",
                LogoutReason::Removed => "The user was removed or restricted to other addresses",
            };
            out.append("reason", text);
            write_users(out, "initialUsers", &[user]);
            write_users(out, "updatedUsers", &[]);
            out.append("loginTime", Value::Date(since));
        });
        self.service.audit(Some(self), "logout", &param, 0);
    }

    /// Writes the event with a client's metadata.
    pub(crate) fn audit_metadata(&self, metadata: Doc<'_>) {
        if self.service.audit.is_some() {
            let param = DocBuf::build(|out| {
                write_address(out.document("localEndpoint"), Some(self.info.local));
                out.append("clientMetadata", metadata);
            });
            self.service.audit(Some(self), "clientMetadata", &param, 0);
        }
    }

    /// Begins to collect the changes of a command.
    pub(crate) fn audit_begin(&self) {
        if self.service.audit.is_some() {
            keep_changes();
        }
    }

    /// Writes the events of a client's command: a refusal, its changes of the catalog, and its
    /// changes of users and roles.
    pub(crate) fn audit_command(
        &self,
        command: &Command,
        request: &Request<'_>,
        error: Option<&Error>,
    ) {
        if self.service.audit.is_none() {
            return;
        }
        let body = request.body;
        self.audit_check(command, body, error);
        for change in take_changes() {
            self.service.audit_change(Some(self), &change);
        }
        if error.is_none()
            && let Some((atype, param)) = match command.audit {
                Some(event) => Some(event(command, body)),
                None => direct_mutation(command, text(body, "$db"), request),
            }
        {
            self.service.audit(Some(self), atype, &param, 0);
        }
    }

    /// Writes the event of a refused command, and of an allowed one if the parameter asks for it.
    fn audit_check(&self, command: &Command, body: Doc<'_>, error: Option<&Error>) {
        let refused = error.is_some_and(|error| error.code() == ErrorCode::Unauthorized);
        let told_anyway = || {
            let service = &self.service;
            !command.before_login
                && service.access.enforced
                && service.parameters.flag(AUDIT_SUCCESS)
        };
        if !refused && !told_anyway() {
            return;
        }
        let param = DocBuf::build(|out| {
            out.append("command", command.name);
            out.append("ns", namespace(body).as_str());
            out.append("args", &shown_body(command.secrets, body));
        });
        let result = if refused { ErrorCode::Unauthorized.number() } else { 0 };
        self.service.audit(Some(self), "authCheck", &param, result);
    }
}

/// Returns `database.collection`, or the database for a command without a collection.
fn namespace(body: Doc<'_>) -> String {
    let db = text(body, "$db");
    match body.first().and_then(|first| first.value().as_str()) {
        Some(collection) => format!("{db}.{collection}"),
        None => db.to_owned(),
    }
}

fn text<'d>(body: Doc<'d>, name: &str) -> &'d str {
    body.get(name).and_then(|value| value.as_str()).unwrap_or_default()
}

/// Returns the event of a write into the collections of users and roles by a command that is not
/// about users or roles.
fn direct_mutation(command: &Command, db: &str, request: &Request<'_>) -> Option<AuditEvent> {
    let ns = written_accounts(command, db, request)?;
    Some(("directAuthMutation", doc! { "ns": ns, "operation": command.name }))
}

/// Returns `admin.system.users` or `admin.system.roles` if a command on the database `db` names it
/// as the collection to write to. Stages and transactions cannot write there.
pub(crate) fn written_accounts(
    command: &Command,
    db: &str,
    request: &Request<'_>,
) -> Option<&'static str> {
    const ACCOUNTS: [&str; 2] = ["admin.system.users", "admin.system.roles"];
    let body = request.body;
    if command.kind != Kind::Write || db != "admin" {
        return None;
    }
    let own = namespace(body);
    let listed = body.get("nsInfo").and_then(|list| list.as_array());
    let listed = listed.into_iter().flat_map(|list| list.iter());
    let listed = listed.filter_map(|entry| entry.as_document());
    let sequence = request.sequences.iter().filter(|sequence| sequence.name == "nsInfo");
    let sequence = sequence.flat_map(|sequence| sequence.documents.iter().copied());
    let listed = listed.chain(sequence).map(|entry| text(entry, "ns"));
    let mut named = listed.chain([own.as_str()]);
    named.find_map(|ns| ACCOUNTS.into_iter().find(|own| *own == ns))
}

fn write_users(out: &mut DocWriter<'_>, name: &str, users: &[&UserName]) {
    let mut list = out.array(name);
    for user in users {
        list.document().append("user", &user.user).append("db", &user.db);
    }
}

/// Writes an address; for a unix socket and for the server itself only the kind.
fn write_address(mut out: DocWriter<'_>, address: Option<Option<SocketAddr>>) {
    match address {
        None => out.append("isSystemUser", true),
        Some(None) => out.append("unix", "anonymous"),
        Some(Some(address)) => {
            let ip = address.ip().to_canonical().to_string();
            out.append("ip", ip.as_str()).append("port", i32::from(address.port()))
        }
    };
}

fn view_param(view: &ViewDefinition) -> DocBuf {
    DocBuf::build(|out| {
        out.append("ns", view.namespace.as_str()).append("viewOn", &*view.on);
        let mut stages = out.array("pipeline");
        view.pipeline.iter().for_each(|stage| _ = stages.push(stage));
    })
}

fn index_param(
    namespace: &quire_catalog::Namespace,
    index: &quire_catalog::Index,
    state: &str,
) -> DocBuf {
    doc! {
        "ns": namespace.as_str(), "indexName": index.name.as_str(),
        "indexSpec": &index.spec.to_document(), "indexBuildState": state,
    }
}
