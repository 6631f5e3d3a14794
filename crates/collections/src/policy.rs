//! The origin of a write. A writer carries it from the command to the code that checks documents,
//! and reports it to the change log.

/// The origin of a write, which decides which checks of a document's contents apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WritePolicy {
    /// A client: every check applies.
    #[default]
    Client,
    /// A client that sets `bypassDocumentValidation` and has the privilege for it.
    Bypassing,
    /// A rule of a collection, for a write that follows from another one: every check applies, also
    /// if the client bypasses them for its own write.
    Derived,
    /// The server itself, for example for users and roles, or for a copy of checked documents.
    Internal,
}
