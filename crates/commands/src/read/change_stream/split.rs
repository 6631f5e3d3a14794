//! `$changeStreamSplitLargeEvent`: an event that is larger than a document may be becomes several
//! fragments, each with some of its fields.

use quire_document::limits::USER_DOCUMENT_BYTES_MAX;
use quire_document::{DocBuf, Element};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::ResumeToken;

/// The bytes of a fragment that its token and its number take.
const OVERHEAD_BYTES: usize = 256;

/// Returns the fragments of an event: the event itself if it is small enough. The fields go from the
/// smallest to the largest.
///
/// # Errors
/// 10334 BSONObjectTooLarge if one field does not fit into a fragment.
pub(super) fn split(event: DocBuf, token: ResumeToken) -> Result<Vec<(ResumeToken, DocBuf)>> {
    let room = USER_DOCUMENT_BYTES_MAX - OVERHEAD_BYTES;
    if event.as_bytes().len() <= USER_DOCUMENT_BYTES_MAX {
        return Ok(vec![(token, event)]);
    }
    let doc = event.as_doc();
    let mut fields: Vec<Element<'_>> = doc.iter().filter(|field| field.key() != "_id").collect();
    let size = |field: &Element<'_>| field.key_bytes().len() + field.value_bytes().len() + 2;
    fields.sort_by_key(size);
    let mut parts: Vec<(usize, Vec<Element<'_>>)> = Vec::new();
    for field in fields {
        let bytes = size(&field);
        if bytes > room {
            let text = format!("The field '{}' of a change event is too large", field.key());
            return Err(Error::new(ErrorCode::BSONObjectTooLarge, text));
        }
        match parts.last_mut() {
            Some((used, part)) if *used + bytes <= room => {
                *used += bytes;
                part.push(field);
            }
            _ => parts.push((bytes, vec![field])),
        }
    }
    let of = i32::try_from(parts.len()).unwrap_or(i32::MAX);
    let fragment = |(at, (_, part)): (usize, (usize, Vec<Element<'_>>))| {
        let number = u16::try_from(at + 1).unwrap_or(u16::MAX);
        let token = ResumeToken { fragment: number, ..token };
        let doc = DocBuf::build(|fragment| {
            fragment.append("_id", &token.to_doc());
            let mut numbers = fragment.document("splitEvent");
            numbers.append("fragment", i32::from(number)).append("of", of);
            numbers.finish();
            for field in part {
                fragment.append_element(field);
            }
        });
        (token, doc)
    };
    Ok(parts.into_iter().enumerate().map(fragment).collect())
}
