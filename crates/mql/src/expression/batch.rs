//! Expressions over a batch of documents: paths are taken from each document once, arithmetic and
//! comparisons work on typed columns.
//!
//! A column of numbers is computed without making values. Whatever is not of one type throughout,
//! overflows, or is another operator goes document by document, so the results (and the first
//! error) are those of `Expression::eval`.

use super::column::Column;
use super::extract::Extractor;
use super::kernel::Kernel;
use super::operator::Call;
use super::tree::{Expression, ExpressionNode};
use crate::context::EvalContext;
use quire_document::Doc;
use quire_error::{Error, ErrorCode, Result};
use std::borrow::Cow;

/// Bytes that the results of a batch may take. Whoever is told so goes on one by one, where an
/// arena holds what one document needs.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Documents with the values that an extractor takes from them.
#[derive(Debug)]
pub struct Batch<'a> {
    docs: &'a [Doc<'a>],
    columns: Vec<Column<'a>>,
}

impl<'a> Batch<'a> {
    /// Takes the values of the extractor's paths from each document in one pass.
    pub fn new(
        docs: &'a [Doc<'a>],
        extractor: &Extractor,
        cx: &EvalContext<'a>,
    ) -> Result<Batch<'a>> {
        Ok(Batch { docs, columns: extractor.columns(docs, cx)? })
    }

    /// How many documents it has.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// True if it has no document.
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// The context of document `row`.
    pub fn context(&'a self, row: usize, cx: &EvalContext<'a>) -> EvalContext<'a> {
        let doc = self.docs.get(row).copied().unwrap_or_default();
        cx.with_root(doc).with_row(&self.columns, row)
    }

    /// The column that `eval` gives, document by document.
    ///
    /// # Errors
    /// The first of `eval`; 146 ExceededMemoryLimit if the results take more than a batch may.
    pub fn each(
        &'a self,
        cx: &EvalContext<'a>,
        mut eval: impl FnMut(&EvalContext<'a>) -> Result<Option<quire_document::Value<'a>>>,
    ) -> Result<Column<'a>> {
        let (rows, mut column) = (self.len(), Column::new());
        for row in 0..rows {
            if let Some(value) = eval(&self.context(row, cx))? {
                column.put(row, value, rows);
            }
            if cx.arena.allocated_bytes() > BATCH_BYTES_MAX {
                let text = "the results of a batch take too much memory";
                return Err(Error::new(ErrorCode::ExceededMemoryLimit, text));
            }
        }
        column.end(rows);
        Ok(column)
    }
}

impl Expression {
    /// Evaluates it for each document of a batch whose extractor it was attached to; all results
    /// live in `cx`'s arena. Answers what `eval` answers one by one.
    ///
    /// # Errors
    /// That of the first document that has one; 146 ExceededMemoryLimit if the results take more
    /// than a batch may.
    pub fn eval_batch<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Cow<'a, Column<'a>>> {
        match self.columns(batch, cx) {
            Ok(column) => Ok(column),
            // Columns meet errors in another order than documents.
            Err(_) => batch.each(cx, |cx| self.eval(cx)).map(Cow::Owned),
        }
    }

    /// The same with the error that happens to be met first.
    pub(crate) fn columns<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Cow<'a, Column<'a>>> {
        let known = match self.node() {
            ExpressionNode::Constant(value) => {
                Some(Column::Same(Some(value.as_value()), batch.len()))
            }
            ExpressionNode::Missing | ExpressionNode::Absent => {
                Some(Column::Same(None, batch.len()))
            }
            ExpressionNode::Path(path) => {
                let slot = path.slot.and_then(|slot| batch.columns.get(slot as usize));
                if let Some(column) = slot {
                    return Ok(Cow::Borrowed(column));
                }
                None
            }
            ExpressionNode::Call(call) => match Kernel::of(call) {
                Some(kernel) => run_kernel(kernel, call, batch, cx)?,
                None => None,
            },
            ExpressionNode::Form(form) => form.columns(batch, cx)?,
            _ => None,
        };
        match known {
            Some(column) => Ok(Cow::Owned(column)),
            None => batch.each(cx, |cx| self.eval(cx)).map(Cow::Owned),
        }
    }
}

fn run_kernel<'a>(
    kernel: Kernel,
    call: &'a Call,
    batch: &'a Batch<'a>,
    cx: &EvalContext<'a>,
) -> Result<Option<Column<'a>>> {
    let [left, right] = &call.args[..] else { return Ok(None) };
    let (left, right) = (left.columns(batch, cx)?, right.columns(batch, cx)?);
    Ok(kernel.run(&left, &right, cx.collator().is_none()))
}
