//! Evaluates expressions for a batch of documents. Paths are read from each document once, and
//! arithmetic and comparisons work on typed columns.
//!
//! A column of numbers is computed without making values. A column of mixed types, an overflow or
//! another operator is evaluated document by document, so results (and the first error) equal those
//! of `Expression::eval`.

use super::extract::Extractor;
use super::kernel::Kernel;
use super::operator::Call;
use super::tree::{Expression, ExpressionNode};
use crate::column::Column;
use crate::context::EvalContext;
use quire_document::Doc;
use quire_error::{Error, ErrorCode, Result};
use std::borrow::Cow;

/// The most bytes that the results of a batch may use. Beyond it the caller continues document by
/// document, with an arena for only one document's results.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Rows with the values that an extractor names: documents from which it has read them, or fields that
/// are stored as columns, without documents.
#[derive(Debug)]
pub struct Batch<'a> {
    rows: usize,
    /// Empty without documents.
    docs: &'a [Doc<'a>],
    columns: Vec<Column<'a>>,
}

impl<'a> Batch<'a> {
    /// Reads the extractor's paths from each document in one pass.
    pub fn new(
        docs: &'a [Doc<'a>],
        extractor: &Extractor,
        cx: &EvalContext<'a>,
    ) -> Result<Batch<'a>> {
        Ok(Batch { rows: docs.len(), docs, columns: extractor.columns(docs, cx)? })
    }

    /// Returns a batch of `rows` rows without documents. `columns` are those of the extractor's
    /// [`fields`](Extractor::fields), and expressions must read nothing else of the rows.
    pub(crate) const fn of_columns(rows: usize, columns: Vec<Column<'a>>) -> Batch<'a> {
        Batch { rows, docs: &[], columns }
    }

    /// Returns the number of rows.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Returns true if there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the context of document `row`.
    pub fn context(&'a self, row: usize, cx: &EvalContext<'a>) -> EvalContext<'a> {
        let doc = self.docs.get(row).copied().unwrap_or_default();
        cx.with_root(doc).with_row(&self.columns, row)
    }

    /// Returns the column of the results of `eval`, called for one document after the other.
    ///
    /// # Errors
    /// The first error of `eval`; 146 ExceededMemoryLimit if the results use more than a batch may.
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
            Self::check_memory(cx)?;
        }
        column.end(rows);
        Ok(column)
    }

    /// Fails with 146 ExceededMemoryLimit if the results of a batch use more memory than they may.
    pub(crate) fn check_memory(cx: &EvalContext<'_>) -> Result<()> {
        if cx.arena.allocated_bytes() > BATCH_BYTES_MAX {
            let text = "the results of a batch take too much memory";
            return Err(Error::new(ErrorCode::ExceededMemoryLimit, text));
        }
        Ok(())
    }
}

impl Expression {
    /// Evaluates the expression for each document of a batch. The expression must be attached to
    /// the batch's extractor. All results are in `cx`'s arena and equal those of `eval`.
    ///
    /// # Errors
    /// The error of the first document that has one; 146 ExceededMemoryLimit if the results use
    /// more than a batch may.
    pub fn eval_batch<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Cow<'a, Column<'a>>> {
        match self.columns(batch, cx) {
            Ok(column) => Ok(column),
            // Columns may find another error before that of the first document.
            Err(_) => batch.each(cx, |cx| self.eval(cx)).map(Cow::Owned),
        }
    }

    /// Like `eval_batch`, but may fail with an error that is not that of the first document.
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
            ExpressionNode::Call(call) => match (Kernel::of(call), call.operator.columns) {
                (Some(kernel), _) => run_kernel(kernel, call, batch, cx)?,
                (None, Some(columns)) => columns(call, batch, cx)?,
                (None, None) => None,
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
