//! `listCommands`: every command that is built, with its summary.

use crate::frame::command::Command;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

/// Like mongod it accepts any field.
pub fn run(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut commands = reply.document("commands");
    let tests = cx.service.parameters.flag("enableTestCommands");
    let shown = |row: &&Command| row.run.is_some() && (tests || !row.test_only);
    let mut rows: Vec<_> = cx.service.commands.rows().iter().filter(shown).collect();
    rows.sort_by_key(|row| row.name);
    for row in rows {
        let mut entry = commands.document(row.name);
        entry.append("help", row.summary);
        entry.append("requiresAuth", !row.before_login);
        entry.append("secondaryOk", true);
        entry.append("adminOnly", row.admin_only);
        entry.append("secondaryOverrideOk", true);
        let mut versions = entry.array("apiVersions");
        if row.in_api_v1 {
            versions.push("1");
        }
        versions.finish();
        entry.array("deprecatedApiVersions").finish();
    }
    Ok(())
}
