//! What deleted and dropped rows leave behind, and how their space comes back.

pub(crate) mod dead;
pub(crate) mod gaps;
pub(crate) mod heads;
pub(crate) mod hidden;
pub(crate) mod reclaim;
pub(crate) mod settling;
pub(crate) mod sizes;
pub(crate) mod tombstones;
