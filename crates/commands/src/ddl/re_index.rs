//! `reIndex`: builds all indexes of a collection again. Only on a standalone server, as in mongod.
//! Reads and writes continue, which mongod does not allow.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::service::Topology;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use quire_session::Changed;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let namespace = cx.target(body)?;
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    if cx.service.options.topology != Topology::Standalone {
        let text = format!(
            "reIndex is only allowed on a standalone mongod instance. Cannot reIndex '{namespace}' while replication is active"
        );
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let catalog = cx.service.store.catalog();
    if catalog.view(&namespace).is_some() {
        return Err(Error::new(ErrorCode::CommandNotSupportedOnView, "can't re-index a view"));
    }
    if catalog.lookup(&namespace).is_none() {
        return Err(Error::new(ErrorCode::NamespaceNotFound, "collection does not exist"));
    }
    let _change =
        cx.await_transactions(Changed::Collections(vec![namespace.as_str().to_owned()]))?;
    cx.service.bound_builds();
    let rebuilt =
        cx.change_catalog(|store, commit| store.rebuild_indexes(&namespace, &cx.interrupt, commit));
    let rebuilt = rebuilt.map_err(|error| cx.without_values(&namespace, error))?;
    reply.append("nIndexesWas", rebuilt.before as i32);
    reply.append("nIndexes", rebuilt.specs.len() as i32);
    let mut indexes = reply.array("indexes");
    for spec in &rebuilt.specs {
        indexes.push(spec);
    }
    Ok(())
}
