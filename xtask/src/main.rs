//! `cargo xtask NAME`: the checks and generators of this project.

fn main() {}
