//! The memory of pipelines: the peak of a process that runs one of them.

use super::*;
use quire_document::{Value, doc};
use quire_executor::open;
use quire_planner::AggregateRequest;

/// A pipeline over `db.c`, a collection of one document.
struct Pipeline {
    name: &'static str,
    /// Returns the stages, scaled by a factor.
    stages: fn(i32) -> Vec<DocBuf>,
    /// The factors of a first run, and of the run that is measured.
    factors: (i32, i32),
    /// The code of the error of the measured run; `None` if it succeeds.
    error: Option<i32>,
    /// The memory limit of stages before they spill.
    stage_bytes: usize,
    /// The process must grow by less than this in the measured run.
    kilobytes: u64,
}

const PIPELINES: &[Pipeline] = &[
    // More than 100 MB of groups.
    Pipeline {
        name: "group",
        stages: |count| {
            let text = "y".repeat(200);
            let group = doc! { "$group": {
                "_id": "$a", "all": { "$push": text.as_str() }, "n": { "$sum": 1 },
            } };
            [unwound(count), vec![group, total("$n")]].concat()
        },
        factors: (1000, 150_000),
        error: None,
        stage_bytes: 4 << 20,
        kilobytes: 40 << 10,
    },
    // 500 documents of 2 MB, joined in one batch.
    Pipeline {
        name: "lookup",
        stages: |count| {
            let lookup = doc! { "$lookup": {
                "from": "large", "localField": "none", "foreignField": "none", "as": "all",
            } };
            let sizes = doc! { "$project": { "n": { "$size": "$all" } } };
            [unwound(count), vec![lookup, sizes, total("$n")]].concat()
        },
        factors: (4, 500),
        error: None,
        stage_bytes: 16 << 20,
        kilobytes: 40 << 10,
    },
    // The results of the join's pipeline may take 100 MB at most.
    Pipeline {
        name: "lookup that multiplies",
        stages: |count| {
            let inner = ArrayBuf::build(|inner| {
                for path in ["$b", "$c"] {
                    let field = path.trim_start_matches('$');
                    inner.push(&doc! { "$set": { (field): { "$range": [0, count] } } });
                    inner.push(&doc! { "$unwind": path });
                }
            });
            vec![
                doc! { "$lookup": {
                    "from": "c", "localField": "none", "foreignField": "none", "as": "all",
                    "pipeline": &inner,
                } },
                doc! { "$project": { "n": { "$size": "$all" } } },
            ]
        },
        factors: (4, 3000),
        error: Some(4568),
        stage_bytes: 16 << 20,
        kilobytes: 250 << 10,
    },
    // A sample of 100,000 documents of 1 KB.
    Pipeline {
        name: "sample",
        stages: |count| {
            let sample = doc! { "$sample": { "size": 1_000_000 } };
            [unwound(count), vec![with_text(1000), sample, counted(), total("$n")]].concat()
        },
        factors: (1000, 100_000),
        error: None,
        stage_bytes: 4 << 20,
        kilobytes: 40 << 10,
    },
    // 240 documents of 1 MB that come back from disk.
    Pipeline {
        name: "sort of large documents",
        stages: |count| {
            let sort = doc! { "$sort": { "a": -1 } };
            [unwound(count), vec![with_text(1 << 20), sort, counted(), total("$n")]].concat()
        },
        factors: (2, 240),
        error: None,
        stage_bytes: 16 << 20,
        kilobytes: 100 << 10,
    },
];

/// Returns a stage that gives each document a text `t` of slightly more than `bytes`.
fn with_text(bytes: usize) -> DocBuf {
    let text = "z".repeat(bytes);
    doc! { "$set": { "t": { "$concat": [text.as_str(), { "$toString": "$a" }] } } }
}

/// Returns a stage that reads the text of each document and counts the document once.
fn counted() -> DocBuf {
    doc! { "$set": { "n": { "$cond": [{ "$gt": ["$t", ""] }, 1, 0] } } }
}

/// Returns stages that make `count` documents of one.
fn unwound(count: i32) -> Vec<DocBuf> {
    vec![doc! { "$project": { "a": { "$range": [0, count] } } }, doc! { "$unwind": "$a" }]
}

fn total(path: &str) -> DocBuf {
    doc! { "$group": { "_id": Value::Null, "n": { "$sum": path } } }
}

/// Runs the child below for each pipeline, so that the peak of a process is that of one pipeline.
#[test]
#[cfg(target_os = "linux")]
fn memory_is_bounded() {
    let this = std::env::current_exe().unwrap();
    for pipeline in PIPELINES {
        let child = ["--exact", "memory::peak_of_a_pipeline", "--ignored", "--nocapture"];
        let mut command = std::process::Command::new(&this);
        let output = command.args(child).env("PIPELINE", pipeline.name).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {text}", pipeline.name);
        let grown: u64 = text
            .lines()
            .find_map(|line| line.split("grown by ").nth(1)?.split(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("{text}"));
        assert!(grown < pipeline.kilobytes, "{}: {grown} KB", pipeline.name);
    }
}

#[test]
#[ignore = "run by memory_is_bounded in a process of its own"]
fn peak_of_a_pipeline() {
    let name = std::env::var("PIPELINE").unwrap();
    let pipeline = PIPELINES.iter().find(|pipeline| pipeline.name == name).unwrap();
    let store = store();
    insert_all(&store, "db.c", [doc! { "_id": 1 }.as_doc()]);
    let large: Vec<DocBuf> =
        (0..20).map(|id| doc! { "_id": id, "t": "x".repeat(100_000).as_str() }).collect();
    insert_all(&store, "db.large", large.iter().map(DocBuf::as_doc));
    let run = |factor| {
        let request = AggregateRequest {
            namespace: "db.c".into(),
            pipeline: (pipeline.stages)(factor),
            allow_disk_use: Some(true),
            ..AggregateRequest::default()
        };
        let mut params = params();
        params.group_bytes_max = pipeline.stage_bytes;
        params.stage_bytes_max = pipeline.stage_bytes;
        let views = FreshViews::new(&store)?;
        try_drain(&store, &mut open(&request, &views, params)?, 1000)
    };
    run(pipeline.factors.0).unwrap();
    let before = peak_kilobytes();
    let error = run(pipeline.factors.1).err().map(|error| error.code().number());
    assert_eq!(error, pipeline.error);
    println!("grown by {} KB", peak_kilobytes() - before);
}

/// Returns the peak memory of this process.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
