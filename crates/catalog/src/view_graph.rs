//! Views that read each other: no cycle, no chain that is too long, one collation.

use std::collections::HashMap;
use std::sync::Arc;

use quire_error::{Error, ErrorCode, Result};

use crate::view::{VIEW_DEPTH_MAX, ViewDefinition, too_deep};
use crate::{Catalog, Database};

/// The views of a database with one that is new or changed.
struct Graph<'g> {
    database: Option<&'g Arc<Database>>,
    changed: &'g ViewDefinition,
    /// The longest chain from a view down to a collection, in views; of those that were walked.
    heights: HashMap<&'g str, usize>,
    /// The views from the changed one to the one that is walked.
    path: Vec<&'g str>,
}

impl Catalog {
    /// Checks a new or changed definition against the other views of its database.
    ///
    /// # Errors
    /// 5 GraphContainsCycle, 165 ViewDepthLimitExceeded; 167 OptionNotSupportedOnView if a view that
    /// it reads, or that reads it, has another collation; 195 for too large a pipeline.
    pub fn check_view(&self, view: &ViewDefinition) -> Result<()> {
        view.check_size()?;
        let database = self.database(view.namespace.db());
        let name = view.namespace.collection();
        let mut graph =
            Graph { database, changed: view, heights: HashMap::new(), path: Vec::new() };
        let below = graph.height(name)?;
        graph.check_collations()?;
        let mut above = HashMap::new();
        if below + graph.levels_above(name, &mut above) > VIEW_DEPTH_MAX {
            return Err(too_deep());
        }
        Ok(())
    }
}

impl<'g> Graph<'g> {
    fn find(&self, name: &str) -> Option<&'g ViewDefinition> {
        if name == self.changed.namespace.collection() {
            return Some(self.changed);
        }
        self.database?.view(name).map(|view| &**view)
    }

    /// The views in the longest chain from `name` down, itself counted; 0 for a collection.
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

    fn views(&self) -> impl Iterator<Item = &'g ViewDefinition> {
        let changed = self.changed.namespace.collection();
        let others = self.database.into_iter().flat_map(|database| database.views());
        others.map(|view| &**view).filter(move |view| view.namespace.collection() != changed)
    }

    /// The views in the longest chain of views that read `name`.
    fn levels_above(&self, name: &'g str, known: &mut HashMap<&'g str, usize>) -> usize {
        if let Some(known) = known.get(name) {
            return *known;
        }
        let mut levels = 0;
        for reader in self.views().filter(|view| view.sources().contains(&name)) {
            levels = levels.max(1 + self.levels_above(reader.namespace.collection(), known));
        }
        known.insert(name, levels);
        levels
    }

    fn check_collations(&self) -> Result<()> {
        let changed = self.changed;
        let name = changed.namespace.collection();
        let below = changed.sources().into_iter().filter_map(|source| self.find(source));
        let above = self.views().filter(|view| view.sources().contains(&name));
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
        // v1 to v10 stand on the collection v0, v12 to v20 on the missing v11.
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
