//! The same binary under the name `mongod`.

use crate::{Directory, QUIRE, Serving, text};
use std::process::Command;

#[test]
fn called_mongod_it_is_the_server() {
    let directory = Directory::new();
    let mongod = directory.join("mongod");
    std::os::unix::fs::symlink(QUIRE, &mongod).unwrap();
    let output = Command::new(&mongod).arg("--version").output().unwrap();
    assert!(text(&output.stdout).starts_with("db version v8.2."));
    let words =
        ["--port", "0", "--storageEngine", "ephemeralForTest", "--nounixsocket", "--noauth"];
    let serving = Serving::start_program(&mongod, &words, "\"msg\":\"Waiting for connections\"");
    assert!(serving.ready.starts_with("{\"t\":{\"$date\":"), "launchers read JSON lines");
    assert_eq!(serving.end().code(), Some(0));
    let output = Command::new(&mongod).arg("--shardsvr").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
