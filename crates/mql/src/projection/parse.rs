//! Parses a projection document of `find` or `$project` to a tree.

use super::elem_match::ElemMatch;
use super::path::components;
use super::positional::Positional;
use super::slice::Slice;
use super::tree::{Branch, Entry, Kind, Projection};
use crate::context::ParseContext;
use crate::expression::{Expression, find_operator, is_true, of_stage};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// The features that are allowed in a projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The positional operator, `$slice` with numbers, and `$elemMatch`.
    pub find_operators: bool,
    /// Expressions and literals.
    pub computed: bool,
    /// A projection that names no field.
    pub empty: bool,
    /// An inclusion that does not name `_id` includes it.
    pub id_by_default: bool,
}

impl Policy {
    /// The projection of `find` and `findAndModify`.
    pub const FIND: Policy =
        Policy { find_operators: true, computed: true, empty: true, id_by_default: true };
    /// The `$project` stage.
    pub const PROJECT: Policy =
        Policy { find_operators: false, computed: true, empty: false, id_by_default: true };
    /// The projection of a wildcard index.
    pub const WILDCARD: Policy =
        Policy { find_operators: false, computed: false, empty: false, id_by_default: false };
}

impl Projection {
    /// Parses the projection of a `find` with the filter `filter`.
    pub fn parse_find(
        doc: Doc<'_>,
        filter: Option<Doc<'_>>,
        context: &ParseContext,
    ) -> Result<Projection> {
        Projection::parse_with(doc, filter, Policy::FIND, context)
    }

    /// Parses the operand of a `$project` stage. Fails with 15969 if it is not a document, and with
    /// 51272 if it is empty.
    pub fn parse_project(value: Value<'_>, context: &ParseContext) -> Result<Projection> {
        let Value::Document(doc) = value else {
            return Err(Error::location(15969, "$project specification must be an object"));
        };
        Projection::parse_with(doc, None, Policy::PROJECT, context)
            .map_err(|error| of_stage("$project", error))
    }

    /// Parses a projection in which only some features are allowed.
    pub fn parse_with(
        doc: Doc<'_>,
        filter: Option<Doc<'_>>,
        policy: Policy,
        context: &ParseContext,
    ) -> Result<Projection> {
        if doc.is_empty() && !policy.empty {
            let text = "projection specification must have at least one field";
            return Err(Error::location(51272, text));
        }
        let mut parser = Parser::new(policy, context);
        for (name, value) in doc.fields() {
            parser.element("", name, value)?;
        }
        let positional = match parser.has_positional {
            true => Some(Positional::parse(filter, context)?),
            false => None,
        };
        let kind = parser.kind_or_default();
        let mut root = parser.root;
        match (kind, parser.id) {
            (Kind::Inclusion, Id::Unnamed)
                if policy.id_by_default && root.find(b"_id").is_none() =>
            {
                root.insert(&["_id"], Entry::Keep(true), false, "_id")?;
            }
            (Kind::Inclusion, Id::Excluded) | (Kind::Exclusion, Id::Included) => root.remove("_id"),
            _ => {}
        }
        root.seal();
        let extractor = root.extractor();
        Ok(Projection { kind, root, positional, source: doc.to_owned(), extractor })
    }
}

/// What the projection says about `_id` as a whole. It may differ from the kind of the projection.
#[derive(Clone, Copy, PartialEq)]
enum Id {
    Unnamed,
    Included,
    Excluded,
}

struct Parser<'c> {
    policy: Policy,
    context: &'c ParseContext,
    root: Branch,
    kind: Option<Kind>,
    id: Id,
    has_positional: bool,
    has_elem_match: bool,
    has_slice: bool,
    has_meta: bool,
}

impl<'c> Parser<'c> {
    fn new(policy: Policy, context: &'c ParseContext) -> Self {
        Parser {
            policy,
            context,
            root: Branch::default(),
            kind: None,
            id: Id::Unnamed,
            has_positional: false,
            has_elem_match: false,
            has_slice: false,
            has_meta: false,
        }
    }

    /// Returns the kind. `$slice`, `$meta` and `_id` alone do not determine it; `$elemMatch` alone
    /// is an inclusion.
    fn kind_or_default(&self) -> Kind {
        if let Some(kind) = self.kind {
            return kind;
        }
        let meta_keeps = self.has_meta && self.policy.find_operators;
        match self.id {
            Id::Included => Kind::Inclusion,
            _ if self.has_slice || meta_keeps => Kind::Exclusion,
            _ if self.has_elem_match || self.has_meta => Kind::Inclusion,
            _ => Kind::Exclusion,
        }
    }

    fn element(&mut self, parent: &str, name: &str, value: Value<'_>) -> Result<()> {
        self.context.part()?;
        let joined;
        let path = if parent.is_empty() {
            name
        } else {
            if name.is_empty() {
                let text = "FieldPath field names may not be empty strings.";
                return Err(Error::location(15998, text));
            }
            joined = format!("{parent}.{name}");
            &joined
        };
        let (path, positional) = self.strip_positional(path)?;
        let parts = components(path)?;
        match value {
            Value::Document(_) if positional => Err(Error::location(
                31271,
                "positional projection cannot be used with an expression or sub object",
            )),
            Value::Document(doc) => self.object(path, &parts, doc),
            Value::Bool(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Double(_)
            | Value::Decimal(_) => match is_true(Some(value)) {
                true => self.include(path, &parts, positional),
                false => self.exclude(path, &parts, positional),
            },
            _ if positional => {
                let text = "positional projection cannot be used with a literal";
                Err(Error::location(31308, text))
            }
            value => self.literal(path, &parts, value),
        }
    }

    /// Removes the positional operator from the end of a path, and returns whether it was there.
    fn strip_positional<'p>(&self, path: &'p str) -> Result<(&'p str, bool)> {
        let stripped = path.strip_suffix(".$");
        if !self.policy.find_operators {
            return match stripped {
                None => Ok((path, false)),
                Some(_) => Err(Error::location(
                    31324,
                    "Cannot use positional projection in aggregation projection",
                )),
            };
        }
        if path.contains(".$.") {
            return Err(Error::location(
                31394,
                "As of 4.4, it's illegal to specify positional operator in the middle of a path.\
                 Positional projection may only be used at the end, for example: a.b.$. If the \
                 query previously used a form like a.b.$.d, remove the parts following the '$' and \
                 the results will be equivalent.",
            ));
        }
        Ok(stripped.map_or((path, false), |rest| (rest, true)))
    }

    fn include(&mut self, path: &str, parts: &[&str], positional: bool) -> Result<()> {
        if positional {
            if self.has_positional {
                let text = "Cannot specify more than one positional projection per query.";
                return Err(Error::location(31276, text));
            }
            if self.has_elem_match {
                let text = "Cannot specify positional operator and $elemMatch.";
                return Err(Error::location(31256, text));
            }
        }
        self.root.insert(parts, Entry::Keep(true), positional, path)?;
        self.has_positional |= positional;
        if path == "_id" && !positional {
            self.id = Id::Included;
            return Ok(());
        }
        if self.kind == Some(Kind::Exclusion) {
            let text = format!("Cannot do inclusion on field {path} in exclusion projection");
            return Err(Error::location(31253, text));
        }
        self.kind = Some(Kind::Inclusion);
        Ok(())
    }

    fn exclude(&mut self, path: &str, parts: &[&str], positional: bool) -> Result<()> {
        if positional {
            let text = "positional projection cannot be used with exclusion";
            return Err(Error::location(31395, text));
        }
        self.root.insert(parts, Entry::Keep(false), false, path)?;
        if path == "_id" {
            self.id = Id::Excluded;
            return Ok(());
        }
        if self.kind == Some(Kind::Inclusion) {
            let text = format!("Cannot do exclusion on field {path} in inclusion projection");
            return Err(Error::location(31254, text));
        }
        self.kind = Some(Kind::Exclusion);
        Ok(())
    }

    fn literal(&mut self, path: &str, parts: &[&str], value: Value<'_>) -> Result<()> {
        self.check_computed()?;
        let expression = Expression::parse(value, self.context)?;
        self.root.insert(parts, Entry::Computed(expression), false, path)?;
        if self.kind == Some(Kind::Exclusion) {
            let text = "Cannot use an expression in an exclusion projection";
            return Err(Error::location(31310, text));
        }
        self.kind = Some(Kind::Inclusion);
        Ok(())
    }

    fn object(&mut self, path: &str, parts: &[&str], doc: Doc<'_>) -> Result<()> {
        let Some(first) = doc.first() else {
            let text = format!(
                "An empty sub-projection is not a valid value. Found empty object at path {path}"
            );
            return Err(Error::location(51270, text));
        };
        if first.key().starts_with('$') && doc.count() == 1 {
            return self.operator(path, parts, first.key(), first.value(), doc);
        }
        doc.fields().try_for_each(|(name, value)| self.element(path, name, value))
    }

    fn operator(
        &mut self,
        path: &str,
        parts: &[&str],
        name: &str,
        operand: Value<'_>,
        doc: Doc<'_>,
    ) -> Result<()> {
        if name == "$elemMatch" && !self.policy.computed {
            return Err(Error::new(
                ErrorCode::InvalidPipelineOperator,
                "Cannot use $elemMatch in this context",
            ));
        }
        self.check_computed()?;
        if self.policy.find_operators {
            if name == "$elemMatch" {
                return self.elem_match(path, parts, operand);
            }
            if name == "$slice"
                && !self.has_positional_at(path)
                && let Some(slice) = Slice::parse(operand)
            {
                self.has_slice = true;
                return self.root.insert(parts, Entry::Slice(slice), false, path);
            }
        }
        if find_operator(name).is_none() && name != "$elemMatch" {
            return Err(Error::location(31325, format!("Unknown expression {name}")));
        }
        let expression = Expression::parse_object(doc, self.context)?;
        self.root.insert(parts, Entry::Computed(expression), false, path)?;
        if name == "$meta" {
            self.has_meta = true;
            return Ok(());
        }
        if self.kind == Some(Kind::Exclusion) {
            let text = "Cannot use expression other than $meta in exclusion projection";
            return Err(Error::location(31252, text));
        }
        self.kind = Some(Kind::Inclusion);
        Ok(())
    }

    /// Returns true if the path has the positional operator already. It is not applied twice.
    fn has_positional_at(&self, path: &str) -> bool {
        let field = self.root.find(path.as_bytes()).and_then(|at| self.root.fields.get(at));
        field.is_some_and(|field| field.positional)
    }

    fn elem_match(&mut self, path: &str, parts: &[&str], operand: Value<'_>) -> Result<()> {
        let Value::Document(condition) = operand else {
            let text = format!(
                "elemMatch: Invalid argument, object required, but got {}",
                operand.type_name()
            );
            return Err(Error::location(31274, text));
        };
        if self.has_positional {
            let text = "Cannot specify positional operator and $elemMatch.";
            return Err(Error::location(31255, text));
        }
        if parts.len() > 1 {
            let text = "Cannot use $elemMatch projection on a nested field.";
            return Err(Error::location(31275, text));
        }
        let elem_match = ElemMatch::parse(path, condition, self.context)?;
        self.has_elem_match = true;
        self.root.insert(parts, Entry::ElemMatch(Box::new(elem_match)), false, path)
    }

    fn check_computed(&self) -> Result<()> {
        if self.policy.computed {
            return Ok(());
        }
        let text = "Bad projection specification, cannot use computed fields when parsing a spec \
                    that only takes inclusions and exclusions";
        Err(Error::location(51271, text))
    }
}
