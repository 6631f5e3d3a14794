//! Tests of date operators: zones, parsing and printing by formats, arithmetic, and round trips in
//! every zone.

use super::zone::Zone;
use crate::context::{EvalContext, ParseContext, Shared};
use crate::expression::{Batch, Expression, Extractor};
use bumpalo::Bump;
use quire_document::literal::{parse, print};
use quire_document::testing::Generator;
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::Result;

fn eval(expression: &str) -> Result<String> {
    let value = parse(expression).unwrap();
    let mut context = ParseContext::default();
    context.no_folding = true;
    let expression = Expression::parse(value.as_value(), &context)?;
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    Ok(expression.eval(&cx)?.map_or_else(|| "missing".to_owned(), print))
}

#[track_caller]
fn gives(expression: &str, expected: &str) {
    let shown = print(parse(expected).unwrap().as_value());
    assert_eq!(eval(expression).unwrap(), shown, "{expression}");
}

#[track_caller]
fn fails(expression: &str, code: i32) {
    assert_eq!(eval(expression).unwrap_err().code().number(), code, "{expression}");
}

#[test]
fn components() {
    let date = r#"ISODate("2024-01-01T03:04:05.678Z")"#;
    for (name, expected) in [
        ("$year", "2024"),
        ("$month", "1"),
        ("$dayOfMonth", "1"),
        ("$dayOfWeek", "2"),
        ("$dayOfYear", "1"),
        ("$hour", "3"),
        ("$minute", "4"),
        ("$second", "5"),
        ("$millisecond", "678"),
        ("$week", "0"),
        ("$isoWeek", "1"),
        ("$isoWeekYear", "NumberLong(\"2024\")"),
        ("$isoDayOfWeek", "1"),
    ] {
        gives(&format!("{{{name}: {date}}}"), expected);
    }
    gives(&format!(r#"{{$hour: {{date: {date}, timezone: "America/New_York"}}}}"#), "22");
    gives(&format!(r#"{{$year: {{date: {date}, timezone: "-05:00"}}}}"#), "2023");
    gives("{$year: null}", "null");
    fails("{$year: \"x\"}", 16006);
    fails(&format!(r#"{{$year: {{date: {date}, timezone: "america/new_york"}}}}"#), 40485);
    fails("{$year: []}", 40536);
    fails("{$year: {a: 1}}", 40535);
}

#[test]
fn parts() {
    gives(
        r#"{$dateToParts: {date: ISODate("2017-01-01T15:08:35.123Z"), iso8601: true}}"#,
        "{isoWeekYear: 2016, isoWeek: 52, isoDayOfWeek: 7, hour: 15, minute: 8, second: 35, millisecond: 123}",
    );
    gives(
        "{$dateFromParts: {year: 2017, month: 14, day: 1}}",
        r#"ISODate("2018-02-01T00:00:00Z")"#,
    );
    gives(
        "{$dateFromParts: {isoWeekYear: 2017, isoWeek: 6, isoDayOfWeek: 4, hour: 12}}",
        r#"ISODate("2017-02-09T12:00:00Z")"#,
    );
    gives(
        r#"{$dateFromParts: {year: 2016, month: 12, day: 31, hour: 23, timezone: "America/New_York"}}"#,
        r#"ISODate("2017-01-01T04:00:00Z")"#,
    );
    fails("{$dateFromParts: {year: 0}}", 40523);
    fails("{$dateFromParts: {year: 2017, isoWeek: 1}}", 40489);
    fails("{$dateFromParts: {isoWeekYear: 2017, month: 1}}", 40525);
}

#[test]
fn texts() {
    let date = r#"ISODate("2014-01-01T08:15:39.736Z")"#;
    gives(&format!("{{$dateToString: {{date: {date}}}}}"), r#""2014-01-01T08:15:39.736Z""#);
    gives(
        &format!(
            r#"{{$dateToString: {{date: {date}, timezone: "+04:30", format: "%H:%M:%S:%L%z"}}}}"#
        ),
        r#""12:45:39:736+0430""#,
    );
    gives(
        &format!(
            r#"{{$dateToString: {{date: {date}, timezone: "America/New_York", format: "%b %B %j %u %U %V %G %Z %%"}}}}"#
        ),
        r#""Jan January 001 3 00 01 2014 -300 %""#,
    );
    fails(&format!(r#"{{$dateToString: {{date: {date}, format: "%x"}}}}"#), 18536);
    fails(&format!(r#"{{$dateToString: {{date: {date}, format: "%"}}}}"#), 18535);
    for (text, expected) in [
        ("2017-02-08T12:10:40.787Z", "2017-02-08T12:10:40.787Z"),
        ("2017-02-08T12:10:40+05:00", "2017-02-08T07:10:40Z"),
        ("2017-02-08", "2017-02-08T00:00:00Z"),
        ("20170208", "2017-02-08T00:00:00Z"),
        ("oct 20 2020", "2020-10-20T00:00:00Z"),
        ("WED jan 31 12:05:28 +03:30 1996", "1996-01-31T08:35:28Z"),
        ("July 4th, 2020 2:30 pm", "2020-07-04T14:30:00Z"),
        ("02/08/2017", "2017-02-08T00:00:00Z"),
        ("08.02.2017 10:00", "2017-02-08T10:00:00Z"),
        ("July 4th, 2017 12:39:30 BST", "2017-07-04T11:39:30Z"),
        ("2017-07-04 10:00 est", "2017-07-04T15:00:00Z"),
        ("2017-07-04T10:00 GMT+02:00", "2017-07-04T08:00:00Z"),
        ("2017W275", "2017-07-07T00:00:00Z"),
        ("2017-W27-5T10:00", "2017-07-07T10:00:00Z"),
        ("2017-W01 10:00", "2017-01-02T10:00:00Z"),
        ("2017-185", "2017-07-04T00:00:00Z"),
        ("2017185", "2017-07-04T00:00:00Z"),
    ] {
        gives(
            &format!("{{$dateFromString: {{dateString: \"{text}\"}}}}"),
            &format!("ISODate(\"{expected}\")"),
        );
    }
    for (text, format, expected) in [
        ("06-15-2018", "%m-%d-%Y", "2018-06-15T00:00:00Z"),
        ("2024 167", "%Y %j", "2024-06-16T00:00:00Z"),
        ("2024-W24-6", "%G-W%V-%u", "2024-06-15T00:00:00Z"),
        ("2024-06-15 +330", "%Y-%m-%d %Z", "2024-06-14T18:30:00Z"),
        ("2024-06-15 +0530", "%Y-%m-%d %z", "2024-06-14T18:30:00Z"),
    ] {
        gives(
            &format!("{{$dateFromString: {{dateString: \"{text}\", format: \"{format}\"}}}}"),
            &format!("ISODate(\"{expected}\")"),
        );
    }
    for text in ["", "bad", "2017-02-30", "2017-13-01", "12:30"] {
        fails(&format!("{{$dateFromString: {{dateString: \"{text}\"}}}}"), 241);
    }
    gives(r#"{$dateFromString: {dateString: "bad", onError: "no"}}"#, "\"no\"");
}

/// Characters around a date, and years before 0.
#[test]
fn texts_at_their_ends() {
    let read = super::parse_text;
    let date = read("2017-02-08T12:10:40Z").unwrap();
    for text in [
        " 2017-02-08T12:10:40Z\t",
        "\0 2017-02-08T12:10:40Z",
        "2017-02-08T12:10:40Z\0",
        "\u{a0}2017-02-08T12:10:40Z\u{a0}",
    ] {
        assert_eq!(read(text), Ok(date), "{text:?}");
    }
    assert!(read("\u{2000}2017-02-08T12:10:40Z").is_err());
    assert_eq!(read("-0001-01-01T00:00:00Z"), Ok(-62_198_755_200_000));
    assert!(read("-0001-02-30").is_err());
}

#[test]
fn arithmetic() {
    gives(
        r#"{$dateAdd: {startDate: ISODate("2021-01-31T12:00:00Z"), unit: "month", amount: 1}}"#,
        r#"ISODate("2021-02-28T12:00:00Z")"#,
    );
    gives(
        r#"{$dateSubtract: {startDate: ISODate("2021-03-31T12:00:00Z"), unit: "day", amount: 1}}"#,
        r#"ISODate("2021-03-30T12:00:00Z")"#,
    );
    gives(
        r#"{$dateAdd: {startDate: ISODate("2021-03-13T12:00:00Z"), unit: "day", amount: 1, timezone: "America/New_York"}}"#,
        r#"ISODate("2021-03-14T11:00:00Z")"#,
    );
    gives(
        r#"{$dateDiff: {startDate: ISODate("2021-01-25T00:00:00Z"), endDate: ISODate("2021-02-03T00:00:00Z"), unit: "week", startOfWeek: "mon"}}"#,
        "NumberLong(\"1\")",
    );
    gives(
        r#"{$dateDiff: {startDate: ISODate("2020-12-31T23:59:59Z"), endDate: ISODate("2021-01-01T00:00:00Z"), unit: "year"}}"#,
        "NumberLong(\"1\")",
    );
    gives(
        r#"{$dateTrunc: {date: ISODate("2021-03-20T11:30:05Z"), unit: "week", binSize: 2, timezone: "America/Los_Angeles", startOfWeek: "Monday"}}"#,
        r#"ISODate("2021-03-15T07:00:00Z")"#,
    );
    gives(
        r#"{$dateTrunc: {date: ISODate("2021-03-20T11:30:05Z"), unit: "quarter"}}"#,
        r#"ISODate("2021-01-01T00:00:00Z")"#,
    );
    fails(
        r#"{$dateAdd: {startDate: ISODate("2021-01-31T12:00:00Z"), unit: "month", amount: 1.5}}"#,
        5166405,
    );
    fails(r#"{$dateAdd: {startDate: ISODate("2021-01-31T12:00:00Z"), unit: "x", amount: 1}}"#, 9);
    fails(
        r#"{$dateTrunc: {date: ISODate("2021-03-20T11:30:05Z"), unit: "day", binSize: 0}}"#,
        5439018,
    );
}

#[test]
fn invalid_dates_and_longs_are_errors() {
    let first = "Date(-9223372036854775808)";
    let last = "Date(9223372036854775807)";
    let diff = |end: &str, unit: &str| {
        format!(r#"{{$dateDiff: {{startDate: {first}, endDate: {end}, unit: "{unit}"}}}}"#)
    };
    fails(&diff("Date(1)", "millisecond"), 5166308);
    gives(&diff("Date(-1)", "millisecond"), "NumberLong(\"9223372036854775807\")");
    gives(&diff(last, "year"), "NumberLong(\"584554049\")");
    let trunc = |date: &str, rest: &str| format!("{{$dateTrunc: {{date: {date}, {rest}}}}}");
    fails(&trunc(first, r#"unit: "hour", binSize: 5"#), 5439000);
    fails(&trunc(first, r#"unit: "year""#), 159);
    let long_bin = r#"unit: "hour", binSize: NumberLong("2562047788015")"#;
    fails(&trunc("Date(-9223371090169975808)", long_bin), 5439001);
    gives(&trunc(last, r#"unit: "hour""#), "Date(9223372036854000000)");
    let subtract = |amount: &str| {
        format!(
            r#"{{$dateSubtract: {{startDate: Date(0), unit: "millisecond", amount: {amount}}}}}"#
        )
    };
    fails(&subtract(r#"NumberLong("-9223372036854775808")"#), 6045000);
    gives(&subtract(r#"NumberLong("-9223372036854775807")"#), last);
}

/// Returns a date at or near an end of the range of dates.
fn extreme(random: &mut Generator) -> i64 {
    let near = (random.bits() >> (19 + random.below(45))) as i64;
    match random.below(4) {
        0 => i64::MIN + near,
        1 => i64::MAX - near,
        2 => near,
        _ => random.integer(),
    }
}

/// Returns the date or the long that an expression gives; `None` for an error.
fn number(expression: &str) -> Option<i64> {
    let value = parse(expression).unwrap();
    let context = ParseContext::default().without_folding();
    let expression = Expression::parse(value.as_value(), &context).unwrap();
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    match expression.eval(&cx) {
        Ok(Some(Value::Date(number) | Value::Int64(number))) => Some(number),
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    }
}

/// Truncating, moving and comparing extreme dates is exact, or an error.
#[test]
fn extreme_dates_are_exact_or_an_error() {
    let units = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"];
    let zones = ["UTC", "+14:00", "-11:30", "Europe/Paris", "America/New_York"];
    let mut random = Generator::new(41);
    for _ in 0..4000 {
        let (date, other) = (extreme(&mut random), extreme(&mut random));
        let (unit, zone) = (*random.pick(&units).unwrap(), *random.pick(&zones).unwrap());
        let size = (random.bits() >> (24 + random.below(40))) + 1;
        let at = format!(r#"unit: "{unit}", timezone: "{zone}""#);
        let cut = number(&format!("{{$dateTrunc: {{date: Date({date}), binSize: {size}, {at}}}}}"));
        assert!(cut.is_none_or(|cut| cut <= date), "{date} {size} {at}: {cut:?}");

        let times = format!("startDate: Date({date}), endDate: Date({other})");
        let units_apart = number(&format!("{{$dateDiff: {{{times}, {at}}}}}")).unwrap();
        let agrees = units_apart == 0 || (units_apart > 0) == (other > date);
        assert!(agrees, "{times} {at}: {units_apart}");
        let apart = number(&format!("{{$dateDiff: {{{times}, unit: \"millisecond\"}}}}"));
        assert_eq!(apart, other.checked_sub(date));

        let amount = random.integer() >> random.below(64);
        for (name, sign) in [("$dateAdd", 1), ("$dateSubtract", -1)] {
            let arguments =
                format!("startDate: Date({date}), amount: NumberLong(\"{amount}\"), {at}");
            let moved = number(&format!("{{{name}: {{{arguments}}}}}"));
            let forth = i128::from(amount) * sign >= 0;
            assert!(
                moved.is_none_or(|moved| if forth { moved >= date } else { moved <= date }),
                "{name} {arguments}: {moved:?}"
            );
        }
    }
}

fn as_date(value: Option<Value<'_>>) -> i64 {
    match value {
        Some(Value::Date(date)) => date,
        other => panic!("{other:?}"),
    }
}

/// A column of dates is truncated as each of its dates, also where bins of different lengths meet.
#[test]
fn a_column_is_truncated_as_its_dates_are() {
    let units =
        ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"];
    let zones = ["UTC", "+05:30", "-11:30", "Europe/Paris", "America/New_York"];
    let mut random = Generator::new(43);
    for _ in 0..1500 {
        let (unit, zone) = (*random.pick(&units).unwrap(), *random.pick(&zones).unwrap());
        let size = match random.below(8) {
            0 => (random.bits() >> (24 + random.below(40))) + 1,
            other => other,
        };
        let source = parse(&format!(
            r#"{{$dateTrunc: {{date: "$at", unit: "{unit}", binSize: {size}, timezone: "{zone}"}}}}"#
        ));
        let source = source.unwrap();
        let mut expression =
            Expression::parse(source.as_value(), &ParseContext::default()).unwrap();
        let mut extractor = Extractor::default();
        extractor.attach(&mut expression);
        let (mut date, step) = (extreme(&mut random), 1 << random.below(36));
        let dates: Vec<DocBuf> = (0..random.below(60))
            .map(|_| {
                date = date.saturating_add(random.below(step) as i64);
                doc! { "at": Value::Date(date) }
            })
            .collect();
        let docs: Vec<Doc<'_>> = dates.iter().map(DocBuf::as_doc).collect();
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, Doc::empty(), &shared);
        let batch = Batch::new(&docs, &extractor, &cx).unwrap();
        let cut = |doc: &Doc<'_>| expression.eval(&cx.with_root(*doc)).map(as_date);
        let one_by_one: Result<Vec<i64>> = docs.iter().map(cut).collect();
        match (expression.eval_batch(&batch, &cx), one_by_one) {
            (Ok(column), Ok(expected)) => {
                let found: Vec<_> = (0..docs.len()).map(|row| as_date(column.get(row))).collect();
                assert_eq!(found, expected, "{source:?}");
            }
            (Err(found), Err(expected)) => assert_eq!(found.code(), expected.code(), "{source:?}"),
            other => panic!("{source:?}: {other:?}"),
        }
    }
}

/// Operators that return parts of a date return parts within their ranges, for every date.
#[test]
fn parts_of_extreme_dates() {
    let ranges = [
        ("month", 1..=12),
        ("dayOfMonth", 1..=31),
        ("dayOfWeek", 1..=7),
        ("dayOfYear", 1..=366),
        ("hour", 0..=23),
        ("minute", 0..=59),
        ("second", 0..=59),
        ("millisecond", 0..=999),
        ("week", 0..=53),
        ("isoWeek", 1..=53),
        ("isoDayOfWeek", 1..=7),
        ("year", -292_275_056..=292_278_995),
        ("isoWeekYear", -292_275_056..=292_278_995),
    ];
    let mut random = Generator::new(42);
    for _ in 0..1000 {
        let date = extreme(&mut random);
        let zone = *random.pick(&["UTC", "+14:00", "-11:30", "Europe/Paris"]).unwrap();
        for (name, range) in &ranges {
            let part = eval(&format!(
                r#"{{$toInt: {{${name}: {{date: Date({date}), timezone: "{zone}"}}}}}}"#
            ));
            let part: i64 = part.unwrap().parse().unwrap();
            assert!(range.contains(&part), "{name} of {date} in {zone}: {part}");
        }
        let parts = format!(r#"{{date: Date({date}), timezone: "{zone}", iso8601: true}}"#);
        eval(&format!("{{$dateToParts: {parts}}}")).unwrap();
        // Years after 9999 have no text, so this may be an error.
        let _ = eval(&format!(r#"{{$dateToString: {{date: Date({date}), timezone: "{zone}"}}}}"#));
        let _ = eval(&format!("{{$add: [Date({date}), {}]}}", random.integer()));
        let _ = eval(&format!("{{$toString: Date({date})}}"));
    }
}

/// A point in time converts to local time and back, unless local time shows it twice.
#[test]
fn round_trips_in_every_zone() {
    for name in jiff::tz::TimeZoneDatabase::bundled().available() {
        let Ok(zone) = Zone::parse(name.as_str()) else { continue };
        for step in 0..200i64 {
            let millis = -2_000_000_000_000 + step * 21_600_123_457;
            let local = millis + zone.offset_seconds(millis) * 1000;
            let back = zone.to_utc(local.into()).unwrap();
            let again = back + zone.offset_seconds(back) * 1000;
            assert_eq!(again, local, "{name} {millis}");
        }
    }
}
