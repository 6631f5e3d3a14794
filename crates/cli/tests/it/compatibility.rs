//! The committed pages are the generated ones.

use quire_cli::compatibility;

#[test]
fn the_pages_are_those_of_the_registries() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let pages = [
        ("COMPATIBILITY.md", compatibility::markdown()),
        ("docs/options.md", compatibility::options()),
    ];
    for (name, generated) in pages {
        let committed = std::fs::read_to_string(format!("{root}{name}")).expect("the page exists");
        assert!(committed == generated, "{name}: run cargo xtask compatibility");
    }
}
