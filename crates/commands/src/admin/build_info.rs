//! `buildInfo`: version and build. It returns MongoDB's version, on which drivers and tools decide,
//! and this server's own beside it.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::{MONGODB_VERSION, MONGODB_VERSION_ARRAY};
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    reply.append("version", MONGODB_VERSION);
    reply.append("gitVersion", cx.service.options.git_version);
    reply.array("modules").finish();
    reply.append("allocator", "system");
    reply.append("javascriptEngine", "none");
    reply.append("sysInfo", "deprecated");
    {
        let mut numbers = reply.array("versionArray");
        MONGODB_VERSION_ARRAY.iter().for_each(|number| {
            numbers.push(*number);
        });
    }
    reply.document("openssl").append("running", "none").append("compiled", "none");
    {
        let mut build = reply.document("buildEnvironment");
        build.append("target_arch", std::env::consts::ARCH);
        build.append("target_os", std::env::consts::OS);
    }
    reply.append("bits", usize::BITS as i32);
    reply.append("debug", cfg!(debug_assertions));
    reply.append("maxBsonObjectSize", 16 * 1024 * 1024);
    reply.array("storageEngines").push(cx.service.options.storage_engine);
    reply.document("quire").append("version", env!("CARGO_PKG_VERSION"));
    Ok(())
}
