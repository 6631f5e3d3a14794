//! What a `$group` takes of documents: computed where they are read, by any thread, and given to
//! the groups in order.

use std::hash::{BuildHasher, Hasher};

use bumpalo::Bump;
use foldhash::fast::RandomState;
use quire_document::{Collator, Doc, Value, hash};
use quire_mql::EvalContext;
use quire_mql::expression::{Column, OwnedColumn};
use quire_mql::stage::Group;

use crate::env::Env;

/// A `$group` as all threads know it that read for it.
pub(crate) struct Grouping {
    pub group: Group,
    hasher: RandomState,
}

/// Keys of documents with their hashes, and what each accumulator is given.
pub(crate) struct Columns {
    pub hashes: Vec<u64>,
    pub keys: OwnedColumn,
    pub arguments: Vec<OwnedColumn>,
}

impl Grouping {
    pub fn new(group: Group) -> Self {
        Grouping { group, hasher: RandomState::default() }
    }

    /// The hash of a key.
    pub fn hash(&self, key: Value<'_>, collator: Option<&dyn Collator>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hash(key, collator, &mut hasher);
        hasher.finish()
    }

    /// The hashes of keys, a missing one as null.
    pub fn hashes(&self, keys: &Column<'_>, collator: Option<&dyn Collator>) -> Vec<u64> {
        let key = |row| keys.get(row).unwrap_or(Value::Null);
        (0..keys.len()).map(|row| self.hash(key(row), collator)).collect()
    }

    /// What is taken of some documents; `None` if one of them fails or they need too much memory
    /// at a time.
    pub fn columns(&self, docs: &[Doc<'_>], arena: &Bump, env: &Env) -> Option<Columns> {
        let variables = env.variable_values();
        let context = EvalContext::new(arena, Doc::empty(), &env.shared).with_variables(&variables);
        let batch = self.group.batch(docs, &context).ok()?;
        let (keys, arguments) = self.group.columns(&batch, &context).ok()?;
        let arguments = arguments.into_iter().map(|column| column.into_owned().into_owned());
        Some(Columns {
            hashes: self.hashes(&keys, context.collator()),
            arguments: arguments.collect(),
            keys: keys.into_owned().into_owned(),
        })
    }
}

impl Columns {
    /// How many documents they are of.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes that they hold, roughly.
    pub fn size(&self) -> usize {
        let arguments: usize = self.arguments.iter().map(OwnedColumn::size).sum();
        8 * self.len() + self.keys.size() + arguments
    }
}
