//! The description of an update as the differences that MongoDB's oplog has (`$v: 2`): fields that
//! are deleted (`d`), set (`u`), and the differences within a field (`s` and its name). Those of an
//! array have `a: true`, its new length (`l`), and positions in place of names. `write/oplog_diff.rs`
//! applies them.

use quire_document::{Doc, DocBuf, DocWriter, Value};
use std::borrow::Cow;

/// The changes within a document or an array.
#[derive(Default)]
struct Level<'d> {
    is_array: bool,
    length: Option<i64>,
    removed: Vec<Cow<'d, str>>,
    set: Vec<(Cow<'d, str>, Value<'d>)>,
    inner: Vec<(Cow<'d, str>, Level<'d>)>,
}

/// A step of a path: a field, or the position of an element.
type Step<'d> = (Cow<'d, str>, bool);

/// Returns `{$v: 2, diff}` of the description of an update.
pub(super) fn of_update(description: Doc<'_>) -> DocBuf {
    let section = |name: &str| match description.get(name) {
        Some(Value::Document(section)) => section,
        _ => Doc::empty(),
    };
    let array = |name: &str| description.get(name).and_then(|value| value.as_array());
    let paths = section("disambiguatedPaths");
    let mut root = Level::default();
    for path in array("removedFields").into_iter().flat_map(|removed| removed.iter()) {
        if let Some((level, (name, _))) = path.as_str().and_then(|path| root.at(path, paths)) {
            level.removed.push(name);
        }
    }
    for (path, value) in section("updatedFields").fields() {
        if let Some((level, (name, _))) = root.at(path, paths) {
            level.set.push((name, value));
        }
    }
    for array in array("truncatedArrays").into_iter().flat_map(|arrays| arrays.iter()) {
        let Some(array) = array.as_document() else { continue };
        let path = array.get("field").and_then(|path| path.as_str());
        if let Some((level, (name, _))) = path.and_then(|path| root.at(path, paths)) {
            let level = level.inner(name, true);
            level.length = array.get("newSize").and_then(|size| size.exact_i64());
        }
    }
    DocBuf::build(|update| {
        update.append("$v", 2);
        root.write(&mut update.document("diff"));
    })
}

/// Returns the steps of a path. A text that does not say them is among the disambiguated paths.
fn steps<'d>(path: &'d str, disambiguated: Doc<'d>) -> Vec<Step<'d>> {
    if let Some(Value::Array(steps)) = disambiguated.get(path) {
        let step = |step: Value<'d>| match step {
            Value::String(name) => (Cow::Borrowed(name), false),
            index => (Cow::Owned(index.exact_i64().unwrap_or(0).to_string()), true),
        };
        return steps.iter().map(step).collect();
    }
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    path.split('.').map(|part| (Cow::Borrowed(part), is_index(part))).collect()
}

impl<'d> Level<'d> {
    /// Returns the level that has the end of a path, and that last step.
    fn at(&mut self, path: &'d str, disambiguated: Doc<'d>) -> Option<(&mut Self, Step<'d>)> {
        let steps = steps(path, disambiguated);
        let mut level = self;
        let mut rest = steps.into_iter().peekable();
        while let Some(step) = rest.next() {
            match rest.peek() {
                None => return Some((level, step)),
                Some((_, next_is_index)) => level = level.inner(step.0, *next_is_index),
            }
        }
        None
    }

    fn inner(&mut self, name: Cow<'d, str>, is_array: bool) -> &mut Self {
        let at = self.inner.iter().position(|(known, _)| *known == name);
        let at = at.unwrap_or_else(|| {
            self.inner.push((name, Level { is_array, ..Level::default() }));
            self.inner.len() - 1
        });
        &mut self.inner[at].1
    }

    fn write(&self, diff: &mut DocWriter<'_>) {
        if self.is_array {
            diff.append("a", true);
            if let Some(length) = self.length {
                diff.append("l", i32::try_from(length).unwrap_or(i32::MAX));
            }
            for (at, value) in &self.set {
                diff.append(&format!("u{at}"), *value);
            }
        } else {
            self.write_fields(diff);
        }
        for (name, level) in &self.inner {
            level.write(&mut diff.document(&format!("s{name}")));
        }
    }

    fn write_fields(&self, diff: &mut DocWriter<'_>) {
        if !self.removed.is_empty() {
            let mut removed = diff.document("d");
            for name in &self.removed {
                removed.append(name, false);
            }
        }
        if !self.set.is_empty() {
            let mut set = diff.document("u");
            for (name, value) in &self.set {
                set.append(name, *value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::oplog_diff::apply;
    use quire_document::doc;
    use quire_document::literal::print;

    #[test]
    fn applied_differences_give_the_document_that_was_described() {
        let before = doc! {
            "_id": 1, "a": 1, "b": { "c": 1, "d": 2 }, "e": [1, { "f": 1 }, 3, 4], "g": 5,
            "h": { "0": { "x": 1 }, "y.z": 1 },
        };
        let description = doc! {
            "updatedFields": { "a": 2, "b.c": 9, "e.0": 7, "e.1.f": 2, "h.0.x": 3, "h.y.z": 4 },
            "removedFields": ["b.d", "g"],
            "truncatedArrays": [{ "field": "e", "newSize": 3 }],
            "disambiguatedPaths": { "h.0.x": ["h", "0", "x"], "h.y.z": ["h", "y.z"] },
        };
        let update = of_update(description.as_doc());
        let diff = update.get("diff").unwrap().as_document().unwrap();
        let after = apply(before.as_doc(), diff).unwrap();
        let expected = doc! {
            "_id": 1, "a": 2, "b": { "c": 9 }, "e": [7, { "f": 2 }, 3],
            "h": { "0": { "x": 3 }, "y.z": 4 },
        };
        assert_eq!(print(after.as_doc()), print(expected.as_doc()));
    }
}
