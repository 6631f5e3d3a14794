//! The positional operator in a projection: the element that the filter matched.

use crate::context::{EvalContext, ParseContext};
use crate::filter::{Features, Filter};
use quire_document::{Array, Doc, Value};
use quire_error::{Error, Result};
use std::cell::OnceCell;

/// The filter that determines which element matched.
#[derive(Debug)]
pub(super) struct Positional {
    filter: Filter,
}

/// The element's index in one document, computed when it is first needed.
#[derive(Default)]
pub(super) struct Matched(OnceCell<Option<u32>>);

impl Positional {
    /// Parses the filter, which may use only operators on single fields.
    pub(super) fn parse(filter: Option<Doc<'_>>, context: &ParseContext) -> Result<Positional> {
        let filter = filter.unwrap_or(Doc::empty());
        Ok(Positional { filter: Filter::parse_with(filter, context, Features::PARTS)? })
    }

    /// Returns the element of `array`, the first array on the path, that the filter matched. Fails
    /// with 51246 if the filter determines no element, and with 51247 if the array is too short.
    pub(super) fn element<'a>(
        &self,
        array: Array<'a>,
        doc: Doc<'_>,
        matched: &Matched,
        cx: &EvalContext<'_>,
    ) -> Result<Value<'a>> {
        let index = match matched.0.get() {
            Some(index) => *index,
            None => {
                let index = self.filter.find_position(doc, cx)?.flatten();
                *matched.0.get_or_init(|| index)
            }
        };
        let Some(index) = index else {
            let text = "positional operator '.$' couldn't find a matching element in the array";
            return Err(Error::location(51246, text));
        };
        array.get(index as usize).ok_or_else(|| {
            let text = "positional operator '.$' element mismatch";
            Error::location(51247, text)
        })
    }
}
