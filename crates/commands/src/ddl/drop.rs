//! `drop`: removes a collection. It succeeds for a collection that does not exist.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::profiler::SYSTEM_PROFILE;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use quire_session::Changed;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let namespace = cx.target(body)?;
    if namespace.as_str() == "local.oplog.rs" {
        return Err(Error::location(5255000, "can't drop live oplog while replicating"));
    }
    if matches!(
        namespace.collection(),
        "system.users" | "system.roles" | "system.version" | "system.keys"
    ) {
        let text = format!("can't drop system collection {namespace}");
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let profiled = cx.service.profiler.setting(cx.db).level > 0;
    if profiled && namespace.collection() == SYSTEM_PROFILE {
        let text = "turn off profiling before dropping system.profile collection";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    // As in MongoDB, the buckets and their time-series collection exist together.
    let stored = cx.service.store.catalog().stored_name(namespace.clone());
    let _change = cx.await_transactions(Changed::Collections(vec![stored.as_str().to_owned()]))?;
    if cx.change_catalog(|store, commit| store.drop_view(&namespace, commit))? {
        reply.append("ns", namespace.as_str());
        return Ok(());
    }
    let dropped = cx.change_catalog(|store, commit| store.drop_collection(&stored, commit))?;
    if let Some(collection) = dropped {
        reply.append("nIndexesWas", collection.index_count() as i32);
        reply.append("ns", namespace.as_str());
    }
    Ok(())
}
