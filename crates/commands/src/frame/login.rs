//! The state of a login between two messages of a client.

use quire_access::scram::Exchange;
use quire_access::{Mechanism, User, UserName};

/// A login that is under way on a connection.
pub struct Login {
    /// The name that the client gave.
    pub user: UserName,
    /// The stored user of this name.
    pub stored: Option<User>,
    /// The mechanism that the client chose.
    pub mechanism: Mechanism,
    /// What the client must send next.
    pub step: Step,
    /// The server's last message ends the login, without an empty exchange after it.
    pub skips_empty: bool,
    /// It began inside a `hello`.
    pub speculative: bool,
}

/// What a login waits for.
pub enum Step {
    /// The client's proof.
    Proof(Box<Exchange>),
    /// An empty message, after a proof that was good.
    Empty,
}
