//! Which indexes can serve a request, and which of them does.
//!
//! Read in this order: `access` (the ways by which indexes reach the documents of a filter), `partial`,
//! `covering` and `sort_order` (what an index can and gives), `hint` and `min_max` (what the request says),
//! `intersection`, `choose` (the cheapest plan).

pub(crate) mod access;
pub(crate) mod choose;
pub(crate) mod covering;
pub(crate) mod hint;
pub(crate) mod intersection;
pub(crate) mod min_max;
pub(crate) mod partial;
pub(crate) mod sort_order;
