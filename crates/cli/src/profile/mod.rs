//! `quire profile`: what the documents of a database look like. It works for a MongoDB too, and for
//! a dump, so that people can use it before they use the database.

mod dump;
mod options;
mod screen;
mod server;

use crate::call::{Call, print};
use crate::exit::{FAILED, Failure};
use crate::progress::Progress as Bar;
use dump::DumpSource;
use options::{ProfileOptions, Report};
use quire_advisor::json_schema::json_schema;
use quire_advisor::report::report;
use quire_advisor::{
    DatabaseProfile, Extent, Limits, Progress, Source, SourceCollection, profile_database,
};
use quire_document::extjson::{self, Format};
use server::ServerSource;

/// Runs `quire profile`.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = ProfileOptions::parse(call)? else {
        print(&options::help());
        return Ok(());
    };
    let profile = match &options.dump {
        Some(folder) => profiled(&mut DumpSource::open(folder)?, &options)?,
        None => {
            let door = options.target.open("quire profile")?;
            let mut client = door.client()?;
            let (db, rate) = (options.db.clone(), options.rate);
            let profile = profiled(&mut ServerSource { client: &mut client, db, rate }, &options);
            drop(client);
            door.close()?;
            profile?
        }
    };
    show(&options, &profile)
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
    let exists = |name: &&String| profile.collections.iter().any(|(found, _)| found.name == **name);
    match only.iter().find(|name| !exists(name)) {
        Some(missing) => {
            let text = format!("the database {} has no collection {missing}", options.db);
            Err(Failure::new(FAILED, text))
        }
        None => Ok(profile),
    }
}

fn show(options: &ProfileOptions, profile: &DatabaseProfile) -> Result<(), Failure> {
    let pretty = |document| extjson::print(document, Format { pretty: true, ..Format::default() });
    match options.output {
        Report::Screen => print(&screen::screen(&options.db, profile)),
        Report::Json => print(&pretty(report(&options.db, profile).as_doc())),
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
