//! Actions: a method returns an action, on which options are set before it is run. One file for
//! each family.

mod aggregate;
mod bulk_write;
mod collections;
mod count;
mod databases;
mod delete;
mod distinct;
mod find;
mod find_and_modify;
mod indexes;
mod insert;
mod list_collections;
mod run_command;
mod start_session;
mod transactions;
mod update;
mod watch;

pub use aggregate::Aggregate;
pub use bulk_write::{BulkWrite, VerboseBulkWrite};
pub use collections::{CreateCollection, DropCollection, DropDatabase};
pub use count::{CountDocuments, EstimatedDocumentCount};
pub use databases::{ListDatabaseNames, ListDatabases, Shutdown};
pub use delete::Delete;
pub use distinct::Distinct;
pub use find::{Find, FindOne};
pub use find_and_modify::{FindOneAndDelete, FindOneAndReplace, FindOneAndUpdate};
pub use indexes::{CreateIndex, CreateIndexes, DropIndex, ListIndexNames, ListIndexes};
pub use insert::{InsertMany, InsertOne};
pub use list_collections::{ListCollectionNames, ListCollections};
pub use run_command::{RunCommand, RunCursorCommand};
pub use start_session::StartSession;
pub use transactions::{AbortTransaction, CommitTransaction, StartTransaction};
pub use update::{ReplaceOne, Update};
pub use watch::Watch;
