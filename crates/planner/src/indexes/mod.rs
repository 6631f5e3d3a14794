//! Which indexes can serve a request, and which of them does.
//!
//! Read in this order: `access` (the ways to find the documents of a filter by indexes), `search`
//! (searches of whole documents), `partial`,
//! `covering` and `sort_order` (the documents, values and order of an index), `hint` and `min_max` (options
//! of the request), `keys` (the keys of a join as the parameters of a plan),
//! `intersection`, `choose` (the cheapest plan), `cached` and `fingerprint` (the key of an
//! earlier choice).

pub(crate) mod access;
pub(crate) mod cached;
pub(crate) mod choose;
pub(crate) mod covering;
pub(crate) mod fingerprint;
pub(crate) mod hint;
pub(crate) mod intersection;
pub(crate) mod keys;
pub(crate) mod min_max;
pub(crate) mod partial;
pub(crate) mod search;
pub(crate) mod sort_order;
