//! `reference`: copies fields of the referred document into the documents that refer to it, and
//! keeps the reference valid. Without fields it is a foreign key.

use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;

use super::fields::{Field, Fields};
use super::{MAX_FANOUT_DEFAULT, check_path, invalid};

/// The definition of a reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// The collection of the referred documents.
    pub from: String,
    /// The path of the reference: one value, or values in arrays.
    pub local_field: String,
    /// The field of the referred document that the reference names. It has a unique index.
    pub foreign_field: String,
    /// The path of the document that has the copies. Empty if nothing is copied.
    pub into: String,
    /// The copied fields.
    pub fields: Vec<CopiedField>,
    /// What happens if the referred document is deleted.
    pub on_delete: OnDelete,
    /// What happens to a reference to a document that does not exist.
    pub on_missing: OnMissing,
    /// The documents that one write changes in its own commit; more are left to a durable job.
    pub max_fanout: u32,
}

/// A field of the referred document that is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedField {
    /// Its path in the referred document.
    pub source: String,
    /// The name of the copy.
    pub name: String,
    /// When the copy changes.
    pub mode: CopyMode,
}

/// When a copied field changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyMode {
    /// With the referred document.
    Sync,
    /// With the reference only: the copy keeps the value of that time.
    Snapshot,
}

/// What happens to the documents that refer to a deleted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    /// The delete fails while one refers to it.
    Restrict,
    /// The reference becomes null, and the copies are removed.
    SetNull,
    /// They are deleted too.
    Cascade,
    /// They stay as they are.
    Keep,
}

/// What happens to a reference to a document that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// The write fails.
    Error,
    /// There is nothing to copy until the document exists.
    Null,
}

impl Reference {
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let from = fields.required("from")?.collection()?;
        let local_field = fields.required("localField")?.path()?;
        let foreign_field = match fields.optional("foreignField") {
            None => "_id".to_owned(),
            Some(field) => field.path()?,
        };
        let into = fields.optional("as").map(|field| field.path()).transpose()?;
        let copied = match fields.optional("fields") {
            None => Vec::new(),
            Some(field) => parse_copied(field.place(), field.document()?)?,
        };
        let on_delete = match fields.optional("onDelete") {
            None => OnDelete::Restrict,
            Some(field) => OnDelete::parse(&field)?,
        };
        let on_missing = match fields.optional("onMissing") {
            None => OnMissing::Error,
            Some(field) => OnMissing::parse(&field)?,
        };
        let max_fanout =
            fields.optional("maxFanout").map_or(Ok(MAX_FANOUT_DEFAULT), |field| field.count())?;
        if into.is_some() == copied.is_empty() {
            return Err(invalid("'as' and 'fields' of a reference are given together"));
        }
        if local_field == "_id" && on_delete == OnDelete::SetNull {
            return Err(invalid("onDelete: 'setNull' cannot change '_id'"));
        }
        let into = into.unwrap_or_default();
        let fields = copied;
        let reference = Reference {
            from,
            local_field,
            foreign_field,
            into,
            fields,
            on_delete,
            on_missing,
            max_fanout,
        };
        let paths = reference.derived_paths();
        if let Some(path) = paths.iter().find(|path| super::overlap(path, &reference.local_field)) {
            let text = format!("the copy '{path}' overlaps 'localField'");
            return Err(invalid(text));
        }
        Ok(reference)
    }

    pub(super) fn write(&self, writer: &mut DocWriter<'_>) {
        writer.append("type", "reference").append("from", self.from.as_str());
        writer.append("localField", self.local_field.as_str());
        writer.append("foreignField", self.foreign_field.as_str());
        if !self.fields.is_empty() {
            writer.append("as", self.into.as_str());
            let mut fields = writer.document("fields");
            for CopiedField { source, name, mode } in &self.fields {
                if name == source {
                    fields.append(source, mode.name());
                } else {
                    let mut field = fields.document(source);
                    field.append("mode", mode.name()).append("as", name.as_str());
                }
            }
        }
        writer.append("onDelete", self.on_delete.name());
        writer.append("onMissing", self.on_missing.name());
        match i32::try_from(self.max_fanout) {
            Ok(count) => writer.append("maxFanout", count),
            Err(_) => writer.append("maxFanout", i64::from(self.max_fanout)),
        };
    }

    pub(super) fn derived_paths(&self) -> Vec<String> {
        self.fields.iter().map(|field| format!("{}.{}", self.into, field.name)).collect()
    }
}

/// Parses `fields`: `{ name: "sync", price: { mode: "snapshot", as: "priceAtOrder" } }`.
fn parse_copied(place: &str, doc: Doc<'_>) -> Result<Vec<CopiedField>> {
    let mut copied = Vec::new();
    for (source, value) in doc.fields() {
        let place = format!("{place}.{source}");
        check_path(&place, source)?;
        let (mode, name) = match value {
            Value::Document(doc) => {
                let mut fields = Fields::new(place.clone(), doc);
                let mode = CopyMode::parse(&fields.required("mode")?)?;
                let name = fields.optional("as").map(|field| field.path()).transpose()?;
                fields.finish()?;
                (mode, name)
            }
            value => (CopyMode::parse(&Field::new(place.clone(), value))?, None),
        };
        let name = name.unwrap_or_else(|| source.to_owned());
        if name.contains('.') {
            return Err(invalid(format!("'{place}' needs 'as' with the name of one field")));
        }
        copied.push(CopiedField { source: source.to_owned(), name, mode });
    }
    Ok(copied)
}

impl CopyMode {
    fn parse(field: &Field<'_>) -> Result<Self> {
        match field.text()? {
            "sync" => Ok(CopyMode::Sync),
            "snapshot" => Ok(CopyMode::Snapshot),
            _ => Err(field.bad_value("sync or snapshot")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            CopyMode::Sync => "sync",
            CopyMode::Snapshot => "snapshot",
        }
    }
}

impl OnDelete {
    fn parse(field: &Field<'_>) -> Result<Self> {
        match field.text()? {
            "restrict" => Ok(OnDelete::Restrict),
            "setNull" => Ok(OnDelete::SetNull),
            "cascade" => Ok(OnDelete::Cascade),
            "keep" => Ok(OnDelete::Keep),
            _ => Err(field.bad_value("restrict, setNull, cascade or keep")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            OnDelete::Restrict => "restrict",
            OnDelete::SetNull => "setNull",
            OnDelete::Cascade => "cascade",
            OnDelete::Keep => "keep",
        }
    }
}

impl OnMissing {
    fn parse(field: &Field<'_>) -> Result<Self> {
        match field.text()? {
            "error" => Ok(OnMissing::Error),
            "null" => Ok(OnMissing::Null),
            _ => Err(field.bad_value("error or null")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            OnMissing::Error => "error",
            OnMissing::Null => "null",
        }
    }
}
