//! The advice as a whole: relations, silence, the document, commands.

use crate::Unseen;
use crate::planted::{Did, NOW_MS, World, id, index, shape};
use quire_advisor::findings::labels::{label, shown};
use quire_advisor::findings::report::report;
use quire_advisor::findings::{Finding, Input, Language, RULES, RelationForm, Silenced, advise};
use quire_advisor::workload::Kind;
use quire_advisor::{Extent, Limits, profile_database};
use quire_document::{DocBuf, Value, array, doc};

#[test]
fn a_clean_database_is_already_right() {
    let advice = World::new(3).advice();
    assert!(advice.findings.is_empty());
    let answers: Vec<&str> = advice.relations.iter().map(|one| one.answer()).collect();
    assert_eq!(answers, ["right", "right"], "{:?}", advice.relations);
    let relation = &advice.relations[0];
    assert_eq!((relation.present, relation.best), (RelationForm::Refer, RelationForm::Refer));
    assert!(relation.costs.len() == 2 && relation.inputs.len() == 10);
    // The lines are in their orders.
    let lines = &advice.relations[1];
    assert!(lines.title().ends_with(".lines[]") && lines.best == RelationForm::Embed, "{lines:?}");
}

/// Without a workload nothing is said about costs, and the answer about a relation is not known.
#[test]
fn without_a_workload_only_the_data_speak() {
    let mut world = World::new(4);
    let profile =
        profile_database(&mut world.data, &[], Extent::All, Limits::default(), &mut Unseen);
    let profile = profile.unwrap_or_else(|error| panic!("{error}"));
    let input = Input::new("shop", &profile, None, crate::planted::NOW_MS);
    let advice = advise(&input, &Silenced::default());
    assert!(advice.findings.is_empty(), "{:?}", advice.findings);
    assert_eq!(advice.relations[0].answer(), "unknown");
    let written = report(&input, &advice);
    assert!(written.get("workloadSeconds").is_none());
    assert_eq!(written.get("alreadyRight").and_then(|right| right.as_bool()), Some(true));
}

/// What a rule finds and how to silence it stands in the documentation, and every measurement has a
/// name in both languages.
#[test]
fn every_rule_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md");
    let text = std::fs::read_to_string(path).unwrap();
    for rule in RULES {
        let line = format!("| {} | {} |", rule.id, rule.title.en);
        assert!(text.contains(&line), "{line}");
    }
    for (rule, _) in crate::planted::PLANTS {
        let mut world = World::new(6);
        crate::planted::plant(&mut world, rule);
        for finding in world.advice().findings {
            for (key, value) in &finding.evidence {
                assert_ne!(label(key, Language::Chinese), *key, "{rule}");
                assert!(!shown(value, Language::English).is_empty(), "{rule}: {key}");
            }
            assert!(!finding.apply.is_empty(), "{rule}");
        }
    }
}

#[test]
fn a_rule_is_silenced_everywhere_or_at_a_place() {
    let found = |silenced: &[&str]| {
        let mut world = World::new(5);
        crate::planted::plant(&mut world, "A11");
        let (workload, profile) = world.recorded();
        let input = Input::new("shop", &profile, Some(&workload), crate::planted::NOW_MS);
        let mut entries = Silenced::default();
        silenced.iter().for_each(|entry| entries.add(entry).unwrap());
        let silenced = entries;
        let advice = advise(&input, &silenced);
        (advice.findings.len(), advice.silenced, report(&input, &advice))
    };
    let (all, silenced, written) = found(&[]);
    assert_eq!((all, silenced), (1, 0));
    let first = written.get("findings").and_then(|all| all.as_array()?.get(0)).unwrap();
    let first = first.as_document().unwrap();
    let evidence = first.get("evidence").and_then(|evidence| evidence.as_document()).unwrap();
    assert_eq!(evidence.get("meant").and_then(|meant| meant.as_str()), Some("status"));
    let apply = first.get("apply").and_then(|apply| apply.as_array()).unwrap();
    let create = apply.get(0).and_then(|text| text.as_str()).unwrap();
    assert!(create.ends_with(".createIndex({\"status\":1})"), "{create}");
    let children = World::new(5).children;
    for entry in ["A11".to_owned(), format!("A11:{children}"), format!("A11:{children}.statsu")] {
        assert_eq!(found(&[&entry]).0, 0, "{entry}");
    }
    assert_eq!(found(&["A11:others", "A1"]).0, 1);
}

/// Names that are no identifiers: a path can have some of them, and no command can name the others.
#[test]
fn commands_name_odd_fields_or_say_that_none_can() {
    let mut world = World::new(8);
    let goods = world.goods.clone();
    let odd = ["a[0]", "it's", "x\"y", "a$b", "a.b", "", "$c", "d[]"];
    world.change(&goods, |at, document, _| {
        let text = format!("2024-{:02}-{:02}", 1 + at % 12, 1 + at % 28);
        for name in odd {
            document.append(name, text.as_str());
        }
    });
    let advice = world.advice();
    let mut commands = advice.findings.iter().filter(|one| one.rule == "A10");
    for path in ["a[0]", "it's", "x\"y", "a$b"] {
        let found = advice.findings.iter().find(|one| one.path == path);
        let command = &found.unwrap_or_else(|| panic!("nothing about {path}")).apply[0];
        assert!(command.contains(&quire_advisor::findings::mongosh::string(path)), "{command}");
        assert!(command.contains("updateMany"), "{command}");
    }
    for path in ["['a.b']", "['']", "['$c']", "['d[]']"] {
        let found = advice.findings.iter().find(|one| one.path == path);
        let found = found.unwrap_or_else(|| panic!("nothing about {path}"));
        assert!(found.apply[0].starts_with("// no command") && found.undo.is_empty(), "{found:?}");
    }
    assert!(commands.all(|one| one.apply.len() == 1));
}

/// A field at the first level whose name has a dot was taken for the path of a subdocument.
#[test]
fn rules_about_whole_fields_say_that_a_name_with_a_dot_has_no_command() {
    let mut world = World::new(9);
    let goods = world.goods.clone();
    world.change(&goods, |at, document, _| {
        document.append("valid.expires", Value::Date(crate::planted::NOW_MS - at as i64 - 1));
        let heavy = format!("{at}").repeat(300_000);
        document.append("scan.pdf", &heavy[..250_000]);
    });
    let advice = world.advice();
    for (rule, path) in [("P17", "['valid.expires']"), ("A4", "['scan.pdf']")] {
        let found = advice.findings.iter().find(|one| one.rule == rule && one.path == path);
        let found = found.unwrap_or_else(|| panic!("no {rule}: {:?}", advice.findings));
        assert!(found.apply[0].starts_with("// no command"), "{found:?}");
    }
}

#[test]
fn a_value_that_cannot_be_converted_stays() {
    let mut world = World::new(5);
    crate::planted::plant(&mut world, "A9");
    let advice = world.advice();
    let found = advice.findings.iter().find(|one| one.rule == "A9").unwrap();
    let path = quire_advisor::findings::mongosh::string(&format!("${}", found.path));
    assert!(found.apply[0].contains(&format!("onError: {path}")), "{:?}", found.apply);
}

#[test]
fn a_rule_that_does_not_exist_cannot_be_silenced() {
    let mut silenced = Silenced::default();
    let error = silenced.add("a15:orders").unwrap_err();
    assert!(error.starts_with("there is no rule 'a15'; near names are A15, "), "{error}");
    assert!(silenced.add("").is_err() && silenced.add("A15:orders.total").is_ok());
}

/// Returns what rule P9 says of measurements: those of a plant, or with a document for each hour.
fn measurements(is_sparse: bool, is_unique: bool) -> Finding {
    let mut world = World::new(5);
    crate::planted::plant(&mut world, "P9");
    if is_sparse {
        world.claims("readings", 10_100);
        world.change("readings", |at, document, _| {
            let mut moved = DocBuf::new();
            let others = document.as_doc().fields().filter(|(name, _)| *name != "at");
            others.for_each(|(name, value)| {
                moved.append(name, value);
            });
            moved.append("at", Value::Date(crate::planted::NOW_MS - at as i64 * 6_000_000));
            *document = moved;
        });
    }
    if is_unique {
        let (_, source) = world.data.0.get_mut("readings").unwrap();
        source.indexes.push(doc! { "key": { "at": 1 }, "name": "at", "unique": true });
    }
    let advice = world.advice();
    advice.findings.into_iter().find(|one| one.rule == "P9").unwrap()
}

/// Measurements can become a time-series collection, with the granularity of their spacing, unless a
/// unique index forbids it.
#[test]
fn measurements_get_commands_for_a_time_series_collection() {
    let found = measurements(false, false);
    let options = "{timeField: \"at\", metaField: \"sensor\", granularity: \"seconds\"}";
    let create = format!("db.createCollection(\"readings_series\", {{timeseries: {options}}})");
    let fill = format!(
        "db.readings.aggregate([{{$out: {{db: \"shop\", coll: \"readings_series\", timeseries: {options}}}}}])"
    );
    assert!(
        found.apply[0].contains("$dateTrunc") && found.apply[2..] == [create, fill],
        "{found:?}"
    );
    assert_eq!(found.undo, ["db.readings_by_hour.drop()", "db.readings_series.drop()"]);
    let found = measurements(true, false);
    assert!(found.apply[2].contains("granularity: \"minutes\""), "{found:?}");
    let found = measurements(true, true);
    assert_eq!((found.apply.len(), found.undo.len()), (1, 1), "{found:?}");
}

/// Answers of a day cannot be read from totals over all days. A range of a filter is no key of totals, and
/// a path with nearly as many values as there are documents makes no fewer of them.
#[test]
fn totals_are_proposed_only_if_they_answer() {
    let advised = |test: (&str, DocBuf)| {
        let mut world = World::new(1);
        let children = world.children.clone();
        world.change(&children, |at, document, _| {
            document.append("day", ["mon", "tue", "wed"][at % 3]);
        });
        let mut filter = DocBuf::new();
        filter.append(test.0, &test.1);
        let pipeline = array![
            { "$match": &filter },
            { "$group": { "_id": "$status", "all": { "$sum": "$total" } } },
        ];
        let did = Did { count: 6_000, examined: 560, returned: 4, scans: false };
        world.aggregate(&children, pipeline, did);
        let advice = world.advice();
        let found = advice.findings.into_iter().find(|finding| finding.rule == "P7");
        (children, found)
    };
    for day in [doc! { "$eq": "?string" }, doc! { "$in": "?array<?string>" }] {
        let (name, found) = advised(("day", day.clone()));
        let found = found.unwrap_or_else(|| panic!("nothing for {day:?}"));
        let kept =
            r#"[{"$group":{"_id":{"day":"$day","group":"$status"},"all":{"$sum":"$total"}}}, "#;
        assert!(found.apply[0].contains(kept), "{:?}", found.apply);
        let index = format!(r#"db.{name}_totals.createIndex({{"_id.day":1}})"#);
        assert_eq!(found.apply[1], index);
        assert!(found.apply[2].contains(r#"{"_id":"$_id.group","all":{"$sum":"$all"}}"#));
    }
    for (path, test) in [
        ("created", doc! { "$gte": "?date" }),
        ("day", doc! { "$regex": "?string" }),
        ("total", doc! { "$eq": "?number" }),
        ("lines.good", doc! { "$eq": "?string" }),
    ] {
        let (_, found) = advised((path, test));
        assert!(found.is_none(), "{path}: {found:?}");
    }
}

/// A day as a text is no source of measurements: each of its values has a span of the time of its own.
#[test]
fn a_field_that_follows_from_the_time_is_no_source() {
    let advised = |source: fn(u32) -> String| {
        let mut world = World::empty();
        let readings: Vec<DocBuf> = (0..900_u32)
            .map(|at| {
                let time = Value::Date(NOW_MS - i64::from(at) * 600_000);
                doc! { "_id": id(5, at, 900), "source": source(at).as_str(), "at": time, "value": f64::from(at % 83) }
            })
            .collect();
        world.collection("readings", readings, vec![index("at", 1)]);
        world.claims("readings", 900_000);
        world.write(Kind::Insert, "readings", shape("insert", "readings"), 9_000);
        world.advice().findings.iter().any(|finding| finding.rule == "P9")
    };
    assert!(advised(|at| format!("sensor {}", at % 9)), "sensors take turns");
    assert!(advised(|at| format!("shift {}", at / 48 % 3)), "shifts come again each day");
    assert!(!advised(|at| format!("2025-05-{:02}", 31 - at / 144)), "days");
}
