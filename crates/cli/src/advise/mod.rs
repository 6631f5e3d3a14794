//! `quire advise`: the problems of a database with their costs and the commands that mend them, for
//! Quire, for a MongoDB and for files.

mod options;
mod page;
mod screen;
mod trial;

use crate::call::{Call, print};
use crate::exit::{FAILED, FOUND, Failure};
use crate::profile::{SourceReadings, gather};
use crate::requests::RECORDER;
use options::AdviseOptions;
use quire_advisor::findings::report::report;
use quire_advisor::findings::{Advice, Input, advise};
use quire_document::extjson::{self, Format};
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs `quire advise`.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = AdviseOptions::parse(call)? else {
        print(&options::help());
        return Ok(());
    };
    let gathered = gather(&options.reading, &call.program, true)?;
    let SourceReadings { profile, workload, origin } = &gathered;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let input = Input::new(&options.reading.db, profile, workload.as_ref(), now_ms);
    let mut advice = advise(&input, &options.silenced);
    if *origin == RECORDER {
        trial::try_indexes(&options, &call.program, &input, &mut advice)?;
    }
    if let Some(path) = &options.report {
        let page = page::page(&input, &advice, options.language, origin);
        std::fs::write(path, page)
            .map_err(|error| Failure::new(FAILED, format!("{}: {error}", path.display())))?;
    }
    if options.json {
        let format = Format { pretty: true, ..Format::default() };
        print(&extjson::print(report(&input, &advice).as_doc(), format));
    } else {
        print(&screen::screen(&input, &advice, (options.language, options.shows_all), origin));
    }
    refuse(&options, &advice)
}

/// Fails if there is a finding that the user does not want.
fn refuse(options: &AdviseOptions, advice: &Advice) -> Result<(), Failure> {
    let Some(least) = options.fail_on else { return Ok(()) };
    let count = advice.findings.iter().filter(|finding| finding.severity >= least).count();
    match count {
        0 => Ok(()),
        count => {
            let text = format!("{count} findings of severity {} or higher", least.name());
            Err(Failure::new(FOUND, text))
        }
    }
}
