//! The argument `whatIf` of `explain`: how the explained command would run with other indexes. They
//! are really built in the laboratory, and the command really runs there (docs/what-if.md).

use crate::frame::args::{Arg, fields};
use crate::frame::context::Context;
use crate::laboratory::copying::write_copied;
use crate::laboratory::joined::Joined;
use crate::laboratory::workbench::{CopyOf, Wanted, Workbench, require_copy};
use crate::read::explained::{explain_on, on_collection};
use quire_advisor::SampleSize;
use quire_advisor::indexes::{Measured, write_scaled};
use quire_catalog::{Collection, IndexSpec, Namespace, SpecMatch};
use quire_collections::CreateIndexes;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{FreshViews, OpenViews, Views};
use quire_planner::{ReadRequest, Verbosity};
use std::sync::Arc;
use std::time::Instant;

/// The version of the document that `whatIf` adds to the reply.
const VERSION: i32 = 1;
/// The probability that an interval contains the true number.
const CONFIDENCE: f64 = 0.95;

/// The parsed argument of `explain`.
pub struct WhatIf {
    create: Vec<IndexSpec>,
    hide: Vec<String>,
    sample_size: Option<u64>,
    seed: u64,
}

impl WhatIf {
    /// Parses the argument.
    ///
    /// # Errors
    /// Those of `createIndexes` about a specification; 14 TypeMismatch, 40415 for unknown fields.
    pub fn parse(arg: &Arg<'_>) -> Result<WhatIf> {
        let seed = quire_storage::rng::word();
        let mut parsed = WhatIf { create: Vec::new(), hide: Vec::new(), sample_size: None, seed };
        for field in fields("explain.whatIf", arg.document()?) {
            match field.name() {
                _ if field.is_null() => {}
                "create" => parsed.create = parse_specs(&field)?,
                "hide" => parsed.hide = parse_names(&field)?,
                "sampleSize" => parsed.sample_size = u64::try_from(field.integer_from(1)?).ok(),
                "seed" => parsed.seed = field.integer()?.cast_unsigned(),
                _ => return Err(field.unknown()),
            }
        }
        Ok(parsed)
    }
}

fn parse_names(field: &Arg<'_>) -> Result<Vec<String>> {
    let name = |(at, value): (usize, Value<'_>)| match value {
        Value::String(name) => Ok(name.to_owned()),
        other => Err(field.wrong_element(at, other, "string")),
    };
    field.array()?.iter().enumerate().map(name).collect()
}

fn parse_specs(field: &Arg<'_>) -> Result<Vec<IndexSpec>> {
    let spec = |(at, value): (usize, Value<'_>)| match value {
        Value::Document(spec) => parse_spec(spec),
        other => Err(field.wrong_element(at, other, "object")),
    };
    field.array()?.iter().enumerate().map(spec).collect()
}

/// Parses a specification as `createIndexes` does; without a name the index has the one that drivers
/// give it.
///
/// # Errors
/// Those of [`IndexSpec::parse`].
pub fn parse_spec(spec: Doc<'_>) -> Result<IndexSpec> {
    if spec.contains("name") {
        return IndexSpec::parse(spec, false);
    }
    let key = spec.get("key").and_then(|key| key.as_document()).unwrap_or_default();
    let mut named = spec.to_owned();
    named.append("name", default_name(key).as_str());
    IndexSpec::parse(named.as_doc(), false)
}

/// Returns the name that drivers give to an index: `a_1_b_-1`.
pub fn default_name(key: Doc<'_>) -> String {
    let part = |(path, value): (&str, Value<'_>)| match value {
        Value::String(kind) => format!("{path}_{kind}"),
        Value::Int32(direction) => format!("{path}_{direction}"),
        Value::Int64(direction) => format!("{path}_{direction}"),
        Value::Double(direction) => format!("{path}_{direction}"),
        _ => path.to_owned(),
    };
    key.fields().map(part).collect::<Vec<String>>().join("_")
}

/// Runs the request in the laboratory, and returns what it did there. `command` is the explained
/// command.
///
/// # Errors
/// 13 Unauthorized if the client may not read a collection that a view or the pipeline reads, or see its
/// size; 26 NamespaceNotFound without a collection; 27 IndexNotFound for an index to hide; those of
/// `createIndexes`, also for documents that the index cannot have; those of the laboratory and of
/// the request.
pub fn explain(
    cx: &Context<'_>,
    (what, command): (ReadRequest<'_>, Doc<'_>),
    verbosity: Verbosity,
    what_if: &WhatIf,
) -> Result<DocBuf> {
    let begun = Instant::now();
    let mut views = OpenViews::Fresh(FreshViews::new(&cx.service.store)?);
    let resolved = on_collection(what, &views)?;
    let what = resolved.as_ref().map_or(what, ReadRequest::Aggregate);
    let namespace = Namespace::parse(what.target().0)?;
    require_copy(cx, &namespace)?;
    let mut joined = Joined::default();
    if let ReadRequest::Aggregate(request) = what {
        joined.add(&Arc::clone(views.view().catalog()), &namespace, &request.pipeline);
    }
    let mut others = joined.collections.iter();
    others.try_for_each(|other| require_copy(cx, &other.namespace))?;
    let collection = collection_of(what, &views)?;
    // Its errors tell about indexes and values of the collection.
    let created = what_if.checked(cx, &collection)?;
    let own = CopyOf {
        indexes: what_if.indexes(&collection, &created),
        collection,
        more_indexes: 0,
        documents_max: what_if.sample_size,
    };
    let others = joined.collections.into_iter().map(CopyOf::as_it_is);
    let wanted = Wanted {
        copies: std::iter::once(own).chain(others).collect(),
        views: joined.views,
        seed: what_if.seed,
    };
    let opened = Workbench::open(cx, &mut views, &wanted);
    // The run may take long, and needs nothing of the data of the server.
    drop(views);
    let mut bench = opened.map_err(|error| cx.without_values(&namespace, error))?;
    let Some(size) = bench.copy_of(&namespace).map(|copied| copied.size) else {
        return Err(Error::internal("the collection was not copied"));
    };
    let explained = explain_on(cx, what, verbosity, &mut bench.views()?, bench.exec_params(size))?;
    let most_keys = bench.most_keys(&namespace)?;
    let reply = Reply { size, most_keys, command, explained, created, hidden: &what_if.hide };
    let mut told = reply.write(&bench, &namespace, what_if)?;
    told.append("millis", i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX));
    Ok(told)
}

/// Returns the collection that a request reads.
fn collection_of(what: ReadRequest<'_>, views: &OpenViews<'_>) -> Result<Arc<Collection>> {
    let (name, _) = what.target();
    let found = views.view().catalog().find(name).cloned();
    found.ok_or_else(|| {
        let text = format!("explain.whatIf needs a collection; '{name}' does not exist");
        Error::new(ErrorCode::NamespaceNotFound, text)
    })
}

impl CopyOf {
    /// Returns the copy of a collection with its own indexes.
    pub fn as_it_is(collection: Arc<Collection>) -> CopyOf {
        let indexes = used_indexes(&collection, &[]);
        CopyOf { collection, indexes, more_indexes: 0, documents_max: None }
    }
}

/// Returns the indexes beside `_id` that the planner may use, without those in `hide`.
pub fn used_indexes(collection: &Collection, hide: &[String]) -> Vec<IndexSpec> {
    let used = collection.ready_indexes().filter(|index| {
        !index.is_id() && !index.is_clustered() && !index.hidden && !hide.contains(&index.name)
    });
    used.map(|index| index.spec.clone()).collect()
}

impl WhatIf {
    /// Returns the indexes to create that the collection does not have.
    fn checked(&self, cx: &Context<'_>, collection: &Collection) -> Result<Vec<IndexSpec>> {
        for name in &self.hide {
            match collection.index_by_name(name) {
                Some(index) if index.is_id() => {
                    return Err(Error::bad_value("can't hide _id index"));
                }
                Some(_) => {}
                None => {
                    let text = format!(
                        "cannot find index {name} for ns {}",
                        collection.namespace.as_str()
                    );
                    return Err(Error::new(ErrorCode::IndexNotFound, text));
                }
            }
        }
        let request =
            CreateIndexes { namespace: collection.namespace.clone(), specs: self.create.clone() };
        cx.service
            .store
            .makes_indexes(&request, &cx.interrupt)
            .map_err(|error| cx.without_values(&collection.namespace, error))?;
        let mut created = Vec::new();
        for spec in &self.create {
            let spec = spec.in_collection(collection.options.collation())?;
            if spec.compare(&collection.indexes)? == SpecMatch::New {
                created.push(spec);
            }
        }
        Ok(created)
    }

    fn indexes(&self, collection: &Collection, created: &[IndexSpec]) -> Vec<IndexSpec> {
        let mut indexes = used_indexes(collection, &self.hide);
        indexes.extend_from_slice(created);
        indexes
    }
}

/// What the reply is made of.
struct Reply<'r> {
    size: SampleSize,
    most_keys: u64,
    command: Doc<'r>,
    explained: DocBuf,
    created: Vec<IndexSpec>,
    hidden: &'r [String],
}

impl Reply<'_> {
    fn write(
        &self,
        bench: &Workbench<'_>,
        namespace: &Namespace,
        what_if: &WhatIf,
    ) -> Result<DocBuf> {
        let sizes = bench.sizes(namespace)?;
        let measured = Measured::of_explanation(self.explained.as_doc());
        let (held, limit) = bench.memory();
        Ok(DocBuf::build(|out| {
            out.append("version", VERSION);
            {
                let mut list = out.array("create");
                self.created.iter().for_each(|spec| {
                    list.push(&spec.to_document());
                });
            }
            {
                let mut list = out.array("hide");
                self.hidden.iter().for_each(|name| {
                    list.push(name.as_str());
                });
            }
            {
                let mut list = out.array("copies");
                for copied in bench.copies() {
                    write_copied(copied, &mut list.document());
                }
            }
            out.append("seed", what_if.seed.cast_signed());
            out.append("explanation", &self.explained);
            if let Some(measured) = measured {
                self.write_examined(&measured, out);
            }
            {
                let mut list = out.array("indexes");
                let created = sizes.indexes.iter();
                let created =
                    created.filter(|size| self.created.iter().any(|spec| spec.name == size.name));
                for size in created {
                    let mut one = list.document();
                    let bytes = size.bytes as f64 * self.size.documents_per_sampled();
                    one.append("name", size.name.as_str()).append("bytesInCopy", long(size.bytes));
                    one.append("bytesEstimate", long(bytes as u64));
                }
            }
            out.document("memory").append("bytes", long(held)).append("bytesMax", long(limit));
        }))
    }

    fn write_examined(&self, measured: &Measured, out: &mut DocWriter<'_>) {
        let scaled = measured.scaled(self.size, self.most_keys, asks_for_a_part(self.command));
        let mut examined = out.document("examined");
        examined.append("confidence", CONFIDENCE);
        write_scaled(measured.keys, scaled.keys, &mut examined.document("keys"));
        write_scaled(measured.documents, scaled.documents, &mut examined.document("documents"));
        if let Some(returned) = scaled.returned {
            write_scaled(measured.returned, returned, &mut examined.document("returned"));
        }
        if measured.joined > 0 {
            examined.document("joined").append("measured", long(measured.joined));
        }
    }
}

fn long(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns true if a command asks for a part of the documents that match.
pub fn asks_for_a_part(command: Doc<'_>) -> bool {
    let is_set = |doc: Doc<'_>, name: &str| match doc.get(name) {
        Some(Value::Bool(is)) => is,
        Some(Value::Int32(number)) => number != 0,
        Some(Value::Int64(number)) => number != 0,
        Some(Value::Double(number)) => number != 0.0,
        _ => false,
    };
    let statement = |name: &str| {
        let first = command.get(name)?.as_array()?.get(0)?;
        first.as_document()
    };
    match command.first().map_or("", |first| first.key()) {
        "findAndModify" | "findandmodify" => true,
        "update" => statement("updates").is_some_and(|update| !is_set(update, "multi")),
        "delete" => statement("deletes").is_some_and(|delete| is_set(delete, "limit")),
        _ => is_set(command, "limit") || is_set(command, "skip") || is_set(command, "singleBatch"),
    }
}
