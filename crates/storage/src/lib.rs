//! The key-value contract, the write buffer, group commit, the in-memory and the simulated engine.
