//! The error of a document that is too large, as stages and updates return it.

use quire_document::limits::INTERNAL_DOCUMENT_BYTES_MAX;
use quire_document::{Element, Value, message};
use quire_error::{Error, ErrorCode};

/// The bytes of the first value that the message shows.
const SHOWN_BYTES_MAX: usize = 160;

/// Returns the error 10334 of a document of `bytes` bytes whose first field is `first`.
pub fn too_large(bytes: usize, first: Option<Element<'_>>) -> Error {
    let first = first.map_or_else(|| "EOO".to_owned(), |first| shown(&first));
    let text = format!(
        "BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and \
         {INTERNAL_DOCUMENT_BYTES_MAX}(16MB) First element: {first}"
    );
    Error::new(ErrorCode::BSONObjectTooLarge, text)
}

/// Returns name and value of a field; the value only if it is short.
fn shown(first: &Element<'_>) -> String {
    let (name, value) = (first.key(), first.value());
    match value {
        Value::String(text) if text.len() > SHOWN_BYTES_MAX => {
            let begin = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
            format!("{name}: \"{begin}...\"")
        }
        _ if first.value_bytes().len() > SHOWN_BYTES_MAX => format!("{name}: ..."),
        value => format!("{name}: {}", message(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn the_first_field_is_shown_if_it_is_short() {
        let text = |doc: &quire_document::DocBuf| {
            too_large(17_000_000, doc.as_doc().first()).message().to_owned()
        };
        let begin = "BSONObj size: 17000000 (0x1036640) is invalid. Size must be between 0 and 16793600(16MB) First element: ";
        assert_eq!(text(&doc! { "_id": 5 }), format!("{begin}_id: 5"));
        assert_eq!(text(&doc! {}), format!("{begin}EOO"));
        let long = text(&doc! { "s": ("é".repeat(1000).as_str()) });
        assert!(long.ends_with("é...\"") && long.len() < 300, "{long}");
        assert!(text(&doc! { "a": { "b": ("x".repeat(1000).as_str()) } }).ends_with("a: ..."));
    }
}
