//! Query settings (`setQuerySettings`): what an administrator has decided about requests of one
//! shape. Unlike index filters they are stored, and belong to the server, not to a collection.

use quire_document::{Doc, DocBuf, Value};

use crate::{AllowedIndex, Index};

/// The settings of one shape, as planning uses them.
#[derive(Debug, Clone)]
pub struct QuerySettings {
    /// The settings as the user gave them.
    pub shown: DocBuf,
    /// True if requests of the shape are refused with 411 QueryRejectedBySettings.
    pub rejects: bool,
    /// The indexes that may be used in each collection: `database.collection`, and a list.
    hints: Vec<(String, Vec<AllowedIndex>)>,
}

impl QuerySettings {
    /// Returns the settings of a document that `setQuerySettings` has checked.
    pub fn new(shown: DocBuf) -> Self {
        let rejects = shown.get("reject").and_then(|reject| reject.as_bool()) == Some(true);
        let hints = match shown.get("indexHints") {
            Some(Value::Array(hints)) => hints.iter().filter_map(hint).collect(),
            Some(one @ Value::Document(_)) => hint(one).into_iter().collect(),
            _ => Vec::new(),
        };
        QuerySettings { rejects, hints, shown }
    }

    /// Returns the indexes that may be used in a collection; `None` for all.
    pub fn allowed(&self, namespace: &str) -> Option<&[AllowedIndex]> {
        let (_, allowed) = self.hints.iter().find(|(hinted, _)| hinted == namespace)?;
        Some(allowed)
    }
}

fn hint(hint: Value<'_>) -> Option<(String, Vec<AllowedIndex>)> {
    let hint = hint.as_document()?;
    let namespace = hint.get("ns")?.as_document()?;
    let name =
        |field| namespace.get(field).and_then(|name: Value<'_>| name.as_str().map(str::to_owned));
    let allowed = hint.get("allowedIndexes")?.as_array()?;
    let allowed = allowed.iter().filter_map(|index| match index {
        Value::String("$natural") => Some(AllowedIndex::Natural { backward: false }),
        Value::String(name) => Some(AllowedIndex::Name(name.to_owned())),
        Value::Document(pattern) => Some(match natural(pattern) {
            Some(backward) => AllowedIndex::Natural { backward },
            None => AllowedIndex::Pattern(pattern.to_owned()),
        }),
        _ => None,
    });
    Some((format!("{}.{}", name("db")?, name("coll")?), allowed.collect()))
}

/// Returns the direction of `{$natural: ...}`: true for backward.
fn natural(pattern: Doc<'_>) -> Option<bool> {
    let direction = pattern.get("$natural")?.as_number()?;
    Some(direction.to_f64() < 0.0)
}

/// Returns true if a list allows the index.
pub fn is_allowed(allowed: &[AllowedIndex], index: &Index) -> bool {
    allowed.iter().any(|allowed| allowed.allows(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn hints_belong_to_their_namespace() {
        let hint = doc! {
            "ns": { "db": "shop", "coll": "orders" },
            "allowedIndexes": ["user_1", { "created": -1 }, { "$natural": -1 }]
        };
        let settings = QuerySettings::new(doc! { "indexHints": [&hint], "reject": true });
        assert!(settings.rejects);
        let allowed = settings.allowed("shop.orders").unwrap();
        let expected = [
            AllowedIndex::Name("user_1".to_owned()),
            AllowedIndex::Pattern(doc! { "created": -1 }),
            AllowedIndex::Natural { backward: true },
        ];
        assert_eq!(allowed, expected);
        assert_eq!(settings.allowed("shop.users"), None);
        assert_eq!(
            QuerySettings::new(doc! { "indexHints": &hint }).allowed("shop.orders"),
            Some(allowed)
        );
    }
}
