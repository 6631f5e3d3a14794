//! Writes documents as rows of CSV: the requested fields, with nested values as JSON.

use quire_document::calendar::{ISO_RANGE, iso_text};
use quire_document::extjson::{self, Format};
use quire_document::{Doc, Path, Value};
use std::io::Write;

/// Writes documents as rows of CSV.
pub(crate) struct CsvWriter<W: Write> {
    rows: csv::Writer<W>,
    fields: Vec<Path>,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the header row, if it is wanted.
    pub(crate) fn new(out: W, fields: &[String], header: bool) -> std::io::Result<Self> {
        let mut rows = csv::Writer::from_writer(out);
        if header {
            rows.write_record(fields)?;
        }
        Ok(CsvWriter { rows, fields: fields.iter().map(|field| Path::new(field)).collect() })
    }

    /// Writes the row of a document; a missing field is empty.
    pub(crate) fn write(&mut self, document: Doc<'_>) -> std::io::Result<()> {
        for field in &self.fields {
            match field.get(document) {
                Some(Value::String(text)) => self.rows.write_field(text)?,
                value => self.rows.write_field(value.map_or_else(String::new, text))?,
            }
        }
        Ok(self.rows.write_record(None::<&[u8]>)?)
    }

    pub(crate) fn finish(&mut self) -> std::io::Result<()> {
        self.rows.flush()
    }
}

/// Returns the text of a value in a CSV field, as mongoexport writes it.
fn text(value: Value<'_>) -> String {
    match value {
        Value::Null | Value::Undefined => String::new(),
        Value::ObjectId(id) => format!("ObjectId({id})"),
        Value::Date(millis) if ISO_RANGE.contains(&millis) => iso_text(millis),
        Value::Decimal(decimal) => decimal.to_string(),
        Value::Symbol(text) | Value::Code(text) => text.to_owned(),
        Value::Double(number) if number.is_nan() => "NaN".to_owned(),
        Value::Double(number) if number.is_infinite() => {
            if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
        }
        Value::Double(number) => number.to_string(),
        other => extjson::print(other, Format::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::literal;

    #[test]
    fn values_as_texts() {
        let mut out = Vec::new();
        let fields = ["s", "n.a", "list", "doc", "id", "at", "missing", "null", "d"];
        let fields = fields.map(str::to_owned);
        let mut writer = CsvWriter::new(&mut out, &fields, true).unwrap();
        let document = literal::parse_doc(
            "{s: \"a,\\\"b\", n: {a: 1}, list: [1, \"x\"], doc: {y: NumberLong(\"2\")}, \
             id: ObjectId(\"0123456789abcdef01234567\"), at: ISODate(\"2025-01-15T08:30:00.000Z\"), \
             null: null, d: 2.5}",
        );
        writer.write(document.unwrap().as_doc()).unwrap();
        writer.finish().unwrap();
        drop(writer);
        let expected = "s,n.a,list,doc,id,at,missing,null,d\n\"a,\"\"b\",1,\"[1,\"\"x\"\"]\",\"{\"\"y\"\":2}\",\
                        ObjectId(0123456789abcdef01234567),2025-01-15T08:30:00.000Z,,,2.5\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
