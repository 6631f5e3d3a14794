//! Persistent settings of the server: small documents by name (docs/format.md, "Catalog").

use std::sync::Arc;

use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_storage::{CommitOptions, Mode, Space};

use crate::Store;
use crate::failure::from_storage;
use crate::meta::{meta_doc, put_meta};

/// The first byte of every key.
const SETTING: u8 = b'p';

impl Store {
    /// Returns a setting, if it was ever stored.
    pub fn setting(self: &Arc<Self>, name: &str) -> Result<Option<DocBuf>> {
        let snapshot = self.engine().snapshot().map_err(from_storage)?;
        let value = snapshot.get(Space::Meta, &key(name)).map_err(from_storage)?;
        value.map(|bytes| Ok(meta_doc(&bytes)?.to_owned())).transpose()
    }

    /// Stores a setting.
    pub fn put_setting(
        self: &Arc<Self>,
        name: &str,
        setting: Doc<'_>,
        options: CommitOptions,
    ) -> Result<()> {
        let (mut txn, _) = self.begin(Mode::Write)?;
        put_meta(&mut txn, &key(name), setting.to_owned())?;
        txn.commit(options).map(|_| ()).map_err(from_storage)
    }
}

fn key(name: &str) -> Vec<u8> {
    std::iter::once(SETTING).chain(name.bytes()).collect()
}
