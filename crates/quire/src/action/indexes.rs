//! Creating, listing and dropping indexes.

use crate::command::Command;
use crate::error::{Error, Result};
use crate::options::IndexModel;
use crate::results::{CreateIndexResult, CreateIndexesResult};
use crate::setters::standard_options;
use crate::{Collection, Cursor};
use bson::Document;

impl<T: Send + Sync> Collection<T> {
    /// Creates an index, and the collection if it is missing.
    pub fn create_index(&self, index: IndexModel) -> CreateIndex {
        CreateIndex { command: self.command("createIndexes"), index }
    }

    /// Creates indexes, and the collection if it is missing.
    pub fn create_indexes(&self, indexes: impl IntoIterator<Item = IndexModel>) -> CreateIndexes {
        let command = self.command("createIndexes");
        CreateIndexes { command, indexes: indexes.into_iter().collect() }
    }

    /// Lists the collection's indexes.
    pub fn list_indexes(&self) -> ListIndexes {
        ListIndexes { command: self.command("listIndexes") }
    }

    /// Lists the names of the collection's indexes.
    pub fn list_index_names(&self) -> ListIndexNames {
        ListIndexNames { command: self.command("listIndexes") }
    }

    /// Drops the index with this name.
    pub fn drop_index(&self, name: impl AsRef<str>) -> DropIndex {
        let mut command = self.command("dropIndexes");
        command.set("index", name.as_ref());
        DropIndex { command, refused: name.as_ref() == "*" }
    }

    /// Drops every index except the one on `_id`.
    pub fn drop_indexes(&self) -> DropIndex {
        let mut command = self.command("dropIndexes");
        command.set("index", "*");
        DropIndex { command, refused: false }
    }
}

/// Creates an index; see [`Collection::create_index`].
#[must_use = "an action does nothing before `run`"]
pub struct CreateIndex {
    command: Command,
    index: IndexModel,
}

impl CreateIndex {
    standard_options!(comment, max_time, session, write_concern);

    /// Creates the index.
    ///
    /// # Errors
    /// The errors of the command, for example a document that violates a unique index.
    pub fn run(self) -> Result<CreateIndexResult> {
        let index_name = self.index.name();
        create(self.command, vec![self.index])?;
        Ok(CreateIndexResult { index_name })
    }
}

/// Creates indexes; see [`Collection::create_indexes`].
#[must_use = "an action does nothing before `run`"]
pub struct CreateIndexes {
    command: Command,
    indexes: Vec<IndexModel>,
}

impl CreateIndexes {
    standard_options!(comment, max_time, session, write_concern);

    /// Creates the indexes.
    ///
    /// # Errors
    /// The errors of the command, for example a document that violates a unique index.
    pub fn run(self) -> Result<CreateIndexesResult> {
        let index_names = self.indexes.iter().map(IndexModel::name).collect();
        create(self.command, self.indexes)?;
        Ok(CreateIndexesResult { index_names })
    }
}

fn create(mut command: Command, indexes: Vec<IndexModel>) -> Result<()> {
    let specs: Result<Vec<Document>> = indexes
        .into_iter()
        .map(|index| {
            let name = index.name();
            let mut spec = bson::serialize_to_document(&index).map_err(Error::serialization)?;
            spec.insert("name", name);
            Ok(spec)
        })
        .collect();
    command.set("indexes", specs?);
    Error::from_write_reply(&command.run()?)
}

/// Lists indexes; see [`Collection::list_indexes`].
#[must_use = "an action does nothing before `run`"]
pub struct ListIndexes {
    command: Command,
}

impl ListIndexes {
    standard_options!(comment, max_time, session);

    /// Lists the indexes.
    ///
    /// # Errors
    /// The errors of the command: code 26 if the collection does not exist.
    pub fn run(self) -> Result<Cursor<IndexModel>> {
        Cursor::open(self.command, None, None)
    }
}

/// Lists the names of indexes; see [`Collection::list_index_names`].
#[must_use = "an action does nothing before `run`"]
pub struct ListIndexNames {
    command: Command,
}

impl ListIndexNames {
    standard_options!(comment, max_time, session);

    /// Lists the names.
    ///
    /// # Errors
    /// The errors of the command: code 26 if the collection does not exist.
    pub fn run(self) -> Result<Vec<String>> {
        let indexes: Cursor<IndexModel> = Cursor::open(self.command, None, None)?;
        indexes.map(|index| index.map(|index| index.name())).collect()
    }
}

/// Drops indexes; see [`Collection::drop_index`] and [`Collection::drop_indexes`].
#[must_use = "an action does nothing before `run`"]
pub struct DropIndex {
    command: Command,
    refused: bool,
}

impl DropIndex {
    standard_options!(comment, max_time, session, write_concern);

    /// Drops the indexes.
    ///
    /// # Errors
    /// The errors of the command: code 27 if the index does not exist.
    pub fn run(self) -> Result<()> {
        if self.refused {
            return Err(Error::invalid_argument("`*` names no index; call drop_indexes"));
        }
        Error::from_write_reply(&self.command.run()?)
    }
}
