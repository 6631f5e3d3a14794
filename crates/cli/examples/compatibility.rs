//! Prints COMPATIBILITY.md, or docs/options.md if the argument is `options`; `cargo xtask
//! compatibility` writes both files.

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("options") => print!("{}", quire_cli::compatibility::options()),
        _ => print!("{}", quire_cli::compatibility::markdown()),
    }
}
