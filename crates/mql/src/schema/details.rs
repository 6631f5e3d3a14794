//! The rules that a value violates, in the order in which mongod reports them.

use super::check::{Check, find, is_multiple, property_complies};
use super::rules::{Additional, Dependency, Items, Rules};
use quire_document::{Array, ArrayWriter, Doc, DocWriter, Value};
use std::cmp::Ordering;

/// Writes the fields of the report for a whole document.
pub(super) fn write_root(
    rules: &Rules,
    doc: Doc<'_>,
    check: &Check<'_>,
    writer: &mut DocWriter<'_>,
) {
    writer.append("operatorName", "$jsonSchema");
    describe(rules, writer);
    write(rules, Value::Document(doc), check, &mut writer.array("schemaRulesNotSatisfied"));
}

/// Writes a schema's `title` and `description`, which explain the report.
fn describe(rules: &Rules, writer: &mut DocWriter<'_>) {
    for name in ["title", "description"] {
        writer.append_some(name, rules.source.get(name));
    }
}

/// Appends a report for each rule that the value violates.
fn write(rules: &Rules, value: Value<'_>, check: &Check<'_>, out: &mut ArrayWriter<'_>) {
    match value {
        Value::Document(_) | Value::Array(_) => {}
        Value::String(text) => write_text(rules, text, check, out),
        value if value.is_number() => write_number(rules, value, out),
        _ => {}
    }
    if let Value::Array(array) = value {
        write_array(rules, array, check, out);
    }
    if rules.encrypted.as_ref().is_some_and(|encrypted| !encrypted.accepts(value)) {
        let mut report = out.document();
        report.append("operatorName", "encrypt").append("reason", "value was not encrypted");
    }
    if let Value::Document(doc) = value {
        write_object(rules, doc, check, out);
    }
    write_logic(rules, value, check, out);
    if rules.types.as_ref().is_some_and(|types| !types.contains(value.kind())) {
        let keyword = if rules.source.as_doc().contains("type") { "type" } else { "bsonType" };
        let mut report = specified(rules, keyword, out);
        report
            .append("reason", "type did not match")
            .append("consideredValue", value)
            .append("consideredType", value.type_name());
    }
}

/// Begins the report for a keyword, with the keyword's value in the schema.
fn specified<'w>(rules: &Rules, keyword: &str, out: &'w mut ArrayWriter<'_>) -> DocWriter<'w> {
    let mut report = out.document();
    report.append("operatorName", keyword);
    let mut shown = report.document("specifiedAs");
    shown.append_some(keyword, rules.source.get(keyword));
    let exclusive = match keyword {
        "minimum" => "exclusiveMinimum",
        "maximum" => "exclusiveMaximum",
        _ => "",
    };
    if matches!(rules.source.get(exclusive), Some(Value::Bool(true))) {
        shown.append(exclusive, true);
    }
    drop(shown);
    report
}

fn considered(
    rules: &Rules,
    keyword: &str,
    reason: &str,
    value: Value<'_>,
    out: &mut ArrayWriter<'_>,
) {
    let mut report = specified(rules, keyword, out);
    report.append("reason", reason).append("consideredValue", value);
}

fn write_number(rules: &Rules, value: Value<'_>, out: &mut ArrayWriter<'_>) {
    if rules.multiple_of.as_ref().is_some_and(|of| !is_multiple(value, of.as_value())) {
        let reason = "considered value is not a multiple of the specified value";
        considered(rules, "multipleOf", reason, value, out);
    }
    let comparison = "comparison failed";
    if rules.maximum.as_ref().is_some_and(|bound| !bound.holds(value, Ordering::Less)) {
        considered(rules, "maximum", comparison, value, out);
    }
    if rules.minimum.as_ref().is_some_and(|bound| !bound.holds(value, Ordering::Greater)) {
        considered(rules, "minimum", comparison, value, out);
    }
}

fn write_text(rules: &Rules, text: &str, check: &Check<'_>, out: &mut ArrayWriter<'_>) {
    let length = text.chars().count() as i64;
    let (value, reason) = (Value::String(text), "specified string length was not satisfied");
    if rules.max_length.is_some_and(|max| length > max) {
        considered(rules, "maxLength", reason, value, out);
    }
    if rules.min_length.is_some_and(|min| length < min) {
        considered(rules, "minLength", reason, value, out);
    }
    if rules.pattern.as_ref().is_some_and(|pattern| !check.finds(pattern, text)) {
        considered(rules, "pattern", "regular expression did not match", value, out);
    }
}

fn write_array(rules: &Rules, array: Array<'_>, check: &Check<'_>, out: &mut ArrayWriter<'_>) {
    let length = array.count() as i64;
    let value = Value::Array(array);
    let mut mismatch = |keyword: &str| {
        let mut report = specified(rules, keyword, out);
        report
            .append("reason", "array did not match specified length")
            .append("consideredValue", value)
            .append("numberOfItems", length as i32);
    };
    if rules.min_items.is_some_and(|min| length < min) {
        mismatch("minItems");
    }
    if rules.max_items.is_some_and(|max| length > max) {
        mismatch("maxItems");
    }
    if rules.unique_items
        && let Some(twice) = check.repeated(array)
    {
        let mut report = specified(rules, "uniqueItems", out);
        report
            .append("reason", "found a duplicate item")
            .append("consideredValue", value)
            .append("duplicatedValue", twice);
    }
    write_items(rules, array, check, out);
}

fn write_items(rules: &Rules, array: Array<'_>, check: &Check<'_>, out: &mut ArrayWriter<'_>) {
    if let Some((at, value)) = rules.first_bad_item(array, check) {
        let broken = match &rules.items {
            Some(Items::All(rules)) => Some(&**rules),
            Some(Items::Each(list)) => list.get(at),
            None => None,
        };
        let mut report = out.document();
        report
            .append("operatorName", "items")
            .append("reason", "At least one item did not match the sub-schema")
            .append("itemIndex", at as i32);
        if let Some(broken) = broken {
            write(broken, value, check, &mut report.array("details"));
        }
    }
    let Some((at, value)) = rules.first_bad_additional_item(array, check) else { return };
    match &rules.additional_items {
        Some(Additional::Rules(broken)) => {
            let mut report = out.document();
            report
                .append("operatorName", "additionalItems")
                .append("reason", "At least one additional item did not match the sub-schema")
                .append("itemIndex", at as i32);
            write(broken, value, check, &mut report.array("details"));
        }
        _ => {
            let mut report = specified(rules, "additionalItems", out);
            report.append("reason", "found additional items");
            let mut items = report.array("additionalItems");
            array.iter().skip(at).for_each(|item| {
                items.push(item);
            });
        }
    }
}

fn write_object(rules: &Rules, doc: Doc<'_>, check: &Check<'_>, out: &mut ArrayWriter<'_>) {
    let broken = |(name, rules): &&(String, Rules)| !property_complies(doc, name, rules, check);
    if rules.properties.iter().any(|property| broken(&property)) {
        let mut report = out.document();
        report.append("operatorName", "properties");
        let mut list = report.array("propertiesNotSatisfied");
        for (name, rules) in rules.properties.iter().filter(broken) {
            let Some(value) = find(doc, name) else { continue };
            let mut property = list.document();
            property.append("propertyName", name.as_str());
            describe(rules, &mut property);
            write(rules, value, check, &mut property.array("details"));
        }
    }
    write_additional_properties(rules, doc, check, out);
    write_pattern_properties(rules, doc, check, out);
    let missing: Vec<&String> =
        rules.required.iter().filter(|name| find(doc, name).is_none()).collect();
    if !missing.is_empty() {
        let mut report = specified(rules, "required", out);
        write_names(&missing, &mut report.array("missingProperties"));
    }
    let count = doc.count() as i64;
    let bounds = [
        ("minProperties", rules.min_properties.is_some_and(|min| count < min)),
        ("maxProperties", rules.max_properties.is_some_and(|max| count > max)),
    ];
    for (keyword, _) in bounds.into_iter().filter(|(_, broken)| *broken) {
        let mut report = specified(rules, keyword, out);
        report
            .append("reason", "specified number of properties was not satisfied")
            .append("numberOfProperties", count as i32);
    }
    write_dependencies(rules, doc, check, out);
}

fn write_names(names: &[&String], out: &mut ArrayWriter<'_>) {
    names.iter().for_each(|name| {
        out.push(name.as_str());
    });
}

fn write_additional_properties(
    rules: &Rules,
    doc: Doc<'_>,
    check: &Check<'_>,
    out: &mut ArrayWriter<'_>,
) {
    let Some(additional) = &rules.additional_properties else { return };
    let bad: Vec<(&str, Value<'_>)> = doc
        .fields()
        .filter(|(name, value)| {
            rules.is_additional(name, check) && !additional.accepts(*value, check)
        })
        .collect();
    let Some((name, value)) = bad.first() else { return };
    match additional {
        Additional::Rules(broken) => {
            let mut report = out.document();
            report
                .append("operatorName", "additionalProperties")
                .append("reason", "at least one additional property did not match the subschema")
                .append("failingProperty", *name);
            write(broken, *value, check, &mut report.array("details"));
        }
        Additional::Allowed(_) => {
            let mut report = specified(rules, "additionalProperties", out);
            let mut names = report.array("additionalProperties");
            bad.iter().for_each(|(name, _)| {
                names.push(*name);
            });
        }
    }
}

fn write_pattern_properties(
    rules: &Rules,
    doc: Doc<'_>,
    check: &Check<'_>,
    out: &mut ArrayWriter<'_>,
) {
    let mut broken = Vec::new();
    for (regex, rules) in &rules.pattern_properties {
        for (name, value) in doc.fields() {
            if check.finds(regex, name) && !rules.accept(value, check) {
                broken.push((regex, rules, name, value));
            }
        }
    }
    if broken.is_empty() {
        return;
    }
    let mut report = out.document();
    report.append("operatorName", "patternProperties");
    let mut list = report.array("details");
    for (regex, rules, name, value) in broken {
        let mut property = list.document();
        property.append("propertyName", name).append("regexMatched", regex.pattern());
        write(rules, value, check, &mut property.array("details"));
    }
}

fn write_dependencies(rules: &Rules, doc: Doc<'_>, check: &Check<'_>, out: &mut ArrayWriter<'_>) {
    let failing = |(name, dependency): &&(String, Dependency)| {
        find(doc, name).is_some() && !dependency.holds(doc, check)
    };
    if !rules.dependencies.iter().any(|dependency| failing(&dependency)) {
        return;
    }
    let mut report = out.document();
    report.append("operatorName", "dependencies");
    let mut list = report.array("failingDependencies");
    for (name, dependency) in rules.dependencies.iter().filter(failing) {
        let mut entry = list.document();
        entry.append("conditionalProperty", name.as_str());
        match dependency {
            Dependency::Properties(names) => {
                let missing: Vec<&String> =
                    names.iter().filter(|name| find(doc, name).is_none()).collect();
                write_names(&missing, &mut entry.array("missingProperties"));
            }
            Dependency::Rules(rules) => {
                write(rules, Value::Document(doc), check, &mut entry.array("details"));
            }
        }
    }
}

fn write_logic(rules: &Rules, value: Value<'_>, check: &Check<'_>, out: &mut ArrayWriter<'_>) {
    if rules.all_of.iter().any(|rules| !rules.accept(value, check)) {
        write_alternatives("allOf", &rules.all_of, value, check, out);
    }
    if !rules.any_of.is_empty() && !rules.any_of.iter().any(|rules| rules.accept(value, check)) {
        write_alternatives("anyOf", &rules.any_of, value, check, out);
    }
    if !rules.one_of.is_empty() {
        write_one_of(rules, value, check, out);
    }
    if rules.not.as_ref().is_some_and(|rules| rules.accept(value, check)) {
        let mut report = out.document();
        report.append("operatorName", "not").append("reason", "child expression matched");
    }
    if !rules.value_is_listed(value) {
        considered(rules, "enum", "value was not found in enum", value, out);
    }
}

fn write_one_of(rules: &Rules, value: Value<'_>, check: &Check<'_>, out: &mut ArrayWriter<'_>) {
    let matching: Vec<usize> = (rules.one_of.iter().enumerate())
        .filter(|(_, rules)| rules.accept(value, check))
        .map(|(index, _)| index)
        .collect();
    match matching.len() {
        0 => write_alternatives("oneOf", &rules.one_of, value, check, out),
        1 => {}
        _ => {
            let mut report = out.document();
            report
                .append("operatorName", "oneOf")
                .append("reason", "more than one subschema matched");
            let mut indexes = report.array("matchingSchemaIndexes");
            matching.iter().for_each(|index| {
                indexes.push(*index as i32);
            });
        }
    }
}

fn write_alternatives(
    keyword: &str,
    list: &[Rules],
    value: Value<'_>,
    check: &Check<'_>,
    out: &mut ArrayWriter<'_>,
) {
    let mut report = out.document();
    report.append("operatorName", keyword);
    let mut failed = report.array("schemasNotSatisfied");
    for (index, rules) in list.iter().enumerate().filter(|(_, rules)| !rules.accept(value, check)) {
        let mut entry = failed.document();
        entry.append("index", index as i32);
        describe(rules, &mut entry);
        write(rules, value, check, &mut entry.array("details"));
    }
}
