//! `$documents`: documents written down in the pipeline.

use quire_document::{DocBuf, Value, doc};
use quire_error::{Error, Result};

/// The stages that `$documents` is short for; they run over one empty document. 5858203 for what
/// can't be an array.
pub fn documents_as_stages(operand: Value<'_>) -> Result<Vec<DocBuf>> {
    let may_be_array = match operand {
        Value::Array(_) => true,
        Value::String(text) => text.starts_with('$'),
        Value::Document(spec) => spec.first().is_some_and(|first| first.key().starts_with('$')),
        _ => false,
    };
    if !may_be_array {
        let message = "error in $documents: an array is expected";
        return Err(Error::location(5858203, message));
    }
    Ok(vec![
        doc! { "$project": { "_id": false, "_documents": operand } },
        doc! { "$unwind": "$_documents" },
        doc! { "$replaceRoot": { "newRoot": "$_documents" } },
    ])
}
