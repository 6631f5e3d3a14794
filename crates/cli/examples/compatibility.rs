//! Prints COMPATIBILITY.md; `cargo xtask compatibility` puts it in its place.

#![allow(clippy::unwrap_used)]

fn main() {
    print!("{}", quire_cli::compatibility::markdown());
}
