//! A profile of one collection: what its documents look like, from one pass over them.

mod path;

pub use path::{ArrayLengths, Growth, PathProfile};

use crate::sketch::{Quantiles, spread};
use path::Room;
use quire_document::{Doc, DocBuf, Value, hash_of};
use std::collections::{BTreeMap, HashMap};

/// The bounds of a profile. What exceeds them is counted, not kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest number of paths of a collection. Each takes 4 to 60 KB.
    pub paths_max: usize,
    /// The largest number of paths of all collections that are profiled together.
    pub paths_total_max: usize,
    /// The largest number of sets of top-level fields.
    pub field_sets_max: usize,
    /// At this number of names, the fields of one path are treated as data in field names: they are
    /// summarised together, as the field `*`.
    pub names_max: usize,
    /// The largest depth of a path.
    pub depth_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            paths_max: 2_000,
            paths_total_max: 5_000,
            field_sets_max: 200,
            names_max: 300,
            depth_max: 20,
        }
    }
}

/// The names of a set of top-level fields, and the number of documents that have exactly these.
pub type FieldSet<'p> = (&'p [Box<str>], u64);

/// The profile of a collection.
pub struct CollectionProfile {
    limits: Limits,
    room: Room,
    documents: u64,
    root: PathProfile,
    sizes: Quantiles,
    /// The sets of top-level field names, sorted, with the number of documents that have each.
    field_sets: HashMap<Vec<Box<str>>, SetCount>,
    /// Documents whose set is not kept.
    other_sets: u64,
    examples: Examples,
}

impl CollectionProfile {
    /// Returns the profile of no documents.
    pub fn new(limits: Limits) -> CollectionProfile {
        CollectionProfile {
            limits,
            room: Room::new(&limits),
            documents: 0,
            root: PathProfile::new(),
            sizes: Quantiles::new(),
            field_sets: HashMap::new(),
            other_sets: 0,
            examples: Examples::default(),
        }
    }

    /// Adds a document.
    pub fn add(&mut self, document: Doc<'_>) {
        self.documents += 1;
        self.examples.add(document);
        self.sizes.add(document.as_bytes().len() as f64);
        // The time of an ObjectId is the only age that every such document has.
        let born_days = match document.get("_id") {
            Some(Value::ObjectId(id)) => Some(f64::from(id.seconds()) / 86_400.0),
            _ => None,
        };
        self.root.add_document(document, born_days, &mut self.room, 0);
        self.add_field_set(document, born_days);
    }

    fn add_field_set(&mut self, document: Doc<'_>, born_days: Option<f64>) {
        let mut names: Vec<&str> = document.iter().map(|element| element.key()).collect();
        names.sort_unstable();
        names.dedup();
        let key: Vec<Box<str>> = names.into_iter().map(Box::from).collect();
        let is_full = self.field_sets.len() >= self.limits.field_sets_max;
        match self.field_sets.get_mut(&key) {
            Some(count) => count.add(born_days),
            None if is_full => self.other_sets += 1,
            None => self.field_sets.entry(key).or_default().add(born_days),
        }
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns the profile of the documents as a whole: its fields are the paths of the first level.
    pub fn root(&self) -> &PathProfile {
        &self.root
    }

    /// Returns the document size in bytes at a rank between 0 and 1.
    pub fn size_at(&self, rank: f64) -> f64 {
        self.sizes.at(rank)
    }

    /// Returns the bytes of all documents together.
    pub fn bytes(&self) -> f64 {
        self.sizes.sum()
    }

    /// Returns the sets of top-level fields with their counts, the most frequent first, and the
    /// number of documents whose set is not among them.
    pub fn field_sets(&self) -> (Vec<FieldSet<'_>>, u64) {
        let mut sets: Vec<_> =
            self.field_sets.iter().map(|(names, set)| (names.as_slice(), set.count)).collect();
        sets.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(right.0)));
        (sets, self.other_sets)
    }

    /// Returns when the first and the last document of a set of fields were born, in days since 1970;
    /// `None` without ObjectIds as `_id`.
    pub fn born(&self, fields: &[Box<str>]) -> Option<(f64, f64)> {
        self.field_sets.get(fields)?.born
    }

    /// Returns a few documents, drawn uniformly from those of at most 16 KiB.
    pub fn examples(&self) -> impl Iterator<Item = Doc<'_>> {
        self.examples.documents.values().map(DocBuf::as_doc)
    }

    /// Returns the number of paths.
    pub fn paths(&self) -> usize {
        self.root.paths() - 1
    }

    /// Returns how many fields were left out because of [`Limits::paths_max`] or
    /// [`Limits::depth_max`].
    pub fn left_out(&self) -> u64 {
        self.room.left_out()
    }

    /// Calls `visit` with each path, its profile and its parent's, a parent before its fields. The
    /// elements of an array have the name `[]`. A field name that no path can have
    /// ([`can_be_named`]) is written as `['name']`.
    pub fn for_each_path<'p>(
        &'p self,
        visit: &mut dyn FnMut(&str, &'p PathProfile, &'p PathProfile),
    ) {
        for (name, profile) in self.root.fields() {
            let mut path = String::new();
            push_name(&mut path, name);
            visit(&path, profile, &self.root);
            walk(profile, &mut path, visit);
        }
    }
}

/// The documents of a set of fields.
#[derive(Default)]
struct SetCount {
    count: u64,
    /// When the first and the last were born, in days since 1970.
    born: Option<(f64, f64)>,
}

impl SetCount {
    fn add(&mut self, born_days: Option<f64>) {
        self.count += 1;
        if let Some(born) = born_days {
            let (first, last) = self.born.unwrap_or((born, born));
            self.born = Some((first.min(born), last.max(born)));
        }
    }
}

/// A uniform sample of the documents: those whose `_id` has the smallest hash.
#[derive(Default)]
struct Examples {
    documents: BTreeMap<u64, DocBuf>,
}

impl Examples {
    /// The number of documents that are kept.
    const COUNT: usize = 200;
    /// Larger documents are not kept, so that the sample takes at most 3.2 MB.
    const BYTES_MAX: usize = 16 << 10;

    fn add(&mut self, document: Doc<'_>) {
        if document.as_bytes().len() > Examples::BYTES_MAX {
            return;
        }
        let Some(id) = document.get("_id") else { return };
        let hash = spread(hash_of(id, None));
        let is_full = self.documents.len() == Examples::COUNT;
        let greatest = self.documents.last_key_value().map(|(hash, _)| *hash);
        if is_full && greatest.is_some_and(|greatest| hash >= greatest) {
            return;
        }
        self.documents.insert(hash, document.to_owned());
        if self.documents.len() > Examples::COUNT {
            self.documents.pop_last();
        }
    }
}

/// Visits the paths below `parent`, whose own path is `path`.
fn walk<'p>(
    parent: &'p PathProfile,
    path: &mut String,
    visit: &mut dyn FnMut(&str, &'p PathProfile, &'p PathProfile),
) {
    let length = path.len();
    for (name, profile) in parent.fields() {
        path.push('.');
        push_name(path, name);
        visit(path, profile, parent);
        walk(profile, path, visit);
        path.truncate(length);
    }
    if let Some(items) = parent.items() {
        path.push_str("[]");
        visit(path, items, parent);
        walk(items, path, visit);
        path.truncate(length);
    }
}

fn push_name(path: &mut String, name: &str) {
    match can_be_named(name) {
        true => path.push_str(name),
        false => path.extend(["['", name, "']"]),
    }
}

/// Returns a field name as a path of one part.
pub fn path_of(name: &str) -> String {
    let mut path = String::new();
    push_name(&mut path, name);
    path
}

/// Returns true if a path of a query can name the field: the name is not empty, has no dot and does not
/// begin with a dollar sign. Names that would be read as the notation of a profile's paths cannot be
/// named either.
pub fn can_be_named(name: &str) -> bool {
    let is_notation = name.contains("[]") || name.contains("['");
    !name.is_empty() && !name.contains('.') && !name.starts_with('$') && !is_notation
}

/// Returns true if queries can use the path of a profile, without its `[]`: all its names can be named.
pub fn is_queryable(path: &str) -> bool {
    !path.contains("['")
}
