//! Measures the cost of a document in each part of the language. Runs the named parts, or all:
//! `cargo run --release -p quire-mql --example bench -- [filters] [updates] [expressions]`.

#![allow(clippy::unwrap_used)]

mod expressions;
mod filters;
mod harness;
mod updates;

use quire_error::Result;

fn main() -> Result<()> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    let docs = harness::documents();
    if wanted("filters") {
        filters::run(&docs)?;
    }
    if wanted("updates") {
        updates::run(&docs)?;
    }
    if wanted("expressions") {
        expressions::run()?;
    }
    Ok(())
}
