//! The tools with a server that requires a login.

use crate::{Directory, Serving, quire, text};
use quire_document::doc;

#[test]
fn the_tools_log_in_with_a_password_from_a_file_or_the_uri() {
    let directory = Directory::new();
    let serving = Serving::start(&["--memory", "--auth"]);
    let made = serving
        .run(doc! { "createUser": "ann", "pwd": "s:e@c", "roles": ["root"], "$db": "admin" });
    assert!(made.get("code").is_none(), "{made:?}");
    let data = directory.join("data.json");
    std::fs::write(&data, "{\"_id\": 1}\n{\"_id\": 2}\n").unwrap();
    let password = directory.join("password");
    std::fs::write(&password, "s:e@c\n").unwrap();
    let port = serving.port().to_string();
    let (data, password) = (data.to_str().unwrap(), password.to_str().unwrap());
    let target = ["--port", &port, "-d", "shop", "-c", "t"];
    let login = ["--username", "ann", "--passwordFile", password];

    let refused = quire(&[&["import"], &target[..], &[data]].concat());
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("requires authentication"), "{refused:?}");
    let imported = quire(&[&["import"], &target[..], &login[..], &[data]].concat());
    assert!(imported.status.success(), "{}", text(&imported.stderr));

    let uri = format!("mongodb://ann:s%3Ae%40c@127.0.0.1:{port}/shop?authSource=admin");
    let exported = quire(&["export", "--uri", &uri, "-c", "t"]);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    assert_eq!(text(&exported.stdout).lines().count(), 2);

    let uri = format!("mongodb://ann:wrong@127.0.0.1:{port}/shop?authSource=admin");
    let refused = quire(&["export", "--uri", &uri, "-c", "t"]);
    assert!(text(&refused.stderr).contains("Authentication failed"), "{refused:?}");
    let uri = format!("mongodb://ann@127.0.0.1:{port}/shop?authSource=admin");
    let refused = quire(&["export", "--uri", &uri, "-c", "t"]);
    assert!(text(&refused.stderr).contains("--passwordFile"), "{refused:?}");
}
