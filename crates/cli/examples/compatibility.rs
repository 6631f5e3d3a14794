//! Prints COMPATIBILITY.md; `cargo xtask compatibility` puts it in its place.

fn main() {
    print!("{}", quire_cli::compatibility::markdown());
}
