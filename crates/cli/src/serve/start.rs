//! The steps of the start and of the stop, in order.

use super::allocator;
use super::audit::AuditSettings;
use super::encryption::{TlsSettings, without_passwords};
use super::settings::{LogSettings, Settings};
use super::watch::{LOOK_EVERY, Watch};
use crate::call::Call;
use crate::exit::{ABRUPT, FAILED, Failure, NETWORK};
use crate::version;
use quire_commands::log::{LogLine, LogSink, Severity};
use quire_commands::{ChangeLogMode, ChangeLogOptions, Service, ServiceOptions, Topology, history};
use quire_document::{DocBuf, doc};
use quire_error::ErrorCode;
use quire_server::log::{LineFormat, Output, ServerLog, Syslog, SyslogFacility};
use quire_server::metrics::{self, MetricsEndpoint};
use quire_server::{Endpoint, Listeners, Server, ServerOptions, StartError, Stop, signals};
use quire_storage::{Engine, SystemClock};
use quire_storage_lsm::LsmOptions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{IsTerminal, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

/// The file descriptors that are reserved for the engine and the log.
const RESERVED_FILES: u64 = 256;
/// The bounds of the default size of the change log, in bytes.
const CHANGE_LOG_BYTES_MIN: u64 = 128 << 20;
const CHANGE_LOG_BYTES_MAX: u64 = 16 << 30;

/// Starts the server, waits for its stop, and ends it.
pub(crate) fn serve(settings: Settings, call: &Call) -> Result<(), Failure> {
    let log = Arc::new(open_log(&settings.log, call.as_mongod)?);
    let stop = Stop::new();
    let (rotated, opened) = (Arc::clone(&log), Arc::new(OnceLock::<Weak<Service>>::new()));
    let service = Arc::clone(&opened);
    let rotate = move || {
        // There is no caller to report an error to; the next log line shows whether there is a
        // file.
        let _ = rotated.rotate();
        if let Some(service) = service.get().and_then(Weak::upgrade) {
            let _ = service.rotate_audit(None);
        }
    };
    signals::install(&stop, rotate)
        .map_err(|error| Failure::new(FAILED, format!("cannot handle signals: {error}")))?;
    log_start(&log, &settings, call);
    let result = serve_until_stopped(settings, call, &log, &stop, &opened);
    // On a terminal the sentence follows as the last line.
    if let Err(failure) = &result
        && !log.is_for_people()
    {
        let attributes =
            doc! { "error": failure.message.as_str(), "exitCode": i32::from(failure.code) };
        log.control(Severity::Error, 20557, "Terminating", attributes);
    }
    result
}

fn serve_until_stopped(
    settings: Settings,
    call: &Call,
    log: &Arc<ServerLog>,
    stop: &Stop,
    opened: &OnceLock<Weak<Service>>,
) -> Result<(), Failure> {
    let encryption = settings.tls.clone().map(TlsSettings::open).transpose()?.map(Arc::new);
    let listeners = Listeners::bind(&settings.endpoints).map_err(|error| cannot_listen(&error))?;
    let metrics = settings.metrics.map(metrics::bind).transpose();
    let metrics = metrics.map_err(|error| cannot_listen(&error))?;
    let engine = open_engine(&settings, log)?;
    let asked = stop.clone();
    let options = ServiceOptions {
        topology: settings.set_name.clone().map_or(Topology::Standalone, Topology::ReplicaSet),
        set_name_given: settings.set_name_given,
        git_version: version::COMMIT.unwrap_or("nogitversion"),
        advertise: settings.advertise.clone(),
        argv: without_passwords(&call.line),
        parsed_options: settings.parsed.clone(),
        storage_engine: if settings.dbpath.is_some() { "lsm" } else { "memory" },
        parameters: settings.parameters.clone(),
        clock: Arc::new(SystemClock),
        log: log.clone(),
        audit: settings.audit.as_ref().map(AuditSettings::open).transpose()?,
        on_shutdown: Arc::new(move || asked.request("the shutdown command")),
        access_control: settings.access_control,
        request_bytes_max: super::request_memory::budget_bytes(),
        data_directory: settings.dbpath.clone(),
        certificate: encryption.clone().map(|encryption| encryption as _),
        change_log: change_log(&settings),
        recorder: settings.recorder,
        status_history: settings.dbpath.as_ref().map(|path| path.join(history::FOLDER)),
    };
    let service = Service::open(engine, options).map_err(|error| match error.code() {
        ErrorCode::BadValue => Failure::options(error.message()),
        _ => Failure::new(FAILED, format!("cannot open the data: {error}")),
    })?;
    // The process has only one service, so this cannot fail.
    let _ = opened.set(Arc::downgrade(&service));
    service.note_start();
    service.note_version();
    service.set_profile_defaults(settings.profile_level, settings.slow_sample_rate);
    let jobs = service
        .start_jobs()
        .map_err(|error| Failure::new(FAILED, format!("cannot start a thread: {error}")))?;
    let connections_max = connections_max(settings.connections_max);
    let server_options = ServerOptions {
        connections_max,
        unproven_max: (connections_max / 4).max(16),
        quiet: settings.log.quiet,
        encryption: encryption.clone(),
        on_rest: allocator::on_rest,
        ..ServerOptions::default()
    };
    let mut server = Server::start(Arc::clone(&service), listeners, server_options)
        .map_err(|error| cannot_listen(&error))?;
    let metrics = metrics.map(|listener| MetricsEndpoint::start(&service, listener)).transpose();
    let metrics = metrics.map_err(|error| cannot_listen(&error))?;
    if let Some(metrics) = &metrics {
        let attributes = doc! { "url": metrics.url().as_str() };
        log.control(Severity::Info, 3, "Metrics are served", attributes);
    }
    let _pidfile = settings.pidfile.as_deref().map(Pidfile::write).transpose()?;
    announce(&server, &settings, call, log);
    let engine = Arc::clone(service.store().engine());
    service.memory().on_scarcity(allocator::on_scarcity);
    let mut watch = Watch::default();
    let reason = loop {
        if let Some(reason) = stop.wait(LOOK_EVERY) {
            break reason;
        }
        service.memory().look();
        if let Err(error) = watch.look(&*engine, service.refusals(), log) {
            server.stop();
            drop(jobs);
            // Closing cannot save more after the engine has failed: the next start recovers the
            // data.
            let _ = service.close();
            return Err(Failure::new(ABRUPT, format!("the storage engine has failed: {error}")));
        }
    };
    log.control(Severity::Info, 23138, "Shutting down", doc! { "reason": reason.as_str() });
    server.stop();
    drop((jobs, metrics));
    service.close().map_err(|error| {
        Failure::new(FAILED, format!("the data could not be closed cleanly: {error}"))
    })?;
    log.control(Severity::Info, 23138, "Shut down", doc! { "exitCode": 0 });
    Ok(())
}

/// Returns the options of the change log: on for a member of a replica set with a directory, and in
/// memory if a size was asked for.
fn change_log(settings: &Settings) -> ChangeLogOptions {
    let is_on = match &settings.dbpath {
        Some(_) => settings.set_name.is_some(),
        None => settings.set_name.is_some() && settings.change_log_bytes.is_some(),
    };
    let mode = if is_on { ChangeLogMode::On } else { ChangeLogMode::Off };
    let bytes_max = settings.change_log_bytes.unwrap_or_else(|| {
        let disk = settings.dbpath.as_deref().and_then(|path| rustix::fs::statvfs(path).ok());
        let size = disk.map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        (size / 20).clamp(CHANGE_LOG_BYTES_MIN, CHANGE_LOG_BYTES_MAX)
    });
    ChangeLogOptions { mode, bytes_max, age_min_ms: settings.change_log_ms }
}

fn open_log(settings: &LogSettings, as_mongod: bool) -> Result<ServerLog, Failure> {
    let output = match (&settings.path, settings.syslog) {
        (None, Some(facility)) => syslog(facility)?,
        (Some(path), _) => Output::file(path, settings.append).map_err(|error| {
            Failure::new(1, format!("cannot open the log file {}: {error}", path.display()))
        })?,
        (None, None) if as_mongod => Output::Stdout,
        (None, None) => Output::Stderr,
    };
    let suitable = match output {
        Output::Stderr if std::io::stderr().is_terminal() => LineFormat::Plain,
        _ => LineFormat::Json,
    };
    let format = settings.format.unwrap_or(suitable);
    Ok(ServerLog::new(output, format).reopening(settings.reopen))
}

fn syslog(facility: SyslogFacility) -> Result<Output, Failure> {
    let connected = Syslog::connect("quire", facility);
    let syslog = connected.map_err(|error| {
        let text = format!(
            "--syslog: no syslog daemon can be reached at /dev/log: {error}; start one, or log to a file: --logpath FILE"
        );
        Failure::new(1, text)
    })?;
    Ok(Output::Syslog(Box::new(syslog)))
}

fn log_start(log: &ServerLog, settings: &Settings, call: &Call) {
    let attributes = doc! {
        "pid": i64::from(std::process::id()),
        "quire": version::QUIRE,
        "version": quire_commands::MONGODB_VERSION,
        "dbPath": settings.dbpath.as_deref().map_or("(memory)", |path| path.to_str().unwrap_or("?")),
    };
    log.control(Severity::Info, 4615611, "Quire starting", attributes);
    let attributes = doc! { "options": &settings.parsed };
    log.control(Severity::Info, 21951, "Options set by command line", attributes);
    let text = "Access control is not enabled for the database. Read and write access to data and \
                configuration is unrestricted";
    if !settings.access_control {
        log.control(Severity::Warning, 22120, text, DocBuf::new());
    }
    if call.as_mongod {
        log.control(Severity::Info, 1, "This is Quire, started as mongod", DocBuf::new());
    }
}

/// Opens the engine on disk, or in memory if there is no directory.
fn open_engine(settings: &Settings, log: &ServerLog) -> Result<Arc<dyn Engine>, Failure> {
    let Some(path) = &settings.dbpath else {
        return quire_storage::open_memory().map_err(|error| {
            Failure::new(FAILED, format!("cannot open the memory engine: {error}"))
        });
    };
    if !settings.creates && !path.exists() {
        let shown = path.display();
        let text = format!(
            "the data directory {shown} does not exist; check the path, or let it be created: --create"
        );
        return Err(Failure::new(FAILED, text));
    }
    if path.exists() && !path.is_dir() {
        let text = format!("{} is a file; --dbpath names a directory", path.display());
        return Err(Failure::new(FAILED, text));
    }
    let options = LsmOptions { cache_bytes: settings.cache_bytes, ..LsmOptions::default() };
    let opened = crate::engine::open(path, options)?;
    for warning in &opened.warnings {
        let attributes = doc! { "warning": warning.as_str() };
        log.control(Severity::Warning, 2, "The storage engine has a warning", attributes);
    }
    Ok(opened.engine)
}

fn cannot_listen(error: &StartError) -> Failure {
    let code = match error {
        StartError::AddressInUse(_) | StartError::Bind(..) => NETWORK,
        StartError::Thread(_) => FAILED,
    };
    Failure::new(code, error.to_string())
}

/// Raises the limit on open files as far as possible, and reserves the engine's share.
fn connections_max(asked: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let Some(files) = files else { return asked };
    let room = files.saturating_sub(RESERVED_FILES).max(files / 2);
    asked.min(usize::try_from(room).unwrap_or(usize::MAX))
}

/// Prints that the server is ready: one line for people, or the log line that launchers of mongod
/// wait for.
fn announce(server: &Server, settings: &Settings, call: &Call, log: &ServerLog) {
    for endpoint in server.endpoints() {
        let address = endpoint.to_string();
        log.control(Severity::Info, 23015, "Listening on", doc! { "address": address.as_str() });
    }
    let port = server.endpoints().iter().find_map(|endpoint| match endpoint {
        Endpoint::Tcp(address) => Some(i32::from(address.port())),
        Endpoint::Unix(..) => None,
    });
    let attributes = doc! { "port": port.unwrap_or(0), "ssl": if settings.tls.is_some() { "on" } else { "off" } };
    log.control(Severity::Info, 23016, "Waiting for connections", attributes);
    if settings.set_name.is_some() {
        let line = LogLine {
            severity: Severity::Info,
            component: "REPL",
            id: 21331,
            context: "initandlisten",
            message: "Transition to primary complete; database writes are now permitted",
            attributes: DocBuf::new(),
        };
        log.write(line);
    }
    log.started();
    if !call.as_mongod {
        let mut out = std::io::stdout().lock();
        // The parent process may have closed the stream; the server needs no reader.
        let _ = writeln!(
            out,
            "Quire {} (follows MongoDB {}), ready: {}",
            version::QUIRE,
            quire_commands::MONGODB_VERSION,
            connection_string(server.endpoints(), settings, server.service().set_name())
        );
        let _ = out.flush();
    }
}

fn connection_string(
    endpoints: &[Endpoint],
    settings: &Settings,
    set_name: Option<&str>,
) -> String {
    let first = endpoints.first().map(|endpoint| match endpoint {
        Endpoint::Tcp(address) if address.ip().is_unspecified() => match address.ip() {
            IpAddr::V4(_) => format!("127.0.0.1:{}", address.port()),
            IpAddr::V6(_) => format!("[::1]:{}", address.port()),
        },
        Endpoint::Tcp(address) => address.to_string(),
        Endpoint::Unix(path, _) => path.to_string_lossy().replace('/', "%2F"),
    });
    let host = settings.advertise.clone().or(first).unwrap_or_default();
    match set_name {
        Some(set) => format!("mongodb://{host}/?replicaSet={set}"),
        None => format!("mongodb://{host}/"),
    }
}

/// A file with the process id, which is removed at a clean end of the process.
struct Pidfile(PathBuf);

impl Pidfile {
    fn write(path: &Path) -> Result<Pidfile, Failure> {
        Pidfile::write_file(path).map_err(|error| {
            Failure::new(1, format!("cannot write the pid file {}: {error}", path.display()))
        })?;
        Ok(Pidfile(path.to_owned()))
    }

    /// Writes a file that others may read, like mongod's. A symbolic link is not followed.
    fn write_file(path: &Path) -> std::io::Result<()> {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(i32::try_from(no_follow).unwrap_or(0))
            .open(path)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
        writeln!(file, "{}", std::process::id())
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = std::fs::remove_file(&self.0);
    }
}
