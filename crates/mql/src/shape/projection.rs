//! The shapes of projections and sorts, whose numbers are flags and directions, not literals.

use super::filter::{self, Detail};
use super::{expression, literal};
use quire_document::{Doc, DocBuf, DocWriter, Value};

/// Returns the shape of a projection: `true` for an included field, `false` for one that is left
/// out, and the shapes of computed fields.
pub(super) fn of(projection: Doc<'_>) -> DocBuf {
    DocBuf::build(|out| {
        write(projection, out);
        let mut fields = projection.fields().filter(|(name, _)| *name != "_id").peekable();
        let includes =
            fields.peek().is_some() && fields.all(|(_, value)| flag(value) != Some(false));
        if includes && !projection.contains("_id") {
            out.append("_id", true);
        }
    })
}

fn write(projection: Doc<'_>, out: &mut DocWriter<'_>) {
    for (name, value) in projection.fields() {
        if let Some(included) = flag(value) {
            out.append(name, included);
            continue;
        }
        match value {
            Value::Document(inner) => match inner.first().map(|first| (first.key(), first.value()))
            {
                Some(("$elemMatch", Value::Document(conditions))) => {
                    let conditions = filter::of(conditions, Detail::Request);
                    out.document(name).append("$elemMatch", &conditions);
                }
                Some((operator, _)) if operator.starts_with('$') => {
                    out.append(name, &expression::of(value));
                }
                _ => write(inner, &mut out.document(name)),
            },
            value => {
                out.append(name, &expression::of(value));
            }
        }
    }
}

/// Returns true for an included field, false for one that is left out, `None` for a computed one.
fn flag(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(included) => Some(included),
        number => number.as_number().map(|number| number.to_f64() != 0.0),
    }
}

/// Returns the shape of a sort.
pub(super) fn of_sort(sort: Doc<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for (name, value) in sort.fields() {
            match (value, value.as_number()) {
                (_, Some(direction)) => {
                    out.append(name, if direction.to_f64() < 0.0 { -1 } else { 1 })
                }
                (meta @ Value::Document(_), None) => out.append(name, meta),
                (other, None) => out.append(name, &*literal::of(other)),
            };
        }
    })
}
