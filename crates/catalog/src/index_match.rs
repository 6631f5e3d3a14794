//! Compares the specification of a wanted index with the indexes that a collection has.

use std::sync::Arc;

use quire_document::limits::INDEXES_MAX;
use quire_error::{Error, ErrorCode, Result};

use crate::index_pattern::{cannot, same_pattern};
use crate::key::Kind;
use crate::{Index, IndexSpec, Namespace, PartialFilter, debug_doc};

/// The relation of a specification to the existing indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecMatch {
    /// No such index exists.
    New,
    /// The same index exists, with the same name.
    Exists,
}

/// Returns the indexes that users see.
fn shown(existing: &[Arc<Index>]) -> impl Iterator<Item = &Arc<Index>> {
    existing.iter().filter(|index| !index.is_internal())
}

impl IndexSpec {
    /// Compares the specification with the indexes of a collection. Conflicts are mongod's errors
    /// 85, 86 and 68; 67 for a collation that the kind does not support.
    pub fn compare(&self, existing: &[Arc<Index>]) -> Result<SpecMatch> {
        if self.is_id() && existing.iter().any(|index| index.is_clustered() && index.is_id()) {
            return Ok(SpecMatch::Exists);
        }
        if let (Some(_), Some(kind)) = (&self.collation, Kind::of(self.key.as_doc()))
            && !kind.collates
        {
            return Err(cannot(format!(
                "Index type '{}' does not support collation: {}",
                kind.name,
                self.debug()
            )));
        }
        if let Some(index) = shown(existing).find(|index| index.name == self.name) {
            if !self.same_signature(&index.spec) {
                return Err(Error::new(
                    ErrorCode::IndexKeySpecsConflict,
                    format!(
                        "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: {}, existing index: {}",
                        self.debug(),
                        index.spec.debug()
                    ),
                ));
            }
            if !self.same_options(&index.spec) {
                return Err(Error::new(
                    ErrorCode::IndexOptionsConflict,
                    format!(
                        "An equivalent index already exists with the same name but different options. Requested index: {}, existing index: {}",
                        self.debug(),
                        index.spec.debug()
                    ),
                ));
            }
            return Ok(SpecMatch::Exists);
        }
        let Some(index) = shown(existing).find(|index| self.same_signature(&index.spec)) else {
            return self.check_alone(existing);
        };
        if index.is_id() {
            return Ok(SpecMatch::Exists);
        }
        let message = if self.same_options(&index.spec) {
            format!("Index already exists with a different name: {}", index.name)
        } else {
            format!(
                "An equivalent index already exists with a different name and options. Requested index: {}, existing index: {}",
                self.debug(),
                index.spec.debug()
            )
        };
        Err(Error::new(ErrorCode::IndexOptionsConflict, message))
    }

    /// Fails with 67 CannotCreateIndex if the collection has another index of a kind of which it may
    /// have one.
    fn check_alone(&self, existing: &[Arc<Index>]) -> Result<SpecMatch> {
        let kind = Kind::of(self.key.as_doc()).filter(|kind| kind.is_alone);
        let of_kind =
            |index: &&Arc<Index>| kind.is_some_and(|kind| kind.name == index.keys.kind().name);
        match (kind, existing.iter().find(of_kind)) {
            (Some(kind), Some(other)) => Err(cannot(format!(
                "only one {} index per collection allowed, found existing {} index \"{}\"",
                kind.name, kind.name, other.name
            ))),
            _ => Ok(SpecMatch::New),
        }
    }

    /// Fails with 67 CannotCreateIndex if the collection already has the most indexes that it may
    /// have.
    pub fn check_room(&self, namespace: &Namespace, existing: usize) -> Result<()> {
        if existing < INDEXES_MAX {
            return Ok(());
        }
        Err(cannot(format!(
            "add index fails, too many indexes for {namespace} key:{}",
            debug_doc(self.key.as_doc())
        )))
    }

    fn same_signature(&self, other: &IndexSpec) -> bool {
        same_pattern(self.key.as_doc(), other.key.as_doc())
            && self.unique == other.unique
            && self.sparse.unwrap_or(false) == other.sparse.unwrap_or(false)
            && self.collation == other.collation
            && self.partial_signature() == other.partial_signature()
            && Kind::of(self.key.as_doc()).is_none_or(|kind| (kind.same_keys)(self, other))
    }

    fn partial_signature(&self) -> Option<Vec<u8>> {
        let filter = self.partial_filter.as_ref()?;
        Some(match PartialFilter::parse(filter.as_doc(), self.collation.as_ref()) {
            Ok(parsed) => parsed.signature(self.collation.as_deref()),
            Err(_) => filter.as_bytes().to_vec(),
        })
    }

    fn same_options(&self, other: &IndexSpec) -> bool {
        self.hidden == other.hidden
            && self.prepare_unique == other.prepare_unique
            && self.expire_after_seconds == other.expire_after_seconds
            && self.extra.as_bytes() == other.extra.as_bytes()
    }
}
