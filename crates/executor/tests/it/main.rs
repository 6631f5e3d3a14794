//! Requests and writes on the memory engine.

mod modify;
