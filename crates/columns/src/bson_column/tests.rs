//! Columns by hand, columns of an encoder of these tests, and bytes that are no columns.

use super::*;

use quire_document::testing::Generator;
use quire_document::{DocBuf, Type, Value, ValueBuf, doc};

/// Returns all values of a column.
fn decode(bytes: &[u8]) -> Result<Vec<Option<ValueBuf>>> {
    let mut budget = Budget::new(1 << 20);
    let mut column = BsonColumn::new(bytes, &mut budget)?;
    let mut values = Vec::new();
    while column.advance(&mut budget)? {
        values.push(column.value().map(|element| ValueBuf::new(element.value())));
    }
    Ok(values)
}

fn literal(value: Value<'_>) -> Vec<u8> {
    let doc = doc! { "": value };
    doc.as_doc().element_bytes().to_vec()
}

fn values<const N: usize>(values: [Option<Value<'_>>; N]) -> Vec<Option<ValueBuf>> {
    values.map(|value| value.map(ValueBuf::new)).to_vec()
}

/// Returns a column of parts.
fn column(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = parts.concat();
    bytes.push(0);
    bytes
}

/// Returns a control byte and blocks.
fn blocks(control: u8, words: &[u64]) -> Vec<u8> {
    let mut bytes = vec![control | (words.len() as u8 - 1)];
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes
}

/// Returns a block with numbers of some bits: the selector and what follows it in `header` bits.
fn block(header: (u64, u32), bits: u32, numbers: &[u64]) -> u64 {
    let shifts = (0..).map(|at| header.1 + at * bits);
    header.0 | numbers.iter().zip(shifts).fold(0, |word, (number, shift)| word | (number << shift))
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

const INT: u8 = 0x80;

#[test]
fn differences_follow_a_literal() {
    // Selector 11: four numbers of 15 bits.
    let numbers = [zigzag(1), zigzag(-3), 0x7FFF, 0];
    let word = block((11, 4), 15, &numbers);
    let bytes = column(&[&literal(Value::Int32(10)), &blocks(INT, &[word])]);
    let int = |number| Some(Value::Int32(number));
    assert_eq!(decode(&bytes).unwrap(), values([int(10), int(11), int(8), None, int(8)]));
    // Dates have differences of differences.
    let bytes = column(&[&literal(Value::Date(1000)), &blocks(INT, &[word])]);
    let date = |time| Some(Value::Date(time));
    let expected = values([date(1000), date(1001), date(999), None, date(997)]);
    assert_eq!(decode(&bytes).unwrap(), expected);
}

#[test]
fn a_run_repeats_the_last_number_even_of_other_blocks() {
    let one = block((14, 4), 60, &[zigzag(2)]);
    let run = 15 | 1 << 4;
    let bytes = column(&[&literal(Value::Int64(0)), &blocks(INT, &[one]), &blocks(INT, &[run])]);
    let decoded = decode(&bytes).unwrap();
    assert_eq!(decoded.len(), 2 + 240);
    assert_eq!(decoded[241], Some(ValueBuf::new(Value::Int64(482))));
    // After a literal it repeats zero, and a missing value as well.
    let bytes = column(&[&literal(Value::Int64(7)), &blocks(INT, &[run])]);
    assert_eq!(decode(&bytes).unwrap(), vec![Some(ValueBuf::new(Value::Int64(7))); 241]);
    let skips = block((14, 4), 60, &[(1 << 60) - 1]);
    let bytes = column(&[&literal(Value::Int64(7)), &blocks(INT, &[skips, run])]);
    assert_eq!(decode(&bytes).unwrap()[1..], vec![None; 241]);
    // Blocks before any value stand for missing ones.
    assert_eq!(decode(&column(&[&blocks(INT, &[one, run])])).unwrap(), vec![None; 241]);
}

#[test]
fn doubles_have_a_scale() {
    let word = block((13, 4), 30, &[zigzag(5), zigzag(-25)]);
    let double = |number| Some(Value::Double(number));
    let of = |control| column(&[&literal(Value::Double(21.5)), &blocks(control, &[word])]);
    assert_eq!(decode(&of(0xA0)).unwrap(), values([double(21.5), double(22.0), double(19.5)]));
    assert_eq!(decode(&of(0xB0)).unwrap(), values([double(21.5), double(21.55), double(21.3)]));
    let expected = values([double(21.5), double(21.5005), double(21.498)]);
    assert_eq!(decode(&of(0xC0)).unwrap(), expected);
    let bits = |add: i64| double(f64::from_bits(21.5_f64.to_bits().wrapping_add_signed(add)));
    assert_eq!(decode(&of(0x80)).unwrap(), values([double(21.5), bits(5), bits(-20)]));
    // 21.5 is no integer.
    assert_eq!(decode(&of(0x90)).unwrap_err().code(), ErrorCode::NonConformantBSON);
}

#[test]
fn long_types_have_numbers_of_128_bits() {
    // Selector 8 with the extension 13: one number of 51 bits, and a count of zeros in fours.
    let shifted = |value: u64, zeros: u64| 8 | (13 << 4) | ((value << 5) | (zeros / 4)) << 8;
    // "ab" to "bb": 0x6162 to 0x6262.
    let text = Value::String("ab");
    let bytes = column(&[&literal(text), &blocks(INT, &[shifted(zigzag(1), 8)])]);
    assert_eq!(decode(&bytes).unwrap(), values([Some(text), Some(Value::String("bb"))]));
    let longest = Value::String("aaaaaaaaaaaaaaaa");
    let bytes = column(&[&literal(longest), &blocks(INT, &[shifted(zigzag(1), 120)])]);
    let expected = values([Some(longest), Some(Value::String("baaaaaaaaaaaaaaa"))]);
    assert_eq!(decode(&bytes).unwrap(), expected);
    // A string that is too long has the number 0.
    let long = Value::String("aaaaaaaaaaaaaaaaa");
    let bytes = column(&[&literal(long), &blocks(INT, &[block((14, 4), 60, &[zigzag(0x62)])])]);
    assert_eq!(decode(&bytes).unwrap(), values([Some(long), Some(Value::String("b"))]));
    let binary = |bytes| Value::Binary(quire_document::Binary { subtype: 0, bytes });
    let bytes =
        column(&[&literal(binary(&[1, 2])), &blocks(INT, &[block((14, 4), 60, &[zigzag(0x101)])])]);
    assert_eq!(decode(&bytes).unwrap(), values([Some(binary(&[1, 2])), Some(binary(&[2, 3]))]));
}

#[test]
fn an_object_id_changes_in_time_and_counter() {
    let id = |bytes: [u8; 12]| Some(Value::ObjectId(quire_document::ObjectId(bytes)));
    let first = [1, 2, 3, 4, 9, 9, 9, 9, 9, 5, 6, 7];
    // The counter's last byte is the lowest of the number, the time's last byte the second.
    let word = block((13, 4), 30, &[zigzag(0x0101), zigzag(-0x0100)]);
    let bytes = column(&[&literal(id(first).unwrap()), &blocks(INT, &[word])]);
    let [mut second, mut third] = [first; 2];
    (second[11], second[3]) = (8, 5);
    (third[11], third[3]) = (9, 5);
    assert_eq!(decode(&bytes).unwrap(), values([id(first), id(second), id(third)]));
}

fn interleaved(control: u8, reference: &DocBuf, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![control];
    bytes.extend_from_slice(reference.as_bytes());
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.push(0);
    bytes
}

#[test]
fn documents_have_a_stream_for_each_field() {
    let reference = doc! { "a": 1, "b": { "c": 2, "e": {} }, "d": [3] };
    let two = |first: u64, second: u64| blocks(INT, &[block((13, 4), 30, &[first, second])]);
    let skip = (1 << 30) - 1;
    let part = interleaved(
        0xF1,
        &reference,
        &[&two(zigzag(1), zigzag(1)), &two(0, skip), &two(skip, zigzag(4))],
    );
    let expected =
        [doc! { "a": 2, "b": { "c": 2, "e": {} } }, doc! { "a": 3, "b": { "e": {} }, "d": [7] }];
    let expected = expected.map(|doc| Some(ValueBuf::new(doc.as_doc())));
    // Documents go on after the part.
    let again = block((14, 4), 60, &[0]);
    let mut decoded = decode(&column(&[&part, &blocks(INT, &[again])])).unwrap();
    assert_eq!(decoded.pop(), Some(expected[1].clone()));
    assert_eq!(decoded, expected);
    // Without arrays as parts of documents the array is one value.
    let part =
        interleaved(0xF0, &reference, &[&two(zigzag(1), skip), &two(skip, skip), &two(0, skip)]);
    let expected = [doc! { "a": 2, "b": { "e": {} }, "d": [3] }, doc! { "b": { "e": {} } }];
    let expected = expected.map(|doc| Some(ValueBuf::new(doc.as_doc())));
    assert_eq!(decode(&column(&[&part])).unwrap(), expected);
}

#[test]
fn a_document_without_fields_is_missing() {
    let skip = (1 << 30) - 1;
    let two = blocks(INT, &[block((13, 4), 30, &[skip, 0])]);
    let part = interleaved(0xF1, &doc! { "a": { "b": 5 } }, &[&two]);
    let document = doc! { "a": { "b": 5 } };
    let expected = vec![None, Some(ValueBuf::new(document.as_doc()))];
    assert_eq!(decode(&column(&[&part])).unwrap(), expected);
    // 0xF2: the value itself is an array.
    let part = interleaved(0xF2, &doc! { "0": 5 }, &[&two]);
    let decoded = decode(&column(&[&part])).unwrap();
    assert_eq!(decoded[1].as_ref().map(ValueBuf::kind), Some(Type::Array));
}

#[test]
fn what_is_no_column_is_refused() {
    let int = literal(Value::Int32(1));
    let word = block((14, 4), 60, &[2]);
    let two = blocks(INT, &[block((13, 4), 30, &[0, 0])]);
    let one = blocks(INT, &[word]);
    let reference = doc! { "a": 1, "b": 2 };
    for (what, bytes) in [
        ("no end", int.clone()),
        ("more after the end", [&column(&[&int])[..], &[0]].concat()),
        ("nothing at all", Vec::new()),
        ("a block without bytes", column(&[&int, &[0x81, 1, 2, 3]])),
        ("an unknown control byte", column(&[&int, &[0x70]])),
        ("the selector 0", column(&[&int, &blocks(INT, &[0])])),
        ("an unknown extension", column(&[&int, &blocks(INT, &[7 | 10 << 4])])),
        ("another one", column(&[&int, &blocks(INT, &[8 | 14 << 4])])),
        ("a scale for integers", column(&[&int, &blocks(0xA0, &[word])])),
        ("a name", column(&[&[0x10, b'a', 0, 1, 0, 0, 0]])),
        ("a boolean of 2", column(&[&[8, 0, 2]])),
        ("no UTF-8", column(&[&[2, 0, 2, 0, 0, 0, 0xFF, 0]])),
        ("a long literal", column(&[&[2, 0, 0xFF, 0xFF, 0xFF, 0x7F, b'a', 0]])),
        ("code with a scope", column(&[&[0x0F, 0, 14, 0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0]])),
        ("a difference of nulls", column(&[&literal(Value::Null), &one])),
        ("a difference of long binaries", {
            let binary = Value::Binary(quire_document::Binary { subtype: 0, bytes: &[1; 17] });
            column(&[&literal(binary), &one])
        }),
        (
            "a string that is no UTF-8",
            column(&[&literal(Value::String("a")), &{
                blocks(INT, &[block((14, 4), 60, &[zigzag(0x80)])])
            }]),
        ),
        ("documents without fields", column(&[&interleaved(0xF1, &doc! {}, &[])])),
        ("no documents", column(&[&interleaved(0xF1, &reference, &[])])),
        ("a stream that is too long", column(&[&interleaved(0xF1, &reference, &[&one, &two])])),
        ("a stream that is too short", column(&[&interleaved(0xF1, &reference, &[&two, &one])])),
        ("documents in documents", {
            let inner = interleaved(0xF1, &reference, &[&one, &one]);
            column(&[&interleaved(0xF1, &reference, &[&inner])])
        }),
        ("a damaged reference", column(&[&[0xF1, 9, 0, 0, 0, 1, b'a', 0, 0, 0]])),
    ] {
        let refused = decode(&bytes).map(|_| what).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NonConformantBSON, "{what}: {refused}");
    }
}

#[test]
fn a_small_column_cannot_take_more_than_the_budget() {
    let run = 15 | 15 << 4;
    let runs = blocks(INT, &[run; 16]);
    let bytes = column(&vec![&runs[..]; 40]);
    assert_eq!(decode(&bytes).unwrap_err().code(), ErrorCode::NonConformantBSON);
    let many = DocBuf::build(|doc| {
        for _ in 0..10_000 {
            doc.append("", Value::Null);
        }
    });
    let bytes = column(&[&interleaved(0xF1, &many, &[])]);
    assert_eq!(decode(&bytes).unwrap_err().code(), ErrorCode::NonConformantBSON);
}

/// Returns values as a field of many documents has them: of one type for a while, near to each other, some missing.
fn field(random: &mut Generator, count: usize) -> Vec<Option<ValueBuf>> {
    let (mut values, mut base, mut kind) = (Vec::new(), random.integer(), random.below(12));
    let width = [1, 3, 100, 100_000, 1 << 40][random.below(5) as usize];
    while values.len() < count {
        if random.one_in(60) {
            (base, kind) = (random.integer(), random.below(12));
        }
        if random.one_in(30) {
            let repeated = values.last().cloned().unwrap_or(None);
            values.extend(std::iter::repeat_n(repeated, random.below(400) as usize));
            continue;
        }
        if random.one_in(9) {
            values.push(None);
            continue;
        }
        base = base.wrapping_add(random.below(width) as i64 - (width / 3) as i64);
        let text = format!("{:x}", base.unsigned_abs());
        let mut id = [7; 12];
        id[..4].copy_from_slice(&(base as i32).to_be_bytes());
        id[9..].copy_from_slice(&base.to_be_bytes()[5..]);
        let bytes = base.to_le_bytes();
        values.push(Some(match kind {
            0 => ValueBuf::new(base as i32),
            1 => ValueBuf::new(base),
            2 => ValueBuf::new(Value::Date(base)),
            3 => ValueBuf::new((base % 100_000_000) as f64 / 100.0),
            4 => ValueBuf::new(f64::from_bits(base as u64)),
            5 => ValueBuf::new(base % 2 == 0),
            6 => ValueBuf::new(Value::String(&text)),
            7 => ValueBuf::new(Value::ObjectId(quire_document::ObjectId(id))),
            8 => ValueBuf::new(Value::Binary(quire_document::Binary { subtype: 0, bytes: &bytes })),
            9 => ValueBuf::new(Value::Decimal(quire_document::Decimal128(
                [bytes, [0; 8]].concat().try_into().unwrap(),
            ))),
            10 => ValueBuf::new(Value::Code(&text)),
            _ => random.value(),
        }));
    }
    values.truncate(count);
    // No column has code with a scope.
    let is_code = |value: &ValueBuf| value.kind() == Type::CodeWithScope;
    values.iter_mut().for_each(|value| drop(value.take_if(|value| is_code(value))));
    values
}

#[test]
fn what_an_encoder_packs_comes_back() {
    let mut random = Generator::new(11);
    for round in 0..60 {
        let count = 1 + random.below(700) as usize;
        let values = field(&mut random, count);
        let bytes = encoder::column(&values, &mut random);
        assert_eq!(decode(&bytes).unwrap(), values, "{round}");
    }
}

#[test]
fn interleaved_documents_come_back() {
    let mut random = Generator::new(12);
    for round in 0..40 {
        let count = 1 + random.below(200) as usize;
        let names = ["a", "b", "c"];
        let streams: Vec<(ValueBuf, Vec<Option<ValueBuf>>)> = names
            .iter()
            .map(|_| {
                let mut values = field(&mut random, count);
                // Documents in the reference are fields of their own.
                let is_nested =
                    |value: &ValueBuf| matches!(value.kind(), Type::Document | Type::Array);
                values.iter_mut().for_each(|value| drop(value.take_if(|value| is_nested(value))));
                let first = values.iter().flatten().next().cloned();
                (first.unwrap_or(ValueBuf::new(1)), values)
            })
            .collect();
        let row = |of: &dyn Fn(usize) -> Option<ValueBuf>| {
            let inner = DocBuf::build(|inner| {
                inner.append_some("b", of(1).as_ref().map(ValueBuf::as_value));
                inner.append_some("c", of(2).as_ref().map(ValueBuf::as_value));
            });
            DocBuf::build(|doc| {
                doc.append_some("a", of(0).as_ref().map(ValueBuf::as_value));
                if !inner.as_doc().is_empty() {
                    doc.append("d", &inner);
                }
            })
        };
        let reference = row(&|at| Some(streams[at].0.clone()));
        let expected: Vec<Option<ValueBuf>> = (0..count)
            .map(|number| row(&|at| streams[at].1[number].clone()))
            .map(|doc| (!doc.as_doc().is_empty()).then(|| ValueBuf::from(doc)))
            .collect();
        let part = encoder::interleaved(0xF1, &reference, &streams, &mut random);
        assert_eq!(decode(&column(&[&part])).unwrap(), expected, "{round}");
    }
}

#[test]
fn damaged_bytes_give_an_error_or_other_values() {
    let mut random = Generator::new(13);
    for _ in 0..400 {
        let count = 1 + random.below(60) as usize;
        let values = field(&mut random, count);
        let mut bytes = encoder::column(&values, &mut random);
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes[at] = random.bits() as u8,
                1 => bytes.truncate(at + 1),
                _ => bytes[at] ^= 1 << random.below(8),
            }
        }
        for value in decode(&bytes).into_iter().flatten().flatten() {
            // The value is BSON.
            let doc = doc! { "": &value };
            let limits = quire_document::limits::Limits::WIRE;
            assert!(quire_document::validate(doc.as_bytes(), &limits).is_ok(), "{value:?}");
        }
    }
}
