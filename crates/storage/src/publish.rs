//! What a caller does at the moment when its commit becomes visible: how the catalog changes with
//! the commit that makes it true, without a lock that is held while the commit waits.

use crate::version::Committed;

/// What a commit does at the moment when it becomes visible. The function gets the commit and a
/// function that makes it visible, which it must call once. So the caller can change a value of
/// its own at the same moment, under a lock that is not held while the commit waits. It must
/// neither wait nor use the engine.
pub struct OnPublish(pub Box<PublishFn>);

/// The function in [`OnPublish`].
pub type PublishFn = dyn FnOnce(Committed, &mut dyn FnMut()) + Send + Sync;

impl std::fmt::Debug for OnPublish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnPublish")
    }
}
