//! The shapes of a whole request and of a plan, with the hashes by which MongoDB shows them. Both
//! are made of the parts that `quire_mql::shape` defines; docs/format.md describes them ("Shapes").

use crate::request::{AggregateRequest, CountRequest, DistinctRequest, FindRequest, ReadRequest};
use quire_document::{Array, Doc, DocBuf, DocWriter, Value};
use quire_mql::collation::{AskedCollation, Collation};
use quire_mql::filter::Node;
use quire_mql::shape::{
    Detail, of_filter, of_literals, of_pipeline, of_projection, of_sort, of_update, of_variables,
};
use std::fmt;

/// The SHA-256 of a request's shape, which explain, logs and query settings show as
/// `queryShapeHash`: 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeHash(pub [u8; 32]);

/// The shape of a request: its command, namespace and parts, in which literals are replaced by
/// their types. Requests with equal shapes differ only in literals, hints and options outside the
/// query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestShape(DocBuf);

/// The parts of a statement that writes, as the client wrote them. What is not given is empty.
#[derive(Clone, Copy, Default)]
pub struct WriteParts<'w> {
    /// `insert`, `update`, `delete` or `findAndModify`.
    pub command: &'w str,
    /// The filter; `None` for an insert.
    pub filter: Option<Doc<'w>>,
    /// Operators, a replacement or a pipeline.
    pub update: Option<Value<'w>>,
    /// The filters of `$[name]`.
    pub array_filters: Option<Array<'w>>,
    /// The order that chooses one of several documents.
    pub sort: Doc<'w>,
    /// The fields of the document that a `findAndModify` returns.
    pub fields: Doc<'w>,
    /// True if all matching documents are written.
    pub multi: bool,
    /// True if a document is inserted where none matches.
    pub upsert: bool,
    /// True for a `findAndModify` that deletes.
    pub remove: bool,
}

impl RequestShape {
    /// Returns the shape of a statement that writes to a collection, for the recorder. MongoDB gives
    /// it none.
    pub fn of_write(
        namespace: &str,
        collation: &AskedCollation,
        parts: &WriteParts<'_>,
    ) -> RequestShape {
        RequestShape::build(parts.command, namespace, collation, |out| {
            if let Some(filter) = parts.filter {
                out.append("filter", &of_filter(filter, Detail::Request));
            }
            if let Some(update) = parts.update {
                out.append("update", &of_update(update));
            }
            if let Some(filters) = parts.array_filters {
                let mut list = out.array("arrayFilters");
                for filter in filters.iter().filter_map(|filter| filter.as_document()) {
                    list.push(&of_filter(filter, Detail::Request));
                }
            }
            if !parts.sort.is_empty() {
                out.append("sort", &of_sort(parts.sort));
            }
            if !parts.fields.is_empty() {
                out.append("fields", &of_projection(parts.fields));
            }
            for (name, set) in
                [("multi", parts.multi), ("upsert", parts.upsert), ("remove", parts.remove)]
            {
                if set {
                    out.append(name, true);
                }
            }
        })
    }

    /// Returns the shape of a request; `None` for a write, which MongoDB gives no shape.
    pub fn of(request: &ReadRequest<'_>) -> Option<Self> {
        match request {
            ReadRequest::Find(find) => Some(RequestShape::of_find(find)),
            ReadRequest::Aggregate(aggregate) => Some(RequestShape::of_aggregate(aggregate)),
            ReadRequest::Count(count) => Some(RequestShape::of_count(count)),
            ReadRequest::Distinct(distinct) => Some(RequestShape::of_distinct(distinct)),
            ReadRequest::Write(..) => None,
        }
    }

    fn of_find(request: &FindRequest) -> Self {
        RequestShape::build("find", &request.namespace, &request.collation, |out| {
            variables(request.let_vars.as_doc(), out);
            out.append("filter", &of_filter(request.filter.as_doc(), Detail::Request));
            if !request.sort.as_doc().is_empty() {
                out.append("sort", &of_sort(request.sort.as_doc()));
            }
            if !request.projection.as_doc().is_empty() {
                out.append("projection", &of_projection(request.projection.as_doc()));
            }
            bounds(request.skip, request.limit, out);
            for (name, values) in [("max", &request.max), ("min", &request.min)] {
                if !values.as_doc().is_empty() {
                    out.append(name, &of_literals(values.as_doc()));
                }
            }
            for (name, set) in
                [("returnKey", request.return_key), ("showRecordId", request.show_record_id)]
            {
                if set {
                    out.append(name, true);
                }
            }
        })
    }

    fn of_aggregate(request: &AggregateRequest) -> Self {
        RequestShape::build("aggregate", &request.namespace, &request.collation, |out| {
            variables(request.let_vars.as_doc(), out);
            let stages = request.pipeline.iter().map(DocBuf::as_doc);
            out.append("pipeline", &of_pipeline(stages));
        })
    }

    fn of_count(request: &CountRequest) -> Self {
        RequestShape::build("count", &request.namespace, &request.collation, |out| {
            out.append("query", &of_filter(request.filter.as_doc(), Detail::Request));
            bounds(request.skip, request.limit, out);
        })
    }

    fn of_distinct(request: &DistinctRequest) -> Self {
        RequestShape::build("distinct", &request.namespace, &request.collation, |out| {
            out.append("key", request.key.as_str());
            out.append("query", &of_filter(request.filter.as_doc(), Detail::Request));
        })
    }

    fn build(
        command: &str,
        namespace: &str,
        collation: &AskedCollation,
        fill: impl FnOnce(&mut DocWriter<'_>),
    ) -> Self {
        RequestShape(DocBuf::build(|out| {
            {
                let (db, coll) = namespace.split_once('.').unwrap_or((namespace, ""));
                out.document("cmdNs").append("db", db).append("coll", coll);
            }
            out.append("command", command);
            match collation {
                AskedCollation::Default => {}
                AskedCollation::Own(None) => {
                    out.document("collation").append("locale", "simple");
                }
                AskedCollation::Own(Some(own)) => {
                    out.append("collation", &own.to_document());
                }
            }
            fill(out);
        }))
    }

    /// Returns the shape as a document, as `debugQueryShape` shows it.
    pub fn document(&self) -> &DocBuf {
        &self.0
    }

    /// Returns the hash of the shape.
    pub fn hash(&self) -> ShapeHash {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.0.as_bytes());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        ShapeHash(bytes)
    }
}

fn variables(variables: Doc<'_>, out: &mut DocWriter<'_>) {
    if !variables.is_empty() {
        out.append("let", &of_variables(variables));
    }
}

fn bounds(skip: u64, limit: u64, out: &mut DocWriter<'_>) {
    for (name, bound) in [("skip", skip), ("limit", limit)] {
        if bound > 0 {
            out.append(name, "?number");
        }
    }
}

impl ShapeHash {
    /// Returns the hash with these hexadecimal digits; `None` unless there are 64 of them.
    pub fn parse(digits: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if digits.len() != 64 || !digits.is_ascii() {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
        }
        Some(ShapeHash(bytes))
    }
}

impl fmt::Display for ShapeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

/// The hash of a plan's shape: what the choice of a plan depends on, besides the indexes and the
/// literals. One index filter and one entry of the plan cache belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanShape(pub u64);

/// The parts of a plan's shape.
#[derive(Clone, Copy)]
pub(crate) struct PlanParts<'p> {
    /// The normalised filter.
    pub filter: Option<&'p Node>,
    /// The sort as it was written.
    pub sort: Doc<'p>,
    /// The projection as it was written.
    pub projection: Doc<'p>,
    /// The collation of the request.
    pub collation: Option<&'p Collation>,
}

impl PlanShape {
    /// Returns the shape's hash, which is stable over restarts.
    pub(crate) fn of(parts: PlanParts<'_>, stages: &[&str]) -> Self {
        PlanShape(twox_hash::XxHash3_64::oneshot(parts.document(stages).as_bytes()))
    }

    /// Returns the hash of the shape together with other facts about a request.
    pub(crate) fn with(self, facts: &DocBuf) -> u64 {
        twox_hash::XxHash3_64::oneshot_with_seed(self.0, facts.as_bytes())
    }
}

/// Returns a hash of a plan's shape or of a key of the plan cache as MongoDB shows it: the low half in
/// 8 hexadecimal digits.
pub fn digits(hash: u64) -> String {
    format!("{:08X}", hash as u32)
}

impl PlanParts<'_> {
    fn document(self, stages: &[&str]) -> DocBuf {
        DocBuf::build(|out| {
            let filter = self.filter.map(Node::to_bson).unwrap_or_default();
            out.append("filter", &of_filter(filter.as_doc(), Detail::Plan));
            out.append("sort", &of_sort(self.sort));
            {
                let projection = of_projection(self.projection);
                let mut fields: Vec<_> = projection.as_doc().iter().collect();
                fields.sort_by_key(|field| field.key());
                let mut sorted = out.document("projection");
                fields.into_iter().for_each(|field| {
                    sorted.append_element(field);
                });
            }
            if let Some(collation) = self.collation {
                out.append("collation", &collation.to_document());
            }
            if !stages.is_empty() {
                let mut names = out.array("stages");
                stages.iter().for_each(|name| {
                    names.push(*name);
                });
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Hint;
    use quire_document::doc;

    fn find() -> FindRequest {
        FindRequest {
            namespace: "shop.orders".to_owned(),
            filter: doc! { "user": "u1", "amount": { "$gte": 100 } },
            sort: doc! { "created": -1 },
            limit: 10,
            ..FindRequest::default()
        }
    }

    fn hash(request: &FindRequest) -> String {
        RequestShape::of(&ReadRequest::Find(request)).unwrap().hash().to_string()
    }

    #[test]
    fn hashes_are_the_same_in_every_process_and_version() {
        let aggregate = AggregateRequest {
            namespace: "shop.orders".to_owned(),
            pipeline: vec![
                doc! { "$match": { "user": "u1" } },
                doc! { "$group": { "_id": "$status", "n": { "$sum": 1 } } },
            ],
            ..AggregateRequest::default()
        };
        let shape = RequestShape::of(&ReadRequest::Aggregate(&aggregate)).unwrap();
        let filter = doc! { "user": "u1", "amount": { "$gte": 100 } };
        let filter = quire_mql::Filter::parse(filter.as_doc(), &Default::default()).unwrap();
        let sort = doc! { "created": -1 };
        let parts = PlanParts {
            filter: Some(filter.root()),
            sort: sort.as_doc(),
            projection: Doc::empty(),
            collation: None,
        };
        let found = (hash(&find()), shape.hash().to_string(), digits(PlanShape::of(parts, &[]).0));
        let expected = (
            "A0957DDB88105C7AF9DD88C31FF1E1284913D838E22E3B97C28FA74777527282".to_owned(),
            "0A0BEE250BE18639F1B92C49946EA22364DFC6E1ED00C3574BE6A41A0CBF5EB2".to_owned(),
            "1654ACF1".to_owned(),
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn hashes_are_read_back() {
        let shape = RequestShape::of(&ReadRequest::Find(&find())).unwrap().hash();
        assert_eq!(ShapeHash::parse(&shape.to_string()), Some(shape));
        assert_eq!(ShapeHash::parse(&shape.to_string().to_lowercase()), Some(shape));
        for wrong in ["", "12", &"Z".repeat(64), &"é".repeat(32), &"1".repeat(66)] {
            assert_eq!(ShapeHash::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_request_keeps_its_shape_with_other_literals_and_hints_only() {
        let same = [
            FindRequest { filter: doc! { "user": "u2", "amount": { "$gte": 1.5 } }, ..find() },
            FindRequest { limit: 20, ..find() },
            FindRequest { hint: Some(Hint::Name("x".to_owned())), ..find() },
            FindRequest { sort: doc! { "created": -1.0 }, ..find() },
        ];
        for request in same {
            assert_eq!(hash(&request), hash(&find()), "{request:?}");
        }
        let collation = doc! { "locale": "de" };
        let collation = AskedCollation::parse(collation.as_doc()).unwrap();
        let different = [
            FindRequest { namespace: "shop.archive".to_owned(), ..find() },
            FindRequest { filter: doc! { "user": "u1" }, ..find() },
            FindRequest { filter: doc! { "amount": { "$gte": 1 }, "user": "u1" }, ..find() },
            FindRequest { filter: doc! { "user": 1, "amount": { "$gte": 100 } }, ..find() },
            FindRequest { sort: doc! { "created": 1 }, ..find() },
            FindRequest { limit: 0, ..find() },
            FindRequest { skip: 1, ..find() },
            FindRequest { projection: doc! { "user": 1 }, ..find() },
            FindRequest { let_vars: doc! { "x": 1 }, ..find() },
            FindRequest { collation, ..find() },
            FindRequest { min: doc! { "user": 1 }, ..find() },
            FindRequest { show_record_id: true, ..find() },
        ];
        let mut hashes: Vec<String> = different.iter().map(hash).collect();
        hashes.push(hash(&find()));
        hashes.sort();
        let count = hashes.len();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }
}
