//! The state that a client keeps between two commands: its cursors and its logical sessions, with
//! their transactions and retryable writes. Every command reads and writes through `unit.rs`, which
//! has two implementations: `autocommit.rs` and `transaction.rs`.

mod autocommit;
mod catalog_changes;
mod cursors;
mod held_transaction;
mod plan_source;
mod session_id;
mod sessions;
mod transaction;
mod transactions;
mod unit;

pub use autocommit::{Autocommit, Finished, WriteSettings};
pub use catalog_changes::{Changed, RunningChange};
pub use cursors::{Checkout, Cursor, CursorCounts, Cursors, Source, parsed_bytes};
pub use held_transaction::{NeededRight, Start, TransactionCounters, TransactionCounts};
pub use plan_source::PlanSource;
pub use session_id::{NO_USER, SessionId};
pub use sessions::{Session, Sessions, Turn};
pub use transaction::Transaction;
pub use transactions::{OpenTransaction, TransactionTurn};
pub use unit::Unit;
