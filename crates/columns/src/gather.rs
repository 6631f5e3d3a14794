//! Takes documents apart: into their layouts and the values of each column.

use quire_document::{Doc, Element, Iter, Type};
use quire_error::{Error, Result};
use std::collections::HashMap;

use crate::layout::{ColumnId, Field, META, Role, TIME, Token};
use crate::limits::{ARRAY_COLUMNS_MAX, COLUMNS_MAX, LAYOUTS_MAX, LEVELS_MAX};
use crate::stream::Gathered;

/// The places that are kept for points without a layout of their own.
const SPARE: usize = 32;

/// Which values get columns for their fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Documents and short arrays.
    All,
    /// Documents, but no arrays.
    Documents,
    /// None. Points beyond the largest number of layouts are stored as elements.
    Top,
}

/// The names of the time and the meta field.
#[derive(Clone, Copy)]
pub(crate) struct Names<'n> {
    pub time: &'n str,
    pub meta: Option<&'n str>,
}

/// The values of one column, in the order of the points.
#[derive(Default)]
pub(crate) struct Gathering<'d> {
    /// The types in the order of their first values; `None` for elements.
    pub kinds: Vec<Option<Type>>,
    /// The values of each type.
    pub streams: Vec<Gathered<'d>>,
    /// For each value the position of its type in `kinds`.
    pub order: Vec<u8>,
    /// True if documents or arrays begin in the column.
    pub is_split: bool,
    /// True if there are arrays among the values, or arrays begin in the column.
    pub has_array: bool,
    /// How many points have the column.
    pub present: usize,
}

/// The columns and layouts of some points.
pub(crate) struct Parts<'d> {
    pub fields: Vec<Field<&'d [u8]>>,
    pub columns: Vec<Gathering<'d>>,
    pub layouts: Vec<Vec<Token>>,
    /// The number of each point's layout.
    pub layout_of: Vec<i64>,
    /// The meta value of all points.
    pub meta: Option<Element<'d>>,
    /// True if some points have elements that belong to no column.
    pub has_elements: bool,
}

/// Takes `points` apart. Returns `None` if there are too many columns or layouts, which
/// [`Split::Top`] always avoids.
///
/// # Errors
/// 2 BadValue if a point has no date in the time field, has another meta value than the first, or
/// is no valid document.
pub(crate) fn gather<'d>(
    points: &[Doc<'d>],
    names: Names<'d>,
    split: Split,
) -> Result<Option<Parts<'d>>> {
    let mut gatherer = Gatherer::new(points, names, split);
    for point in points {
        if !gatherer.add(*point)? {
            return Ok(None);
        }
    }
    Ok(Some(gatherer.points))
}

struct Gatherer<'d> {
    split: Split,
    /// How many columns at the beginning occur in every point: the time, and the meta value if any.
    fixed: usize,
    meta_name: Option<&'d str>,
    points: Parts<'d>,
    columns_by_name: HashMap<(Option<ColumnId>, u32, &'d [u8]), ColumnId>,
    layouts_by_tokens: HashMap<Vec<Token>, i64>,
    /// For each column the number of the last point that has it.
    last_seen: Vec<usize>,
    /// The columns of elements before, between and after time and meta.
    element_columns: [Option<ColumnId>; 3],
    /// The layout of the point before; fields in the same order are found without a look-up.
    expected: Vec<Token>,
    tokens: Vec<Token>,
    /// The elements of the tokens that are values.
    elements: Vec<Element<'d>>,
}

impl<'d> Gatherer<'d> {
    fn new(points: &[Doc<'d>], names: Names<'d>, split: Split) -> Self {
        let meta = names.meta.and_then(|name| points.first().and_then(|point| point.find(name)));
        let mut gatherer = Gatherer {
            split,
            fixed: 1 + usize::from(meta.is_some()),
            meta_name: names.meta,
            points: Parts {
                fields: Vec::new(),
                columns: Vec::new(),
                layouts: Vec::new(),
                layout_of: Vec::with_capacity(points.len()),
                meta,
                has_elements: false,
            },
            columns_by_name: HashMap::new(),
            layouts_by_tokens: HashMap::new(),
            last_seen: Vec::new(),
            element_columns: [None; 3],
            expected: Vec::new(),
            tokens: Vec::new(),
            elements: Vec::new(),
        };
        gatherer.column(None, 0, names.time.as_bytes());
        if let (Some(name), Some(_)) = (names.meta, meta) {
            gatherer.column(None, 0, name.as_bytes());
        }
        gatherer
    }

    /// Returns the column of a field, a new one if there is none.
    fn column(&mut self, parent: Option<ColumnId>, occurrence: u32, name: &'d [u8]) -> ColumnId {
        let next = self.points.fields.len() as ColumnId;
        let column = *self.columns_by_name.entry((parent, occurrence, name)).or_insert(next);
        if column == next {
            let role = Role::Field;
            self.points.fields.push(Field { role, parent, occurrence, name });
            self.points.columns.push(Gathering::default());
            self.last_seen.push(usize::MAX);
        }
        column
    }

    /// Takes a point apart. Returns false if there are too many columns or layouts.
    fn add(&mut self, point: Doc<'d>) -> Result<bool> {
        let columns = self.points.fields.len();
        std::mem::swap(&mut self.expected, &mut self.tokens);
        self.tokens.clear();
        self.elements.clear();
        self.walk(point.iter(), None, 1);
        self.check_fixed(point)?;
        let last = self.points.layout_of.last().copied();
        let known = match last {
            Some(last) if self.tokens == self.expected => Some(last),
            _ => self.layouts_by_tokens.get(&self.tokens).copied(),
        };
        let is_full = self.points.layouts.len() + SPARE >= LAYOUTS_MAX
            || self.points.fields.len() + SPARE >= COLUMNS_MAX;
        let layout = match known {
            Some(layout) => layout,
            None if !is_full => self.new_layout(),
            None if self.split != Split::Top => return Ok(false),
            None => {
                self.forget_columns(columns);
                return self.add_elements(point).map(|()| true);
            }
        };
        self.points.layout_of.push(layout);
        self.push_values()?;
        Ok(true)
    }

    fn new_layout(&mut self) -> i64 {
        let layout = self.points.layouts.len() as i64;
        self.points.layouts.push(self.tokens.clone());
        self.layouts_by_tokens.insert(self.tokens.clone(), layout);
        layout
    }

    /// Removes the columns from `columns` on, which a point without a layout would have needed.
    fn forget_columns(&mut self, columns: usize) {
        self.points.fields.truncate(columns);
        self.points.columns.truncate(columns);
        self.last_seen.truncate(columns);
        self.columns_by_name.retain(|_, column| (*column as usize) < columns);
    }

    /// Appends the tokens of a document's elements.
    fn walk(&mut self, elements: Iter<'d>, parent: Option<ColumnId>, level: usize) {
        for element in elements {
            let column = self.column_of(&element, parent);
            let inner = Doc::from_valid_bytes(element.value_bytes());
            let begin = match element.kind() {
                _ if (column as usize) < self.fixed => None,
                Type::Document if self.splits_document(level) => Some(Token::Document(column)),
                Type::Array if self.splits_array(inner, level) => Some(Token::Array(column)),
                _ => None,
            };
            let Some(begin) = begin else {
                self.tokens.push(Token::Value(column));
                self.elements.push(element);
                continue;
            };
            self.tokens.push(begin);
            self.walk(inner.iter(), Some(column), level + 1);
            self.tokens.push(Token::End);
        }
    }

    fn splits_document(&self, level: usize) -> bool {
        self.split != Split::Top && level < LEVELS_MAX
    }

    fn splits_array(&self, array: Doc<'_>, level: usize) -> bool {
        self.split == Split::All
            && level < LEVELS_MAX
            && array.iter().take(ARRAY_COLUMNS_MAX + 1).count() <= ARRAY_COLUMNS_MAX
    }

    /// Returns the column of an element, and marks that this point has it.
    #[inline]
    fn column_of(&mut self, element: &Element<'d>, parent: Option<ColumnId>) -> ColumnId {
        let point = self.points.layout_of.len();
        if let Some(Token::Value(column) | Token::Document(column) | Token::Array(column)) =
            self.expected.get(self.tokens.len())
            && let Some(field) = self.points.fields.get(*column as usize)
            && field.name == element.key_bytes()
            && field.parent == parent
            && field.occurrence == 0
            && let Some(last) = self.last_seen.get_mut(*column as usize)
            && *last != point
        {
            *last = point;
            return *column;
        }
        let mut occurrence = 0;
        loop {
            let column = self.column(parent, occurrence, element.key_bytes());
            let last = &mut self.last_seen[column as usize];
            if *last != point {
                *last = point;
                return column;
            }
            occurrence += 1;
        }
    }

    /// Checks the time and the meta value of the point whose elements were just found.
    fn check_fixed(&self, point: Doc<'d>) -> Result<()> {
        if self.fixed == 1 && self.meta_name.is_some_and(|name| point.contains(name)) {
            return Err(Error::bad_value("the points have different meta values"));
        }
        if !self.element_of(TIME).is_some_and(|time| time.kind() == Type::Date) {
            return Err(Error::bad_value("a point has no date in its time field"));
        }
        match (self.points.meta, self.element_of(META)) {
            (None, _) => Ok(()),
            (Some(meta), Some(other))
                if other.kind() == meta.kind() && other.value_bytes() == meta.value_bytes() =>
            {
                Ok(())
            }
            _ => Err(Error::bad_value("the points have different meta values")),
        }
    }

    /// Returns the element of a column in the point whose elements were just found.
    fn element_of(&self, column: ColumnId) -> Option<&Element<'d>> {
        let mut values = self.tokens.iter().filter(|token| matches!(token, Token::Value(_)));
        self.elements.get(values.position(|token| *token == Token::Value(column))?)
    }

    /// Adds the values of the point whose elements were just found to their columns.
    fn push_values(&mut self) -> Result<()> {
        let has_meta = self.points.meta.is_some();
        let mut elements = self.elements.iter();
        for token in &self.tokens {
            let (Token::Value(column) | Token::Document(column) | Token::Array(column)) = *token
            else {
                continue;
            };
            let Some(gathering) = self.points.columns.get_mut(column as usize) else { continue };
            gathering.present += 1;
            if !matches!(token, Token::Value(_)) {
                gathering.is_split = true;
                gathering.has_array |= matches!(token, Token::Array(_));
            } else if let Some(element) = elements.next()
                && !(has_meta && column == META)
            {
                gathering.push(element)?;
            }
        }
        Ok(())
    }

    /// Adds a point whose other fields than time and meta have no columns.
    fn add_elements(&mut self, point: Doc<'d>) -> Result<()> {
        self.points.has_elements = true;
        self.tokens.clear();
        let all = point.element_bytes();
        let (mut start, mut gap) = (0, 0);
        let mut elements = point.iter();
        let mut seen = [false; 2];
        loop {
            let end = elements.consumed(point);
            let Some(element) = elements.next() else { break };
            let is_it = |column: &usize| self.points.fields[*column].name == element.key_bytes();
            let Some(column) = (0..self.fixed).find(is_it) else { continue };
            if std::mem::replace(&mut seen[column], true) {
                continue;
            }
            self.push_elements(gap, all.get(start..end).unwrap_or_default());
            self.tokens.push(Token::Value(column as ColumnId));
            let gathering = &mut self.points.columns[column];
            gathering.present += 1;
            if column == TIME as usize {
                gathering.push(&element)?;
            }
            start = elements.consumed(point);
            gap += 1;
        }
        self.push_elements(gap, all.get(start..).unwrap_or_default());
        let known = self.layouts_by_tokens.get(&self.tokens).copied();
        let layout = known.unwrap_or_else(|| self.new_layout());
        self.points.layout_of.push(layout);
        // The next point must not take these tokens for those of a layout with columns.
        self.tokens.clear();
        Ok(())
    }

    /// Adds elements that stand before, between or after time and meta.
    fn push_elements(&mut self, gap: usize, elements: &'d [u8]) {
        if elements.is_empty() {
            return;
        }
        let column = self.element_columns[gap].unwrap_or_else(|| {
            let occurrence = gap as u32;
            self.points.fields.push(Field {
                role: Role::Elements,
                parent: None,
                occurrence,
                name: b"",
            });
            self.points.columns.push(Gathering::default());
            self.last_seen.push(usize::MAX);
            self.points.fields.len() as ColumnId - 1
        });
        self.element_columns[gap] = Some(column);
        self.tokens.push(Token::Value(column));
        let gathering = &mut self.points.columns[column as usize];
        gathering.present += 1;
        gathering.stream(None).push_elements(elements);
    }
}

impl<'d> Gathering<'d> {
    fn push(&mut self, element: &Element<'d>) -> Result<()> {
        self.has_array |= element.kind() == Type::Array;
        if self.stream(Some(element.kind())).push(element) {
            return Ok(());
        }
        Err(Error::bad_value("a point is no valid document"))
    }

    /// Returns the values of a type, to which one is about to be added.
    #[inline]
    fn stream(&mut self, kind: Option<Type>) -> &mut Gathered<'d> {
        let at = match self.kinds.iter().position(|known| *known == kind) {
            Some(at) => at,
            None => {
                self.kinds.push(kind);
                self.streams.push(Gathered::new(kind));
                self.kinds.len() - 1
            }
        };
        self.order.push(at as u8);
        &mut self.streams[at]
    }
}
