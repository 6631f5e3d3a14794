//! Arithmetic and comparisons on whole columns, without making values.

use super::operator::Call;
use crate::column::Column;
use quire_document::{Value, number};
use std::cmp::Ordering;

/// An operator that can work on whole columns.
#[derive(Clone, Copy)]
pub(super) enum Kernel {
    Add,
    Subtract,
    Multiply,
    Divide,
    Compare(fn(Ordering) -> bool),
}

/// One operand: a value for each document, or the same value for all.
#[derive(Clone, Copy)]
enum Lane<'c, T> {
    Each(&'c [T]),
    Same(T),
}

/// A column that a kernel can process.
#[derive(Clone, Copy)]
enum Side<'c, 'a> {
    Int(Lane<'c, i32>),
    Long(Lane<'c, i64>),
    Double(Lane<'c, f64>),
    Date(Lane<'c, i64>),
    Text(Lane<'c, &'a str>),
}

impl<'c, 'a> Side<'c, 'a> {
    fn of(column: &'c Column<'a>) -> Option<Self> {
        Some(match column {
            Column::Int(numbers) => Side::Int(Lane::Each(numbers)),
            Column::Long(numbers) => Side::Long(Lane::Each(numbers)),
            Column::Double(numbers) => Side::Double(Lane::Each(numbers)),
            Column::Date(millis) => Side::Date(Lane::Each(millis)),
            Column::Text(texts) => Side::Text(Lane::Each(texts)),
            Column::Same(Some(Value::Int32(number)), _) => Side::Int(Lane::Same(*number)),
            Column::Same(Some(Value::Int64(number)), _) => Side::Long(Lane::Same(*number)),
            Column::Same(Some(Value::Double(number)), _) => Side::Double(Lane::Same(*number)),
            Column::Same(Some(Value::Date(millis)), _) => Side::Date(Lane::Same(*millis)),
            Column::Same(Some(Value::String(text)), _) => Side::Text(Lane::Same(text)),
            _ => return None,
        })
    }
}

/// Converts a number to a double with the rounding of `$add` and similar operators.
trait AsDouble: Copy {
    fn as_double(self) -> f64;
}

impl AsDouble for i32 {
    fn as_double(self) -> f64 {
        f64::from(self)
    }
}

impl AsDouble for i64 {
    fn as_double(self) -> f64 {
        self as f64
    }
}

impl AsDouble for f64 {
    fn as_double(self) -> f64 {
        self
    }
}

/// Applies `op` to each pair of values.
fn each<A: Copy, B: Copy, R, C: FromIterator<R>>(
    left: Lane<'_, A>,
    right: Lane<'_, B>,
    rows: usize,
    op: impl Fn(A, B) -> R,
) -> C {
    match (left, right) {
        (Lane::Each(a), Lane::Each(b)) => a.iter().zip(b).map(|(a, b)| op(*a, *b)).collect(),
        (Lane::Each(a), Lane::Same(b)) => a.iter().map(|a| op(*a, b)).collect(),
        (Lane::Same(a), Lane::Each(b)) => b.iter().map(|b| op(a, *b)).collect(),
        (Lane::Same(a), Lane::Same(b)) => (0..rows).map(|_| op(a, b)).collect(),
    }
}

impl Kernel {
    pub(super) fn of(call: &Call) -> Option<Kernel> {
        let kernel = match call.name() {
            "$add" => Kernel::Add,
            "$subtract" => Kernel::Subtract,
            "$multiply" => Kernel::Multiply,
            "$divide" => Kernel::Divide,
            "$eq" => Kernel::Compare(Ordering::is_eq),
            "$ne" => Kernel::Compare(Ordering::is_ne),
            "$lt" => Kernel::Compare(Ordering::is_lt),
            "$lte" => Kernel::Compare(Ordering::is_le),
            "$gt" => Kernel::Compare(Ordering::is_gt),
            "$gte" => Kernel::Compare(Ordering::is_ge),
            _ => return None,
        };
        (call.args.len() == 2).then_some(kernel)
    }

    /// Computes a column. Returns `None` if the types of the columns, an overflow or a division by
    /// zero require single values.
    pub(super) fn run(
        self,
        left: &Column<'_>,
        right: &Column<'_>,
        bytewise: bool,
    ) -> Option<Column<'static>> {
        let rows = left.len();
        match (Side::of(left)?, Side::of(right)?) {
            (Side::Int(a), Side::Int(b)) => self.ints(a, b, rows),
            (Side::Long(a), Side::Long(b)) => self.longs(a, b, rows),
            (Side::Int(a), Side::Long(b)) => self.longs(a, b, rows),
            (Side::Long(a), Side::Int(b)) => self.longs(a, b, rows),
            (Side::Double(a), Side::Double(b)) => self.doubles(a, b, rows),
            (Side::Double(a), Side::Int(b)) => self.doubles(a, b, rows),
            (Side::Int(a), Side::Double(b)) => self.doubles(a, b, rows),
            // A long and a double compare exactly, so they are not converted to doubles.
            (Side::Double(a), Side::Long(b)) if !self.compares() => self.doubles(a, b, rows),
            (Side::Long(a), Side::Double(b)) if !self.compares() => self.doubles(a, b, rows),
            (Side::Date(a), Side::Date(b)) => self.ordered(a, b, rows),
            (Side::Text(a), Side::Text(b)) if bytewise => self.ordered(a, b, rows),
            _ => None,
        }
    }

    fn compares(self) -> bool {
        matches!(self, Kernel::Compare(_))
    }

    fn ints(self, a: Lane<'_, i32>, b: Lane<'_, i32>, rows: usize) -> Option<Column<'static>> {
        let all: Option<Vec<i32>> = match self {
            Kernel::Add => each(a, b, rows, i32::checked_add),
            Kernel::Subtract => each(a, b, rows, i32::checked_sub),
            Kernel::Multiply => each(a, b, rows, i32::checked_mul),
            Kernel::Divide => return self.doubles(a, b, rows),
            Kernel::Compare(_) => return self.ordered(a, b, rows),
        };
        all.map(Column::Int)
    }

    fn longs<A: AsDouble + Into<i64>, B: AsDouble + Into<i64>>(
        self,
        a: Lane<'_, A>,
        b: Lane<'_, B>,
        rows: usize,
    ) -> Option<Column<'static>> {
        let all: Option<Vec<i64>> = match self {
            Kernel::Add => each(a, b, rows, |a, b| a.into().checked_add(b.into())),
            Kernel::Subtract => each(a, b, rows, |a, b| a.into().checked_sub(b.into())),
            Kernel::Multiply => each(a, b, rows, |a, b| a.into().checked_mul(b.into())),
            Kernel::Divide => return self.doubles(a, b, rows),
            Kernel::Compare(holds) => {
                let test = |a: A, b: B| holds(a.into().cmp(&b.into()));
                return Some(Column::Bool(each(a, b, rows, test)));
            }
        };
        all.map(Column::Long)
    }

    fn doubles<A: AsDouble, B: AsDouble>(
        self,
        a: Lane<'_, A>,
        b: Lane<'_, B>,
        rows: usize,
    ) -> Option<Column<'static>> {
        let all: Option<Vec<f64>> = match self {
            // A sum starts with 0, so that -0 becomes 0.
            Kernel::Add => each(a, b, rows, |a, b| Some(0.0 + a.as_double() + b.as_double())),
            Kernel::Subtract => each(a, b, rows, |a, b| Some(a.as_double() - b.as_double())),
            Kernel::Multiply => each(a, b, rows, |a, b| Some(a.as_double() * b.as_double())),
            Kernel::Divide => each(a, b, rows, |a, b| {
                let divisor = b.as_double();
                (divisor != 0.0).then(|| a.as_double() / divisor)
            }),
            Kernel::Compare(holds) => {
                let test =
                    |a: A, b: B| holds(number::compare_doubles(a.as_double(), b.as_double()));
                return Some(Column::Bool(each(a, b, rows, test)));
            }
        };
        all.map(Column::Double)
    }

    fn ordered<T: Ord + Copy>(
        self,
        a: Lane<'_, T>,
        b: Lane<'_, T>,
        rows: usize,
    ) -> Option<Column<'static>> {
        let Kernel::Compare(holds) = self else { return None };
        Some(Column::Bool(each(a, b, rows, |a: T, b: T| holds(a.cmp(&b)))))
    }
}
