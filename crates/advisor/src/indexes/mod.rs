//! Advice about indexes: which to create, which to remove, which are right.
//!
//! Read in this order: [`definition`](IndexDefinition) (indexes as advice compares them),
//! [`conditions`](Asked) (what a command asks of its collection), [`candidates`](candidates()) (the
//! indexes that may serve it), [`laboratory`](Laboratory) (where they are tried),
//! [`measured`](Measured) (what a run examined), [`choice`](choose) (the best set within a budget),
//! `fields` (the paths that documents have), `advice` (all of it together), `shown` (the document).

mod advice;
mod candidates;
mod choice;
mod conditions;
mod costs;
mod definition;
mod fields;
mod instances;
mod laboratory;
mod measured;
mod removal;
mod shown;

pub use advice::{
    AdvisedRequest, IndexAdvice, IndexRequest, NewIndex, RefusedIndex, RequestRun, advise_indexes,
};
pub use candidates::{
    CANDIDATES_MAX, IndexCandidate, WeighedRequest, candidates, joined_candidate,
};
pub use choice::{IndexBudget, Offer, choose};
pub use conditions::{Asked, Bound, Condition, EQUALITY_LIST_MAX, Writes};
pub use costs::{COST_LEFT_MAX, ENTRY_BYTES, ENTRY_COST, KEY_COST, SORTED_COST, cost_of};
pub use definition::{ExistingIndex, IndexDefinition, KeyField};
pub use fields::SeenPaths;
pub use instances::{INSTANCES_MAX, instances};
pub use laboratory::{BuiltIndex, CopyShare, Laboratory, LaboratoryCopy};
pub use measured::{Measured, ScaledCounts};
pub use removal::{DoubtfulIndex, KeptIndex, Reason, doubts};
pub use shown::{ADVICE_VERSION, write_scaled, write_weights};
