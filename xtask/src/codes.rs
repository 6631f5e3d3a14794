//! Writes the Rust source of the named error codes from their table.

use std::path::Path;

/// Writes `crates/error/src/codes.rs` from `crates/error/codes.csv`.
pub fn write(root: &Path) -> Result<(), String> {
    let table = std::fs::read_to_string(root.join("crates/error/codes.csv"))
        .map_err(|error| error.to_string())?;
    std::fs::write(root.join("crates/error/src/codes.rs"), generate(&table)?)
        .map_err(|error| error.to_string())
}

/// Returns the source for a table of `number,name,classes`.
fn generate(table: &str) -> Result<String, String> {
    let mut rows = Vec::new();
    for line in table.lines().skip(1).filter(|line| !line.is_empty()) {
        let mut cells = line.split(',');
        let mut cell = || cells.next().ok_or_else(|| format!("a row needs three cells: {line}"));
        let (number, name, classes) = (cell()?, cell()?, cell()?);
        let number: i32 = number.parse().map_err(|_| format!("not a number: {line}"))?;
        rows.push((number, name, classes));
    }
    rows.sort_unstable();
    let mut text = String::from(
        "//! The named error codes. Generated from `codes.csv` by `cargo xtask codes`; edit the table, not this file.\n\n\
         use crate::{ErrorClass, ErrorCode};\n\n\
         /// Number, name and classes of every named code, by rising number.\n\
         #[rustfmt::skip]\n\
         pub(crate) static NAMES: &[(i32, &str, &[ErrorClass])] = &[\n",
    );
    for (number, name, classes) in &rows {
        let classes: Vec<String> =
            classes.split_whitespace().map(|class| format!("ErrorClass::{class}")).collect();
        text.push_str(&format!("    ({number}, \"{name}\", &[{}]),\n", classes.join(", ")));
    }
    text.push_str("];\n\n#[allow(non_upper_case_globals)]\n#[rustfmt::skip]\nimpl ErrorCode {\n");
    for (number, name, _) in &rows {
        text.push_str(&format!(
            "    /// MongoDB's code {number}, {name}.\n    pub const {name}: ErrorCode = ErrorCode({number});\n"
        ));
    }
    text.push_str("}\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_source_is_that_of_the_table() {
        let root = crate::root();
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let source = super::generate(&read("crates/error/codes.csv")).unwrap();
        assert_eq!(source, read("crates/error/src/codes.rs"), "run cargo xtask codes");
    }
}
