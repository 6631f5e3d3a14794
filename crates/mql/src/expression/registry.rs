//! The registry of expression operators: the rows of all families.

use super::operator::Operator;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The rows of each family. COMPATIBILITY.md is generated from them.
const FAMILIES: &[&[Operator]] = &[
    super::accumulators::OPERATORS,
    super::arithmetic::OPERATORS,
    super::array_access::OPERATORS,
    super::array_building::OPERATORS,
    super::bitwise::OPERATORS,
    super::boolean::OPERATORS,
    super::comparison::OPERATORS,
    super::conditional::OPERATORS,
    super::convert::OPERATORS,
    super::dates::ARITHMETIC,
    super::dates::COMPONENTS,
    super::dates::PARTS,
    super::dates::READ,
    super::dates::TEXT,
    super::hashed::OPERATORS,
    super::iteration::OPERATORS,
    super::literal::OPERATORS,
    super::external::OPERATORS,
    super::n_elements::OPERATORS,
    super::objects::OPERATORS,
    super::powers::OPERATORS,
    super::regex::OPERATORS,
    super::rounding::OPERATORS,
    super::sets::OPERATORS,
    super::sort_array::OPERATORS,
    super::strings::OPERATORS,
    super::timestamps::OPERATORS,
    super::trigonometry::OPERATORS,
    super::types::OPERATORS,
    super::variables::OPERATORS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Operator>> =
    LazyLock::new(|| operators().map(|operator| (operator.name, operator)).collect());

/// Returns all operators, family by family.
pub fn operators() -> impl Iterator<Item = &'static Operator> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// Returns the operator with this name (with its dollar sign).
pub fn find_operator(name: &str) -> Option<&'static Operator> {
    BY_NAME.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_documented() {
        let mut seen = std::collections::HashSet::new();
        for operator in operators() {
            assert!(operator.name.starts_with('$'), "{operator:?}");
            assert!(seen.insert(operator.name), "{operator:?} twice");
            assert!(!operator.doc.is_empty(), "{operator:?} lacks its sentence");
        }
    }
}
