//! The state of a login between two messages of a client.

use quire_access::scram::Exchange;
use quire_access::{Mechanism, User, UserName};

/// A login in progress on a connection.
pub struct Login {
    /// The name that the client gave.
    pub user: UserName,
    /// The stored user of this name.
    pub stored: Option<User>,
    /// The mechanism that the client chose.
    pub mechanism: Mechanism,
    /// The next message that the client must send.
    pub step: Step,
    /// True if the server's last message ends the login, without another empty exchange.
    pub skips_empty: bool,
    /// True if it began inside a `hello`.
    pub speculative: bool,
}

/// The next step of a login.
pub enum Step {
    /// The client's proof.
    Proof(Box<Exchange>),
    /// An empty message, after a correct proof.
    Empty,
}
