//! The file of the audit log: its options, its permissions, its rotation.

use crate::{Directory, Serving, quire, text};
use quire_document::doc;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

fn events(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn events_are_in_a_private_file_which_is_rotated() {
    let directory = Directory::new();
    let (path, config) = (directory.join("audit.json"), directory.join("quire.yaml"));
    let yaml = format!(
        "auditLog:\n  destination: file\n  format: JSON\n  path: {}\n  filter: '{{ atype: {{ $ne: \"clientMetadata\" }} }}'\n\
         security:\n  authorization: enabled\n",
        path.display()
    );
    std::fs::write(&config, yaml).unwrap();
    let words = ["--memory", "--config", config.to_str().unwrap()];
    let serving = Serving::start(&words);
    let made = serving
        .run(doc! { "createUser": "ann", "pwd": "hunter2", "roles": ["root"], "$db": "admin" });
    assert!(made.get("code").is_none(), "{made:?}");
    serving.run(doc! { "find": "t", "$db": "shop" });
    let told = events(&path);
    assert!(told.starts_with("{\"atype\":\"startup\""), "{told}");
    assert!(told.contains("\"atype\":\"createUser\"") && !told.contains("hunter2"), "{told}");
    assert!(told.contains("\"atype\":\"authCheck\"") && told.contains("\"ip\":\"127.0.0.1\""));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    serving.signal(Signal::USR1);
    let rotated = || events(&path).contains("\"atype\":\"rotateLog\"");
    for _ in 0..200 {
        if path.exists() && rotated() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(rotated());
    assert!(serving.end().success());
    assert!(events(&path).trim_end().lines().last().unwrap().contains("\"atype\":\"shutdown\""));
    let files = std::fs::read_dir(&directory.0).unwrap();
    let names: Vec<String> =
        files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
    let old = names.iter().find(|name| name.starts_with("audit.json.")).unwrap();
    assert!(events(&directory.join(old)).contains("\"atype\":\"createUser\""));
}

#[test]
fn a_server_without_its_audit_log_does_not_start() {
    let words = ["serve", "--memory", "--port", "0", "--auditDestination", "file"];
    let bson = quire(&[&words[..], &["--auditFormat", "BSON", "--auditPath", "x"]].concat());
    assert!(text(&bson.stderr).contains("--auditFormat BSON is refused"), "{bson:?}");
    let none = ["--auditFormat", "JSON", "--auditPath", "/none/such/audit.json"];
    let none = quire(&[&words[..], &none].concat());
    assert!(text(&none.stderr).contains("cannot open the file of the audit log"), "{none:?}");
}
