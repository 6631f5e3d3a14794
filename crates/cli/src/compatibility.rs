//! COMPATIBILITY.md and docs/options.md, generated from the registries: what works, what is missing,
//! and which options have no effect.

use crate::connect::uri::PASSED_OVER;
use crate::serve::options::{OPTIONS, Status};
use quire_commands::{CLUSTER_PARAMETERS, COMMANDS, PARAMETERS};
use quire_mql::accumulator::ACCUMULATORS;
use quire_mql::stage::STAGES;
use quire_mql::window::WINDOW_FUNCTIONS;
use quire_mql::{expression, filter, update};
use std::fmt::Write;

/// What is written by hand: the beginning of the page, and its last section.
const HEAD: &str = include_str!("../../../docs/compatibility/introduction.md");
const DIFFERENCES: &str = include_str!("../../../docs/compatibility/differences.md");

/// Returns the page in Markdown.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    commands(&mut page);
    let built = STAGES.iter().filter(|row| row.is_built());
    table(&mut page, "Aggregation stages", built.map(|row| (row.name, row.since, row.doc)));
    let missing: Vec<String> = STAGES
        .iter()
        .filter(|row| !row.is_built() && !row.needs_search())
        .map(|row| format!("`{}`", row.name))
        .collect();
    let _ = writeln!(page, "\nMissing: {}.", missing.join(", "));
    table(
        &mut page,
        "Query operators",
        filter::operators().map(|row| (row.name, row.since, row.doc)),
    );
    table(
        &mut page,
        "Update operators",
        update::OPERATORS.iter().map(|row| (row.name, row.since, row.doc)),
    );
    table(
        &mut page,
        "Expression operators",
        expression::operators().map(|row| (row.name, row.since, row.doc)),
    );
    table(&mut page, "Accumulators", ACCUMULATORS.iter().map(|row| (row.name, row.since, row.doc)));
    table(
        &mut page,
        "Window functions",
        WINDOW_FUNCTIONS.iter().map(|row| (row.name, row.since, row.doc)),
    );
    parameters(&mut page);
    page.push_str(
        "\n## Options of the server\n\n[docs/options.md](docs/options.md) lists them all.\n",
    );
    uri_options(&mut page);
    page.push('\n');
    page.push_str(DIFFERENCES);
    page
}

fn commands(page: &mut String) {
    page.push_str("\n## Commands\n\n| command | what it does |\n| --- | --- |\n");
    let mut rows: Vec<_> = COMMANDS.iter().filter(|row| row.run.is_some()).collect();
    rows.sort_by_key(|row| row.name.to_lowercase());
    for row in rows {
        let _ = writeln!(page, "| `{}` | {} |", row.name, row.summary);
    }
    let mut missing: Vec<_> = COMMANDS.iter().filter(|row| row.run.is_none()).collect();
    missing.sort_by_key(|row| row.name.to_lowercase());
    let missing: Vec<String> = missing.iter().map(|row| format!("`{}`", row.name)).collect();
    let _ = writeln!(page, "\nMissing: {}.", missing.join(", "));
}

fn table(
    page: &mut String,
    title: &str,
    rows: impl Iterator<Item = (&'static str, &'static str, &'static str)>,
) {
    let _ = write!(page, "\n## {title}\n\n| name | since | what it does |\n| --- | --- | --- |\n");
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| row.0);
    for (name, since, text) in rows {
        let _ = writeln!(page, "| `{name}` | {since} | {} |", text.replace('|', "\\|"));
    }
}

fn parameters(page: &mut String) {
    page.push_str("\n## Server parameters\n\n| parameter | what it does |\n| --- | --- |\n");
    for row in PARAMETERS {
        let _ = writeln!(page, "| `{}` | {} |", row.name, row.summary);
    }
    page.push_str(
        "\n## Parameters of the cluster\n\n| parameter | what it does |\n| --- | --- |\n",
    );
    for row in CLUSTER_PARAMETERS {
        let _ = writeln!(page, "| `{}` | {} |", row.name, row.summary);
    }
}

fn uri_options(page: &mut String) {
    let passed_over: Vec<String> = PASSED_OVER.iter().map(|name| format!("`{name}`")).collect();
    let _ = write!(
        page,
        "\n## Connection strings of the tools\n\n`authMechanism`, `authSource`, `replicaSet`, `appName`, \
         `directConnection`, `connectTimeoutMS`, `socketTimeoutMS`, `tls` (or `ssl`), `tlsCAFile`, \
         `tlsCertificateKeyFile`, `tlsCertificateKeyFilePassword`, `tlsAllowInvalidHostnames`, \
         `tlsAllowInvalidCertificates` and `tlsInsecure` work. Accepted without effect, because a tool sends \
         one command after the other over one connection: {}. Others are refused.\n",
        passed_over.join(", ")
    );
}

/// Returns docs/options.md: every option of the server.
pub fn options() -> String {
    let mut page = String::from(
        "# Options of the server\n\nThis page is generated (`cargo xtask compatibility`). `quire serve --help` shows the \
         usual options, `--help-all` every one. The names are mongod's; the second column is the path in a \
         configuration file (`--config FILE`, YAML). An option in the command line replaces the one in the file.\n\n\
         | option | configuration file | state | what it does |\n| --- | --- | --- | --- |\n",
    );
    for row in OPTIONS {
        let (state, text) = match row.status {
            Status::Works => ("works", row.summary.to_owned()),
            Status::NoEffect(why) => ("no effect", format!("{} Accepted: {why}.", row.summary)),
            Status::Refused(why) => ("refused", format!("{} Refused: {why}.", row.summary)),
        };
        let path = match row.config {
            "" => String::new(),
            path => format!("`{path}`"),
        };
        let _ = writeln!(page, "| `--{}` | {path} | {state} | {text} |", row.name);
    }
    page
}
