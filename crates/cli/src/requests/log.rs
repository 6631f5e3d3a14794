//! The log of a mongod from 4.4 on: a JSON document on each line. Lines of another form are skipped.

use super::Gathered;
use super::entry::Entry;
use crate::exit::{FAILED, Failure};
use quire_document::{Value, extjson};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The identifier of the line about a slow statement, the same in all versions.
const SLOW: i64 = 51_803;

/// Adds the statements of a log file. Returns how many lines it has.
pub(crate) fn read_log(path: &Path, gathered: &mut Gathered) -> Result<u64, Failure> {
    let bad = |error: std::io::Error| Failure::new(FAILED, format!("{}: {error}", path.display()));
    let mut input = BufReader::with_capacity(1 << 20, File::open(path).map_err(bad)?);
    let (mut line, mut lines) = (Vec::new(), 0);
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(bad)? == 0 {
            break;
        }
        lines += 1;
        // A rotated or copied log can have a line that is cut.
        if let Ok(text) = std::str::from_utf8(&line) {
            add_line(text.trim(), gathered);
        }
    }
    match gathered.span {
        Some(_) => Ok(lines),
        None => {
            let text = "no line has the form of a log of mongod 4.4 or later: a JSON document with the field t";
            Err(Failure::new(FAILED, format!("{}: {text}", path.display())))
        }
    }
}

fn add_line(text: &str, gathered: &mut Gathered) {
    let Ok(line) = extjson::parse_doc(text) else { return };
    let Some(Value::Date(ms)) = line.get("t") else { return };
    gathered.note_time(ms);
    let is_slow = line.get("id").and_then(|id| id.exact_i64()) == Some(SLOW)
        || line.get("msg").and_then(|text| text.as_str()) == Some("Slow query");
    let attributes = line.get("attr").and_then(|attributes| attributes.as_document());
    if let Some(attributes) = attributes.filter(|_| is_slow)
        && let Some(entry) = Entry::of_line(attributes, Some(ms))
    {
        gathered.add(&entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_advisor::Workload;
    use quire_advisor::workload::{Kind, Test};

    /// Lines as the manual describes them: 4.4, 5.0, 6.0, 7.0, 8.0.
    const LINES: &[&str] = &[
        r#"{"t":{"$date":"2025-05-01T10:00:00.000+00:00"},"s":"I","c":"STORAGE","id":22430,"ctx":"main","msg":"Hello"}"#,
        r#"{"t":{"$date":"2025-05-01T10:00:10.000+00:00"},"s":"I","c":"COMMAND","id":51803,"ctx":"conn9","msg":"Slow query","attr":{"type":"command","ns":"shop.orders","appName":"app","command":{"find":"orders","filter":{"state":"new","total":{"$gte":5}},"sort":{"created":-1},"skip":2000,"limit":20,"lsid":{"id":{"$uuid":"5a2b7e20-6d6a-4a3a-9d6a-000000000000"}},"$db":"shop"},"planSummary":"COLLSCAN","keysExamined":0,"docsExamined":5000,"hasSortStage":true,"cursorExhausted":true,"numYields":5,"nreturned":20,"reslen":2400,"locks":{},"protocol":"op_msg","durationMillis":110}}"#,
        r#"{"t":{"$date":"2025-05-01T10:00:20.000+00:00"},"s":"I","c":"WRITE","id":51803,"ctx":"conn9","msg":"Slow query","attr":{"type":"update","ns":"shop.orders","command":{"q":{"_id":7},"u":{"$set":{"state":"paid"},"$push":{"log":{"a":1}}},"multi":false,"upsert":false},"planSummary":"IDHACK","keysExamined":1,"docsExamined":1,"nMatched":1,"nModified":1,"durationMillis":150}}"#,
        r#"{"t":{"$date":"2025-05-01T10:00:30.000+00:00"},"s":"I","c":"COMMAND","id":51803,"ctx":"conn9","msg":"Slow query","attr":{"type":"command","ns":"shop.orders","command":{"getMore":77,"collection":"orders","$db":"shop"},"originatingCommand":{"find":"orders","filter":{"state":"old","total":{"$gte":9}},"sort":{"created":-1},"skip":3000,"limit":20,"$db":"shop"},"planSummary":"COLLSCAN","docsExamined":1000,"nreturned":7,"durationMillis":101}}"#,
        r#"{"t":{"$date":"2025-05-01T10:00:40.000+00:00"},"s":"I","c":"WRITE","id":51803,"svc":"S","ctx":"conn9","msg":"Slow query","attr":{"type":"remove","isFromUserConnection":true,"ns":"shop.orders","collectionType":"normal","command":{"q":{"state":"void"},"limit":0},"planSummary":"COLLSCAN","planCacheShapeHash":"AB","queryFramework":"classic","docsExamined":5000,"ndeleted":3,"workingMillis":99,"durationMillis":103}}"#,
        r#"{"t":{"$date":"2025-05-01T10:01:40.000+00:00"},"s":"I","c":"COMMAND","id":51803,"svc":"S","ctx":"conn9","msg":"Slow query","attr":{"type":"command","ns":"shop.orders","queryShapeHash":"CD","command":{"aggregate":"orders","pipeline":[{"$match":{"day":{"$date":"2025-01-01T00:00:00Z"}}},{"$lookup":{"from":"customers","localField":"c","foreignField":"_id","as":"x"}}],"cursor":{},"$db":"shop"},"planSummary":"IXSCAN { day: 1 }","keysExamined":10,"docsExamined":20,"nreturned":10,"durationMillis":180}}"#,
        "this line was cut {\"t\":",
    ];

    fn workload() -> Workload {
        let mut gathered = Gathered::default();
        LINES.iter().for_each(|line| add_line(line, &mut gathered));
        gathered.workload().unwrap_or_default()
    }

    #[test]
    fn lines_of_each_version_give_a_workload() {
        let workload = workload();
        assert_eq!(workload.ends_ms - workload.begins_ms, 100_000);
        let of = |kind: Kind| {
            let mut shapes = workload.shapes.iter().filter(|one| one.kind == kind);
            let found = shapes.next().unwrap_or_else(|| panic!("no {}", kind.name()));
            assert!(shapes.next().is_none());
            found
        };
        let find = of(Kind::Find);
        let measures = &find.measures;
        assert_eq!((measures.count, measures.get_mores, measures.collection_scans), (1, 1, 2));
        assert_eq!(
            (measures.docs_examined.sum, measures.returned.sum, measures.sorts),
            (6000, 27, 1)
        );
        assert!(measures.skip.quantile(0.5).is_some_and(|skip| skip >= 2000));
        let tests: Vec<Test> = find.parts().filtered.iter().map(|one| one.test).collect();
        assert_eq!(tests, [Test::Equality, Test::Range]);
        let written = of(Kind::Update).parts().written;
        assert_eq!((written[0].path.as_str(), written[1].operator.as_str()), ("state", "$push"));
        assert_eq!(of(Kind::Delete).measures.deleted.sum, 3);
        assert_eq!(of(Kind::Aggregate).parts().joined[0].from, "customers");
    }

    /// A log must not bring a value of the data into a report.
    #[test]
    fn a_workload_has_no_literals() {
        for used in workload().shapes {
            let shown = extjson::print(used.shape.as_doc(), extjson::Format::default());
            assert!(
                !["new", "old", "void", "paid"]
                    .iter()
                    .any(|one| shown.contains(&format!("\"{one}\""))),
                "{shown}"
            );
        }
    }
}
