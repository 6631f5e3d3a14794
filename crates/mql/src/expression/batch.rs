//! Expressions over a batch of documents: paths, arithmetic and comparisons as typed columns.
//!
//! A column of ints, longs or doubles is computed without making values. Whatever is not of one
//! type throughout, overflows, or is another operator goes document by document, so the results
//! (and the first error) are those of `Expression::eval`.

use super::operator::Call;
use super::tree::{Expression, Node};
use crate::context::EvalContext;
use quire_document::{Doc, Value};
use quire_error::Result;

/// The results for a batch, one for each document.
#[derive(Clone, Debug)]
pub enum Column<'a> {
    /// All are ints.
    Int(Vec<i32>),
    /// All are longs.
    Long(Vec<i64>),
    /// All are doubles.
    Double(Vec<f64>),
    /// All are booleans.
    Bool(Vec<bool>),
    /// Anything; `None` is missing.
    Values(Vec<Option<Value<'a>>>),
}

impl<'a> Column<'a> {
    /// How many results it has.
    pub fn len(&self) -> usize {
        match self {
            Column::Int(numbers) => numbers.len(),
            Column::Long(numbers) => numbers.len(),
            Column::Double(numbers) => numbers.len(),
            Column::Bool(flags) => flags.len(),
            Column::Values(values) => values.len(),
        }
    }

    /// True if it has no result.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The result for document `index`.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Column::Int(numbers) => numbers.get(index).map(|number| Value::Int32(*number)),
            Column::Long(numbers) => numbers.get(index).map(|number| Value::Int64(*number)),
            Column::Double(numbers) => numbers.get(index).map(|number| Value::Double(*number)),
            Column::Bool(flags) => flags.get(index).map(|flag| Value::Bool(*flag)),
            Column::Values(values) => values.get(index).copied().flatten(),
        }
    }

    /// The column of these values, typed if they are all of one type.
    fn of_values(values: Vec<Option<Value<'a>>>) -> Self {
        macro_rules! typed {
            ($kind:ident, $column:ident) => {{
                let all = values.iter().map(|value| match value {
                    Some(Value::$kind(inner)) => Some(*inner),
                    _ => None,
                });
                match all.collect::<Option<Vec<_>>>() {
                    Some(all) => Column::$column(all),
                    None => Column::Values(values),
                }
            }};
        }
        match values.first() {
            Some(Some(Value::Int32(_))) => typed!(Int32, Int),
            Some(Some(Value::Int64(_))) => typed!(Int64, Long),
            Some(Some(Value::Double(_))) => typed!(Double, Double),
            Some(Some(Value::Bool(_))) => typed!(Bool, Bool),
            _ => Column::Values(values),
        }
    }

    fn repeat(value: Value<'a>, count: usize) -> Self {
        match value {
            Value::Int32(number) => Column::Int(vec![number; count]),
            Value::Int64(number) => Column::Long(vec![number; count]),
            Value::Double(number) => Column::Double(vec![number; count]),
            Value::Bool(flag) => Column::Bool(vec![flag; count]),
            other => Column::Values(vec![Some(other); count]),
        }
    }
}

/// The operators that have a form for columns.
#[derive(Clone, Copy)]
enum Kernel {
    Add,
    Subtract,
    Multiply,
    Compare(fn(std::cmp::Ordering) -> bool),
}

impl Kernel {
    fn of(call: &Call) -> Option<Kernel> {
        if call.args.len() != 2 {
            return None;
        }
        Some(match call.name() {
            "$add" => Kernel::Add,
            "$subtract" => Kernel::Subtract,
            "$multiply" => Kernel::Multiply,
            "$eq" => Kernel::Compare(std::cmp::Ordering::is_eq),
            "$ne" => Kernel::Compare(std::cmp::Ordering::is_ne),
            "$lt" => Kernel::Compare(std::cmp::Ordering::is_lt),
            "$lte" => Kernel::Compare(std::cmp::Ordering::is_le),
            "$gt" => Kernel::Compare(std::cmp::Ordering::is_gt),
            "$gte" => Kernel::Compare(std::cmp::Ordering::is_ge),
            _ => return None,
        })
    }

    /// `None` where the columns' types or an overflow need values.
    fn run(self, left: &Column<'_>, right: &Column<'_>) -> Option<Column<'static>> {
        match (left, right) {
            (Column::Int(a), Column::Int(b)) => self.ints(a, b),
            (Column::Long(a), Column::Long(b)) => self.longs(a.iter().copied(), b.iter().copied()),
            (Column::Int(a), Column::Long(b)) => {
                self.longs(a.iter().map(|a| i64::from(*a)), b.iter().copied())
            }
            (Column::Long(a), Column::Int(b)) => {
                self.longs(a.iter().copied(), b.iter().map(|b| i64::from(*b)))
            }
            (Column::Double(a), Column::Double(b)) => {
                self.doubles(a.iter().copied(), b.iter().copied())
            }
            (Column::Double(a), Column::Int(b)) => {
                self.doubles(a.iter().copied(), b.iter().map(|b| f64::from(*b)))
            }
            (Column::Int(a), Column::Double(b)) => {
                self.doubles(a.iter().map(|a| f64::from(*a)), b.iter().copied())
            }
            _ => None,
        }
    }

    fn ints(self, a: &[i32], b: &[i32]) -> Option<Column<'static>> {
        let pairs = a.iter().zip(b);
        let all: Option<Vec<i32>> = match self {
            Kernel::Add => pairs.map(|(a, b)| a.checked_add(*b)).collect(),
            Kernel::Subtract => pairs.map(|(a, b)| a.checked_sub(*b)).collect(),
            Kernel::Multiply => pairs.map(|(a, b)| a.checked_mul(*b)).collect(),
            Kernel::Compare(holds) => {
                return Some(Column::Bool(pairs.map(|(a, b)| holds(a.cmp(b))).collect()));
            }
        };
        all.map(Column::Int)
    }

    fn longs(
        self,
        a: impl Iterator<Item = i64>,
        b: impl Iterator<Item = i64>,
    ) -> Option<Column<'static>> {
        let pairs = a.zip(b);
        let all: Option<Vec<i64>> = match self {
            Kernel::Add => pairs.map(|(a, b)| a.checked_add(b)).collect(),
            Kernel::Subtract => pairs.map(|(a, b)| a.checked_sub(b)).collect(),
            Kernel::Multiply => pairs.map(|(a, b)| a.checked_mul(b)).collect(),
            Kernel::Compare(holds) => {
                return Some(Column::Bool(pairs.map(|(a, b)| holds(a.cmp(&b))).collect()));
            }
        };
        all.map(Column::Long)
    }

    fn doubles(
        self,
        a: impl Iterator<Item = f64>,
        b: impl Iterator<Item = f64>,
    ) -> Option<Column<'static>> {
        let pairs = a.zip(b);
        Some(Column::Double(match self {
            Kernel::Add => pairs.map(|(a, b)| 0.0 + a + b).collect(),
            Kernel::Subtract => pairs.map(|(a, b)| a - b).collect(),
            Kernel::Multiply => pairs.map(|(a, b)| 1.0 * a * b).collect(),
            Kernel::Compare(holds) => {
                let order = |(a, b)| quire_document::number::compare_doubles(a, b);
                return Some(Column::Bool(pairs.map(|pair| holds(order(pair))).collect()));
            }
        }))
    }
}

impl Expression {
    /// Evaluates it for each document of a batch; all results live in `cx`'s arena. Answers what
    /// `eval` answers one by one, an error being that of the first document that has one.
    pub fn eval_batch<'a>(&'a self, docs: &[Doc<'a>], cx: &EvalContext<'a>) -> Result<Column<'a>> {
        match self.columns(docs, cx) {
            Ok(column) => Ok(column),
            // Columns meet errors in another order than documents.
            Err(_) => self.one_by_one(docs, cx),
        }
    }

    fn columns<'a>(&'a self, docs: &[Doc<'a>], cx: &EvalContext<'a>) -> Result<Column<'a>> {
        match self.node() {
            Node::Constant(value) => Ok(Column::repeat(value.as_value(), docs.len())),
            Node::Call(call) => match Kernel::of(call) {
                Some(kernel) => self.kernel(kernel, call, docs, cx),
                None => self.one_by_one(docs, cx),
            },
            _ => self.one_by_one(docs, cx),
        }
    }

    fn kernel<'a>(
        &'a self,
        kernel: Kernel,
        call: &'a Call,
        docs: &[Doc<'a>],
        cx: &EvalContext<'a>,
    ) -> Result<Column<'a>> {
        let [left, right] = &call.args[..] else { return self.one_by_one(docs, cx) };
        let (left, right) = (left.columns(docs, cx)?, right.columns(docs, cx)?);
        match kernel.run(&left, &right) {
            Some(column) => Ok(column),
            None => self.one_by_one(docs, cx),
        }
    }

    fn one_by_one<'a>(&'a self, docs: &[Doc<'a>], cx: &EvalContext<'a>) -> Result<Column<'a>> {
        let mut values = Vec::with_capacity(docs.len());
        for doc in docs {
            values.push(self.eval(&cx.with_root(*doc))?);
        }
        Ok(Column::of_values(values))
    }
}
