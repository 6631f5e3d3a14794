//! `quire jobs`: lists, shows and runs the jobs of a server.

use crate::call::{Call, print};
use crate::connect::{self, Client, Target, batch, integer};
use crate::exit::{FAILED, Failure};
use crate::words::{Word, Words};
use comfy_table::{Table, presets};
use quire_document::calendar::iso_text;
use quire_document::extjson::{self, Format};
use quire_document::{Doc, DocBuf, Value, doc};

fn help() -> String {
    format!(
        "Usage: quire jobs [list | show JOB | run JOB] [OPTIONS]

Lists the jobs of all databases, shows one, or runs a scheduled one now and waits for its end. A
JOB is named by its database and its name: shop.averages. docs/jobs.md describes jobs.

Data:
{}

Output:
  --json               The jobs as JSON.
  -h, --help           Shows this help.",
        connect::HELP
    )
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    List,
    Show(String, String),
    Run(String, String),
}

struct JobsOptions {
    target: Target,
    task: Task,
    json: bool,
}

impl JobsOptions {
    /// Parses the command line; `None` if help was requested.
    fn parse(call: &Call) -> Result<Option<JobsOptions>, Failure> {
        let mut target = Target::default();
        let (mut json, mut said) = (false, Vec::new());
        let mut words = Words::of(call, help());
        while let Some(word) = words.next(&mut target)? {
            match word {
                Word::Help => return Ok(None),
                Word::Long(name) if name == "json" => json = true,
                Word::Value(value) => said.push(words.text_of(value)?),
                other => return Err(words.unexpected(other)),
            }
        }
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let named = |name: &str| {
            let parts = name.split_once('.').map(|(db, name)| (db.to_owned(), name.to_owned()));
            parts.ok_or_else(|| words.wrong(format!("'{name}' is no name as shop.averages")))
        };
        let task = match said[..] {
            [] | ["list"] => Task::List,
            ["show", name] => named(name).map(|(db, name)| Task::Show(db, name))?,
            ["run", name] => named(name).map(|(db, name)| Task::Run(db, name))?,
            _ => return Err(words.wrong(format!("unexpected words: {}", said.join(" ")))),
        };
        Ok(Some(JobsOptions { target, task, json }))
    }
}

/// Runs `quire jobs`.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = JobsOptions::parse(call)? else {
        print(&help());
        return Ok(());
    };
    let door = options.target.open("quire jobs")?;
    let mut client = door.client()?;
    let done = perform(&mut client, &options);
    drop(client);
    door.close()?;
    print(&done?);
    Ok(())
}

/// Does the task, and returns the text to print.
fn perform(client: &mut Client, options: &JobsOptions) -> Result<String, Failure> {
    match &options.task {
        Task::List => {
            let jobs = jobs(client, "admin", doc! { "listJobs": 1 })?;
            match options.json {
                true => Ok(jobs.iter().map(pretty).collect::<Vec<_>>().join("\n")),
                false => Ok(table(&jobs)),
            }
        }
        Task::Show(db, name) => {
            let jobs = jobs(client, db, doc! { "listJobs": 1, "name": name.as_str() })?;
            let missing = || Failure::new(FAILED, format!("there is no job {db}.{name}"));
            jobs.first().map(pretty).ok_or_else(missing)
        }
        Task::Run(db, name) => {
            let command = doc! { "runJob": name.as_str(), "wait": true };
            let doing = format!("cannot run {db}.{name}");
            let reply = client.call(db, command, None).map_err(|error| error.failure(&doing))?;
            let run = reply.get("run").and_then(|run| run.as_document());
            Ok(run.map_or_else(String::new, |run| pretty(&run.to_owned())))
        }
    }
}

fn jobs(client: &mut Client, db: &str, command: DocBuf) -> Result<Vec<DocBuf>, Failure> {
    let mut call = |command: DocBuf| {
        client.call(db, command, None).map_err(|error| error.failure("cannot list jobs"))
    };
    let (mut reply, mut name, mut found) = (call(command)?, "firstBatch", Vec::new());
    loop {
        let (id, rows) = batch(&reply, name)?;
        found.extend(rows.iter().filter_map(|row| row.as_document()).map(Doc::to_owned));
        if id == 0 {
            return Ok(found);
        }
        reply = call(doc! { "getMore": id, "collection": "$cmd.listJobs" })?;
        name = "nextBatch";
    }
}

fn pretty(job: &DocBuf) -> String {
    extjson::print(job.as_doc(), Format { pretty: true, ..Format::default() })
}

fn table(jobs: &[DocBuf]) -> String {
    if jobs.is_empty() {
        return "There are no jobs.".to_owned();
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["job", "state", "next", "runs", "failures", "error"]);
    for job in jobs {
        let text = |name: &str| job.get(name).and_then(|value| value.as_str()).unwrap_or_default();
        let count = |name: &str| {
            job.get(name).and_then(integer).map_or_else(String::new, |number| number.to_string())
        };
        let next = match job.get("next") {
            Some(Value::Date(next)) => iso_text(next),
            _ => "on changes".to_owned(),
        };
        let next = if text("state") == "active" { next } else { String::new() };
        let why = if text("error").is_empty() { text("reason") } else { text("error") };
        let name = format!("{}.{}", text("db"), text("name"));
        table.add_row([
            name,
            text("state").to_owned(),
            next,
            count("runs"),
            count("failures"),
            why.to_owned(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::tests::parsed;

    fn task(words: &[&str]) -> Result<Task, String> {
        parsed("quire jobs", words, JobsOptions::parse).map(|options| options.task)
    }

    #[test]
    fn words_name_a_task_and_a_job() {
        assert_eq!(task(&[]), Ok(Task::List));
        assert_eq!(task(&["list", "--json"]), Ok(Task::List));
        assert_eq!(task(&["show", "d.a.b"]), Ok(Task::Show("d".into(), "a.b".into())));
        assert_eq!(task(&["run", "d.a"]), Ok(Task::Run("d".into(), "a".into())));
        for wrong in [&["show"][..], &["show", "a"], &["stop", "d.a"], &["list", "--all"]] {
            assert!(task(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(task(&["--help"]), Err("help".into()));
    }
}
