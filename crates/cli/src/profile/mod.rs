//! `quire profile`: what the documents of a database look like. It works for a MongoDB too, and for
//! a dump, so that people can use it before they use the database.

mod dump;
pub(crate) mod options;
mod screen;
mod server;

use crate::call::{Call, print};
use crate::exit::{FAILED, FOUND, Failure};
use crate::progress::Progress as Bar;
use crate::requests;
use dump::DumpSource;
use options::{ProfileOptions, Report};
use quire_advisor::json_schema::json_schema;
use quire_advisor::report::report;
use quire_advisor::{
    DatabaseProfile, Extent, Limits, Progress, Source, SourceCollection, Workload, profile_database,
};
use quire_document::extjson::{self, Format};
use server::ServerSource;

/// Runs `quire profile`.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = ProfileOptions::parse(call)? else {
        print(&options::help());
        return Ok(());
    };
    let gathered = gather(&options, &call.program, false)?;
    show(&options, &gathered)
}

/// What the sources of a command line say.
pub(crate) struct SourceReadings {
    /// What the data look like; of no collection if only a log was read.
    pub(crate) profile: DatabaseProfile,
    /// What was asked.
    pub(crate) workload: Option<Workload>,
    /// Where the workload stands.
    pub(crate) origin: &'static str,
}

/// Reads everything that the options name. `asks` is true if a server is asked for its workload.
///
/// # Errors
/// Those of the files and of the server.
pub(crate) fn gather(
    options: &ProfileOptions,
    tool: &str,
    asks: bool,
) -> Result<SourceReadings, Failure> {
    let mut gathered = SourceReadings {
        profile: DatabaseProfile {
            collections: Vec::new(),
            extent: options.extent,
            references: Vec::new(),
            copies: Vec::new(),
        },
        workload: None,
        origin: "",
    };
    let mut requests = requests::Gathered::default();
    for path in &options.logs {
        requests::read_log(path, &mut requests)?;
        gathered.origin = "log";
    }
    if let Some(folder) = &options.dump {
        let mut source = DumpSource::open(folder)?;
        if options.logs.is_empty() && source.read_profiled(&mut requests)? {
            gathered.origin = "system.profile";
        }
        gathered.profile = profiled(&mut source, options)?;
    } else if options.reads_server() {
        let door = options.target.open(tool)?;
        let mut client = door.client()?;
        let (db, rate) = (options.db.clone(), options.rate);
        let read = profiled(&mut ServerSource { client: &mut client, db, rate }, options);
        let given = !options.logs.is_empty() || options.workload.is_some();
        if let Some((workload, origin)) =
            (asks && !given).then(|| requests::of_server(&mut client, &options.db)).flatten()
        {
            (gathered.workload, gathered.origin) = (Some(workload), origin);
        }
        drop(client);
        door.close()?;
        gathered.profile = read?;
    }
    if let Some(workload) = requests.workload() {
        gathered.workload = Some(workload);
    }
    if let Some(path) = &options.workload {
        gathered.workload = Some(requests::read_workload(path)?);
        gathered.origin = "file";
    }
    Ok(gathered)
}

fn profiled<S: Source<Error = Failure>>(
    source: &mut S,
    options: &ProfileOptions,
) -> Result<DatabaseProfile, Failure> {
    let mut shown = Shown { bar: None, quiet: options.quiet };
    let only = &options.collections;
    let profile = profile_database(source, only, options.extent, Limits::default(), &mut shown);
    shown.finish();
    let profile = profile?;
    if only.is_empty() && profile.collections.is_empty() {
        let text = format!("there is no database {} with a collection", options.db);
        return Err(Failure::new(FOUND, text));
    }
    let exists = |name: &&String| profile.collections.iter().any(|(found, _)| found.name == **name);
    match only.iter().find(|name| !exists(name)) {
        Some(missing) => {
            let text = format!("the database {} has no collection {missing}", options.db);
            Err(Failure::new(FAILED, text))
        }
        None => Ok(profile),
    }
}

fn show(options: &ProfileOptions, gathered: &SourceReadings) -> Result<(), Failure> {
    let profile = &gathered.profile;
    let pretty = |document| extjson::print(document, Format { pretty: true, ..Format::default() });
    match options.output {
        Report::Screen => {
            print(&screen::screen(&options.db, profile));
            if let Some(workload) = &gathered.workload {
                print(&screen::requests(&options.db, workload));
            }
        }
        Report::Json => {
            let mut found = report(&options.db, profile);
            if let Some(workload) = &gathered.workload {
                found.append("workload", &workload.to_document());
            }
            print(&pretty(found.as_doc()));
        }
        Report::Schema(form) => {
            if let Some((_, collection)) = profile.collections.first() {
                print(&pretty(json_schema(collection, form).as_doc()));
            }
        }
    }
    Ok(())
}

/// A bar for the collection that is being read.
struct Shown {
    bar: Option<Bar>,
    quiet: bool,
}

impl Shown {
    fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish();
        }
    }
}

impl Progress for Shown {
    fn begins(&mut self, collection: &SourceCollection, extent: Extent) {
        self.finish();
        let total = match (collection.documents, extent) {
            (Some(documents), Extent::Sample(size)) => Some(documents.min(size)),
            (documents, _) => documents,
        };
        self.bar = Some(Bar::documents(total, self.quiet));
    }

    fn read(&mut self) {
        if let Some(bar) = &self.bar {
            bar.add(1);
        }
    }
}
