//! The other collections and views that a pipeline reads, which the laboratory must have too.

use quire_catalog::{Catalog, Collection, Namespace, ViewDefinition};
use quire_document::{Array, Doc, DocBuf, Value};
use quire_mql::stage::{Reads, find_stage};
use std::sync::Arc;

/// The collections and the views that pipelines read, each once.
#[derive(Default)]
pub struct Joined {
    /// The collections, without that of the request.
    pub collections: Vec<Arc<Collection>>,
    /// The views, each after the views that it reads.
    pub views: Vec<Arc<ViewDefinition>>,
}

impl Joined {
    /// Adds what the stages read beside `own`, also through views.
    pub fn add(&mut self, catalog: &Catalog, own: &Namespace, stages: &[DocBuf]) {
        stages.iter().for_each(|stage| self.add_stage(catalog, own, stage.as_doc()));
    }

    fn add_stages(&mut self, catalog: &Catalog, own: &Namespace, stages: Array<'_>) {
        let stages = stages.iter().filter_map(|stage| stage.as_document());
        stages.for_each(|stage| self.add_stage(catalog, own, stage));
    }

    fn add_stage(&mut self, catalog: &Catalog, own: &Namespace, stage: Doc<'_>) {
        let Some(first) = stage.first() else { return };
        let Some(row) = find_stage(first.key()) else { return };
        let operand = first.value();
        let fields = operand.as_document().unwrap_or_default();
        for inner in row.facts.pipelines.of(fields) {
            self.add_stages(catalog, own, inner);
        }
        if row.facts.reads != Reads::OtherCollection {
            return;
        }
        let named = match row.facts.names.of(operand, fields) {
            Some(Value::String(name)) => Namespace::new(own.db(), name),
            Some(Value::Document(named)) => {
                let text = |name: &str| named.get(name).and_then(|value| value.as_str());
                Namespace::new(text("db").unwrap_or(own.db()), text("coll").unwrap_or_default())
            }
            _ => return,
        };
        if let Ok(named) = named {
            self.add_named(catalog, own, &named);
        }
    }

    fn add_named(&mut self, catalog: &Catalog, own: &Namespace, named: &Namespace) {
        if let Some(collection) = catalog.lookup(named) {
            let known = |known: &Arc<Collection>| known.namespace == *named;
            if named != own && !self.collections.iter().any(known) {
                self.collections.push(Arc::clone(collection));
            }
            return;
        }
        let Some(view) = catalog.view(named) else { return };
        if self.views.iter().any(|known| known.namespace == *named) {
            return;
        }
        if let Ok(below) = Namespace::new(named.db(), &view.on) {
            self.add_named(catalog, own, &below);
        }
        self.add(catalog, own, &view.pipeline);
        self.views.push(Arc::clone(view));
    }
}
