//! Columns: one value for each document of a batch, typed if all have the same type.

use quire_document::{Value, ValueBuf, ValuesBuf, identical_or_absent};
use std::borrow::Cow;

/// The results of a batch, one for each document.
#[derive(Clone, Debug)]
pub enum Column<'a> {
    /// All are ints.
    Int(Vec<i32>),
    /// All are longs.
    Long(Vec<i64>),
    /// All are doubles.
    Double(Vec<f64>),
    /// All are dates, in milliseconds since the epoch.
    Date(Vec<i64>),
    /// All are booleans.
    Bool(Vec<bool>),
    /// All are strings.
    Text(Vec<&'a str>),
    /// The same value for all documents, and their number; `None` is missing.
    Same(Option<Value<'a>>, usize),
    /// Values of any types; `None` is missing.
    Values(Vec<Option<Value<'a>>>),
}

/// A column that owns its values, so that it can move to another thread.
#[derive(Clone, Debug)]
pub enum OwnedColumn {
    /// Numbers or dates, or the missing value for all documents.
    Plain(Column<'static>),
    /// Strings, concatenated, and the end of each.
    Text(String, Vec<usize>),
    /// The same value for all documents, and their number.
    Same(ValueBuf, usize),
    /// Values of any type.
    Values(ValuesBuf),
}

impl OwnedColumn {
    /// Returns an empty column. The first value sets its type.
    pub const fn new() -> Self {
        OwnedColumn::Values(ValuesBuf::new())
    }

    /// Appends a value. Returns its approximate size in bytes.
    #[inline]
    pub fn push(&mut self, value: Option<Value<'_>>) -> usize {
        match (&mut *self, value) {
            (OwnedColumn::Plain(Column::Int(all)), Some(Value::Int32(number))) => all.push(number),
            (OwnedColumn::Plain(Column::Long(all)), Some(Value::Int64(number))) => all.push(number),
            (OwnedColumn::Plain(Column::Double(all)), Some(Value::Double(number))) => {
                all.push(number);
            }
            (OwnedColumn::Text(all, ends), Some(Value::String(text))) => {
                all.push_str(text);
                ends.push(all.len());
                return 8 + text.len();
            }
            (OwnedColumn::Values(values), _) if !values.is_empty() => {
                let before = values.size();
                values.push(value);
                return values.size() - before;
            }
            _ => return self.push_other(value),
        }
        8
    }

    /// Appends the first value, or one whose type differs from the column's.
    fn push_other(&mut self, value: Option<Value<'_>>) -> usize {
        let column = self.as_column();
        *self = match value {
            Some(Value::Int32(number)) if column.is_empty() => {
                OwnedColumn::Plain(Column::Int(vec![number]))
            }
            Some(Value::Int64(number)) if column.is_empty() => {
                OwnedColumn::Plain(Column::Long(vec![number]))
            }
            Some(Value::Double(number)) if column.is_empty() => {
                OwnedColumn::Plain(Column::Double(vec![number]))
            }
            Some(Value::String(text)) if column.is_empty() => {
                OwnedColumn::Text(text.to_owned(), vec![text.len()])
            }
            value => {
                let mut values = ValuesBuf::new();
                values.extend((0..column.len()).map(|row| column.get(row)).chain([value]));
                OwnedColumn::Values(values)
            }
        };
        self.size()
    }

    /// Returns a view of the column.
    pub fn as_column(&self) -> Cow<'_, Column<'_>> {
        match self {
            OwnedColumn::Plain(column) => Cow::Borrowed(column),
            OwnedColumn::Text(all, ends) => {
                let mut start = 0;
                let text = |end: &usize| all.get(std::mem::replace(&mut start, *end)..*end);
                Cow::Owned(Column::Text(
                    ends.iter().map(text).map(Option::unwrap_or_default).collect(),
                ))
            }
            OwnedColumn::Same(value, count) => {
                Cow::Owned(Column::Same(Some(value.as_value()), *count))
            }
            OwnedColumn::Values(values) => Cow::Owned(Column::Values(values.iter().collect())),
        }
    }

    /// Returns the approximate memory in bytes.
    pub fn size(&self) -> usize {
        match self {
            OwnedColumn::Plain(Column::Same(..)) => 0,
            OwnedColumn::Plain(column) => 8 * column.len(),
            OwnedColumn::Text(all, ends) => all.len() + 8 * ends.len(),
            OwnedColumn::Same(value, _) => value.size(),
            OwnedColumn::Values(values) => values.size(),
        }
    }
}

impl<'a> Column<'a> {
    /// Returns a copy that owns its values.
    pub fn owned(&self) -> OwnedColumn {
        match self {
            Column::Int(all) => OwnedColumn::Plain(Column::Int(all.clone())),
            Column::Long(all) => OwnedColumn::Plain(Column::Long(all.clone())),
            Column::Double(all) => OwnedColumn::Plain(Column::Double(all.clone())),
            Column::Date(all) => OwnedColumn::Plain(Column::Date(all.clone())),
            Column::Text(texts) => {
                let mut all = String::with_capacity(texts.iter().map(|text| text.len()).sum());
                let end = |text: &&str| {
                    all.push_str(text);
                    all.len()
                };
                let ends = texts.iter().map(end).collect();
                OwnedColumn::Text(all, ends)
            }
            Column::Same(None, count) => OwnedColumn::Plain(Column::Same(None, *count)),
            Column::Same(Some(value), count) => OwnedColumn::Same(ValueBuf::new(*value), *count),
            _ => {
                let mut owned = OwnedColumn::new();
                for row in 0..self.len() {
                    owned.push(self.get(row));
                }
                owned
            }
        }
    }

    /// Returns an empty column. The first value sets its type.
    pub const fn new() -> Self {
        Column::Values(Vec::new())
    }

    /// Returns the numbers of rows that have, one after the other, the same value byte for byte; together all rows.
    pub fn runs(&self) -> Vec<u32> {
        match self {
            Column::Int(all) => lengths(all.chunk_by(|a, b| a == b)),
            Column::Long(all) | Column::Date(all) => lengths(all.chunk_by(|a, b| a == b)),
            Column::Double(all) => lengths(all.chunk_by(|a, b| a.to_bits() == b.to_bits())),
            Column::Bool(all) => lengths(all.chunk_by(|a, b| a == b)),
            Column::Text(all) => lengths(all.chunk_by(|a, b| a == b)),
            Column::Same(_, 0) => Vec::new(),
            Column::Same(_, count) => vec![*count as u32],
            Column::Values(all) => lengths(all.chunk_by(|a, b| identical_or_absent(*a, *b))),
        }
    }

    /// Returns true if the row before this one has the same value byte for byte.
    pub(crate) fn repeats(&self, row: usize) -> bool {
        let Some(before) = row.checked_sub(1) else { return false };
        match self {
            Column::Int(all) => all.get(before) == all.get(row),
            Column::Long(all) | Column::Date(all) => all.get(before) == all.get(row),
            Column::Same(..) => true,
            _ => identical_or_absent(self.get(before), self.get(row)),
        }
    }

    /// Returns a column with the first value of each run.
    pub fn heads(&self, runs: &[u32]) -> Column<'a> {
        let mut end = 0;
        let starts = runs.iter().map(|rows| {
            end += *rows as usize;
            end - *rows as usize
        });
        match self {
            Column::Int(all) => Column::Int(picked(all, starts)),
            Column::Long(all) => Column::Long(picked(all, starts)),
            Column::Date(all) => Column::Date(picked(all, starts)),
            Column::Double(all) => Column::Double(picked(all, starts)),
            Column::Bool(all) => Column::Bool(picked(all, starts)),
            Column::Text(all) => Column::Text(picked(all, starts)),
            Column::Same(value, _) => Column::Same(*value, runs.len()),
            Column::Values(all) => Column::Values(picked(all, starts)),
        }
    }

    /// Returns the number of results.
    pub fn len(&self) -> usize {
        match self {
            Column::Int(numbers) => numbers.len(),
            Column::Long(numbers) | Column::Date(numbers) => numbers.len(),
            Column::Double(numbers) => numbers.len(),
            Column::Bool(flags) => flags.len(),
            Column::Text(texts) => texts.len(),
            Column::Same(_, count) => *count,
            Column::Values(values) => values.len(),
        }
    }

    /// Returns true if there are no results.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the result for document `row`.
    #[inline]
    pub fn get(&self, row: usize) -> Option<Value<'a>> {
        match self {
            Column::Int(numbers) => numbers.get(row).map(|number| Value::Int32(*number)),
            Column::Long(numbers) => numbers.get(row).map(|number| Value::Int64(*number)),
            Column::Double(numbers) => numbers.get(row).map(|number| Value::Double(*number)),
            Column::Date(millis) => millis.get(row).map(|millis| Value::Date(*millis)),
            Column::Bool(flags) => flags.get(row).map(|flag| Value::Bool(*flag)),
            Column::Text(texts) => texts.get(row).map(|text| Value::String(text)),
            Column::Same(value, _) => *value,
            Column::Values(values) => values.get(row).copied().flatten(),
        }
    }

    /// Sets the result of document `row` of `rows`. Documents that were skipped before it get the
    /// missing value.
    #[inline]
    pub(super) fn put(&mut self, row: usize, value: Value<'a>, rows: usize) {
        match (&mut *self, value) {
            (Column::Int(numbers), Value::Int32(number)) if numbers.len() == row => {
                numbers.push(number);
            }
            (Column::Long(numbers), Value::Int64(number)) if numbers.len() == row => {
                numbers.push(number);
            }
            (Column::Double(numbers), Value::Double(number)) if numbers.len() == row => {
                numbers.push(number);
            }
            (Column::Text(texts), Value::String(text)) if texts.len() == row => texts.push(text),
            _ => self.put_other(row, value, rows),
        }
    }

    /// Sets the first value, a value of a rarer type, or one whose type differs from the column's.
    fn put_other(&mut self, row: usize, value: Value<'a>, rows: usize) {
        fn first<T>(value: T, rows: usize) -> Vec<T> {
            let mut values = Vec::with_capacity(rows);
            values.push(value);
            values
        }
        match (&mut *self, value) {
            (Column::Date(all), Value::Date(millis)) if all.len() == row => all.push(millis),
            (Column::Bool(all), Value::Bool(flag)) if all.len() == row => all.push(flag),
            (Column::Values(values), _) if !values.is_empty() => {
                values.resize(row, None);
                values.push(Some(value));
            }
            _ if row == 0 => {
                *self = match value {
                    Value::Int32(number) => Column::Int(first(number, rows)),
                    Value::Int64(number) => Column::Long(first(number, rows)),
                    Value::Double(number) => Column::Double(first(number, rows)),
                    Value::Date(millis) => Column::Date(first(millis, rows)),
                    Value::Bool(flag) => Column::Bool(first(flag, rows)),
                    Value::String(text) => Column::Text(first(text, rows)),
                    other => Column::Values(first(Some(other), rows)),
                };
            }
            _ => {
                let values = self.values_mut(row, rows);
                values.push(Some(value));
            }
        }
    }

    /// Completes a column of `rows` documents. Documents that were skipped at its end get the
    /// missing value.
    pub(super) fn end(&mut self, rows: usize) {
        match self {
            Column::Values(values) => values.resize(rows, None),
            typed if typed.len() < rows => {
                typed.values_mut(rows, rows);
            }
            _ => {}
        }
    }

    /// Converts the column to `Values` and resizes it to `len`.
    fn values_mut(&mut self, len: usize, rows: usize) -> &mut Vec<Option<Value<'a>>> {
        if !matches!(self, Column::Values(_)) {
            let mut values = Vec::with_capacity(rows);
            values.extend((0..self.len()).map(|row| self.get(row)));
            *self = Column::Values(values);
        }
        let Column::Values(values) = self else { unreachable!("it was made one of values") };
        values.resize(len, None);
        values
    }
}

/// Returns the lengths of slices.
fn lengths<'v, T: 'v>(slices: impl Iterator<Item = &'v [T]>) -> Vec<u32> {
    slices.map(|slice| slice.len() as u32).collect()
}

fn picked<T: Copy>(all: &[T], at: impl Iterator<Item = usize>) -> Vec<T> {
    at.filter_map(|at| all.get(at)).copied().collect()
}

impl Default for OwnedColumn {
    fn default() -> Self {
        OwnedColumn::new()
    }
}

impl Default for Column<'_> {
    fn default() -> Self {
        Column::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::testing::Generator;
    use quire_document::{ValueBuf, identical};

    /// A column returns all values that were put, of any types and with any gaps.
    #[test]
    fn columns_give_back_what_was_put() {
        let mut random = Generator::new(11);
        for round in 0..300 {
            let rows = random.below(20) as usize;
            let kinds = 1 + round % 4;
            let values: Vec<Option<ValueBuf>> = (0..rows)
                .map(|_| match random.below(kinds) {
                    0 => Some(ValueBuf::new(random.below(9) as i32)),
                    1 => Some(random.value()),
                    2 => None,
                    _ => Some(ValueBuf::new("text")),
                })
                .collect();
            let mut column = Column::new();
            for (row, value) in values.iter().enumerate() {
                if let Some(value) = value {
                    column.put(row, value.as_value(), rows);
                }
            }
            column.end(rows);
            let owned = column.owned();
            for column in [&column, &*owned.as_column()] {
                assert_eq!(column.len(), rows);
                for (row, value) in values.iter().enumerate() {
                    match (column.get(row), value) {
                        (None, None) => {}
                        (Some(found), Some(value)) if identical(found, value.as_value()) => {}
                        other => panic!("{other:?} at {row} of {values:?}"),
                    }
                }
            }
        }
    }

    /// The runs of a column cover it, have one value each, and are as long as they can be.
    #[test]
    fn runs_are_the_rows_with_one_value() {
        let mut random = Generator::new(12);
        for round in 0..300 {
            let rows = random.below(30) as usize;
            let mut column = Column::new();
            let mut value = ValueBuf::new(1);
            let values: Vec<ValueBuf> = (0..rows)
                .map(|_| {
                    if random.one_in(3) {
                        value = match round % 6 {
                            0 => ValueBuf::new(random.below(3) as i32),
                            1 => ValueBuf::new(random.below(3) as i64),
                            2 => ValueBuf::new(*random.pick(&[0.0, -0.0, f64::NAN]).unwrap()),
                            3 => ValueBuf::new(Value::Date(random.below(3) as i64)),
                            4 => ValueBuf::new(*random.pick(&["a", "b"]).unwrap()),
                            _ => random.value(),
                        };
                    }
                    value.clone()
                })
                .collect();
            for (row, value) in values.iter().enumerate() {
                if round % 7 > 0 || row % 3 > 0 {
                    column.put(row, value.as_value(), rows);
                }
            }
            column.end(rows);
            let (runs, mut row) = (column.runs(), 0);
            let heads = column.heads(&runs);
            assert_eq!((heads.len(), runs.iter().sum::<u32>() as usize), (runs.len(), rows));
            for (run, length) in runs.iter().enumerate() {
                assert!(identical_or_absent(heads.get(run), column.get(row)), "{column:?}");
                assert!(!column.repeats(row), "{column:?}");
                assert!((row + 1..row + *length as usize).all(|row| column.repeats(row)));
                row += *length as usize;
            }
        }
    }
}
