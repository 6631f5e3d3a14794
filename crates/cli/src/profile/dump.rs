//! The folder of a database that mongodump wrote, as a source: `NAME.bson` with the documents and
//! `NAME.metadata.json` with the indexes.

use crate::exit::{FAILED, Failure};
use crate::requests;
use quire_advisor::{Extent, Lookup, Source, SourceCollection};
use quire_document::limits::Limits;
use quire_document::{Doc, DocBuf, ValueKey, extjson, validate};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The largest document of a dump: 16 MiB and what a server adds.
const DOCUMENT_BYTES_MAX: usize = (16 << 20) + (16 << 10);

/// The folder of a database.
pub(super) struct DumpSource {
    folder: PathBuf,
}

impl DumpSource {
    pub(super) fn open(folder: &Path) -> Result<DumpSource, Failure> {
        match folder.is_dir() {
            true => Ok(DumpSource { folder: folder.to_owned() }),
            false => {
                let text = format!("{} is not a folder", folder.display());
                Err(Failure::new(FAILED, text))
            }
        }
    }

    fn path(&self, collection: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{collection}{ending}"))
    }

    /// Calls `each` with the documents of a collection, and its number from 0 on.
    fn visit(&self, collection: &str, each: &mut dyn FnMut(u64, Doc<'_>)) -> Result<(), Failure> {
        let path = self.path(collection, ".bson");
        let bad = |what: String| Failure::new(FAILED, format!("{}: {what}", path.display()));
        let file = File::open(&path).map_err(|error| bad(error.to_string()))?;
        let (mut input, mut bytes) = (BufReader::with_capacity(1 << 20, file), Vec::new());
        for number in 0.. {
            match next(&mut input, &mut bytes) {
                Ok(false) => return Ok(()),
                Ok(true) => {}
                Err(what) => return Err(bad(format!("document {}: {what}", number + 1))),
            }
            let document = validate(&bytes, &Limits::default())
                .map_err(|error| bad(format!("document {}: {error}", number + 1)))?;
            each(number, document);
        }
        Ok(())
    }

    /// Adds the documents of the profiler, if they were dumped.
    pub(super) fn read_profiled(&self, requests: &mut requests::Gathered) -> Result<bool, Failure> {
        if !self.path("system.profile", ".bson").is_file() {
            return Ok(false);
        }
        self.visit("system.profile", &mut |_, document| {
            requests::add_profiled(requests, document);
        })?;
        Ok(true)
    }

    /// Returns the options and the indexes of a collection.
    fn metadata(&self, collection: &str) -> Result<(DocBuf, Vec<DocBuf>), Failure> {
        let path = self.path(collection, ".metadata.json");
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Default::default()) };
        let bad = |what: String| Failure::new(FAILED, format!("{}: {what}", path.display()));
        let metadata = extjson::parse_doc(&text).map_err(|error| bad(error.to_string()))?;
        let indexes = metadata.get("indexes").and_then(|indexes| indexes.as_array());
        let indexes = indexes.iter().flat_map(|indexes| indexes.iter());
        let indexes = indexes.filter_map(|index| index.as_document()).map(Doc::to_owned);
        let options = metadata.get("options").and_then(|options| options.as_document());
        Ok((options.map(Doc::to_owned).unwrap_or_default(), indexes.collect()))
    }
}

/// Reads the bytes of the next document; false at the end of the file.
fn next(input: &mut impl Read, bytes: &mut Vec<u8>) -> Result<bool, String> {
    let mut length = [0; 4];
    let mut got = 0;
    while let Some(rest) = length.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) if got == 0 => return Ok(false),
            Ok(0) => return Err("the file ends within a document".into()),
            Ok(count) => got += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    let size = usize::try_from(i32::from_le_bytes(length)).unwrap_or(0);
    if !(5..=DOCUMENT_BYTES_MAX).contains(&size) {
        return Err(format!("a length of {size} bytes is not that of a document"));
    }
    bytes.clear();
    bytes.extend_from_slice(&length);
    bytes.resize(size, 0);
    let rest = bytes.get_mut(4..).unwrap_or_default();
    input.read_exact(rest).map_err(|_| "the file ends within a document".to_owned())?;
    Ok(true)
}

impl Source for DumpSource {
    type Error = Failure;

    fn collections(&mut self) -> Result<Vec<SourceCollection>, Failure> {
        let shown = self.folder.display().to_string();
        let bad = |error: std::io::Error| Failure::new(FAILED, format!("{shown}: {error}"));
        let mut collections = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(bad)? {
            let name = entry.map_err(bad)?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".bson.gz") {
                let text = format!("{shown}/{name} is compressed: unpack it with gunzip first");
                return Err(Failure::new(FAILED, text));
            }
            let Some(name) = name.strip_suffix(".bson").filter(|name| !name.starts_with("system."))
            else {
                continue;
            };
            let (options, indexes) = self.metadata(name)?;
            let name = name.to_owned();
            collections.push(SourceCollection {
                name,
                options,
                indexes,
                ..SourceCollection::default()
            });
        }
        if collections.is_empty() {
            let text = format!("{shown} has no .bson files: name the folder of one database");
            return Err(Failure::new(FAILED, text));
        }
        Ok(collections)
    }

    /// Reads the whole file: a file has no documents at random. A sample takes each n-th, so that it
    /// has at least as many documents as asked for, if the file has enough.
    fn read(
        &mut self,
        collection: &str,
        extent: Extent,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), Failure> {
        let step = match extent {
            Extent::All => 1,
            Extent::Sample(size) => {
                let mut documents = 0;
                self.visit(collection, &mut |_, _| documents += 1)?;
                (documents / size).max(1)
            }
        };
        self.visit(collection, &mut |number, document| {
            if number % step == 0 {
                each(document);
            }
        })
    }

    /// Answers all lookups in one pass over the file.
    fn look_up(&mut self, collection: &str, lookups: &[Lookup]) -> Result<Vec<u64>, Failure> {
        let mut wanted: BTreeMap<&str, HashMap<ValueKey, Vec<usize>>> = BTreeMap::new();
        for (place, lookup) in lookups.iter().enumerate() {
            let values = wanted.entry(&lookup.field).or_default();
            for value in lookup.values.as_array().iter() {
                values.entry(ValueKey::new(value)).or_default().push(place);
            }
        }
        let mut found = vec![0; lookups.len()];
        self.visit(collection, &mut |_, document| {
            for (field, values) in &wanted {
                let value = document.get(field).map(ValueKey::new);
                let places = value.and_then(|value| values.get(&value));
                for place in places.into_iter().flatten() {
                    if let Some(count) = found.get_mut(*place) {
                        *count += 1;
                    }
                }
            }
        })?;
        Ok(found)
    }

    fn fetch(
        &mut self,
        collection: &str,
        lookup: &Lookup,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), Failure> {
        let wanted: HashSet<ValueKey> =
            lookup.values.as_array().iter().map(ValueKey::new).collect();
        self.visit(collection, &mut |_, document| {
            let value = document.get(&lookup.field).map(ValueKey::new);
            if value.is_some_and(|value| wanted.contains(&value)) {
                each(document);
            }
        })
    }
}
