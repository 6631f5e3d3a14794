//! How the tools access the data: over a socket to a running server, or by opening the directory of
//! a stopped one. Both run the same commands.

mod directory;
mod login;
mod socket;
pub(crate) mod uri;

use crate::exit::{FAILED, Failure};
use directory::{Directory, InProcess};
use lexopt::{Arg, Parser};
use quire_document::{Array, DocBuf, Value};
use quire_storage_lsm::is_database;
use quire_tls::{ClientTls, TlsError};
use socket::Socket;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use uri::{GivenLogin, TlsOptions, Uri, X509};

/// The help text of the options that name the data.
pub(crate) const HELP: &str =
    "  --uri URI            The server. Default: mongodb://127.0.0.1:27017
  --host HOST          Its name or address, and its port after a colon.
  --port PORT          Its port.
  --username NAME      The user; the program asks for the password.
  --passwordFile FILE  A file with the password.
  --authenticationDatabase DB
                       The database of the user. Default: admin
  --authenticationMechanism NAME
                       SCRAM-SHA-256, SCRAM-SHA-1, or MONGODB-X509, with which the
                       certificate names the user.
  --tls                Uses TLS. Each of the following options implies it.
  --tlsCAFile FILE     The trusted authorities. Default: those of the system.
  --tlsCertificateKeyFile FILE
                       The client certificate and key. The program asks for the password
                       of an encrypted key.
  --tlsAllowInvalidHostnames
                       Does not check the name in the server's certificate.
  --tlsAllowInvalidCertificates
                       Does not check the server's certificate.
  --dbpath DIR         The directory of a stopped server, instead of a server.";

/// Returns the help text for a tool that needs a running server.
pub(crate) fn server_help() -> &'static str {
    HELP.rsplit_once("\n  --dbpath").map_or(HELP, |(server, _)| server)
}

/// The location of the data, from the command line.
#[derive(Default)]
pub(crate) struct Target {
    uri: Option<String>,
    host: Option<String>,
    port: Option<String>,
    dbpath: Option<PathBuf>,
    user: Option<String>,
    source: Option<String>,
    password_file: Option<PathBuf>,
    mechanism: Option<String>,
    tls: TlsOptions,
}

impl Target {
    /// Returns the option if it is one of these.
    pub(crate) fn take(&mut self, word: &Arg<'_>) -> Option<Taken> {
        Some(match word {
            Arg::Long("uri") => Taken::Uri,
            Arg::Long("host") => Taken::Host,
            Arg::Long("port") => Taken::Port,
            Arg::Long("dbpath") => Taken::Dbpath,
            Arg::Long("username") => Taken::User,
            Arg::Long("authenticationDatabase") => Taken::Source,
            Arg::Long("passwordFile") => Taken::PasswordFile,
            Arg::Long("authenticationMechanism") => Taken::Mechanism,
            Arg::Long("tls") => Taken::Tls,
            Arg::Long("tlsCAFile") => Taken::Authorities,
            Arg::Long("tlsCertificateKeyFile") => Taken::Certificate,
            Arg::Long("tlsAllowInvalidHostnames") => Taken::AnyName,
            Arg::Long("tlsAllowInvalidCertificates") => Taken::AnyCertificate,
            _ => return None,
        })
    }

    /// Reads the value of an option that was taken.
    pub(crate) fn set(&mut self, taken: Taken, parser: &mut Parser) -> Result<(), lexopt::Error> {
        match taken {
            Taken::Tls => self.tls.enabled = Some(true),
            Taken::AnyName => self.tls.files.any_name = true,
            Taken::AnyCertificate => self.tls.files.any_certificate = true,
            other => return self.set_value(other, parser.value()?),
        }
        Ok(())
    }

    fn set_value(&mut self, taken: Taken, value: OsString) -> Result<(), lexopt::Error> {
        match taken {
            Taken::Tls | Taken::AnyName | Taken::AnyCertificate => {}
            Taken::Authorities => self.tls.files.authorities = Some(value.into()),
            Taken::Certificate => self.tls.files.certificate_key = Some(value.into()),
            Taken::Mechanism => self.mechanism = Some(lexopt::ValueExt::string(value)?),
            Taken::Dbpath => self.dbpath = Some(value.into()),
            Taken::PasswordFile => self.password_file = Some(value.into()),
            Taken::User => self.user = Some(lexopt::ValueExt::string(value)?),
            Taken::Source => self.source = Some(lexopt::ValueExt::string(value)?),
            Taken::Uri => self.uri = Some(lexopt::ValueExt::string(value)?),
            Taken::Host => self.host = Some(lexopt::ValueExt::string(value)?),
            Taken::Port => self.port = Some(lexopt::ValueExt::string(value)?),
        }
        Ok(())
    }

    /// Returns true if the command line names a server or a directory.
    pub(crate) fn is_given(&self) -> bool {
        self.dbpath.is_some() || self.names_a_server()
    }

    /// Returns true if the command line names a server.
    pub(crate) fn names_a_server(&self) -> bool {
        let login = self.user.is_some() || self.mechanism.is_some();
        let server = self.uri.is_some() || self.host.is_some() || self.port.is_some();
        server || login || self.tls != TlsOptions::default()
    }

    /// Returns the directory of a server, if the command line names one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.dbpath.as_deref()
    }

    /// Fails if the command line names a server beside a directory.
    ///
    /// # Errors
    /// Options that exclude each other.
    pub(crate) fn check_directory_alone(&self) -> Result<(), Failure> {
        match self.dbpath.is_some() && self.names_a_server() {
            true => {
                Err(Failure::options("--dbpath excludes --uri, --host, --port, --username and TLS"))
            }
            false => Ok(()),
        }
    }

    /// Returns the database in the URI.
    pub(crate) fn database(&self) -> Result<Option<String>, Failure> {
        match &self.uri {
            Some(uri) => Ok(Uri::parse(uri).map_err(Failure::options)?.database),
            None => Ok(None),
        }
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// Options that exclude each other, or that name a directory; a server that does not reply.
    pub(crate) fn open_server(&self, tool: &str) -> Result<Door, Failure> {
        match &self.dbpath {
            Some(_) => {
                Err(Failure::options(format!("{tool} needs a running server: --dbpath has none")))
            }
            None => self.open_or_create(tool),
        }
    }

    /// Connects to the server, or opens the directory of a database, which must exist.
    ///
    /// # Errors
    /// Options that exclude each other; a server that does not reply; a directory that is in use or
    /// holds no database.
    pub(crate) fn open(&self, tool: &str) -> Result<Door, Failure> {
        match &self.dbpath {
            Some(path) if !is_database(path) => {
                let text = format!("{} is not a database directory of Quire", path.display());
                Err(Failure::new(FAILED, text))
            }
            _ => self.open_or_create(tool),
        }
    }

    /// Connects to the server, or opens the directory, which a tool that writes may create.
    ///
    /// # Errors
    /// Options that exclude each other; a server that does not reply; a directory in use.
    pub(crate) fn open_or_create(&self, tool: &str) -> Result<Door, Failure> {
        if let Some(path) = &self.dbpath {
            self.check_directory_alone()?;
            return Ok(Door::Directory(Directory::open(path)?));
        }
        let uri = match (&self.uri, &self.host, &self.port) {
            (Some(uri), None, None) => uri.clone(),
            (Some(_), ..) => {
                return Err(Failure::options("--uri excludes --host and --port"));
            }
            (None, host, port) => {
                let host = host.as_deref().unwrap_or("127.0.0.1");
                let port = port.as_ref().map(|port| format!(":{port}")).unwrap_or_default();
                format!("mongodb://{host}{port}")
            }
        };
        let mut uri = Uri::parse(&uri).map_err(Failure::options)?;
        self.complete_login(&mut uri).map_err(Failure::options)?;
        let tls = self.open_tls(&mut uri).map_err(Failure::options)?;
        Ok(Door::Server { uri: Box::new(uri), tls, tool: tool.to_owned() })
    }

    /// Adds the user from the options, and the password, which is asked for once.
    fn complete_login(&self, uri: &mut Uri) -> Result<(), String> {
        if self.user.is_some() || self.mechanism.is_some() {
            let given = GivenLogin {
                user: self.user.clone(),
                password: None,
                source: self.source.clone(),
                mechanism: self.mechanism.clone(),
            };
            if uri.login.is_some() {
                let text = "--username and --authenticationMechanism exclude a user in --uri";
                return Err(text.to_owned());
            }
            uri.login = given.login(None)?;
        }
        let Some(login) = &mut uri.login else {
            return match self.source.is_some() || self.password_file.is_some() {
                true => Err("--authenticationDatabase and --passwordFile need a user".to_owned()),
                false => Ok(()),
            };
        };
        if let Some(source) = &self.source {
            login.source = source.clone();
        }
        if login.mechanism.as_deref() == Some(X509) {
            return Ok(());
        }
        if let Some(path) = &self.password_file {
            login.password = Some(login::password_of_file(path)?);
        }
        if login.password.is_none() {
            login.password = Some(login::prompt(&login.user)?);
        }
        Ok(())
    }

    /// Adds the TLS options and reads the TLS files; `None` for plain connections.
    fn open_tls(&self, uri: &mut Uri) -> Result<Option<ClientTls>, String> {
        let (own, files) = (&self.tls.files, &mut uri.tls.files);
        uri.tls.enabled = uri.tls.enabled.or(self.tls.enabled);
        files.any_name |= own.any_name;
        files.any_certificate |= own.any_certificate;
        files.authorities = own.authorities.clone().or(files.authorities.take());
        files.certificate_key = own.certificate_key.clone().or(files.certificate_key.take());
        let Some(files) = uri.tls.files()? else { return Ok(None) };
        let mut files = files.clone();
        let text = |error: TlsError| error.to_string();
        if files.password.is_none() && files.needs_password().map_err(text)? {
            files.password = Some(login::prompt("the certificate's key")?);
        }
        ClientTls::open(&files).map(Some).map_err(text)
    }
}

/// An option of [`Target`] without its value.
#[derive(Clone, Copy)]
pub(crate) enum Taken {
    Uri,
    Host,
    Port,
    Dbpath,
    User,
    Source,
    PasswordFile,
    Mechanism,
    Tls,
    Authorities,
    Certificate,
    AnyName,
    AnyCertificate,
}

/// Returns true for the name of a tool that reads data to describe them: what it asks is not what an
/// application asks. The name is that of the application in logs, too, unless the URI names another one.
pub(crate) fn is_advisor(tool: &str) -> bool {
    ["quire advise", "quire profile"].contains(&tool)
}

/// Access to the data for any number of clients.
pub(crate) enum Door {
    Server { uri: Box<Uri>, tls: Option<ClientTls>, tool: String },
    Directory(Directory),
}

impl Door {
    /// Returns a new client.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        match self {
            Door::Server { uri, tls, tool } => {
                let socket = Socket::connect(uri, tls.as_ref(), tool);
                socket.map(Client::Socket).map_err(|text| Failure::new(FAILED, text))
            }
            Door::Directory(directory) => Ok(Client::InProcess(Box::new(directory.client()))),
        }
    }

    /// Closes the access. No client must be left.
    pub(crate) fn close(self) -> Result<(), Failure> {
        match self {
            Door::Server { .. } => Ok(()),
            Door::Directory(directory) => directory.close(),
        }
    }
}

/// Sends commands to a server or to an open directory.
pub(crate) enum Client {
    Socket(Socket),
    InProcess(Box<InProcess>),
}

/// Why a command has no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The connection is lost, and it is unknown whether the command was executed.
    Gone(String),
    /// The server refused or failed.
    Refused { code: i32, message: String },
}

impl CallError {
    /// Returns the failure of a tool with this error.
    pub(crate) fn failure(self, doing: &str) -> Failure {
        match self {
            CallError::Gone(why) => Failure::new(FAILED, format!("{doing}: {why}")),
            CallError::Refused { code, message } => {
                let hint = match message.ends_with("requires authentication") {
                    true => "; --username names the user",
                    false => "",
                };
                Failure::new(FAILED, format!("{doing}: {message} (code {code}){hint}"))
            }
        }
    }
}

/// The documents of one argument of a command.
pub(crate) type Documents = (&'static str, Vec<DocBuf>);

impl Client {
    /// Runs a command in a database.
    ///
    /// # Errors
    /// The connection is lost; the reply has `ok: 0`. Write errors are in the returned reply.
    pub(crate) fn call(
        &mut self,
        db: &str,
        mut body: DocBuf,
        documents: Option<Documents>,
    ) -> Result<DocBuf, CallError> {
        body.append("$db", db);
        let reply = match self {
            Client::Socket(socket) => socket.call(body, documents),
            Client::InProcess(service) => service.call(&body, documents),
        };
        let reply = reply.map_err(CallError::Gone)?;
        if reply.get("ok").and_then(integer) == Some(1) {
            return Ok(reply);
        }
        let message = match reply.get("errmsg") {
            Some(Value::String(text)) => text.to_owned(),
            _ => "the reply has no text".to_owned(),
        };
        let code = reply.get("code").and_then(integer).and_then(|code| code.try_into().ok());
        Err(CallError::Refused { code: code.unwrap_or(1), message })
    }
}

/// Returns the id of the cursor in a reply, and its batch.
pub(crate) fn batch<'r>(reply: &'r DocBuf, name: &str) -> Result<(i64, Array<'r>), Failure> {
    let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document());
    let found = cursor.and_then(|cursor| {
        let id = cursor.get("id").and_then(integer)?;
        Some((id, cursor.get(name)?.as_array()?))
    });
    found.ok_or_else(|| Failure::new(FAILED, "the reply has no cursor"))
}

/// Returns a number of any numeric type.
pub(crate) fn integer(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        Value::Double(number) => Some(number as i64),
        _ => None,
    }
}
