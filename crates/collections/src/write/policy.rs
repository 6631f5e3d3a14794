//! Who writes. A writer carries it from the command down to the place that checks documents, and tells
//! it to the change log.

/// Who writes, and so which checks of a document's contents apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WritePolicy {
    /// A client: every check applies.
    #[default]
    Client,
    /// A client that asks for `bypassDocumentValidation`, and has the privilege to.
    Bypassing,
    /// The server itself, such as for users and roles, or for a copy of checked documents.
    Internal,
}
