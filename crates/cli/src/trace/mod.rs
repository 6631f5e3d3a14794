//! `quire record` and `quire replay`: a trace of the statements that a server runs, and the same
//! statements once more, on any server.

mod file;
pub(crate) mod record;
pub(crate) mod replay;
