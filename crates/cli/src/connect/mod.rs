//! How the tools reach the data: over a socket to a running server, or by opening the directory
//! of a stopped one. Both take the same commands.

mod directory;
mod login;
mod socket;
pub(crate) mod uri;

use crate::exit::{FAILED, Failure};
use directory::{Directory, InProcess};
use lexopt::{Arg, Parser};
use quire_document::{DocBuf, Value};
use socket::Socket;
use std::path::PathBuf;
use uri::{Login, Uri};

/// The options that say where the data are, for a help text.
pub(crate) const HELP: &str =
    "  --uri URI            The server. Default: mongodb://127.0.0.1:27017
  --host HOST          Its name or address, and its port after a colon.
  --port PORT          Its port.
  --username NAME      Who logs in; the password is asked for.
  --passwordFile FILE  A file that holds the password, in place of the question.
  --authenticationDatabase DB
                       The database of the user. Default: admin
  --dbpath DIR         The directory of a stopped server instead.";

/// Where the data are, as the command line says it.
#[derive(Default)]
pub(crate) struct Target {
    uri: Option<String>,
    host: Option<String>,
    port: Option<String>,
    dbpath: Option<PathBuf>,
    user: Option<String>,
    source: Option<String>,
    password_file: Option<PathBuf>,
}

impl Target {
    /// Takes the option if it is one of these.
    pub(crate) fn take(&mut self, word: &Arg<'_>) -> Option<Taken> {
        Some(match word {
            Arg::Long("uri") => Taken::Uri,
            Arg::Long("host") => Taken::Host,
            Arg::Long("port") => Taken::Port,
            Arg::Long("dbpath") => Taken::Dbpath,
            Arg::Long("username") => Taken::User,
            Arg::Long("authenticationDatabase") => Taken::Source,
            Arg::Long("passwordFile") => Taken::PasswordFile,
            _ => return None,
        })
    }

    /// Reads the value of an option that was taken.
    pub(crate) fn set(&mut self, taken: Taken, parser: &mut Parser) -> Result<(), lexopt::Error> {
        let value = parser.value()?;
        match taken {
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

    /// Whether a server was named.
    pub(crate) fn names_a_server(&self) -> bool {
        self.uri.is_some() || self.host.is_some() || self.port.is_some() || self.user.is_some()
    }

    /// The database that the URI names.
    pub(crate) fn database(&self) -> Result<Option<String>, Failure> {
        match &self.uri {
            Some(uri) => Ok(Uri::parse(uri).map_err(Failure::options)?.database),
            None => Ok(None),
        }
    }

    /// Opens the door.
    ///
    /// # Errors
    /// Options that exclude each other; nobody answers; the directory is in use.
    pub(crate) fn open(&self, tool: &str) -> Result<Door, Failure> {
        if let Some(path) = &self.dbpath {
            if self.names_a_server() {
                let text = "--dbpath excludes --uri, --host, --port and --username";
                return Err(Failure::options(text));
            }
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
        Ok(Door::Server { uri: Box::new(uri), tool: tool.to_owned() })
    }

    /// Adds what the options say about the user, and the password, asked for once.
    fn complete_login(&self, uri: &mut Uri) -> Result<(), String> {
        if let Some(user) = &self.user {
            let login = Login {
                user: user.clone(),
                password: None,
                source: "admin".to_owned(),
                mechanism: None,
            };
            if uri.login.replace(login).is_some() {
                return Err("--username excludes a user in --uri".to_owned());
            }
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
        if let Some(path) = &self.password_file {
            login.password = Some(login::password_of_file(path)?);
        }
        if login.password.is_none() {
            login.password = Some(login::prompt(&login.user)?);
        }
        Ok(())
    }
}

/// An option of [`Target`] whose value comes next.
#[derive(Clone, Copy)]
pub(crate) enum Taken {
    Uri,
    Host,
    Port,
    Dbpath,
    User,
    Source,
    PasswordFile,
}

/// A way to the data, through which any number of clients can go.
pub(crate) enum Door {
    Server { uri: Box<Uri>, tool: String },
    Directory(Directory),
}

impl Door {
    /// A new client.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        match self {
            Door::Server { uri, tool } => {
                let socket = Socket::connect(uri, tool);
                socket.map(Client::Socket).map_err(|text| Failure::new(FAILED, text))
            }
            Door::Directory(directory) => Ok(Client::InProcess(directory.client())),
        }
    }

    /// Closes it, when no client is left.
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
    InProcess(InProcess),
}

/// Why a command gave no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The connection is gone: whether the command was done is not known.
    Gone(String),
    /// The server refused or failed.
    Refused { code: i32, message: String },
}

impl CallError {
    /// The end of a tool that this ends.
    pub(crate) fn failure(self, doing: &str) -> Failure {
        match self {
            CallError::Gone(why) => Failure::new(FAILED, format!("{doing}: {why}")),
            CallError::Refused { code, message } => {
                Failure::new(FAILED, format!("{doing}: {message} (code {code})"))
            }
        }
    }
}

/// Documents that go with a command as one of its arguments.
pub(crate) type Documents = (&'static str, Vec<DocBuf>);

impl Client {
    /// Runs a command against a database.
    ///
    /// # Errors
    /// The connection is gone; the reply says `ok: 0`. Write errors stand in the reply.
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

/// A number of a reply, however it is typed.
pub(crate) fn integer(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        Value::Double(number) => Some(number as i64),
        _ => None,
    }
}
