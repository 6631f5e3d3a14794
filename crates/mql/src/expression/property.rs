//! Properties that hold for all values: conversions to another type and back, and dates and their
//! parts in every time zone.

use super::{Expression, Extractor};
use crate::context::{EvalContext, ParseContext, Shared};
use bumpalo::Bump;
use quire_document::testing::Generator;
use quire_document::{Binary, Decimal128, Doc, DocBuf, ObjectId, Value, ValueBuf, doc, identical};

/// An expression over fields, evaluated for many documents.
struct Compiled(Expression);

impl Compiled {
    fn new(source: &DocBuf) -> Self {
        let mut parsed = Expression::parse(Value::from(source), &ParseContext::default()).unwrap();
        Extractor::default().attach(&mut parsed);
        Compiled(parsed)
    }

    #[track_caller]
    fn run(&self, root: Doc<'_>) -> ValueBuf {
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, root, &shared);
        let result = self.0.eval(&cx);
        let value = result.unwrap_or_else(|error| panic!("{root:?}: {error}"));
        ValueBuf::new(value.unwrap_or_else(|| panic!("{root:?} gives nothing")))
    }
}

/// Returns a value that its text, number or bytes represent completely.
fn convertible(random: &mut Generator) -> ValueBuf {
    let word = random.below(u64::MAX) as i64;
    match random.below(8) {
        0 => ValueBuf::new(word as i32),
        1 => ValueBuf::new(word),
        2 => ValueBuf::new(word >> random.below(64)),
        3 => {
            let number = f64::from_bits(word as u64);
            ValueBuf::new(if number.is_nan() { 0.1 } else { number })
        }
        4 => ValueBuf::new(Decimal128::from_i64(word).divide(Decimal128::from_i64(1000))),
        5 => ValueBuf::new(word % 2 == 0),
        // A date in the years 0 to 9999.
        6 => ValueBuf::new(Value::Date(word.rem_euclid(315_569_520_000_000) - 62_167_219_200_000)),
        _ => {
            let mut id = [0; 12];
            id.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            ValueBuf::new(ObjectId(id))
        }
    }
}

#[test]
fn texts_convert_back() {
    let there = Compiled::new(&doc! { "$toString": "$v" });
    let back = Compiled::new(&doc! { "$convert": { "input": "$v", "to": "$to" } });
    let mut random = Generator::new(31);
    for _ in 0..4000 {
        let value = convertible(&mut random);
        let text = there.run(doc! { "v": &value }.as_doc());
        // Every text except the empty one is true.
        if let Value::Bool(flag) = value.as_value() {
            assert!(identical(text.as_value(), Value::String(&flag.to_string())));
            continue;
        }
        let kind = value.kind().alias();
        let again = back.run(doc! { "v": &text, "to": kind }.as_doc());
        assert!(identical(again.as_value(), value.as_value()), "{value:?} {text:?} {again:?}");
    }
}

#[test]
fn numbers_convert_to_wider_types_and_back() {
    let convert = Compiled::new(&doc! { "$convert": { "input": "$v", "to": "$to" } });
    let wider: [(&str, &[&str]); 5] = [
        ("int", &["long", "double", "decimal"]),
        ("long", &["decimal", "date"]),
        ("bool", &["int", "long", "double", "decimal"]),
        ("date", &["long", "decimal"]),
        ("objectId", &["string"]),
    ];
    let mut random = Generator::new(32);
    for _ in 0..4000 {
        let value = convertible(&mut random);
        let kind = value.kind().alias();
        let Some((_, targets)) = wider.iter().find(|(name, _)| *name == kind) else { continue };
        let to = *random.pick(targets).unwrap();
        let there = convert.run(doc! { "v": &value, "to": to }.as_doc());
        assert_eq!(there.kind().alias(), to);
        let again = convert.run(doc! { "v": &there, "to": kind }.as_doc());
        assert!(identical(again.as_value(), value.as_value()), "{value:?} {there:?} {again:?}");
    }
}

#[test]
fn binary_data_converts_back() {
    let with_format = Compiled::new(&doc! { "$convert": {
    "input": "$v", "to": "$to", "format": "$format" } });
    let with_order = Compiled::new(&doc! { "$convert": {
    "input": "$v", "to": "$to", "byteOrder": "$order" } });
    let mut random = Generator::new(33);
    for _ in 0..2000 {
        let len = random.below(40) as usize;
        let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
        let format = *random.pick(&["base64", "base64url", "hex"]).unwrap();
        let data = Value::Binary(Binary { subtype: 0, bytes: &bytes });
        let text = with_format.run(doc! { "v": data, "to": "string", "format": format }.as_doc());
        let again =
            with_format.run(doc! { "v": &text, "to": "binData", "format": format }.as_doc());
        assert!(identical(again.as_value(), data), "{format}: {data:?} {text:?} {again:?}");

        let number = convertible(&mut random);
        let (kind, order) = (number.kind().alias(), *random.pick(&["little", "big"]).unwrap());
        if !matches!(kind, "int" | "long" | "double") {
            continue;
        }
        let data = with_order.run(doc! { "v": &number, "to": "binData", "order": order }.as_doc());
        let again = with_order.run(doc! { "v": &data, "to": kind, "order": order }.as_doc());
        assert!(identical(again.as_value(), number.as_value()), "{number:?} {data:?} {again:?}");
    }
}

/// Checks the parts of a date against another calendar library, which does not know the own history
/// of some zones before 1970.
fn check_parts(parts: ValueBuf, millis: i64, zone: &str) {
    if millis < 0 && super::dates::own_history(zone).is_some() {
        return;
    }
    let at = jiff::Timestamp::from_millisecond(millis).unwrap();
    let clock = at.in_tz(zone).unwrap().datetime();
    let expected = doc! {
        "year": i32::from(clock.year()), "month": i32::from(clock.month()),
        "day": i32::from(clock.day()), "hour": i32::from(clock.hour()),
        "minute": i32::from(clock.minute()), "second": i32::from(clock.second()),
        "millisecond": i32::from(clock.millisecond())
    };
    assert!(identical(parts.as_value(), Value::from(&expected)), "{zone} {millis}: {parts:?}");
}

/// The parts of a date give a date with the same parts. (It is not always the same date: when the
/// clock is set back, two dates have the same parts.)
#[test]
fn parts_make_the_date_in_every_zone() {
    let parts = |iso: bool| {
        Compiled::new(&doc! { "$dateToParts": {
        "date": "$v", "timezone": "$zone", "iso8601": iso } })
    };
    let (plain, iso) = (parts(false), parts(true));
    let from_plain = Compiled::new(&doc! { "$dateFromParts": {
    "year": "$p.year", "month": "$p.month", "day": "$p.day", "hour": "$p.hour",
    "minute": "$p.minute", "second": "$p.second", "millisecond": "$p.millisecond",
    "timezone": "$zone" } });
    let from_iso = Compiled::new(&doc! { "$dateFromParts": {
    "isoWeekYear": "$p.isoWeekYear", "isoWeek": "$p.isoWeek",
    "isoDayOfWeek": "$p.isoDayOfWeek", "hour": "$p.hour", "minute": "$p.minute",
    "second": "$p.second", "millisecond": "$p.millisecond", "timezone": "$zone" } });
    const FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%L";
    let text = Compiled::new(&doc! { "$dateToString": {
    "date": "$v", "timezone": "$zone", "format": FORMAT } });
    let from_text = Compiled::new(&doc! { "$dateFromString": {
    "dateString": "$text", "timezone": "$zone", "format": FORMAT } });
    let mut random = Generator::new(34);
    let mut zones = 0;
    for name in jiff::tz::TimeZoneDatabase::bundled().available() {
        zones += 1;
        for _ in 0..12 {
            // A date from 1870 to 2100.
            let millis = random.below(7_258_118_400_000) as i64 - 3_155_760_000_000;
            let (date, zone) = (Value::Date(millis), name.as_str());
            check_parts(plain.run(doc! { "v": date, "zone": zone }.as_doc()), millis, zone);
            for (to, from) in [(&plain, &from_plain), (&iso, &from_iso)] {
                let parts = to.run(doc! { "v": date, "zone": zone }.as_doc());
                let made = from.run(doc! { "p": &parts, "zone": zone }.as_doc());
                let again = to.run(doc! { "v": &made, "zone": zone }.as_doc());
                assert!(
                    identical(parts.as_value(), again.as_value()),
                    "{zone} {date:?}: {parts:?} {again:?}"
                );
            }
            let there = text.run(doc! { "v": date, "zone": zone }.as_doc());
            let made = from_text.run(doc! { "text": &there, "zone": zone }.as_doc());
            let again = text.run(doc! { "v": &made, "zone": zone }.as_doc());
            assert!(
                identical(there.as_value(), again.as_value()),
                "{zone} {date:?}: {there:?} {again:?}"
            );
        }
    }
    assert!(zones > 400, "{zones} zones");
}
