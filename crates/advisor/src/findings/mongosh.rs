//! Commands in the language of mongosh. Every name is quoted, so that a name of the data can be
//! nothing but a name.

use quire_document::extjson::{self, Format};
use quire_document::{Doc, DocBuf};
use std::fmt::Write;

/// Returns a collection: `db.orders`, or `db.getCollection("a-b")` for a name that is no identifier
/// or that could be a method.
pub fn collection(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_name =
        name.chars().all(plain) && name.starts_with(|first: char| first.is_ascii_lowercase());
    // Methods of `db` have a capital letter within, or one of these names.
    let is_method = name.contains(|letter: char| letter.is_ascii_uppercase())
        || [
            "aggregate",
            "auth",
            "commandhelp",
            "help",
            "hello",
            "logout",
            "shutdown",
            "stats",
            "version",
            "watch",
            "constructor",
            "prototype",
        ]
        .contains(&name);
    match is_name && !is_method {
        true => format!("db.{name}"),
        false => format!("db.getCollection({})", string(name)),
    }
}

/// Returns a string literal. Line separators are escaped too, and `<`, so that the text can stand in
/// any document.
pub fn string(text: &str) -> String {
    let mut written = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            letter if letter.is_control() || ['\u{2028}', '\u{2029}', '<'].contains(&letter) => {
                // Writing to a string cannot fail.
                let _ = write!(written, "\\u{:04x}", letter as u32);
            }
            letter => written.push(letter),
        }
    }
    written.push('"');
    written
}

/// Returns a document as an object literal.
pub fn object(document: Doc<'_>) -> String {
    extjson::print(document, Format::default()).replace('<', "\\u003c")
}

/// Returns the key of an index over these paths, ascending or descending.
pub fn key<'p>(paths: impl IntoIterator<Item = (&'p str, i32)>) -> DocBuf {
    DocBuf::build(|writer| {
        for (path, direction) in paths {
            writer.append(path, direction);
        }
    })
}

/// Returns the name that a server gives to an index.
pub fn index_name(key: Doc<'_>) -> String {
    let parts = key.fields().map(|(path, value)| {
        let direction = value.exact_i64().map_or_else(
            || value.as_str().unwrap_or_default().to_owned(),
            |direction| direction.to_string(),
        );
        format!("{path}_{direction}")
    });
    parts.collect::<Vec<_>>().join("_")
}

/// Returns the commands that create an index and that drop it.
pub fn create_index(name: &str, key: &DocBuf) -> (String, String) {
    let collection = collection(name);
    (
        format!("{collection}.createIndex({})", object(key.as_doc())),
        format!("{collection}.dropIndex({})", string(&index_name(key.as_doc()))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn names_of_the_data_are_quoted() {
        assert_eq!(collection("orders"), "db.orders");
        assert_eq!(collection("a-b"), "db.getCollection(\"a-b\")");
        assert_eq!(collection("getName"), "db.getCollection(\"getName\")");
        assert_eq!(collection("x\"); drop(\""), "db.getCollection(\"x\\\"); drop(\\\"\")");
        assert_eq!(string("</script>\u{2028}"), "\"\\u003c/script>\\u2028\"");
    }

    #[test]
    fn an_index_is_created_and_dropped() {
        let (create, drop) = create_index("c", &key([("a", 1), ("b.c", -1)]));
        assert_eq!(create, "db.c.createIndex({\"a\":1,\"b.c\":-1})");
        assert_eq!(drop, "db.c.dropIndex(\"a_1_b.c_-1\")");
        assert_eq!(index_name(doc! { "t": "text" }.as_doc()), "t_text");
    }
}
