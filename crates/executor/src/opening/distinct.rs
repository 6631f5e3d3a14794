//! Running a `distinct`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::sync::Arc;

use quire_document::path::{Leaf, Path};
use quire_document::{Array, ArrayBuf, Doc, Value, ValueBuf, compare, key};
use quire_error::{Error, Result};
use quire_mql::Collation;
use quire_planner::ReadRequest;

use crate::examined::Examined;
use crate::opening::open::open;
use crate::params::ExecParams;
use crate::views::Views;

/// Largest reply. MongoDB: 16 MiB (17217).
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The distinct values at the path `key`, arrays taken apart, in MongoDB's order of values. The
/// request is a `distinct`, or the pipeline that a `distinct` on a view has become.
///
/// # Errors
/// What `mql` says about the filter, the planner about the hint; 17217 if the values do not fit
/// into a reply.
pub fn distinct<'r>(
    key: &str,
    request: impl Into<ReadRequest<'r>>,
    views: &mut dyn Views,
    params: ExecParams,
) -> Result<(ArrayBuf, Examined)> {
    let interrupt = Arc::clone(&params.interrupt);
    let mut execution = open(request, views, params)?;
    let mut values = Values::new(key, execution.plan.collation.clone());
    let mut failure = None;
    execution.rows(views, &interrupt, usize::MAX, |row| {
        let taken = row.doc_or_key().map(|bytes| values.take(Doc::from_valid_bytes(&bytes)));
        if let Err(error) = taken {
            failure = Some(error);
        }
        failure.is_none() && values.bytes <= REPLY_BYTES_MAX
    })?;
    if let Some(error) = failure {
        return Err(error);
    }
    if values.bytes > REPLY_BYTES_MAX {
        return Err(Error::location(17217, "distinct too big, 16mb cap"));
    }
    Ok((values.sorted(), execution.examined()))
}

/// Values met so far.
struct Values {
    path: Arc<Path>,
    /// By their encoded form.
    found: BTreeMap<Vec<u8>, ValueBuf>,
    bytes: usize,
    collation: Option<Arc<Collation>>,
}

impl Values {
    fn new(path: &str, collation: Option<Arc<Collation>>) -> Self {
        let path = Arc::new(Path::new(path));
        Values { path, found: BTreeMap::new(), bytes: 0, collation }
    }

    /// Adds what stands at the path, an array's elements in its place.
    fn take(&mut self, doc: Doc<'_>) {
        let path = self.path.clone();
        let _ = path.visit::<()>(doc, Leaf::Whole, |found| {
            match found.value {
                Some(Value::Array(array)) if self.collation.is_some() => self.add_sorted(array),
                Some(Value::Array(array)) => array.iter().for_each(|element| self.add(element)),
                Some(other) => self.add(other),
                None => {}
            }
            ControlFlow::Continue(())
        });
    }

    /// Of elements that are equal under a collation the one whose bytes come first stands for all,
    /// as in mongod.
    fn add_sorted(&mut self, array: Array<'_>) {
        let mut elements: Vec<Value<'_>> = array.iter().collect();
        elements.sort_by(|a, b| compare(*a, *b, None));
        elements.into_iter().for_each(|element| self.add(element));
    }

    fn add(&mut self, value: Value<'_>) {
        let encoded = match &self.collation {
            None => key::encode(value),
            Some(collation) => {
                let (mut encoded, mut bits) = (Vec::new(), key::TypeBits::new());
                key::append_full(value, false, Some(&**collation), &mut encoded, &mut bits);
                encoded
            }
        };
        if let Entry::Vacant(place) = self.found.entry(encoded) {
            let value = ValueBuf::new(value);
            self.bytes += value.size() + 8;
            place.insert(value);
        }
    }

    fn sorted(&self) -> ArrayBuf {
        self.found.values().collect()
    }
}
