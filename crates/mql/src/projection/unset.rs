//! Parses the operand of `$unset` to a tree.

use super::path::components;
use super::tree::{Branch, Entry, Kind, Projection};
use crate::context::ParseContext;
use quire_document::{DocBuf, Value};
use quire_error::{Error, Result};

impl Projection {
    /// Parses a field's name, or an array of names. Codes: 31002 another type, 31119 an empty
    /// array, 31120 an element that is not a string, and those of paths and their conflicts.
    pub fn parse_unset(value: Value<'_>, context: &ParseContext) -> Result<Projection> {
        let paths = match value {
            Value::String(path) => vec![path],
            Value::Array(array) if array.is_empty() => {
                let text =
                    "$unset specification must be a string or an array with at least one field";
                return Err(Error::location(31119, text));
            }
            Value::Array(array) => array
                .iter()
                .map(|value| {
                    value.as_str().ok_or_else(|| {
                        let text = "$unset specification must be a string or an array containing \
                                    only string values";
                        Error::location(31120, text)
                    })
                })
                .collect::<Result<Vec<&str>>>()?,
            _ => {
                let text = "$unset specification must be a string or an array";
                return Err(Error::location(31002, text));
            }
        };
        context.work_on(paths.len())?;
        if paths.iter().any(|path| path.contains('\0')) {
            return Err(Error::location(9527900, "field names may not contain null bytes"));
        }
        let mut root = Branch::default();
        for path in &paths {
            context.part()?;
            drop_field(&mut root, path).map_err(|error| error.context("Invalid $unset"))?;
        }
        context.work_on(paths.len())?;
        root.seal();
        let source = DocBuf::build(|writer| {
            paths.iter().for_each(|path| {
                writer.append(path, false);
            });
        });
        let extractor = root.extractor();
        Ok(Projection { kind: Kind::Exclusion, root, positional: None, source, extractor })
    }
}

fn drop_field(root: &mut Branch, path: &str) -> Result<()> {
    if path.contains('\0') {
        return Err(Error::location(9527900, "field names may not contain null bytes"));
    }
    root.insert(&components(path)?, Entry::Keep(false), false, path)
}
