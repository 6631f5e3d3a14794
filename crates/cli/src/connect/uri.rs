//! Connection strings: `mongodb://host:port,.../database?option=value`.

use quire_tls::ClientFiles;
use std::path::PathBuf;
use std::time::Duration;

/// An address at which a server may listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// The user of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    /// The name. With MONGODB-X509 it may be empty: the certificate names the user.
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    /// The database of the user.
    pub(crate) source: String,
    /// The mechanism; SCRAM-SHA-256 if it is `None`.
    pub(crate) mechanism: Option<String>,
}

/// A parsed connection string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uri {
    pub(crate) hosts: Vec<Host>,
    pub(crate) database: Option<String>,
    /// The login, if the string has one.
    pub(crate) login: Option<Login>,
    /// The name that the replica set must have.
    pub(crate) replica_set: Option<String>,
    pub(crate) app_name: Option<String>,
    /// True to use the first host even if it is not a primary.
    pub(crate) direct: bool,
    /// The TLS options.
    pub(crate) tls: TlsOptions,
    pub(crate) connect_timeout: Duration,
    /// The time limit of a reply; `None` for no limit.
    pub(crate) socket_timeout: Option<Duration>,
}

/// The TLS options of a connection string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    /// `None`: TLS is used if another TLS option was given.
    pub(crate) enabled: Option<bool>,
    pub(crate) files: ClientFiles,
}

impl TlsOptions {
    /// Returns the files and rules; `None` for a plain connection.
    ///
    /// # Errors
    /// TLS is both disabled and required.
    pub(crate) fn files(&self) -> Result<Option<&ClientFiles>, String> {
        let asked = self.files != ClientFiles::default();
        match self.enabled {
            Some(false) if asked => Err("options of TLS exclude tls=false".to_owned()),
            Some(true) | None if asked || self.enabled.is_some() => Ok(Some(&self.files)),
            _ => Ok(None),
        }
    }
}

const PORT: u16 = 27017;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Options that do not apply to a single connection with one command at a time: pools, monitoring,
/// the choice among members, retries, types of drivers.
pub(crate) const PASSED_OVER: &[&str] = &[
    "compressors",
    "heartbeatfrequencyms",
    "loadbalanced",
    "localthresholdms",
    "maxconnecting",
    "maxidletimems",
    "maxpoolsize",
    "maxstalenessseconds",
    "minpoolsize",
    "readpreference",
    "readpreferencetags",
    "retryreads",
    "retrywrites",
    "servermonitoringmode",
    "serverselectiontimeoutms",
    "serverselectiontryonce",
    "uuidrepresentation",
    "waitqueuetimeoutms",
    "zlibcompressionlevel",
];

impl Uri {
    /// Parses a connection string. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Uri, String> {
        let Some(rest) = text.strip_prefix("mongodb://") else {
            return Err(match text.starts_with("mongodb+srv://") {
                true => "mongodb+srv:// is not supported: name the host in a mongodb:// URI".into(),
                false => {
                    format!("'{text}' is not a connection string, which begins with mongodb://")
                }
            });
        };
        let (hosts, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, hosts) = match hosts.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, hosts),
        };
        let database = decode(path.strip_prefix('/').unwrap_or(path))?;
        let (user, password) = user.map(user_of).transpose()?.unzip();
        let mut given = GivenLogin { user, password: password.flatten(), ..GivenLogin::default() };
        let mut uri = Uri {
            login: None,
            hosts: hosts.split(',').map(host).collect::<Result<_, _>>()?,
            database: Some(database).filter(|database| !database.is_empty()),
            replica_set: None,
            app_name: None,
            direct: false,
            tls: TlsOptions::default(),
            connect_timeout: CONNECT_TIMEOUT,
            socket_timeout: None,
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let Some((name, value)) = option.split_once('=') else {
                return Err(format!("the URI's option '{option}' has no value"));
            };
            let value = decode(value)?;
            match name.to_ascii_lowercase().as_str() {
                "authsource" => given.source = Some(value),
                "authmechanism" => given.mechanism = Some(value),
                other => uri.set(name, other, &value)?,
            }
        }
        uri.login = given.login(uri.database.as_deref())?;
        Ok(uri)
    }

    /// Sets an option; `name` is the spelling in the URI and `known` the lower-case one.
    fn set(&mut self, name: &str, known: &str, value: &str) -> Result<(), String> {
        let millis = || match value.parse() {
            Ok(0) => Ok(None),
            Ok(millis) => Ok(Some(Duration::from_millis(millis))),
            Err(_) => Err(format!("the URI's {name} is not a number of milliseconds: '{value}'")),
        };
        let flag = || match value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("the URI's {name} is neither true nor false: '{value}'")),
        };
        match known {
            "replicaset" => self.replica_set = Some(value.to_owned()),
            "appname" => self.app_name = Some(value.to_owned()),
            "directconnection" => self.direct = flag()?,
            "connecttimeoutms" => self.connect_timeout = millis()?.unwrap_or(CONNECT_TIMEOUT),
            "sockettimeoutms" => self.socket_timeout = millis()?,
            "tls" | "ssl" => {
                let enabled = flag()?;
                if self.tls.enabled.replace(enabled).is_some_and(|before| before != enabled) {
                    return Err("the URI's tls and ssl contradict each other".into());
                }
            }
            "tlscafile" => self.tls.files.authorities = Some(value.into()),
            "tlscertificatekeyfile" => self.tls.files.certificate_key = Some(value.into()),
            "tlscertificatekeyfilepassword" => self.tls.files.password = Some(value.to_owned()),
            "tlsallowinvalidhostnames" => self.tls.files.any_name |= flag()?,
            "tlsallowinvalidcertificates" | "tlsinsecure" => {
                self.tls.files.any_certificate |= flag()?;
            }
            known if PASSED_OVER.contains(&known) => {}
            "w" | "journal" | "wtimeoutms" | "readconcernlevel" => {
                return Err(format!("the URI's {name} is an option of the command line here"));
            }
            _ => return Err(format!("the URI's option {name} is not supported")),
        }
        Ok(())
    }
}

/// The mechanism whose users are named by their certificates.
pub(crate) const X509: &str = "MONGODB-X509";
const EXTERNAL: &str = "$external";

/// The parts of the login, from the URI and from options.
#[derive(Default)]
pub(crate) struct GivenLogin {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) mechanism: Option<String>,
}

impl GivenLogin {
    /// Returns the login, if there is one. `database` is the user's database if nothing else names
    /// it.
    ///
    /// # Errors
    /// The user is missing, or the database is not that of the mechanism.
    pub(crate) fn login(self, database: Option<&str>) -> Result<Option<Login>, String> {
        let by_certificate = self.mechanism.as_deref() == Some(X509);
        let default = if by_certificate { EXTERNAL } else { database.unwrap_or("admin") };
        let user = match self.user {
            Some(user) => user,
            None if by_certificate => String::new(),
            None if self.source.is_some() || self.mechanism.is_some() => {
                return Err("the database or the mechanism of a login needs a user".to_owned());
            }
            None => return Ok(None),
        };
        let source = self.source.unwrap_or_else(|| default.to_owned());
        if by_certificate && source != EXTERNAL {
            return Err(format!("the users of {X509} belong to {EXTERNAL}, not to '{source}'"));
        }
        Ok(Some(Login { user, password: self.password, source, mechanism: self.mechanism }))
    }
}

/// Parses `user` or `user:password`.
fn user_of(text: &str) -> Result<(String, Option<String>), String> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(decode(password)?)),
        None => (text, None),
    };
    let user = decode(user)?;
    if user.is_empty() {
        return Err("the URI's user has no name".to_owned());
    }
    Ok((user, password))
}

fn host(text: &str) -> Result<Host, String> {
    let text = decode(text)?;
    if text.starts_with('/') {
        return Ok(Host::Unix(text.into()));
    }
    let bad = || format!("'{text}' is not a host of a URI");
    let (name, port) = match text.rsplit_once(':') {
        // An IPv6 address is in brackets.
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            (name, port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(bad)?)
        }
        _ => (text.as_str(), PORT),
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    if name.is_empty() || name.contains(['[', ']']) {
        return Err(bad());
    }
    Ok(Host::Tcp(name.to_owned(), port))
}

/// Decodes percent escapes such as `%2F`.
fn decode(text: &str) -> Result<String, String> {
    let bad = || format!("'{text}' has a wrong percent escape");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or_else(bad)?;
        let digits = std::str::from_utf8(digits).map_err(|_| bad())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings_are_read() {
        let uri = Uri::parse("mongodb://a:5,[::1]:6,b/shop?replicaSet=rs0&appName=x%20y&w=1");
        assert!(uri.unwrap_err().contains("command line"));
        let uri = Uri::parse(
            "mongodb://a:5,[::1]:6,b/shop?replicaSet=rs0&appName=x%20y&retryWrites=true&tls=false",
        )
        .unwrap();
        let tcp = |name: &str, port| Host::Tcp(name.to_owned(), port);
        assert_eq!(uri.hosts, [tcp("a", 5), tcp("::1", 6), tcp("b", 27017)]);
        assert_eq!(uri.database.as_deref(), Some("shop"));
        assert_eq!(uri.replica_set.as_deref(), Some("rs0"));
        assert_eq!(uri.app_name.as_deref(), Some("x y"));
        let uri = Uri::parse("mongodb://%2Ftmp%2Fm.sock?directConnection=true").unwrap();
        assert_eq!(uri.hosts, [Host::Unix("/tmp/m.sock".into())]);
        assert!(uri.direct);
        assert_eq!(uri.database, None);
        assert_eq!(Uri::parse("mongodb://a/").unwrap().database, None);
        let login = |text: &str| Uri::parse(text).unwrap().login.unwrap();
        let of = login("mongodb://u%40x:p%3Aq@a/shop");
        assert_eq!((of.user.as_str(), of.password.as_deref()), ("u@x", Some("p:q")));
        assert_eq!(of.source, "shop");
        let of = login("mongodb://u@a/shop?authSource=admin&authMechanism=SCRAM-SHA-1");
        assert_eq!((of.source.as_str(), of.password), ("admin", None));
        assert_eq!(of.mechanism.as_deref(), Some("SCRAM-SHA-1"));
        let of = login("mongodb://CN%3Dc@a/?authMechanism=MONGODB-X509");
        assert_eq!((of.user.as_str(), of.source.as_str()), ("CN=c", "$external"));
        let of = login("mongodb://a/?authMechanism=MONGODB-X509&tls=true");
        assert_eq!((of.user.as_str(), of.source.as_str()), ("", "$external"));
    }

    #[test]
    fn tls_is_on_if_an_option_requires_it() {
        let on = |options: &str| {
            let uri = Uri::parse(&format!("mongodb://a/?{options}")).unwrap();
            uri.tls.files().map(|files| files.is_some())
        };
        assert_eq!(on("retryWrites=true"), Ok(false));
        assert_eq!(on("tls=true"), Ok(true));
        assert_eq!(on("ssl=false"), Ok(false));
        assert_eq!(on("tlsCAFile=ca.pem"), Ok(true));
        assert!(on("tls=false&tlsCAFile=ca.pem").is_err());
    }

    #[test]
    fn unsupported_connection_strings_are_refused() {
        for (text, reason) in [
            ("localhost", "begins with mongodb://"),
            ("mongodb://", "not a host"),
            ("mongodb://a:x", "not a host"),
            ("mongodb://a:0", "not a host"),
            ("mongodb+srv://a", "not supported"),
            ("mongodb://:p@a", "no name"),
            ("mongodb://a/?authSource=x", "needs a user"),
            ("mongodb://a/?authMechanism=SCRAM-SHA-1", "needs a user"),
            ("mongodb://u@a/?authMechanism=MONGODB-X509&authSource=admin", "$external"),
            ("mongodb://a/?tls=true&ssl=false", "contradict"),
            ("mongodb://a/?tls=maybe", "neither true nor false"),
            ("mongodb://a/?tls", "no value"),
            ("mongodb://a/?nonsense=1", "nonsense"),
            ("mongodb://a/?socketTimeoutMS=soon", "milliseconds"),
            ("mongodb://a/%zz", "percent"),
        ] {
            let error = Uri::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
