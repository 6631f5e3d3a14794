//! `connectionStatus`: the authenticated user of this connection, and its privileges. Without a
//! login the lists are empty.

use crate::frame::accounts::write_roles;
use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Binary, Doc, DocWriter, Value};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut show_privileges = false;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "showPrivileges" if arg.is_null() => {}
            "showPrivileges" => show_privileges = arg.safe_bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    {
        let mut info = reply.document("authInfo");
        let identity = cx.identity();
        let mut users = info.array("authenticatedUsers");
        if let Some(identity) = identity {
            let name = &identity.name;
            users.document().append("user", &name.user).append("db", &name.db);
        }
        users.finish();
        let roles = identity.map_or(&[][..], |identity| &identity.inherited.roles);
        write_roles(roles, info.array("authenticatedUserRoles"));
        if show_privileges {
            let privileges = info.array("authenticatedUserPrivileges");
            match identity {
                Some(identity) => identity.privileges().merged().write(privileges),
                None => privileges.finish(),
            }
        }
    }
    let uuid = connection_uuid(cx);
    reply.append("uuid", Value::Binary(Binary { subtype: 4, bytes: &uuid }));
    Ok(())
}

/// Returns the UUID of the connection: random bytes of this process, then the connection's number.
/// It stays the same for the connection's lifetime.
fn connection_uuid(cx: &Context<'_>) -> [u8; 16] {
    let mut uuid = [0; 16];
    let (process, number) = uuid.split_at_mut(8);
    process.copy_from_slice(&cx.service.process_id.0[..8]);
    number.copy_from_slice(&cx.connection.info.id.to_be_bytes());
    // Version 8 (custom) and the variant of RFC 9562.
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}
