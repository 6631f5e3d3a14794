//! Hooks that run when a commit becomes visible. With one the catalog changes together with the
//! commit, without a lock that is held while the commit waits.

use crate::version::Committed;

/// A function that a commit calls when it becomes visible. It gets the commit's version and a
/// function that makes the commit visible, which it must call once. So the caller can change a
/// value at the same moment, under a lock that it does not hold while the commit waits. The
/// function must neither wait nor use the engine.
pub struct OnPublish(pub Box<PublishFn>);

/// The function in [`OnPublish`].
pub type PublishFn = dyn FnOnce(Committed, &mut dyn FnMut()) + Send + Sync;

impl std::fmt::Debug for OnPublish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnPublish")
    }
}
