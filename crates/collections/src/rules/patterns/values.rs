//! Sets the derived paths of a document. Pure functions over BSON.

pub(super) use quire_document::identical_or_absent as same;
use quire_document::path::Path;
use quire_document::{Doc, DocBuf, Value, ValueBuf, identical};

/// Returns the document with `values` at `paths`; `None` if it has them. A path without a value is
/// removed, with the documents that it leaves empty. Where a value has to stand and another type than
/// a document is in the way, a document replaces it. A new field stands before those that follow it
/// in `paths`, so that the order of the fields does not depend on the order of the writes.
pub(super) fn with_values(
    doc: Doc<'_>,
    paths: &[Path],
    values: &[Option<ValueBuf>],
) -> Option<DocBuf> {
    if paths.len() > 1 && paths.iter().all(|path| path.parts().len() == 1) {
        return with_fields(doc, paths, values);
    }
    step_by_step(doc, paths, values)
}

/// Does the work of [`with_values`] in one pass over the document, for paths of one name.
fn with_fields(doc: Doc<'_>, paths: &[Path], values: &[Option<ValueBuf>]) -> Option<DocBuf> {
    let value = |at: usize| values.get(at)?.as_ref().map(ValueBuf::as_value);
    let names: Vec<&str> = paths.iter().map(Path::first).collect();
    let position = |name: &str| names.iter().position(|known| *known == name);
    let mut found = vec![false; names.len()];
    let mut is_same = true;
    for (name, old) in doc.fields() {
        if let Some(at) = position(name)
            && !std::mem::replace(&mut found[at], true)
        {
            is_same &= value(at).is_some_and(|value| identical(old, value));
        }
    }
    let missing = (0..names.len()).filter(|at| !found[*at] && value(*at).is_some());
    let missing: Vec<usize> = missing.collect();
    let mut missing = missing.into_iter().peekable();
    if is_same && missing.peek().is_none() {
        return None;
    }
    Some(DocBuf::build(|writer| {
        for (name, old) in doc.fields() {
            let Some(at) = position(name) else {
                writer.append(name, old);
                continue;
            };
            if !std::mem::replace(&mut found[at], false) {
                continue;
            }
            while let Some(earlier) = missing.next_if(|missing| *missing < at) {
                writer.append_some(names[earlier], value(earlier));
            }
            writer.append_some(name, value(at));
        }
        for at in missing {
            writer.append_some(names[at], value(at));
        }
    }))
}

/// Does the work of [`with_values`] path by path.
fn step_by_step(doc: Doc<'_>, paths: &[Path], values: &[Option<ValueBuf>]) -> Option<DocBuf> {
    let mut changed: Option<DocBuf> = None;
    for (path, value) in paths.iter().zip(values) {
        let doc = changed.as_ref().map_or(doc, DocBuf::as_doc);
        let step = Step { paths, path, depth: 0 };
        if let Some(next) = step.with(doc, value.as_ref().map(ValueBuf::as_value)) {
            changed = Some(next);
        }
    }
    changed
}

/// Returns the value at a path of documents.
pub(super) fn at<'a>(doc: Doc<'a>, path: &Path) -> Option<Value<'a>> {
    let (last, outer) = path.parts().split_last()?;
    let mut doc = doc;
    for part in outer {
        doc = doc.get(part.name())?.as_document()?;
    }
    doc.get(last.name())
}

/// Returns true if there is something else than a document, an array or null on the way to `path`, or
/// at it.
pub(super) fn is_blocked(doc: Doc<'_>, path: &Path) -> bool {
    let mut doc = doc;
    for part in path.parts() {
        match doc.get(part.name()) {
            Some(Value::Document(inner)) => doc = inner,
            None | Some(Value::Null | Value::Undefined | Value::Array(_)) => return false,
            Some(_) => return true,
        }
    }
    false
}

/// Returns true if all that is on the way to `path` are documents, so that an operator can make the path.
pub(super) fn is_reachable(doc: Doc<'_>, path: &Path) -> bool {
    let (mut doc, parts) = (doc, path.parts());
    for part in parts.iter().take(parts.len().saturating_sub(1)) {
        match doc.get(part.name()) {
            None => return true,
            Some(Value::Document(inner)) => doc = inner,
            Some(_) => return false,
        }
    }
    true
}

/// A document on the way to a path.
#[derive(Clone, Copy)]
struct Step<'p> {
    paths: &'p [Path],
    path: &'p Path,
    /// The number of names that lead to the document.
    depth: usize,
}

impl<'p> Step<'p> {
    fn with(self, doc: Doc<'_>, value: Option<Value<'_>>) -> Option<DocBuf> {
        let name = name_at(self.path, self.depth)?;
        let found = doc.get(name);
        if self.depth + 1 == self.path.parts().len() {
            return match (found, value) {
                (None, None) => None,
                (Some(found), Some(value)) if identical(found, value) => None,
                _ => Some(self.replaced(doc, name, value)),
            };
        }
        let inner = Step { depth: self.depth + 1, ..self };
        match found {
            Some(Value::Document(within)) => {
                let within = inner.with(within, value)?;
                let stays = value.is_some() || !within.as_doc().is_empty();
                let within = stays.then(|| Value::Document(within.as_doc()));
                Some(self.replaced(doc, name, within))
            }
            _ => {
                value?;
                let within = inner.with(Doc::empty(), value)?;
                Some(self.replaced(doc, name, Some(Value::Document(within.as_doc()))))
            }
        }
    }

    /// Returns the document with another value of a field, at its place if it has one.
    fn replaced(self, doc: Doc<'_>, name: &str, value: Option<Value<'_>>) -> DocBuf {
        let is_new = !doc.contains(name);
        let later = if is_new { self.names_after(name) } else { Vec::new() };
        let mut missing = true;
        DocBuf::build(|writer| {
            for (field, old) in doc.fields() {
                if missing && (field == name || later.contains(&field)) {
                    missing = false;
                    writer.append_some(name, value);
                }
                if field != name {
                    writer.append(field, old);
                }
            }
            if missing {
                writer.append_some(name, value);
            }
        })
    }

    /// Returns the names in this document that follow `name` in the paths.
    fn names_after(self, name: &str) -> Vec<&'p str> {
        let is_here = |path: &&Path| {
            (0..self.depth).all(|depth| name_at(path, depth) == name_at(self.path, depth))
        };
        let names = self.paths.iter().filter(is_here).filter_map(|path| name_at(path, self.depth));
        let names: Vec<&str> = names.collect();
        let last = names.iter().rposition(|found| *found == name);
        names.into_iter().skip(last.map_or(0, |last| last + 1)).collect()
    }
}

fn name_at(path: &Path, depth: usize) -> Option<&str> {
    path.parts().get(depth).map(|part| part.name())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use quire_document::doc;

    use super::*;

    fn set(doc: DocBuf, path: &str, value: Option<Value<'_>>) -> Option<DocBuf> {
        with_values(doc.as_doc(), &[Path::new(path)], &[value.map(ValueBuf::new)])
    }

    #[test]
    fn new_fields_stand_in_the_order_of_the_paths() {
        let paths = ["a", "s.x", "s.y", "b"].map(Path::new);
        let set = |doc: DocBuf, values: [Option<i32>; 4]| {
            let values = values.map(|value| value.map(ValueBuf::new));
            with_values(doc.as_doc(), &paths, &values).unwrap()
        };
        let some = set(doc! { "own": 1 }, [None, None, Some(3), Some(4)]);
        assert_eq!(some, doc! { "own": 1, "s": { "y": 3 }, "b": 4 });
        let all = doc! { "own": 1, "a": 1, "s": { "x": 2, "y": 3 }, "b": 4 };
        assert_eq!(set(some, [Some(1), Some(2), Some(3), Some(4)]), all);
    }

    #[test]
    fn one_pass_gives_what_the_single_steps_give() {
        let paths = ["p", "q", "r"].map(Path::new);
        let names = ["", "p", "q", "r", "x"];
        let drawn = |bits: usize| (bits > 0).then(|| ValueBuf::new(bits as i32));
        for state in 0..5usize.pow(3) * 27 {
            let (order, wanted) = (state / 27, state % 27);
            let order = [order % 5, order / 5 % 5, order / 25];
            let doc = DocBuf::build(|writer| {
                for (at, name) in order.iter().enumerate() {
                    if *name > 0 && !order.get(..at).unwrap().contains(name) {
                        writer.append(names[*name], 1);
                    }
                }
            });
            let values = [wanted % 3, wanted / 3 % 3, wanted / 9].map(drawn);
            assert_eq!(
                with_fields(doc.as_doc(), &paths, &values),
                step_by_step(doc.as_doc(), &paths, &values),
                "{doc:?} {values:?}"
            );
        }
    }

    #[test]
    fn a_path_is_set_where_it_is() {
        let five = Some(Value::Int32(5));
        assert_eq!(set(doc! { "a": 1, "b": 2 }, "a", five), Some(doc! { "a": 5, "b": 2 }));
        assert_eq!(set(doc! { "a": 1 }, "c.d", five), Some(doc! { "a": 1, "c": { "d": 5 } }));
        assert_eq!(
            set(doc! { "c": { "x": 1, "d": 2 }, "z": 1 }, "c.d", five),
            Some(doc! { "c": { "x": 1, "d": 5 }, "z": 1 })
        );
        assert_eq!(set(doc! { "c": 7 }, "c.5", five), Some(doc! { "c": { "5": 5 } }));
        assert_eq!(set(doc! { "c": { "d": 5 } }, "c.d", five), None);
        let long = Some(Value::Int64(5));
        assert_eq!(set(doc! { "a": 5 }, "a", long), Some(doc! { "a": 5_i64 }));
    }

    #[test]
    fn a_path_without_a_value_is_removed() {
        assert_eq!(set(doc! { "a": 1, "b": 2 }, "a", None), Some(doc! { "b": 2 }));
        assert_eq!(set(doc! { "a": { "b": { "c": 1 } } }, "a.b.c", None), Some(doc! {}));
        assert_eq!(
            set(doc! { "a": { "b": 1, "c": 1 } }, "a.b", None),
            Some(doc! { "a": { "c": 1 } })
        );
        assert_eq!(set(doc! { "a": 1 }, "a.b", None), None);
        assert_eq!(set(doc! {}, "a.b", None), None);
        assert!(at(doc! { "a": { "b": 1 } }.as_doc(), &Path::new("a.b")).is_some());
        assert!(at(doc! { "a": [1] }.as_doc(), &Path::new("a.0")).is_none());
    }

    #[test]
    fn a_value_on_the_way_blocks_a_path() {
        let blocked = |doc: DocBuf, path: &str| is_blocked(doc.as_doc(), &Path::new(path));
        assert!(blocked(doc! { "a": 1 }, "a.b") && blocked(doc! { "a": { "b": "x" } }, "a.b"));
        assert!(!blocked(doc! { "a": { "b": { "c": 1 } } }, "a.b"));
        assert!(!blocked(doc! { "a": [1] }, "a.b") && !blocked(doc! {}, "a.b"));
    }
}
