//! The TLS options: their combinations, and their files.

use super::given::Given;
use crate::exit::Failure;
use quire_server::{Encryption, TlsMode};
use quire_tls::{ServerFiles, ServerTls, Versions};
use std::path::PathBuf;

/// Shown in place of a password.
pub(crate) const HIDDEN: &str = "<password>";

/// The option whose value is a password.
pub(crate) const PASSWORD: &str = "tlsCertificateKeyFilePassword";

/// Options that need TLS.
const NEED_TLS: &[&str] = &[
    "tlsCertificateKeyFile",
    PASSWORD,
    "tlsCAFile",
    "tlsCRLFile",
    "tlsAllowConnectionsWithoutCertificates",
    "tlsDisabledProtocols",
];

/// The requested encryption; its files are not read yet.
#[derive(Clone)]
pub(crate) struct TlsSettings {
    mode: TlsMode,
    files: ServerFiles,
}

impl std::fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password is not shown.
        f.debug_struct("TlsSettings").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl TlsSettings {
    /// Reads the options; `None` if TLS is off.
    pub(crate) fn new(given: &Given) -> Result<Option<TlsSettings>, Failure> {
        let mode = match given.text("tlsMode") {
            None | Some("disabled") => {
                return match NEED_TLS.iter().find(|name| given.flag(name)) {
                    Some(name) => Err(Failure::options(format!("--{name} needs --tlsMode"))),
                    None => Ok(None),
                };
            }
            Some("allowTLS" | "preferTLS") => TlsMode::Optional,
            Some("requireTLS") => TlsMode::Required,
            Some(other) => {
                return Err(Failure::options(format!(
                    "unsupported value for tlsMode {other}: 'disabled', 'allowTLS', 'preferTLS' or 'requireTLS'"
                )));
            }
        };
        let Some(certificate_key) = given.text("tlsCertificateKeyFile") else {
            return Err(Failure::options("need tlsCertificateKeyFile when TLS is enabled"));
        };
        let Some(authorities) = given.text("tlsCAFile") else {
            let text = "The use of TLS without specifying a chain of trust is no longer supported: \
                        --tlsCAFile names the authorities";
            return Err(Failure::options(text));
        };
        let disabled = given.text("tlsDisabledProtocols").unwrap_or("none");
        Ok(Some(TlsSettings {
            mode,
            files: ServerFiles {
                certificate_key: absolute(certificate_key)?,
                password: given.text(PASSWORD).map(str::to_owned),
                authorities: absolute(authorities)?,
                revoked: given.text("tlsCRLFile").map(absolute).transpose()?,
                clients_without_certificate: given.flag("tlsAllowConnectionsWithoutCertificates"),
                versions: Versions::without(disabled)
                    .map_err(|error| Failure::options(error.to_string()))?,
            },
        }))
    }

    /// Reads the files.
    pub(crate) fn open(self) -> Result<Encryption, Failure> {
        let tls = ServerTls::open(self.files);
        let tls = tls.map_err(|error| Failure::options(format!("TLS cannot start: {error}")))?;
        Ok(Encryption { mode: self.mode, tls })
    }
}

/// Returns the absolute path: the files are read again later, when the working directory may
/// differ.
fn absolute(path: &str) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::options(format!("{path}: {error}")))
}

/// Returns the words of a command line, without passwords.
pub(crate) fn without_passwords(line: &[String]) -> Vec<String> {
    let flag = format!("--{PASSWORD}");
    let mut is_value = false;
    let hide = |word: &String| {
        let hidden = std::mem::replace(&mut is_value, *word == flag);
        match word.strip_prefix(&flag) {
            _ if hidden => HIDDEN.to_owned(),
            Some(rest) if rest.starts_with('=') => format!("{flag}={HIDDEN}"),
            _ => word.clone(),
        }
    };
    line.iter().map(hide).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn refused(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let given = Given::from_words(&words, "quire serve").unwrap_or_default();
        match TlsSettings::new(&given) {
            Err(failure) => failure.message,
            Ok(found) => panic!("{found:?}"),
        }
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        assert!(refused(&["--tlsMode", "on"]).contains("unsupported value for tlsMode on"));
        assert!(refused(&["--tlsMode", "requireTLS"]).contains("need tlsCertificateKeyFile"));
        let certificate = ["--tlsMode", "allowTLS", "--tlsCertificateKeyFile", "c"];
        assert!(refused(&certificate).contains("chain of trust"));
        let all = [&certificate[..], &["--tlsCAFile", "c", "--tlsDisabledProtocols"]].concat();
        let protocols = |names| [&all[..], &[names]].concat();
        assert!(refused(&protocols("SSL9")).contains("Unrecognized"));
        assert!(refused(&protocols("TLS1_2,TLS1_3")).contains("no version"));
        assert!(refused(&["--tlsCAFile", "c"]).contains("--tlsCAFile needs --tlsMode"));
        let disabled = ["--tlsMode", "disabled", "--tlsCRLFile", "c"];
        assert!(refused(&disabled).contains("--tlsCRLFile needs --tlsMode"));
    }

    #[test]
    fn passwords_do_not_show() {
        let line = |words: &[&str]| {
            without_passwords(&words.iter().map(ToString::to_string).collect::<Vec<_>>()).join(" ")
        };
        assert_eq!(
            line(&["mongod", "--tlsCertificateKeyFilePassword", "x", "--quiet"]),
            "mongod --tlsCertificateKeyFilePassword <password> --quiet"
        );
        assert_eq!(
            line(&["mongod", "--tlsCertificateKeyFilePassword=x=y", "--port", "1"]),
            "mongod --tlsCertificateKeyFilePassword=<password> --port 1"
        );
    }
}
