//! Describes the changes of an update: paths with new values, removed paths, and arrays that became
//! shorter. The description is computed from the document before and after the update, so applying
//! an update costs nothing more if no description is needed. For an update by operators only the
//! paths of the operators are compared.

use super::tree::{Elements, Fields, Node};
use foldhash::fast::RandomState;
use quire_document::{Array, Doc, Element, Value, ValueBuf};
use std::collections::HashMap;
use std::fmt;

/// The differences between a document before and after an update, except the order of fields.
#[derive(Clone, Debug, Default)]
pub struct UpdateDescription {
    /// Paths with new values.
    pub updated: Vec<(ChangedPath, ValueBuf)>,
    /// Paths of removed fields.
    pub removed: Vec<ChangedPath>,
    /// Arrays that a pipeline truncated, with the number of remaining elements.
    pub truncated: Vec<(ChangedPath, u32)>,
}

/// A path in a document. Unlike a dotted text it distinguishes the field `"a.b"` from the field `b`
/// of `a`, and the field `"0"` of a document from the first element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedPath {
    /// The steps, from the root.
    pub steps: Vec<PathStep>,
}

/// One step of a [`ChangedPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// To the field with this name.
    Field(String),
    /// To the array element at this position.
    Index(u32),
}

impl fmt::Display for ChangedPath {
    /// Writes the steps with dots between them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            if at > 0 {
                out.write_str(".")?;
            }
            match step {
                PathStep::Field(name) => out.write_str(name)?,
                PathStep::Index(index) => write!(out, "{index}")?,
            }
        }
        Ok(())
    }
}

/// Describes the changes of operators. `tree` has the operators by their paths.
pub(super) fn by_operators(tree: &Fields, before: Doc<'_>, after: Doc<'_>) -> UpdateDescription {
    let mut walk = Walk::default();
    walk.fields(&[tree], before, after);
    walk.found
}

/// Describes all differences between `before` and `after`.
pub(super) fn by_difference(before: Doc<'_>, after: Doc<'_>) -> UpdateDescription {
    let mut walk = Walk::default();
    walk.all_fields(before, after);
    walk.found
}

/// Returns true if two elements have the same type and bytes.
fn is_same(was: Element<'_>, now: Element<'_>) -> bool {
    was.kind() == now.kind() && was.value_bytes() == now.value_bytes()
}

/// The state of comparing two documents.
#[derive(Default)]
struct Walk {
    path: Vec<PathStep>,
    found: UpdateDescription,
}

impl Walk {
    fn here(&self) -> ChangedPath {
        ChangedPath { steps: self.path.clone() }
    }

    fn below(&mut self, step: PathStep, walk: impl FnOnce(&mut Self)) {
        self.path.push(step);
        walk(self);
        self.path.pop();
    }

    fn updated(&mut self, now: Element<'_>) {
        let here = self.here();
        self.found.updated.push((here, ValueBuf::new(now.value())));
    }

    /// Compares the elements at the current path. If only one of them exists, reports the change.
    /// Returns both if they differ.
    fn differing<'e>(
        &mut self,
        was: Option<Element<'e>>,
        now: Option<Element<'e>>,
    ) -> Option<(Element<'e>, Element<'e>)> {
        match (was, now) {
            (None, None) => None,
            (Some(_), None) => {
                let here = self.here();
                self.found.removed.push(here);
                None
            }
            (None, Some(now)) => {
                self.updated(now);
                None
            }
            (Some(was), Some(now)) => (!is_same(was, now)).then_some((was, now)),
        }
    }

    /// Compares the fields of the operators below `nodes`.
    fn fields(&mut self, nodes: &[&Fields], before: Doc<'_>, after: Doc<'_>) {
        let mut children: Vec<(&str, Vec<&Node>)> = Vec::new();
        for (name, node) in nodes.iter().flat_map(|fields| &fields.children) {
            match children.binary_search_by(|(known, _)| (*known).cmp(name.as_str())) {
                Ok(at) => children[at].1.push(node),
                Err(at) => children.insert(at, (name.as_str(), vec![node])),
            }
        }
        let (before, after) = (named(before, &children), named(after, &children));
        for ((name, nodes), (was, now)) in children.iter().zip(before.into_iter().zip(after)) {
            self.below(PathStep::Field((*name).to_owned()), |walk| walk.value(nodes, was, now));
        }
    }

    /// Compares the elements at a path on or below which the operators in `nodes` act.
    fn value(&mut self, nodes: &[&Node], was: Option<Element<'_>>, now: Option<Element<'_>>) {
        let Some((was, now)) = self.differing(was, now) else { return };
        let mut fields: Vec<&Fields> = Vec::new();
        for node in nodes {
            match node {
                Node::Leaf(modifier) => return self.leaf(modifier.appends(), was, now),
                Node::Fields(inner) => fields.push(inner),
                Node::Elements(_) => {}
            }
        }
        match (was.value(), now.value()) {
            (Value::Document(was), Value::Document(now)) => self.fields(&fields, was, now),
            (Value::Array(was), Value::Array(now)) => self.elements(nodes, was, now),
            _ => self.updated(now),
        }
    }

    /// Reports the change of a value by one operator. `appends` is true for an operator that only
    /// adds elements to the end of an array.
    fn leaf(&mut self, appends: bool, was: Element<'_>, now: Element<'_>) {
        match (was.value(), now.value()) {
            (Value::Array(was), Value::Array(now)) if appends => {
                self.appended(now, was.count());
            }
            _ => self.updated(now),
        }
    }

    /// Reports the elements of an array from position `from`.
    fn appended(&mut self, now: Array<'_>, from: usize) {
        for (at, element) in now.as_doc().iter().enumerate().skip(from) {
            self.below(PathStep::Index(at as u32), |walk| walk.updated(element));
        }
    }

    /// Compares the elements on which the operators below `nodes` may act. No operator below an
    /// array makes it shorter.
    fn elements(&mut self, nodes: &[&Node], before: Array<'_>, after: Array<'_>) {
        let mut before = before.as_doc().iter();
        for (at, now) in after.as_doc().iter().enumerate() {
            let was = before.next();
            let inner: Vec<&Node> = nodes.iter().flat_map(|node| at_position(node, now)).collect();
            self.below(PathStep::Index(at as u32), |walk| match inner.is_empty() {
                // An element between the old end of the array and a new element after it.
                true if was.is_none() => walk.updated(now),
                true => {}
                false => walk.value(&inner, was, Some(now)),
            });
        }
    }

    fn all_fields(&mut self, before: Doc<'_>, after: Doc<'_>) {
        if names(before).eq(names(after)) {
            // Most fields are the same: a path is made only for those that are not.
            let pairs = before.iter().zip(after.iter());
            for (was, now) in pairs.filter(|(was, now)| !is_same(*was, *now)) {
                self.below(PathStep::Field(now.key().to_owned()), |walk| {
                    walk.whole(Some(was), now)
                });
            }
            return;
        }
        let (old, new) = (by_name(before), by_name(after));
        for was in before.iter().filter(|was| !new.contains_key(was.key_bytes())) {
            self.below(PathStep::Field(was.key().to_owned()), |walk| {
                walk.differing(Some(was), None);
            });
        }
        for now in after.iter() {
            let was = old.get(now.key_bytes()).copied();
            if was.is_some_and(|was| is_same(was, now)) {
                continue;
            }
            self.below(PathStep::Field(now.key().to_owned()), |walk| walk.whole(was, now));
        }
    }

    fn whole(&mut self, was: Option<Element<'_>>, now: Element<'_>) {
        let Some((was, now)) = self.differing(was, Some(now)) else { return };
        match (was.value(), now.value()) {
            (Value::Document(was), Value::Document(now)) => self.all_fields(was, now),
            (Value::Array(was), Value::Array(now)) => self.all_elements(was, now),
            _ => self.updated(now),
        }
    }

    fn all_elements(&mut self, before: Array<'_>, after: Array<'_>) {
        let mut old = before.as_doc().iter();
        let mut length = 0;
        for now in after.as_doc().iter() {
            let was = old.next();
            self.below(PathStep::Index(length), |walk| walk.whole(was, now));
            length += 1;
        }
        if old.next().is_some() {
            let here = self.here();
            self.found.truncated.push((here, length));
        }
    }
}

/// Returns the element of each name, in the order of the names, which are sorted. Of several fields
/// with the same name the first one counts.
fn named<'d, T>(doc: Doc<'d>, names: &[(&str, T)]) -> Vec<Option<Element<'d>>> {
    let mut found = vec![None; names.len()];
    let mut missing = names.len();
    for element in doc.iter() {
        let key = element.key_bytes();
        let at = names.binary_search_by(|(name, _)| name.as_bytes().cmp(key));
        if let Some(place) = at.ok().and_then(|at| found.get_mut(at)).filter(|at| at.is_none()) {
            *place = Some(element);
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    found
}

/// Returns the names of all fields in order.
fn names(doc: Doc<'_>) -> impl Iterator<Item = &[u8]> {
    doc.iter().map(|element| element.key_bytes())
}

fn by_name(doc: Doc<'_>) -> HashMap<&[u8], Element<'_>, RandomState> {
    let mut found = HashMap::default();
    for element in doc.iter() {
        // Of several fields with the same name the first one counts.
        found.entry(element.key_bytes()).or_insert(element);
    }
    found
}

/// Returns the nodes below `node` that may act on an array element. `$` is a position that only the
/// filter knows, and `$[name]` selects positions by an array filter: both may be any element.
fn at_position<'n>(node: &'n Node, element: Element<'_>) -> Vec<&'n Node> {
    match node {
        Node::Leaf(_) => Vec::new(),
        Node::Fields(Fields { children, positional }) => {
            let named = children.iter().filter(|(name, _)| name.as_str() == element.key());
            named.map(|(_, node)| node).chain(positional.as_deref()).collect()
        }
        Node::Elements(Elements { children }) => children.iter().map(|(_, node)| node).collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::context::{EvalContext, ParseContext, Shared};
    use crate::update::{Update, UpdateDescription, UpdateSpec};
    use bumpalo::Bump;
    use quire_document::literal::{parse, print};
    use quire_document::{Doc, DocBuf};

    /// Parses a document written with single quotes.
    fn read(text: &str) -> DocBuf {
        quire_document::literal::parse_doc(&text.replace('\'', "\"")).unwrap()
    }

    fn shown(description: &UpdateDescription) -> String {
        let doc = DocBuf::build(|writer| {
            let mut updated = writer.document("updated");
            for (path, value) in &description.updated {
                updated.append(&path.to_string(), value);
            }
            drop(updated);
            let mut removed = writer.array("removed");
            for path in &description.removed {
                removed.push(&*path.to_string());
            }
            drop(removed);
            let mut truncated = writer.document("truncated");
            for (path, length) in &description.truncated {
                truncated.append(&path.to_string(), *length as i32);
            }
        });
        print(doc.as_doc())
    }

    /// Checks the description of applying `update` to `doc`, with the position 1 for `$`.
    #[track_caller]
    fn describes(doc: &str, update: &str, expected: &str) {
        let doc = read(doc);
        let update = parse(&update.replace('\'', "\"")).unwrap();
        let filter = read("{'x': {'$gte': 5}}");
        let uses = print(quire_document::doc! { "u": update.as_value() }.as_doc()).contains("$[x]");
        let filters: &[Doc<'_>] = if uses { &[filter.as_doc()] } else { &[] };
        let spec = UpdateSpec { update: update.as_value(), array_filters: filters, multi: false };
        let update = Update::parse(spec, &ParseContext::default()).unwrap();
        let (arena, shared) = (Bump::new(), Shared::new(1000));
        let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
        let mut out = Vec::new();
        update.apply(doc.as_doc(), Some(1), &cx, &mut out).unwrap();
        let found = update.describe(doc.as_doc(), Doc::from_valid_bytes(&out)).unwrap();
        assert_eq!(shown(&found), print(read(expected).as_doc()));
    }

    #[test]
    fn operators_name_the_paths_that_they_changed() {
        let doc = "{'_id': 1, 'a': {'b': 1, 'c': 2}, 'n': 5, 'gone': true}";
        describes(
            doc,
            "{'$set': {'a.b': 7, 'new.x': 1, 'n': 5}, '$unset': {'gone': ''}, '$inc': {'a.c': 1}}",
            "{'updated': {'a.b': 7, 'a.c': 3, 'new': {'x': 1}}, 'removed': ['gone'], 'truncated': {}}",
        );
        // Setting a whole value is one change, even if only a part of it is new.
        describes(
            doc,
            "{'$set': {'a': {'b': 1, 'c': 3}}}",
            "{'updated': {'a': {'b': 1, 'c': 3}}, 'removed': [], 'truncated': {}}",
        );
        describes(
            doc,
            "{'$rename': {'n': 'm'}}",
            "{'updated': {'m': 5}, 'removed': ['n'], 'truncated': {}}",
        );
    }

    #[test]
    fn elements_of_arrays_are_named_by_their_positions() {
        let doc = "{'_id': 1, 'a': [1, 5, 9], 'd': [{'q': 1}, {'q': 2}]}";
        let one =
            |updated: &str| format!("{{'updated': {updated}, 'removed': [], 'truncated': {{}}}}");
        describes(doc, "{'$set': {'a.$': 6}}", &one("{'a.1': 6}"));
        describes(doc, "{'$inc': {'a.$[]': 1}}", &one("{'a.0': 2, 'a.1': 6, 'a.2': 10}"));
        describes(doc, "{'$mul': {'a.$[x]': 2}}", &one("{'a.1': 10, 'a.2': 18}"));
        describes(doc, "{'$set': {'d.1.q': 3}}", &one("{'d.1.q': 3}"));
        describes(doc, "{'$unset': {'d.0': ''}}", &one("{'d.0': null}"));
        describes(doc, "{'$set': {'a.4': 7}}", &one("{'a.3': null, 'a.4': 7}"));
    }

    #[test]
    fn a_push_names_the_elements_that_it_appends() {
        let doc = "{'_id': 1, 'a': [3, 1]}";
        let one =
            |updated: &str| format!("{{'updated': {updated}, 'removed': [], 'truncated': {{}}}}");
        describes(doc, "{'$push': {'a': {'$each': [7, 8]}}}", &one("{'a.2': 7, 'a.3': 8}"));
        describes(doc, "{'$push': {'a': {'$each': [2], '$sort': 1}}}", &one("{'a': [1, 2, 3]}"));
        describes(doc, "{'$pop': {'a': 1}}", &one("{'a': [3]}"));
        describes(doc, "{'$push': {'b': 1}}", &one("{'b': [1]}"));
    }

    #[test]
    fn a_pipeline_is_described_by_comparing_the_documents() {
        describes(
            "{'_id': 1, 'a': {'b': 1, 'c': 2}, 'l': [1, 2, 3], 'm': [1], 'gone': 1}",
            "[{'$set': {'a.b': 9, 'l': {'$slice': ['$l', 2]}, 'm': [1, 2]}}, {'$unset': 'gone'}]",
            "{'updated': {'a.b': 9, 'm.1': 2}, 'removed': ['gone'], 'truncated': {'l': 2}}",
        );
    }

    #[test]
    fn a_path_tells_a_dotted_name_from_a_field_in_a_field() {
        let before = read("{'a.b': 1, 'a': {'b': 1}}");
        let after = read("{'a.b': 2, 'a': {'b': 2}}");
        let found = super::by_difference(before.as_doc(), after.as_doc());
        let [(dotted, _), (nested, _)] = &found.updated[..] else { panic!("{found:?}") };
        assert_eq!(dotted.to_string(), nested.to_string());
        assert_ne!(dotted, nested);
    }
}
