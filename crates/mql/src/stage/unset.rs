//! `$unset`: takes fields away.

use super::registry::StageRow;
use super::{Stage, Transform};
use crate::context::EvalContext;
use crate::expression::{FieldPath, PATH_COMPONENTS_MAX};
use quire_document::{Array, ArrayWriter, Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::collections::BTreeSet;

pub(super) const UNSET: StageRow = StageRow {
    name: "$unset",
    since: "4.2",
    doc: "Removes fields.",
    parse: |_, value, _| Ok(vec![Stage::Transform(Transform::Unset(Unset::parse(value)?))]),
};

/// A parsed `$unset`.
#[derive(Debug)]
pub struct Unset {
    paths: Vec<String>,
    tree: Vec<Branch>,
}

/// A name, and what goes away below it; nothing below: the field itself.
#[derive(Debug)]
struct Branch {
    name: Box<str>,
    below: Vec<Branch>,
}

impl Unset {
    pub(super) fn parse(value: Value<'_>) -> Result<Self> {
        let mut unset = Unset { paths: Vec::new(), tree: Vec::new() };
        match value {
            Value::String(path) => unset.add(path)?,
            Value::Array(paths) => {
                let paths: Option<Vec<&str>> = paths.iter().map(|path| path.as_str()).collect();
                let Some(paths) = paths else {
                    let message = "$unset specification must be a string or an array containing only string values";
                    return Err(Error::location(31120, message));
                };
                if paths.is_empty() {
                    let message = "$unset specification must be a string or an array with at least one field";
                    return Err(Error::location(31119, message));
                }
                if paths.iter().any(|path| path.contains('\0')) {
                    return Err(null_byte());
                }
                paths.into_iter().try_for_each(|path| unset.add(path))?;
            }
            _ => {
                let message = "$unset specification must be a string or an array";
                return Err(Error::location(31002, message));
            }
        }
        Ok(unset)
    }

    fn add(&mut self, path: &str) -> Result<()> {
        if path.contains('\0') {
            return Err(null_byte());
        }
        if path.split('.').count() > PATH_COMPONENTS_MAX {
            return Err(Error::new(ErrorCode::Overflow, "FieldPath is too long"));
        }
        let parsed = FieldPath::parse(path)
            .map_err(|error| error.context("Invalid $unset"))?;
        let components: Vec<&str> = parsed.components().collect();
        insert(&mut self.tree, &components, path)?;
        self.paths.push(path.to_owned());
        Ok(())
    }

    pub(super) fn apply<'a>(&self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        if !self.tree.iter().any(|branch| cx.root.contains(&branch.name)) {
            return Ok(cx.root);
        }
        cx.document(|writer| {
            exclude(&self.tree, cx.root, writer);
            Ok(())
        })
    }

    pub(super) fn modified_paths(&self) -> BTreeSet<String> {
        self.paths.iter().cloned().collect()
    }

    pub(super) fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document("$project");
        for path in &self.paths {
            inner.append(path, false);
        }
        if !self.paths.iter().any(|path| path == "_id") {
            inner.append("_id", true);
        }
    }
}

fn null_byte() -> Error {
    Error::location(9527900, "$unset specification must not contain null bytes")
}

fn insert(tree: &mut Vec<Branch>, path: &[&str], whole: &str) -> Result<()> {
    let Some((first, rest)) = path.split_first() else { return Ok(()) };
    let Some(known) = tree.iter_mut().find(|branch| *branch.name == **first) else {
        let mut below = Vec::new();
        insert(&mut below, rest, whole)?;
        tree.push(Branch { name: (*first).into(), below });
        return Ok(());
    };
    if rest.is_empty() {
        let message = format!("Invalid $unset :: caused by :: Path collision at {whole}");
        return Err(Error::location(31250, message));
    }
    if known.below.is_empty() {
        let remaining = rest.join(".");
        let message = format!(
            "Invalid $unset :: caused by :: Path collision at {whole} remaining portion {remaining}"
        );
        return Err(Error::location(31249, message));
    }
    insert(&mut known.below, rest, whole)
}

fn exclude(tree: &[Branch], doc: Doc<'_>, writer: &mut DocWriter<'_>) {
    for element in doc.iter() {
        let name = element.key_bytes();
        match tree.iter().find(|branch| branch.name.as_bytes() == name) {
            None => {
                writer.append_element(element);
            }
            Some(branch) if branch.below.is_empty() => {}
            Some(branch) => match element.value() {
                Value::Document(inner) => {
                    exclude(&branch.below, inner, &mut writer.document(element.key()));
                }
                Value::Array(inner) => {
                    exclude_in_array(&branch.below, inner, &mut writer.array(element.key()));
                }
                _ => {
                    writer.append_element(element);
                }
            },
        }
    }
}

fn exclude_in_array(tree: &[Branch], array: Array<'_>, writer: &mut ArrayWriter<'_>) {
    for value in array.iter() {
        match value {
            Value::Document(doc) => exclude(tree, doc, &mut writer.document()),
            Value::Array(inner) => exclude_in_array(tree, inner, &mut writer.array()),
            other => {
                writer.push(other);
            }
        }
    }
}
