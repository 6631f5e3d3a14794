//! The statement for each document: the four modes.

use super::options::{ImportOptions, Mode};
use quire_document::{Doc, DocBuf, Path, Value, doc};

/// Converts documents to statements.
pub(crate) struct Statements {
    mode: Mode,
    keys: Vec<Path>,
}

impl Statements {
    pub(crate) fn new(options: &ImportOptions) -> Statements {
        let keys = options.upsert_fields.iter().map(|field| Path::new(field)).collect();
        Statements { mode: options.mode, keys }
    }

    /// Returns the operation on the documents, for messages that name the collection next.
    pub(crate) fn verb(&self) -> &'static str {
        match self.mode {
            Mode::Delete => "deleted from",
            _ => "imported into",
        }
    }

    /// Returns the statement for a document: the document itself for an insert, else an update or a
    /// delete.
    ///
    /// # Errors
    /// The document lacks the fields by which it should be deleted.
    pub(crate) fn statement(&self, document: DocBuf) -> Result<DocBuf, String> {
        if self.mode == Mode::Insert {
            return Ok(document);
        }
        let query = self.query(document.as_doc());
        match (self.mode, query) {
            (Mode::Delete, None) => Err("the document has none of --upsertFields".into()),
            (Mode::Delete, Some(query)) => Ok(doc! { "q": &query, "limit": 1 }),
            // A document that cannot exist is new: a query without a match makes the upsert insert.
            (mode, query) => {
                let query = query.unwrap_or_else(|| doc! { "$nor": [{}] });
                let merge = doc! { "$set": &document };
                let update = if mode == Mode::Merge { &merge } else { &document };
                Ok(doc! { "q": &query, "u": update, "upsert": true })
            }
        }
    }

    fn query(&self, document: Doc<'_>) -> Option<DocBuf> {
        let mut query = DocBuf::new();
        for key in &self.keys {
            let value = key.get(document)?;
            match value {
                // These values would be parsed as operators.
                Value::Document(_) | Value::Regex(_) => {
                    query.append(key.as_str(), doc! { "$eq": value }.as_doc())
                }
                plain => query.append(key.as_str(), plain),
            };
        }
        Some(query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_every_mode() {
        let made = |mode, keys: &[&str], document: DocBuf| {
            let keys = keys.iter().map(|key| Path::new(key)).collect();
            Statements { mode, keys }.statement(document)
        };
        let document = doc! { "_id": 1, "a": { "b": 2 } };
        assert_eq!(made(Mode::Insert, &["_id"], document.clone()), Ok(document.clone()));
        assert_eq!(
            made(Mode::Upsert, &["a.b"], document.clone()),
            Ok(doc! { "q": { "a.b": 2 }, "u": &document, "upsert": true })
        );
        assert_eq!(
            made(Mode::Merge, &["a"], document.clone()),
            Ok(doc! {
                "q": { "a": { "$eq": { "b": 2 } } }, "u": { "$set": &document }, "upsert": true,
            })
        );
        assert_eq!(
            made(Mode::Delete, &["_id"], document.clone()),
            Ok(doc! { "q": { "_id": 1 }, "limit": 1 })
        );
        assert!(made(Mode::Delete, &["x"], document.clone()).is_err());
        let new = made(Mode::Upsert, &["x"], document).unwrap();
        let query = new.get("q").and_then(|query| query.as_document());
        assert_eq!(query.map(Doc::to_owned), Some(doc! { "$nor": [{}] }));
    }
}
