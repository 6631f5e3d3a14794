//! The committed COMPATIBILITY.md is the generated one.

#[test]
fn the_page_is_that_of_the_registries() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../COMPATIBILITY.md");
    let committed = std::fs::read_to_string(path).expect("COMPATIBILITY.md exists");
    assert!(committed == quire_cli::compatibility::markdown(), "run cargo xtask compatibility");
}
