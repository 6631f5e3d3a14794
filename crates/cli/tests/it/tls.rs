//! The server with TLS, started by the command line, and the tools as its clients.

use crate::certificates::{Authority, Unusual};
use crate::{Directory, Serving, quire, text};

#[test]
fn the_tools_speak_tls() {
    let authority = Authority::new("the authority");
    let locked = Unusual { password: Some("se=cret"), ..Unusual::default() };
    let server = authority.sign("server.pem", "server", &["localhost"], locked);
    let client = authority.sign("client.pem", "client", &[], Unusual::default());
    let [server, client, trusted] =
        [&server, &client, &authority.file()].map(|path| path.to_str().unwrap().to_owned());
    let directory = Directory::new();
    let config = directory.join("config.yaml");
    let log = directory.join("log");
    let file = format!(
        "net:\n  tls:\n    mode: requireTLS\n    certificateKeyFile: {server}\n    \
         certificateKeyFilePassword: se=cret\n    CAFile: {trusted}\n",
    );
    std::fs::write(&config, file).unwrap();
    let words = ["--memory", "--logpath", log.to_str().unwrap(), "-f", config.to_str().unwrap()];
    let serving = Serving::start(&words);
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains("<password>") && !logged.contains("se=cret"), "{logged}");

    let data = directory.join("data.json");
    std::fs::write(&data, "{\"_id\": 1}\n{\"_id\": 2}\n").unwrap();
    let port = serving.port().to_string();
    let target = ["-d", "shop", "-c", "t"];
    let import = |login: &[&str]| {
        quire(&[&["import"], &target[..], login, &[data.to_str().unwrap()]].concat())
    };
    let at = ["--host", "localhost", "--port", &port];
    let keys = ["--tlsCAFile", &trusted, "--tlsCertificateKeyFile", &client];
    let imported = import(&[&at[..], &keys[..]].concat());
    assert!(imported.status.success(), "{}", text(&imported.stderr));

    let options = format!("tls=true&tlsCAFile={trusted}&tlsCertificateKeyFile={client}");
    let options = options.replace('/', "%2F");
    let export = |host: &str, more: &str| {
        let uri = format!("mongodb://{host}:{port}/shop?{options}{more}");
        quire(&["export", "--uri", &uri, "-c", "t"])
    };
    let exported = export("localhost", "");
    assert_eq!(text(&exported.stdout).lines().count(), 2, "{}", text(&exported.stderr));
    // The certificate is for the name, not for the address.
    let refused = export("127.0.0.1", "");
    assert!(text(&refused.stderr).contains("not valid for name"), "{refused:?}");
    assert!(export("127.0.0.1", "&tlsAllowInvalidHostnames=true").status.success());
    // No user has the certificate's name.
    let refused = export("localhost", "&authMechanism=MONGODB-X509");
    assert!(text(&refused.stderr).contains("Could not find user"), "{refused:?}");

    let plain = import(&at);
    assert!(!plain.status.success());
    assert!(text(&plain.stderr).contains("closed the connection"), "{plain:?}");
    let bare = import(&[&at[..], &["--tlsCAFile", &trusted]].concat());
    assert!(text(&bare.stderr).contains("CertificateRequired"), "{bare:?}");
    let missing = import(&[&at[..], &["--tlsCAFile", "/nowhere.pem"]].concat());
    assert!(text(&missing.stderr).contains("cannot read /nowhere.pem"), "{missing:?}");
}

#[test]
fn a_server_whose_files_are_bad_does_not_start() {
    let authority = Authority::new("the authority");
    let locked = Unusual { password: Some("secret"), ..Unusual::default() };
    let server = authority.sign("server.pem", "server", &["localhost"], locked);
    let refused = |words: &[&str], reason: &str| {
        let output = quire(&[&["serve", "--memory", "--port", "0"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(reason), "{output:?}");
    };
    let (server, trusted) = (server.to_str().unwrap(), authority.file());
    let files = ["--tlsCertificateKeyFile", server, "--tlsCAFile", trusted.to_str().unwrap()];
    let require = ["--tlsMode", "requireTLS"];
    refused(&files, "needs --tlsMode");
    refused(&require, "need tlsCertificateKeyFile");
    refused(&[&require[..], &files[..]].concat(), "there is no password");
    let wrong = ["--tlsCertificateKeyFilePassword", "wrong"];
    refused(&[&require[..], &files[..], &wrong[..]].concat(), "the password may be wrong");
}
