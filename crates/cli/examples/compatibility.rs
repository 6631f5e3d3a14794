//! Prints COMPATIBILITY.md; `cargo xtask compatibility` writes the file.

#![allow(clippy::unwrap_used)]

fn main() {
    print!("{}", quire_cli::compatibility::markdown());
}
