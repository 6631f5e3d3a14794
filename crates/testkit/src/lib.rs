//! Case runner, generators, in-process server.
