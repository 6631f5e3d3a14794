//! The replies to repeated statements, from the stored results of their session. A retry may come
//! as another kind of command; if that is not meaningful it is refused with MongoDB's codes.

use crate::write::find_and_modify_arguments::Arguments;
use quire_collections::{Effect, Image, Remembered};
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, Result};
use quire_executor::modify::UpdateOutcome;

/// The reply to a repeated findAndModify.
pub struct FoundAgain {
    /// `lastErrorObject`: the outcome.
    pub last_error: DocBuf,
    /// `value`: the returned document.
    pub value: Option<DocBuf>,
}

/// Returns the outcome of a repeated update.
///
/// # Errors
/// 40638 if the stored statement was a delete.
pub fn update(before: &Remembered) -> Result<UpdateOutcome> {
    let mut outcome = UpdateOutcome::default();
    match before.effect {
        Effect::Insert => outcome.upserted = Some(inserted_id(before)?),
        Effect::Update => (outcome.matched, outcome.modified) = (1, 1),
        Effect::Commit => return Err(of_transaction()),
        Effect::Delete => {
            let text = "update retry request is not compatible with previous write in the transaction of type: d";
            return Err(Error::location(40638, text));
        }
    }
    Ok(outcome)
}

/// Returns the reply to a repeated findAndModify.
///
/// # Errors
/// 40606 to 40612 for a request that does not match the stored statement.
pub fn find_and_modify(before: &Remembered, request: &Arguments<'_>) -> Result<FoundAgain> {
    let image = before.image.as_ref();
    let refused = |number: i32, why: &str| {
        Error::location(number, format!("findAndModify retry request {why}"))
    };
    let last_error = |n_only: bool, upserted: Option<Value<'_>>| {
        DocBuf::build(|writer| {
            writer.append("n", 1);
            if !n_only {
                writer.append("updatedExisting", upserted.is_none());
            }
            writer.append_some("upserted", upserted);
        })
    };
    match before.effect {
        Effect::Commit => Err(of_transaction()),
        Effect::Delete if !request.remove => {
            let text = "is not compatible with previous write in the transaction of type: d";
            Err(refused(40606, text))
        }
        Effect::Delete => match image {
            Some((Image::Before, doc)) => {
                Ok(FoundAgain { last_error: last_error(true, None), value: Some(doc.clone()) })
            }
            _ => Err(refused(40607, "has no document before the delete to return")),
        },
        Effect::Insert if !request.upsert => {
            let text = "is not compatible with previous write in the transaction of type: i";
            Err(refused(40608, text))
        }
        Effect::Insert => {
            let value = match image {
                _ if !request.new => None,
                Some((Image::After, doc)) => Some(doc.clone()),
                _ => return Err(refused(40608, "has no document after the insert to return")),
            };
            let id = inserted_id(before)?;
            Ok(FoundAgain { last_error: last_error(false, Some(id.as_value())), value })
        }
        Effect::Update => {
            let value = match image {
                Some((Image::Before, doc)) if !request.new => doc.clone(),
                Some((Image::After, doc)) if request.new => doc.clone(),
                _ if request.new => {
                    let text = "wants the document after update returned, but only before update document is stored";
                    return Err(refused(40611, text));
                }
                _ => {
                    let text = "wants the document before update returned, but only after update document is stored";
                    return Err(refused(40612, text));
                }
            };
            Ok(FoundAgain { last_error: last_error(false, None), value: Some(value) })
        }
    }
}

/// Returns an internal error: a session refuses a retryable write with a transaction's number
/// before.
fn of_transaction() -> Error {
    Error::internal("a retryable write under the number of a transaction")
}

fn inserted_id(before: &Remembered) -> Result<ValueBuf> {
    let doc = before.image.as_ref().map(|(_, doc)| doc.as_doc());
    let id = doc.and_then(|doc: Doc<'_>| doc.get("_id")).map(ValueBuf::new);
    id.ok_or_else(|| Error::internal("a repeated insert without its _id"))
}
