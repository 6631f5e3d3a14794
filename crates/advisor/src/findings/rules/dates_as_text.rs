//! A10: dates are stored as text.

use crate::findings::mongosh::{collection, string};
use crate::findings::{Cost, Finding, Input, Rule, Severity, Text, Value};
use crate::profile::PathProfile;

/// The smallest share of the sampled values that look like a date.
const SHARE_MIN: f64 = 0.95;
/// Fewer different values say little.
const VALUES_MIN: usize = 10;
/// The bytes of a date.
const DATE_BYTES: f64 = 8.0;

pub(super) const RULE: Rule = Rule {
    id: "A10",
    title: Text { en: "Dates are stored as text", zh: "日期以文本存储" },
    advice: Text {
        en: "A text takes more bytes than a date, in documents and in each index, has no time zone that a server \
             knows, and no stage for dates can use it. Convert the values to dates.",
        zh: "文本比日期占用更多字节（文档和每个索引都是），服务器不知道其时区，日期阶段也无法使用。请转换为日期类型。",
    },
    effects: Text {
        en: "The application must write and compare dates. Texts without a zone are read as UTC.",
        zh: "应用必须写入并比较日期类型。没有时区的文本按 UTC 解释。",
    },
    check,
};

fn check(input: &Input<'_>, found: &mut Vec<Finding>) {
    for (source, profile) in input.collections() {
        profile.for_each_path(&mut |path, values, _| {
            if path != "_id" && !path.contains('*') {
                found.extend(finding(input, &source.name, path, values));
            }
        });
    }
}

fn finding(input: &Input<'_>, name: &str, path: &str, values: &PathProfile) -> Option<Finding> {
    let texts = values.of_type("string");
    if texts == 0 || texts * 10 < values.scalars() * 9 {
        return None;
    }
    let sample: Vec<&str> =
        values.sample().filter_map(|(value, _)| value.as_value().as_str()).collect();
    let dates = sample.iter().filter(|text| is_date(text)).count();
    if dates < VALUES_MIN || (dates as f64) < sample.len() as f64 * SHARE_MIN {
        return None;
    }
    let count = texts as f64 * input.scale(name);
    let bytes = values.bytes() as f64 * input.scale(name);
    let indexes = if input.is_indexed(name, path) { 2.0 } else { 1.0 };
    let cost = (
        Cost { storage: bytes * indexes, ..Cost::default() },
        Cost { storage: count * DATE_BYTES * indexes, ..Cost::default() },
    );
    let queried = path.replace("[]", "");
    let (set, value) = (string(&queried), string(&format!("${queried}")));
    let coll = collection(name);
    let (apply, undo) = match path.contains("[]") {
        true => (vec![format!("{coll}.find({{{set}: {{$type: \"string\"}}}})")], Vec::new()),
        false => (
            vec![format!(
                "{coll}.updateMany({{{set}: {{$type: \"string\"}}}}, [{{$set: {{{set}: {{$dateFromString: \
                 {{dateString: {value}, onError: {value}}}}}}}}}])"
            )],
            vec![format!(
                "{coll}.updateMany({{{set}: {{$type: \"date\"}}}}, [{{$set: {{{set}: {{$dateToString: {{date: \
                 {value}, format: {}}}}}}}}}])",
                string(format(sample.first().copied().unwrap_or_default())),
            )],
        ),
    };
    Some(Finding {
        rule: "A10",
        severity: Severity::Low,
        collection: name.to_owned(),
        path: path.to_owned(),
        evidence: vec![
            ("example", Value::Name(sample.first().copied().unwrap_or_default().to_owned())),
            ("shareOfDates", Value::Share(dates as f64 / sample.len().max(1) as f64)),
            ("values", Value::Count(count)),
            ("bytes", Value::Bytes(bytes)),
        ],
        cost: Some(cost),
        confidence: input.confidence(name),
        apply,
        undo,
    })
}

/// Returns true for `2024-05-11`, alone or followed by a time.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok())?
    };
    let separated =
        |at: usize| bytes.get(at).is_some_and(|byte| matches!(byte, b'-' | b'/' | b'.'));
    let day = number(0..4).is_some_and(|year| (1900..2200).contains(&year))
        && separated(4)
        && number(5..7).is_some_and(|month| (1..=12).contains(&month))
        && separated(7)
        && number(8..10).is_some_and(|day| (1..=31).contains(&day));
    let time = match bytes.get(10) {
        None => true,
        Some(b'T' | b' ') => {
            number(11..13).is_some_and(|hour| hour < 25) && bytes.get(13) == Some(&b':')
        }
        Some(_) => false,
    };
    day && time && bytes.len() <= 40
}

/// Returns the format of `$dateToString` for texts like this one.
fn format(example: &str) -> &'static str {
    match (example.len(), example.as_bytes().get(10)) {
        (0..=10, _) => "%Y-%m-%d",
        (_, Some(b' ')) => "%Y-%m-%d %H:%M:%S",
        _ => "%Y-%m-%dT%H:%M:%S.%LZ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_told_from_other_texts() {
        for text in ["2024-05-11", "2024/05/11", "2024-05-11T10:20:30Z", "2024-05-11 10:20:30.5"] {
            assert!(is_date(text), "{text}");
        }
        for text in
            ["2024-13-11", "2024-05", "20240511", "2024-05-11x", "9999-05-11", "A-2024-05-11"]
        {
            assert!(!is_date(text), "{text}");
        }
    }
}
