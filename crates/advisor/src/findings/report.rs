//! The advice as one document, whose form docs/advise.md describes. Version 1.

use super::{Advice, Confidence, Cost, Evidence, Finding, Input, Language, Relation, Value, rule};
use crate::source::Extent;
use quire_document::{DocBuf, DocWriter};

/// The version of the form. It rises when a field changes its meaning.
pub const VERSION: i32 = 1;

/// Returns the advice as a document.
pub fn report(input: &Input<'_>, advice: &Advice) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("version", VERSION).append("database", input.database);
        if let Extent::Sample(documents) = input.profile.extent {
            writer.append("sample", documents as i64);
        }
        if let Some(seconds) = input.seconds {
            writer.append("workloadSeconds", seconds);
        }
        let mut findings = writer.array("findings");
        advice.findings.iter().for_each(|one| write_finding(&mut findings.document(), one));
        findings.finish();
        let mut relations = writer.array("relations");
        advice.relations.iter().for_each(|one| write_relation(&mut relations.document(), one));
        relations.finish();
        writer.append("silenced", advice.silenced as i64);
        writer.append("alreadyRight", advice.findings.is_empty());
    })
}

fn write_finding(writer: &mut DocWriter<'_>, finding: &Finding) {
    writer.append("rule", finding.rule);
    if let Some(rule) = rule(finding.rule) {
        writer.append("title", rule.title.in_language(Language::English));
        writer.append("advice", rule.advice.in_language(Language::English));
        writer.append("effects", rule.effects.in_language(Language::English));
    }
    writer
        .append("severity", finding.severity.name())
        .append("collection", finding.collection.as_str())
        .append("path", finding.path.as_str());
    write_evidence(&mut writer.document("evidence"), &finding.evidence);
    if let Some((now, after)) = finding.cost {
        write_cost(&mut writer.document("now"), &now);
        write_cost(&mut writer.document("after"), &after);
    }
    let mut confidence = writer.document("confidence");
    match finding.confidence {
        Confidence::Measured => {
            confidence.append("kind", "measured");
        }
        Confidence::Sampled { read, of } => {
            confidence
                .append("kind", "sampled")
                .append("read", read as i64)
                .append("of", of as i64);
        }
        Confidence::Executed { copied, of } => {
            confidence
                .append("kind", "executed")
                .append("copied", copied as i64)
                .append("of", of as i64);
        }
        Confidence::Modelled => {
            confidence.append("kind", "estimated");
        }
    }
    confidence.finish();
    write_texts(writer, "apply", &finding.apply);
    write_texts(writer, "undo", &finding.undo);
}

fn write_texts(writer: &mut DocWriter<'_>, name: &str, texts: &[String]) {
    let mut written = writer.array(name);
    texts.iter().for_each(|text| {
        written.push(text.as_str());
    });
}

fn write_cost(writer: &mut DocWriter<'_>, cost: &Cost) {
    writer
        .append("docsExaminedPerSecond", cost.docs_examined)
        .append("bytesReadPerSecond", cost.bytes_read)
        .append("bytesWrittenPerSecond", cost.bytes_written)
        .append("storageBytes", cost.storage.round() as i64);
}

fn write_evidence(writer: &mut DocWriter<'_>, evidence: &[Evidence]) {
    for (name, value) in evidence {
        match value {
            Value::Count(number)
            | Value::Bytes(number)
            | Value::Share(number)
            | Value::PerSecond(number)
            | Value::PerDay(number)
            | Value::Days(number) => {
                writer.append(name, *number);
            }
            Value::Interval(share, least, most) => {
                let mut written = writer.document(name);
                written.append("share", *share).append("least", *least).append("most", *most);
            }
            Value::Name(text) => {
                writer.append(name, text.as_str());
            }
        }
    }
}

fn write_relation(writer: &mut DocWriter<'_>, relation: &Relation) {
    writer
        .append("from", relation.from.as_str())
        .append("path", relation.path.as_str())
        .append("to", relation.to.as_str())
        .append("field", relation.field.as_str())
        .append("present", relation.present.name())
        .append("best", relation.best.name())
        .append("answer", relation.answer());
    let mut fan_out = writer.document("fanOut");
    for (name, count) in ["p50", "p90", "p99", "max"].into_iter().zip(relation.fan_out) {
        fan_out.append(name, count as i64);
    }
    fan_out.finish();
    write_evidence(&mut writer.document("inputs"), &relation.inputs);
    let mut costs = writer.document("bytesPerSecond");
    for (form, cost) in &relation.costs {
        costs.append(form.name(), *cost);
    }
    costs.finish();
    let mut forbidden = writer.array("embedIsForbidden");
    relation.forbidden.iter().for_each(|rule| {
        forbidden.push(*rule);
    });
}
