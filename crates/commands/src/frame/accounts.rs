//! Stored users and roles, and the user who is logged in on a connection.
//!
//! Users and roles are documents of `admin.system.users` and `admin.system.roles`. The rights of a
//! connection are computed at its login and again after any change of users or roles: each change
//! raises a generation number, and each command compares it.

use crate::frame::audit::LogoutReason;
use crate::frame::context::Context;
use crate::frame::failed_logins::FailedLogins;
use crate::frame::parameters::table::AUTH_SCHEMA_VERSION;
use crate::frame::reply::from_interruption;
use crate::frame::service::{Connection, ConnectionInfo, Service};
use quire_access::{Inherited, Privileges, Restrictions, Role, RoleName, Roles, User, UserName};
use quire_catalog::{Collection, Namespace};
use quire_collections::{Attempt, CollectionCursor, Record, View, Writer};
use quire_document::limits::USER_DOCUMENT_BYTES_MAX;
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{Direction, Interrupt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The documents that are read at a time.
const PAGE_DOCS: usize = 256;
const PAGE_BYTES: usize = 1 << 20;
/// The most bytes of users or roles that a command reads into memory.
const ACCOUNTS_BYTES_MAX: usize = 64 << 20;

/// The state of access control that all connections share.
pub struct AccessControl {
    /// True if commands need a login and privileges (`--auth`).
    pub enforced: bool,
    /// Raised by every change of users and roles.
    generation: AtomicU64,
    /// The key from which the salts of non-existing users are derived.
    pub secret: Vec<u8>,
    /// Failed logins by address.
    pub failed_logins: FailedLogins,
    roles: Mutex<Option<(u64, Arc<Roles>)>>,
    /// Held by a client without a login while it creates the first user.
    pub(crate) first_user: Mutex<()>,
}

/// A logged-in user.
pub struct Identity {
    /// The name of the user.
    pub name: UserName,
    /// The number to which the user's sessions, cursors and transactions belong.
    pub owner: [u8; 32],
    /// The privileges, roles and restrictions of all its roles.
    pub inherited: Inherited,
    /// `userId` of the stored user.
    id: Vec<u8>,
    /// The address restrictions of the user and of the roles; all of them must be met.
    restrictions: Vec<Restrictions>,
    generation: u64,
}

/// Changes of `admin.system.users` and `admin.system.roles` in one transaction.
pub struct Accounts<'w> {
    writer: &'w mut Writer,
    users: Arc<Collection>,
    roles: Arc<Collection>,
}

impl AccessControl {
    /// Returns the state at the start of the process.
    ///
    /// # Errors
    /// 1 InternalError if the system provides no random bytes.
    pub fn new(enforced: bool) -> Result<Self> {
        Ok(AccessControl {
            enforced,
            generation: AtomicU64::new(1),
            secret: quire_access::scram::random(32)?,
            failed_logins: FailedLogins::default(),
            roles: Mutex::new(None),
            first_user: Mutex::default(),
        })
    }

    /// Notes that users or roles have changed: every connection computes its rights again.
    pub fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

impl Identity {
    /// Returns the privileges of all roles.
    pub fn privileges(&self) -> &Privileges {
        &self.inherited.privileges
    }

    /// Returns true if the address restrictions allow the user on this connection.
    pub(crate) fn may_come_from(&self, connection: &ConnectionInfo) -> bool {
        let client = connection.peer.map(|peer| peer.ip());
        let server = connection.local.map(|own| own.ip());
        self.restrictions.iter().all(|list| list.allow(client, server))
    }
}

/// Returns the namespace of the stored users.
pub fn users_namespace() -> Result<Namespace> {
    Namespace::new("admin", "system.users")
}

/// Returns the namespace of the stored roles.
pub fn roles_namespace() -> Result<Namespace> {
    Namespace::new("admin", "system.roles")
}

impl Service {
    /// Returns true if there is a stored user.
    pub(crate) fn has_users(&self) -> Result<bool> {
        let catalog = self.store.catalog();
        let users = catalog.lookup(&users_namespace()?);
        Ok(users.is_some_and(|users| self.store.counts(users).documents > 0))
    }

    /// Returns the stored user of this name.
    pub(crate) fn find_user(&self, name: &UserName) -> Result<Option<User>> {
        let view = self.store.read_view()?;
        let Some(users) = view.view().collection(&users_namespace()?).cloned() else {
            return Ok(None);
        };
        let found = view.view().get_by_id(&users, Value::String(&name.id()))?;
        found.map(|record| User::parse(record.doc.as_doc())).transpose()
    }

    /// Returns the number to which the sessions of the user of this name belong; `None` if no such
    /// user is stored.
    pub(crate) fn owner_of(&self, name: &UserName) -> Result<Option<[u8; 32]>> {
        Ok(self.find_user(name)?.map(|user| user.owner()))
    }

    /// Returns the current user-defined roles.
    pub(crate) fn roles(&self) -> Result<Arc<Roles>> {
        let generation = self.access.generation();
        let mut cached = self.access.roles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, roles)) = &*cached
            && *of == generation
        {
            return Ok(Arc::clone(roles));
        }
        let view = self.store.read_view()?;
        let view = view.view();
        let roles = match view.collection(&roles_namespace()?) {
            Some(stored) => read_roles(&view, &Arc::clone(stored))?,
            None => Roles::default(),
        };
        let roles = Arc::new(roles);
        *cached = Some((generation, Arc::clone(&roles)));
        Ok(roles)
    }

    /// Returns the stored documents of users or roles for which `keep` returns true, in the order
    /// of insertion.
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit beyond `ACCOUNTS_BYTES_MAX`.
    pub(crate) fn stored_accounts(
        &self,
        namespace: &Namespace,
        interrupt: &Interrupt,
        keep: impl Fn(Doc<'_>) -> bool,
    ) -> Result<Vec<DocBuf>> {
        let view = self.store.read_view()?;
        let view = view.view();
        let Some(collection) = view.collection(namespace).cloned() else { return Ok(Vec::new()) };
        let mut cursor = CollectionCursor::new(&collection, Direction::Forward);
        let (mut page, mut kept, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut has_more = true;
        while has_more {
            interrupt.check().map_err(from_interruption)?;
            has_more = cursor.next_page(&view, &collection, PAGE_DOCS, PAGE_BYTES, &mut page)?;
            for record in page.drain(..).filter(|record: &Record| keep(record.doc.as_doc())) {
                bytes += record.doc.as_doc().as_bytes().len();
                if bytes > ACCOUNTS_BYTES_MAX {
                    let text =
                        format!("the users and roles have more than {ACCOUNTS_BYTES_MAX} bytes");
                    return Err(Error::new(ErrorCode::ExceededMemoryLimit, text));
                }
                kept.push(record.doc.as_doc().to_owned());
            }
        }
        Ok(kept)
    }

    /// Returns the stored user with this name, and the user's current rights.
    pub(crate) fn identify(&self, name: &UserName) -> Result<Option<(User, Identity)>> {
        // Read before the user: if a change is committed in between, the identity is out of date
        // and the next command computes it again.
        let generation = self.access.generation();
        let Some(user) = self.find_user(name)? else { return Ok(None) };
        let inherited = self.roles()?.inherited(&user.roles);
        let mut restrictions = inherited.conditions()?;
        restrictions.push(user.restrictions.clone());
        let identity = Identity {
            name: user.name.clone(),
            owner: user.owner(),
            inherited,
            id: user.id.clone(),
            restrictions,
            generation,
        };
        Ok(Some((user, identity)))
    }
}

impl Connection {
    /// Returns the logged-in user with the current rights. Logs out a user who was removed, even if
    /// another user with the same name exists, and a user whose address restrictions no longer
    /// allow this connection.
    pub(crate) fn identity(&mut self) -> Result<Option<Arc<Identity>>> {
        let Some(known) = &self.identity else { return Ok(None) };
        if known.generation == self.service.access.generation() {
            return Ok(Some(Arc::clone(known)));
        }
        let known = Arc::clone(known);
        let stored = self.service.identify(&known.name)?.map(|(_, identity)| identity);
        let stays = |now: &Identity| now.id == known.id && now.may_come_from(&self.info);
        self.identity = stored.filter(stays).map(Arc::new);
        if self.identity.is_none() {
            self.audit_logout(&known.name, self.login_ms, LogoutReason::Removed);
        }
        Ok(self.identity.clone())
    }
}

impl Context<'_> {
    /// Changes users and roles in one commit with the command's write concern. Runs `change` again
    /// after a conflict.
    pub(crate) fn change_accounts<T>(
        &self,
        mut change: impl FnMut(&mut Accounts<'_>) -> Attempt<T>,
    ) -> Result<T> {
        let _alone = self.alone_as_first_user()?;
        let mut unit = self.server_unit()?;
        let mut own = |namespace| unit.own_collection(&namespace, &self.interrupt);
        let users = own(users_namespace()?)?;
        let roles = own(roles_namespace()?)?;
        let schema = own(Namespace::new("admin", "system.version")?)?;
        let done = unit.write_durably(&self.interrupt, |writer| {
            note_schema(writer, &schema)?;
            let (users, roles) = (Arc::clone(&users), Arc::clone(&roles));
            change(&mut Accounts { writer, users, roles })
        });
        self.service.access.changed();
        done
    }
}

/// Stores the schema version of users and roles, which mongodump reads.
fn note_schema(writer: &mut Writer, versions: &Arc<Collection>) -> Attempt<()> {
    match writer.view().get_by_id(versions, Value::String("authSchema"))? {
        Some(_) => Ok(()),
        None => {
            let version = doc! { "_id": "authSchema", "currentVersion": AUTH_SCHEMA_VERSION };
            writer.insert(versions, version.as_doc()).map(|_| ())
        }
    }
}

impl Accounts<'_> {
    /// Returns the stored document of a user.
    pub fn user(&self, name: &UserName) -> Result<Option<Record>> {
        self.writer.view().get_by_id(&self.users, Value::String(&name.id()))
    }

    /// Returns the stored document of a role.
    pub fn role(&self, name: &RoleName) -> Result<Option<Record>> {
        self.writer.view().get_by_id(&self.roles, Value::String(&name.id()))
    }

    /// Returns every user-defined role.
    pub fn all_roles(&self) -> Result<Roles> {
        read_roles(&self.writer.view(), &self.roles)
    }

    /// Returns the documents of all users.
    pub fn users(&self) -> Result<Vec<Record>> {
        read_all(&self.writer.view(), &self.users)
    }

    /// Returns the documents of all roles.
    pub fn role_records(&self) -> Result<Vec<Record>> {
        read_all(&self.writer.view(), &self.roles)
    }

    /// Stores a new user.
    pub fn insert_user(&mut self, doc: &DocBuf) -> Attempt<()> {
        self.writer.insert(&self.users, doc.as_doc()).map(|_| ())
    }

    /// Stores a new role.
    pub fn insert_role(&mut self, doc: &DocBuf) -> Attempt<()> {
        self.writer.insert(&self.roles, doc.as_doc()).map(|_| ())
    }

    /// Replaces a user's document.
    pub fn update_user(&mut self, old: &Record, new: &DocBuf) -> Attempt<()> {
        self.writer.replace(&self.users, old.id, old.doc.as_doc(), new.as_doc())
    }

    /// Replaces a role's document.
    pub fn update_role(&mut self, old: &Record, new: &DocBuf) -> Attempt<()> {
        self.writer.replace(&self.roles, old.id, old.doc.as_doc(), new.as_doc())
    }

    /// Removes a user.
    pub fn delete_user(&mut self, old: &Record) -> Attempt<()> {
        self.writer.delete(&self.users, old.id, old.doc.as_doc())
    }

    /// Removes a role, also from every user and role that has it.
    pub fn delete_role(&mut self, name: &RoleName, old: &Record) -> Attempt<()> {
        self.writer.delete(&self.roles, old.id, old.doc.as_doc())?;
        let has = |record: &Record| granted(record.doc.as_doc()).contains(name);
        for record in self.users()?.iter().filter(|record| has(record)) {
            self.update_user(record, &without_role(record.doc.as_doc(), name))?;
        }
        for record in self.role_records()?.iter().filter(|record| has(record)) {
            self.update_role(record, &without_role(record.doc.as_doc(), name))?;
        }
        Ok(())
    }
}

/// Returns the roles in a user's or a role's document.
pub fn granted(doc: Doc<'_>) -> Vec<RoleName> {
    let roles = doc.get("roles").and_then(|roles| roles.as_array());
    let names = roles.into_iter().flat_map(|roles| roles.iter());
    names.filter_map(|role| RoleName::parse(role, "").ok()).collect()
}

/// Returns the document with other roles.
pub fn with_roles(doc: Doc<'_>, roles: &[RoleName]) -> DocBuf {
    DocBuf::build(|out| {
        for element in doc.iter() {
            if element.key() == "roles" {
                write_roles(roles, out.array("roles"));
            } else {
                out.append_element(element);
            }
        }
        if !doc.contains("roles") {
            write_roles(roles, out.array("roles"));
        }
    })
}

/// Writes an array of `{role, db}`.
pub fn write_roles(roles: &[RoleName], mut out: quire_document::ArrayWriter<'_>) {
    roles.iter().for_each(|role| role.write(&mut out.document()));
}

fn without_role(doc: Doc<'_>, name: &RoleName) -> DocBuf {
    let mut roles = granted(doc);
    roles.retain(|role| role != name);
    with_roles(doc, &roles)
}

fn read_roles(view: &View<'_>, collection: &Arc<Collection>) -> Result<Roles> {
    read_all(view, collection)?.iter().map(|record| Role::parse(record.doc.as_doc())).collect()
}

/// Fails with 10334 BSONObjectTooLarge if a list of users or roles does not fit in a reply.
pub(crate) fn check_list_bytes(bytes: usize) -> Result<()> {
    if bytes <= USER_DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    let text = format!("the list has more than {USER_DOCUMENT_BYTES_MAX} bytes: ask for fewer");
    Err(Error::new(ErrorCode::BSONObjectTooLarge, text))
}

fn read_all(view: &View<'_>, collection: &Arc<Collection>) -> Result<Vec<Record>> {
    let mut cursor = CollectionCursor::new(collection, Direction::Forward);
    let mut records = Vec::new();
    while cursor.next_page(view, collection, PAGE_DOCS, PAGE_BYTES, &mut records)? {}
    Ok(records)
}
