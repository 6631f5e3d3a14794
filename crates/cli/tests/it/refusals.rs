//! Options and directories that the program refuses, and the exit codes for launchers.

use crate::{Directory, QUIRE, Serving, quire, text};

fn refused(words: &[&str], code: i32, said: &str) {
    let output = quire(words);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {message}");
    assert!(message.contains(said), "{words:?}: {message}");
}

#[test]
fn bad_options() {
    refused(&["serve", "--nope"], 2, "unrecognised option '--nope'");
    refused(&["serve", "--port", "x"], 2, "--port");
    refused(&["serve", "--keyFile", "k"], 2, "cannot be read");
    refused(&["serve", "--fork"], 2, "service manager");
    refused(&["serve", "--memory", "--bind_ip_all"], 2, "--allow-anonymous");
    refused(&["serve", "-f", "/nowhere/at/all"], 2, "config file");
    refused(&["nope"], 2, "not a command of quire\n");
    refused(&["server"], 2, "did you mean 'serve'?");
    refused(&["--versoin"], 2, "did you mean '--version'?");
    refused(&["import"], 2, "name the collection: --collection NAME");
    refused(&["serve", "--memory", "--logFormat", "jsn"], 2, "did you mean 'json'?");
    refused(&["serve", "--dbpat", "x"], 2, "did you mean '--dbpath'?");
    refused(&["status", "--sinc", "2h"], 2, "invalid option '--sinc'; did you mean '--since'?");
    refused(&["serve", "--memory", "--logFormat", "xml"], 2, "'plain' or 'json'");
    refused(&["serve", "--memory", "--port", "0", "--setParameter", "nope=1"], 2, "nope");
}

#[test]
fn a_port_in_use() {
    let serving = Serving::start(&["--memory"]);
    let port = serving.port().to_string();
    refused(&["serve", "--memory", "--port", &port], 48, "is in use");
}

#[test]
fn a_directory_that_cannot_be_made() {
    let directory = Directory::new();
    let file = directory.join("file");
    std::fs::write(&file, "x").unwrap();
    let inside = file.join("db");
    let words = ["serve", "--port", "0", "--create", "--dbpath", inside.to_str().unwrap()];
    refused(&words, 100, "data directory");
}

/// A misspelt path became a new, empty database.
#[test]
fn a_directory_that_does_not_exist_is_created_only_on_request() {
    let directory = Directory::new();
    let path = directory.join("misspelt");
    let words = ["serve", "--port", "0", "--dbpath", path.to_str().unwrap()];
    refused(&words, 100, "does not exist; check the path, or let it be created: --create");
    assert!(!path.exists());
}

#[test]
fn a_directory_keeps_the_name_of_its_replica_set() {
    let directory = Directory::new();
    let path = directory.join("db");
    let shown = path.to_str().unwrap();
    let serving = Serving::start(&["--dbpath", shown, "--replSet", "mine"]);
    assert_eq!(serving.end().code(), Some(0));
    let words = ["serve", "--port", "0", "--dbpath", shown, "--replSet", "other"];
    refused(&words, 2, "belongs to the replica set 'mine', not to 'other'");
    let again = Serving::start(&["--dbpath", shown]);
    assert!(again.ready.contains("replicaSet=mine"), "{}", again.ready);
}

#[test]
fn a_directory_in_use() {
    let directory = Directory::new();
    let path = directory.join("db");
    let serving = Serving::start(&["--dbpath", path.to_str().unwrap()]);
    refused(
        &["serve", "--port", "0", "--dbpath", path.to_str().unwrap()],
        100,
        "; stop it, or choose another directory",
    );
    assert_eq!(serving.end().code(), Some(0));
    let words = ["serve", "--port", "0", "--dbpath", path.to_str().unwrap()];
    let again = Serving::start_program(QUIRE.as_ref(), &words, "ready: ");
    assert_eq!(again.end().code(), Some(0));
}

#[test]
fn check_wants_a_stopped_directory_of_quire() {
    let directory = Directory::new();
    let path = directory.join("db");
    refused(&["check"], 2, "which directory");
    refused(&["check", "--nope", "x"], 2, "--nope");
    refused(&["check", path.to_str().unwrap()], 100, "not a database directory");
    assert!(!path.exists());
    let serving = Serving::start(&["--dbpath", path.to_str().unwrap()]);
    refused(&["check", path.to_str().unwrap()], 100, "is in use by process");
    assert_eq!(serving.end().code(), Some(0));
    let output = quire(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("no problems"));
    assert!(text(&quire(&["check", "--help"]).stdout).contains("--repair"));
}

/// The data directory was readable by every user, and a symbolic link in its place was emptied and
/// locked.
#[test]
fn files_are_private_and_links_are_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    fn modes(path: &std::path::Path, others: &mut Vec<String>) {
        let mode = path.metadata().unwrap().permissions().mode();
        if mode & 0o077 != 0 {
            others.push(format!("{} {mode:o}", path.display()));
        }
        if path.is_dir() {
            path.read_dir().unwrap().for_each(|entry| modes(&entry.unwrap().path(), others));
        }
    }
    let directory = Directory::new();
    let [path, log] = ["db", "log"].map(|name| directory.join(name));
    let shown = path.to_str().unwrap();
    let serving = Serving::start(&["--dbpath", shown, "--logpath", log.to_str().unwrap()]);
    let document =
        quire_document::doc! { "insert": "t", "documents": [{ "_id": 1 }], "$db": "test" };
    serving.run(document);
    assert_eq!(serving.end().code(), Some(0));
    let mut others = Vec::new();
    modes(&path, &mut others);
    modes(&log, &mut others);
    assert_eq!(others, Vec::<String>::new());

    let precious = directory.join("precious");
    std::fs::write(&precious, "mine").unwrap();
    std::fs::remove_file(path.join("LOCK")).unwrap();
    std::os::unix::fs::symlink(&precious, path.join("LOCK")).unwrap();
    let refused = quire(&["serve", "--dbpath", shown, "--port", "0"]);
    assert_eq!(refused.status.code(), Some(100), "{}", text(&refused.stderr));
    std::fs::remove_file(path.join("LOCK")).unwrap();
    let pidfile = directory.join("pid");
    std::os::unix::fs::symlink(&precious, &pidfile).unwrap();
    let words =
        ["serve", "--dbpath", shown, "--port", "0", "--pidfilepath", pidfile.to_str().unwrap()];
    let refused = quire(&words);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
}
