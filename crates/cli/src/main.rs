//! The one binary, `quire`.

fn main() {}
