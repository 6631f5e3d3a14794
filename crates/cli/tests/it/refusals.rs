//! What the program refuses, and the exit codes that launchers know.

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
    refused(&["serve", "--auth"], 2, "not built yet");
    refused(&["serve", "--keyFile", "x"], 2, "not built yet");
    refused(&["serve", "--fork"], 2, "service manager");
    refused(&["serve", "--memory", "--bind_ip_all"], 2, "--allow-anonymous");
    refused(&["serve", "-f", "/nowhere/at/all"], 2, "config file");
    refused(&["nope"], 2, "no command");
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
    refused(&["serve", "--port", "0", "--dbpath", inside.to_str().unwrap()], 100, "data directory");
}

#[test]
fn a_directory_in_use() {
    let directory = Directory::new();
    let path = directory.join("db");
    let serving = Serving::start(&["--dbpath", path.to_str().unwrap()]);
    refused(
        &["serve", "--port", "0", "--dbpath", path.to_str().unwrap()],
        100,
        "is in use by process",
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
    refused(&["check", path.to_str().unwrap()], 100, "no database directory");
    assert!(!path.exists());
    let serving = Serving::start(&["--dbpath", path.to_str().unwrap()]);
    refused(&["check", path.to_str().unwrap()], 100, "is in use by process");
    assert_eq!(serving.end().code(), Some(0));
    let output = quire(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("nothing is wrong"));
    assert!(text(&quire(&["check", "--help"]).stdout).contains("--repair"));
}
