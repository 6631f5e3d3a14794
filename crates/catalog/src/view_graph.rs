//! Checks views that read other views: no cycle, a bounded depth, one collation.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use quire_document::limits::VIEW_DEPTH_MAX;
use quire_error::{Error, ErrorCode, Result};

use crate::view::{ViewDefinition, check_bytes, too_deep};
use crate::{Catalog, Database};

/// The views of a database, together with a new or changed one.
struct Graph<'g> {
    database: Option<&'g Arc<Database>>,
    changed: &'g ViewDefinition,
    /// The views that read a view or collection, by its name.
    readers: HashMap<&'g str, Vec<&'g ViewDefinition>>,
    /// The height of each visited view: the number of views in the longest chain down to a
    /// collection.
    heights: HashMap<&'g str, usize>,
    /// The views from the changed one to the one being visited.
    path: Vec<&'g str>,
}

impl Catalog {
    /// Checks a new or changed definition against the other views of its database.
    ///
    /// # Errors
    /// 5 GraphContainsCycle, 165 ViewDepthLimitExceeded; 167 OptionNotSupportedOnView if a view
    /// that it reads, or that reads it, has another collation; 195 ViewPipelineMaxSizeExceeded if
    /// the stages of the view, or of a view above it, have too many bytes together with those of
    /// all views below.
    pub fn check_view(&self, view: &ViewDefinition) -> Result<()> {
        let name = view.namespace.collection();
        let mut graph = Graph::new(self.database(view.namespace.db()), view);
        let below = graph.height(name)?;
        graph.check_collations()?;
        let above = graph.above(name, &mut HashMap::new());
        if below + above.levels > VIEW_DEPTH_MAX {
            return Err(too_deep());
        }
        check_bytes(graph.bytes_down(view) + above.bytes)
    }
}

/// The chains of views that read a view, directly or through other views.
#[derive(Debug, Clone, Copy, Default)]
struct Above {
    /// The number of views in the longest chain.
    levels: usize,
    /// The largest total size, in bytes, of the stages in a chain in which each view is the source
    /// of the next.
    bytes: usize,
}

impl<'g> Graph<'g> {
    fn new(database: Option<&'g Arc<Database>>, changed: &'g ViewDefinition) -> Self {
        let mut readers: HashMap<&str, Vec<&ViewDefinition>> = HashMap::new();
        let others = database.into_iter().flat_map(|database| database.views());
        for view in others.map(|view| &**view) {
            if view.namespace.collection() != changed.namespace.collection() {
                let sources: BTreeSet<&str> = view.sources().into_iter().collect();
                sources.into_iter().for_each(|name| readers.entry(name).or_default().push(view));
            }
        }
        Graph { database, changed, readers, heights: HashMap::new(), path: Vec::new() }
    }

    fn find(&self, name: &str) -> Option<&'g ViewDefinition> {
        if name == self.changed.namespace.collection() {
            return Some(self.changed);
        }
        self.database?.view(name).map(|view| &**view)
    }

    /// Returns the number of views in the longest chain from `name` down, with `name` itself; 0 for
    /// a collection.
    fn height(&mut self, name: &'g str) -> Result<usize> {
        let Some(view) = self.find(name) else { return Ok(0) };
        if self.path.first() == Some(&name) {
            return Err(self.cycle(name));
        }
        if let Some(known) = self.heights.get(name) {
            return Ok(*known);
        }
        if self.path.len() == VIEW_DEPTH_MAX {
            return Err(too_deep());
        }
        self.path.push(name);
        let mut highest = 0;
        for source in view.sources() {
            highest = highest.max(self.height(source)?);
        }
        self.path.pop();
        self.heights.insert(name, highest + 1);
        Ok(highest + 1)
    }

    fn cycle(&self, name: &str) -> Error {
        let db = self.changed.namespace.db();
        let mut text = format!("View cycle detected: {db}.{name} => {db}.{name}");
        self.path.iter().rev().for_each(|view| text.push_str(&format!(" => {db}.{view}")));
        Error::new(ErrorCode::GraphContainsCycle, text)
    }

    fn readers(&self, name: &str) -> &[&'g ViewDefinition] {
        self.readers.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the chains above `name`. Visits each view once; `known` caches the results.
    fn above(&self, name: &'g str, known: &mut HashMap<&'g str, Above>) -> Above {
        if let Some(known) = known.get(name) {
            return *known;
        }
        let mut found = Above::default();
        for reader in self.readers(name) {
            let above = self.above(reader.namespace.collection(), known);
            found.levels = found.levels.max(1 + above.levels);
            if *reader.on == *name {
                found.bytes = found.bytes.max(reader.pipeline_bytes() + above.bytes);
            }
        }
        known.insert(name, found);
        found
    }

    /// Returns the size in bytes of the stages of a view and of all sources below it. There is no
    /// cycle, because the heights were computed before.
    fn bytes_down(&self, view: &ViewDefinition) -> usize {
        let below = self.find(&view.on).map_or(0, |below| self.bytes_down(below));
        view.pipeline_bytes() + below
    }

    fn check_collations(&self) -> Result<()> {
        let changed = self.changed;
        let name = changed.namespace.collection();
        let below = changed.sources().into_iter().filter_map(|source| self.find(source));
        let above = self.readers(name).iter().copied();
        match below.chain(above).find(|other| other.collation != changed.collation) {
            None => Ok(()),
            Some(other) => {
                let (view, other) = (&changed.namespace, &other.namespace);
                let text = format!("View {view} has conflicting collation with view {other}");
                Err(Error::new(ErrorCode::OptionNotSupportedOnView, text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;
    use quire_document::{DocBuf, doc};

    fn view(name: &str, on: &str, pipeline: Vec<DocBuf>) -> Arc<ViewDefinition> {
        let namespace = Namespace::new("d", name).unwrap();
        Arc::new(ViewDefinition { namespace, on: on.into(), pipeline, collation: None })
    }

    fn refusal(catalog: &Catalog, view: &ViewDefinition) -> Option<(ErrorCode, String)> {
        let refused = catalog.check_view(view).err();
        refused.map(|error| (error.code(), error.message().to_owned()))
    }

    #[test]
    fn a_cycle_is_named_whole() {
        let catalog = Catalog::default().with_view(view("a", "b", vec![]));
        let catalog = catalog.with_view(view("b", "c", vec![]));
        let closing = view("c", "a", vec![]);
        let text = "View cycle detected: d.c => d.c => d.b => d.a => d.c";
        let expected = Some((ErrorCode::GraphContainsCycle, text.to_owned()));
        assert_eq!(refusal(&catalog, &closing), expected);
        let join = doc! { "$lookup": { "from": "a", "as": "x" } };
        let nested = doc! { "$facet": { "x": [&join] } };
        assert_eq!(refusal(&catalog, &view("c", "t", vec![nested])), expected);
        assert_eq!(refusal(&catalog, &view("c", "t", vec![])), None);
    }

    #[test]
    fn chains_are_measured_in_both_directions() {
        // v1 to v10 form a chain on the collection v0, v12 to v20 one on the missing v11.
        let mut catalog = Catalog::default();
        for at in (1..=10).chain(12..=20) {
            let below = format!("v{}", at - 1);
            catalog = catalog.with_view(view(&format!("v{at}"), &below, vec![]));
        }
        assert_eq!(refusal(&catalog, &view("v11", "v10", vec![])), None);
        let deeper = catalog.with_view(view("v21", "v20", vec![]));
        let too_deep = refusal(&deeper, &view("v11", "v10", vec![])).map(|(code, _)| code);
        assert_eq!(too_deep, Some(ErrorCode::ViewDepthLimitExceeded));
    }

    #[test]
    fn the_stages_of_a_chain_are_bounded_together() {
        let stage =
            |megabytes: usize| doc! { "$match": { "x": &"x".repeat(megabytes * 1_000_000) } };
        let low = view("low", "t", vec![stage(9)]);
        let high = view("high", "low", vec![stage(8)]);
        let too_large = Some(ErrorCode::ViewPipelineMaxSizeExceeded);
        let code = |catalog: &Catalog, view: &_| refusal(catalog, view).map(|(code, _)| code);
        let with_low = Catalog::default().with_view(Arc::clone(&low));
        assert_eq!(code(&with_low, &high), too_large);
        assert_eq!(code(&with_low, &view("high", "low", vec![stage(6)])), None);
        // A change below is checked against the views above.
        let with_high = Catalog::default().with_view(Arc::clone(&high));
        assert_eq!(code(&with_high, &low), too_large);
        assert_eq!(code(&with_high, &view("low", "t", vec![stage(7)])), None);
        // A chain that was stored before the check existed is refused when it is read.
        let error = with_high.with_view(low).resolve("d.high").unwrap_err();
        assert_eq!(Some(error.code()), too_large);
    }

    #[test]
    fn many_readers_are_walked_once() {
        // Comparing each of the 20,000 views with all others would take minutes.
        let views: Vec<_> = (0..20_000).map(|at| view(&format!("v{at}"), "base", vec![])).collect();
        let catalog = Catalog::default().with_views("d", views);
        assert_eq!(refusal(&catalog, &view("base", "t", vec![])), None);
        let other = doc! { "$lookup": { "from": "v7", "as": "x" } };
        let refused = refusal(&catalog, &view("base", "t", vec![other]));
        assert_eq!(refused.map(|(code, _)| code), Some(ErrorCode::GraphContainsCycle));
    }

    #[test]
    fn a_chain_is_resolved_from_the_collection_up() {
        let (low, high) = (doc! { "$match": { "low": 1 } }, doc! { "$match": { "high": 1 } });
        let catalog = Catalog::default().with_view(view("a", "t", vec![low.clone()]));
        let catalog = catalog.with_view(view("b", "a", vec![high.clone()]));
        let found = catalog.resolve("d.b").unwrap().unwrap();
        assert_eq!((found.namespace.as_str(), found.pipeline), ("d.t", vec![low, high]));
        assert!(catalog.resolve("d.t").unwrap().is_none());
        let namespace = Namespace::new("d", "a").unwrap();
        assert!(catalog.refuse_view(&namespace).is_err());
        assert!(catalog.without_view(&namespace).refuse_view(&namespace).is_ok());
    }
}
