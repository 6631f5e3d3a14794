//! Refuses patterns of a database that depend on each other in a circle. The graph has a node for
//! each path of a collection that a pattern reads or writes, and one for the existence of the
//! collection's documents, which a cascading delete changes.

use quire_error::Result;

use super::reference::{CopyMode, OnDelete};
use super::{Pattern, PatternKind, invalid, overlap};

/// A place that patterns read and write.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    collection: String,
    /// `None` stands for the existence of the collection's documents.
    path: Option<String>,
}

/// What one pattern reads and writes.
#[derive(Debug, Clone)]
pub struct Reach {
    /// The name of the pattern.
    name: String,
    reads: Vec<Place>,
    writes: Vec<Place>,
}

impl Reach {
    /// Returns what a pattern of the collection `owner` reads and writes: two entries if deletes go
    /// another way than values.
    pub fn of(owner: &str, pattern: &Pattern) -> Vec<Self> {
        let own = |path: &str| Place { collection: owner.to_owned(), path: Some(path.to_owned()) };
        let writes = pattern.derived_paths().iter().map(|path| own(path)).collect();
        let reach = |reads, writes| Reach { name: pattern.name.clone(), reads, writes };
        match &pattern.kind {
            PatternKind::Counter(_) => Vec::new(),
            PatternKind::Rollup(rollup) => {
                let of = |path: &str| place(&rollup.from, Some(path));
                let mut reads: Vec<Place> =
                    rollup.read_paths().iter().map(|path| of(path)).collect();
                reads.push(place(&rollup.from, None));
                reads.push(own(&rollup.local_field));
                vec![reach(reads, writes)]
            }
            PatternKind::Reference(reference) => {
                let synced = reference.fields.iter().filter(|field| field.mode == CopyMode::Sync);
                let mut reads: Vec<Place> =
                    synced.map(|field| place(&reference.from, Some(&field.source))).collect();
                reads.push(place(&reference.from, Some(&reference.foreign_field)));
                reads.push(own(&reference.local_field));
                let mut all = vec![reach(reads, writes)];
                let changed = match reference.on_delete {
                    OnDelete::Cascade => Some(place(owner, None)),
                    OnDelete::SetNull => Some(own(&reference.local_field)),
                    OnDelete::Restrict | OnDelete::Keep => None,
                };
                let deleted = vec![place(&reference.from, None)];
                all.extend(changed.map(|changed| reach(deleted, vec![changed])));
                all
            }
        }
    }

    fn feeds(&self, other: &Reach) -> bool {
        self.writes.iter().any(|written| other.reads.iter().any(|read| read.meets(written)))
    }
}

impl Place {
    fn meets(&self, other: &Place) -> bool {
        self.collection == other.collection
            && match (&self.path, &other.path) {
                (Some(a), Some(b)) => overlap(a, b),
                (None, None) => true,
                _ => false,
            }
    }
}

fn place(collection: &str, path: Option<&str>) -> Place {
    Place { collection: collection.to_owned(), path: path.map(str::to_owned) }
}

/// Refuses patterns that depend on each other in a circle, or one that depends on itself.
///
/// # Errors
/// 72 InvalidOptions with the names of the patterns of the circle.
pub fn check_loops(patterns: &[Reach]) -> Result<()> {
    // 0: not visited, 1: on the current way, 2: leads to no circle.
    let mut marks = vec![0_u8; patterns.len()];
    let mut way = Vec::new();
    (0..patterns.len()).try_for_each(|at| visit(at, patterns, &mut marks, &mut way))
}

fn visit(at: usize, patterns: &[Reach], marks: &mut [u8], way: &mut Vec<usize>) -> Result<()> {
    let (Some(reach), Some(mark)) = (patterns.get(at), marks.get_mut(at)) else { return Ok(()) };
    match *mark {
        2 => return Ok(()),
        1 => {
            let from = way.iter().position(|step| *step == at).unwrap_or(0);
            let circle = way.iter().skip(from).filter_map(|step| patterns.get(*step));
            let names: Vec<&str> = circle.map(|reach| reach.name.as_str()).collect();
            return Err(invalid(format!(
                "the patterns depend on each other in a circle: {}",
                names.join(" -> ")
            )));
        }
        _ => *mark = 1,
    }
    way.push(at);
    for next in 0..patterns.len() {
        if patterns.get(next).is_some_and(|other| reach.feeds(other)) {
            visit(next, patterns, marks, way)?;
        }
    }
    way.pop();
    if let Some(mark) = marks.get_mut(at) {
        *mark = 2;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use quire_document::{DocBuf, doc};

    use super::*;

    fn reach(owner: &str, definition: DocBuf) -> Vec<Reach> {
        Reach::of(owner, &Pattern::parse("collMod", definition.as_doc()).unwrap())
    }

    #[test]
    fn a_chain_is_allowed_and_a_circle_is_not() {
        let copy = |from: &str, source: &str| {
            let mut fields = DocBuf::new();
            fields.append(source, "sync");
            doc! {
                "name": source, "type": "reference", "from": from, "localField": "ref",
                "as": "copy", "fields": &fields, "onDelete": "keep"
            }
        };
        let mut patterns = reach("b", copy("a", "name"));
        patterns.extend(reach("c", copy("b", "name")));
        assert!(check_loops(&patterns).is_ok());
        let renamed = doc! {
            "name": "back", "type": "reference", "from": "c", "localField": "back", "as": "copied",
            "fields": { "copy": { "mode": "sync", "as": "x" } }
        };
        patterns.extend(reach("a", renamed));
        assert!(check_loops(&patterns).is_ok());
        let circle = doc! {
            "name": "circle", "type": "rollup", "from": "b", "foreignField": "ref",
            "set": { "name": { "$max": "$copy.name" } }
        };
        patterns.extend(reach("a", circle));
        let text = check_loops(&patterns).unwrap_err().to_string();
        assert!(text.contains("circle") && text.contains("name"), "{text}");
    }

    #[test]
    fn deletes_may_not_cascade_in_a_circle() {
        let parent = |on_delete: &str| {
            doc! {
                "name": "parent", "type": "reference", "from": "t", "localField": "parent",
                "onDelete": on_delete
            }
        };
        assert!(check_loops(&reach("t", parent("cascade"))).is_err());
        assert!(check_loops(&reach("t", parent("setNull"))).is_ok());
    }
}
