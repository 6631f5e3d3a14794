//! Profiles against what brute force says, and references between collections in memory.

#![allow(clippy::unwrap_used)]

mod advice;
mod database;
mod demos;
mod planted;
mod profiles;

use quire_advisor::{Extent, Lookup, Progress, Source, SourceCollection};
use quire_document::{Doc, DocBuf, ValueKey};
use std::collections::{BTreeMap, HashSet};

/// Collections in memory.
#[derive(Default)]
struct Memory(BTreeMap<String, (Vec<DocBuf>, SourceCollection)>);

impl Memory {
    fn add(&mut self, name: &str, documents: Vec<DocBuf>, indexes: Vec<DocBuf>) {
        let described = SourceCollection {
            name: name.to_owned(),
            documents: Some(documents.len() as u64),
            indexes,
            ..SourceCollection::default()
        };
        self.0.insert(name.to_owned(), (documents, described));
    }
}

impl Source for Memory {
    type Error = String;

    fn collections(&mut self) -> Result<Vec<SourceCollection>, String> {
        let all = self.0.values().map(|(_, described)| described.clone());
        Ok(all.collect())
    }

    fn read(
        &mut self,
        collection: &str,
        extent: Extent,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), String> {
        let count = match extent {
            Extent::All => usize::MAX,
            Extent::Sample(count) => count as usize,
        };
        let (documents, _) = self.0.get(collection).ok_or("no such collection")?;
        documents.iter().take(count).for_each(|document| each(document.as_doc()));
        Ok(())
    }

    fn look_up(&mut self, collection: &str, lookups: &[Lookup]) -> Result<Vec<u64>, String> {
        let (documents, _) = self.0.get(collection).ok_or("no such collection")?;
        Ok(lookups.iter().map(|lookup| present(documents, lookup)).collect())
    }

    fn fetch(
        &mut self,
        collection: &str,
        lookup: &Lookup,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), String> {
        let (documents, _) = self.0.get(collection).ok_or("no such collection")?;
        let wanted: HashSet<ValueKey> =
            lookup.values.as_array().iter().map(ValueKey::new).collect();
        let has = |document: &&DocBuf| {
            let value = document.get(&lookup.field);
            value.is_some_and(|value| wanted.contains(&ValueKey::new(value)))
        };
        documents.iter().filter(has).for_each(|document| each(document.as_doc()));
        Ok(())
    }
}

fn present(documents: &[DocBuf], Lookup { field, values }: &Lookup) -> u64 {
    let there: HashSet<ValueKey> =
        documents.iter().filter_map(|document| document.get(field)).map(ValueKey::new).collect();
    values.as_array().iter().filter(|value| there.contains(&ValueKey::new(*value))).count() as u64
}

/// A progress that shows nothing.
struct Unseen;

impl Progress for Unseen {
    fn begins(&mut self, _: &SourceCollection, _: Extent) {}
    fn read(&mut self) {}
}
