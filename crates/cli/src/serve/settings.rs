//! Converts the given options to the settings of the server: checks every value and sets every
//! default.

use super::audit::AuditSettings;
use super::encryption::{self, TlsSettings};
use super::given::Given;
use super::key_file;
use super::machine;
use super::options::Takes;
use crate::call::did_you_mean;
use crate::exit::{Failure, NETWORK};
use quire_commands::PARAMETERS;
use quire_document::{DocBuf, DocWriter};
use quire_server::Endpoint;
use quire_server::log::{LineFormat, SyslogFacility};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

const DEFAULT_PORT: u16 = 27017;
const DEFAULT_CONNECTIONS_MAX: usize = 20_000;

/// The settings of the server.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The data directory; `None` for data in memory.
    pub(crate) dbpath: Option<PathBuf>,
    /// True if the directory is created when it does not exist.
    pub(crate) creates: bool,
    /// The largest size of the engine's block cache, in bytes.
    pub(crate) cache_bytes: u64,
    /// The name of the replica set; `None` for a standalone.
    pub(crate) set_name: Option<String>,
    /// True if the user gave that name: the directory must have the same.
    pub(crate) set_name_given: bool,
    pub(crate) advertise: Option<String>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) connections_max: usize,
    /// Where Prometheus reads; `None` for nowhere.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) log: LogSettings,
    pub(crate) pidfile: Option<PathBuf>,
    /// True if clients must log in.
    pub(crate) access_control: bool,
    /// The audit log; `None` for none.
    pub(crate) audit: Option<AuditSettings>,
    /// The encryption; `None` for plain connections.
    pub(crate) tls: Option<TlsSettings>,
    /// The size of the change log in bytes; `None` for the default.
    pub(crate) change_log_bytes: Option<u64>,
    /// How long the change log keeps changes at least, in milliseconds.
    pub(crate) change_log_ms: u64,
    /// False to count no statements.
    pub(crate) recorder: bool,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) profile_level: i32,
    pub(crate) slow_sample_rate: f64,
    /// The options in the form of the configuration file, for `getCmdLineOpts`.
    pub(crate) parsed: DocBuf,
}

/// The settings of the log.
#[derive(Debug)]
pub(crate) struct LogSettings {
    pub(crate) path: Option<PathBuf>,
    /// The facility of the system's log; `None` to log elsewhere.
    pub(crate) syslog: Option<SyslogFacility>,
    /// The form of the lines; `None` for the one that suits the output.
    pub(crate) format: Option<LineFormat>,
    pub(crate) append: bool,
    pub(crate) reopen: bool,
    pub(crate) quiet: bool,
}

impl Settings {
    pub(crate) fn new(given: &Given, as_mongod: bool) -> Result<Settings, Failure> {
        let memory = given.flag("memory") || memory_engine(given)?;
        if memory && given.flag("dbpath") && given.flag("memory") {
            return Err(Failure::options("--memory and --dbpath exclude each other"));
        }
        let default = if as_mongod { "/data/db" } else { "quire-data" };
        let dbpath = PathBuf::from(given.text("dbpath").unwrap_or(default));
        if given.flag("standalone") && given.flag("replSet") {
            return Err(Failure::options("--standalone and --replSet exclude each other"));
        }
        let set_name = given.text("replSet").unwrap_or("rs0");
        if set_name.is_empty() || set_name.contains('/') {
            return Err(Failure::options("--replSet takes a name without seeds"));
        }
        given.text("keyFile").map_or(Ok(()), key_file::check)?;
        Ok(Settings {
            dbpath: (!memory).then_some(dbpath),
            // A launcher of mongod makes the directory; a misspelt one must not become a new, empty
            // database.
            creates: given.flag("create") || !(as_mongod || given.flag("dbpath")),
            cache_bytes: cache_bytes(given)?,
            set_name: (!given.flag("standalone")).then(|| set_name.to_owned()),
            set_name_given: given.flag("replSet"),
            advertise: given.text("advertise").map(advertised).transpose()?,
            endpoints: endpoints(given, as_mongod)?,
            connections_max: connections_max(given)?,
            metrics: metrics(given)?,
            log: LogSettings {
                path: given.text("logpath").map(PathBuf::from),
                syslog: syslog(given)?,
                format: log_format(given)?,
                append: given.flag("logappend"),
                reopen: reopens(given)?,
                quiet: given.flag("quiet"),
            },
            pidfile: given.text("pidfilepath").map(PathBuf::from),
            access_control: access_control(given)?,
            audit: AuditSettings::new(given)?,
            tls: TlsSettings::new(given)?,
            change_log_bytes: change_log_bytes(given)?,
            change_log_ms: change_log_ms(given)?,
            recorder: recorder(given)?,
            parameters: parameters(given)?,
            profile_level: profile_level(given)?,
            slow_sample_rate: slow_sample_rate(given)?,
            parsed: parsed(given),
        })
    }
}

fn memory_engine(given: &Given) -> Result<bool, Failure> {
    match given.text("storageEngine") {
        None | Some("wiredTiger") => Ok(false),
        Some("inMemory" | "ephemeralForTest") => Ok(true),
        Some(other) => {
            let text = format!("Cannot start server with an unknown storage engine: {other}");
            Err(Failure::options(text))
        }
    }
}

fn change_log_bytes(given: &Given) -> Result<Option<u64>, Failure> {
    let size = given.text("oplogSize").map(str::parse::<u64>);
    match size {
        None => Ok(None),
        Some(Ok(megabytes @ 1..=1_000_000_000)) => Ok(Some(megabytes << 20)),
        Some(_) => Err(Failure::options("--oplogSize is a number of megabytes, at least 1")),
    }
}

fn recorder(given: &Given) -> Result<bool, Failure> {
    match given.text("recorder") {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(_) => Err(Failure::options("--recorder is 'on' or 'off'")),
    }
}

fn change_log_ms(given: &Given) -> Result<u64, Failure> {
    match given.text("oplogMinRetentionHours").map(str::parse::<f64>) {
        None => Ok(0),
        Some(Ok(hours)) if (0.0..=1_000_000.0).contains(&hours) => Ok((hours * 3_600_000.0) as u64),
        Some(_) => {
            Err(Failure::options("--oplogMinRetentionHours is a number of hours, at least 0"))
        }
    }
}

fn cache_bytes(given: &Given) -> Result<u64, Failure> {
    const LEAST: u64 = 16 << 20;
    let (size, share) = (given.text("wiredTigerCacheSizeGB"), given.text("wiredTigerCacheSizePct"));
    let memory = machine::memory_bytes();
    let size = match (size, share) {
        (None, None) => return Ok(default_cache_bytes(memory)),
        (Some(_), Some(_)) => {
            let text = "--wiredTigerCacheSizeGB and --wiredTigerCacheSizePct exclude each other";
            return Err(Failure::options(text));
        }
        (Some(size), None) => size,
        (None, Some(share)) => {
            let percent = share.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 80.0);
            let text = "--wiredTigerCacheSizePct must be greater than 0 and at most 80";
            let percent = percent.ok_or_else(|| Failure::options(text))?;
            let text = "the size of the memory is not known: use --wiredTigerCacheSizeGB";
            let memory = memory.ok_or_else(|| Failure::options(text))?;
            return Ok(((memory as f64 * percent / 100.0) as u64).max(LEAST));
        }
    };
    match size.parse::<f64>() {
        Ok(size) if (0.0..=10_000.0).contains(&size) => {
            Ok(((size * f64::from(1 << 30)) as u64).max(LEAST))
        }
        _ => Err(Failure::options("--wiredTigerCacheSizeGB must be between 0 and 10000")),
    }
}

/// Returns the default size of the block cache: a quarter of `memory`, the bytes of the machine or
/// the container, and at least 256 MiB.
fn default_cache_bytes(memory: Option<u64>) -> u64 {
    memory.map_or(0, |bytes| bytes / 4).max(256 << 20)
}

fn access_control(given: &Given) -> Result<bool, Failure> {
    let (by_mode, off_by_mode) = match given.text("authorization") {
        None => (false, false),
        Some("disabled") => (false, true),
        Some("enabled") => (true, false),
        Some(_) => {
            return Err(Failure::options("security.authorization is 'enabled' or 'disabled'"));
        }
    };
    let (asked, off) = (given.flag("auth") || by_mode, given.flag("noauth"));
    match (asked, given.flag("keyFile")) {
        (true, _) if off => Err(Failure::options("--auth and --noauth exclude each other")),
        (false, true) if off || off_by_mode => {
            let text =
                "--keyFile implies --auth and excludes --noauth and authorization 'disabled'";
            Err(Failure::options(text))
        }
        (asked, by_key) => Ok(asked || by_key),
    }
}

/// Returns the facility of the system's log, if that is the destination.
fn syslog(given: &Given) -> Result<Option<SyslogFacility>, Failure> {
    let asked = match given.text("logDestination") {
        None => given.flag("syslog"),
        Some("syslog") => true,
        Some("file") if given.flag("syslog") => {
            return Err(Failure::options("--logDestination file and --syslog exclude each other"));
        }
        Some("file") if !given.flag("logpath") => {
            return Err(Failure::options("--logDestination file needs --logpath"));
        }
        Some("file") => false,
        Some(_) => return Err(Failure::options("--logDestination is 'file' or 'syslog'")),
    };
    if asked && given.flag("logpath") {
        return Err(Failure::options("--syslog and --logpath exclude each other"));
    }
    match given.text("syslogFacility") {
        Some(_) if !asked => Err(Failure::options("--syslogFacility needs --syslog")),
        None => Ok(asked.then(SyslogFacility::default)),
        Some(name) => match SyslogFacility::parse(name) {
            Some(facility) => Ok(Some(facility)),
            None => Err(Failure::options(format!(
                "--syslogFacility has the unknown name '{name}'; such names are 'user', 'daemon' and 'local0' to 'local7'"
            ))),
        },
    }
}

fn log_format(given: &Given) -> Result<Option<LineFormat>, Failure> {
    match given.text("logFormat") {
        None => Ok(None),
        Some("json") => Ok(Some(LineFormat::Json)),
        Some("plain") => Ok(Some(LineFormat::Plain)),
        Some(other) => {
            let near = did_you_mean(other, ["plain", "json"].into_iter());
            Err(Failure::options(format!("--logFormat is 'plain' or 'json', not '{other}'{near}")))
        }
    }
}

fn reopens(given: &Given) -> Result<bool, Failure> {
    match given.text("logRotate") {
        None | Some("rename") => Ok(false),
        Some("reopen") if given.flag("logappend") => Ok(true),
        Some("reopen") => Err(Failure::options("--logRotate reopen needs --logappend")),
        Some(_) => Err(Failure::options("--logRotate is 'rename' or 'reopen'")),
    }
}

fn advertised(text: &str) -> Result<String, Failure> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.and_then(|(_, port)| port.parse::<u16>().ok()) {
        Some(port) if port > 0 => Ok(text.to_owned()),
        _ => Err(Failure::options(format!("--advertise takes HOST:PORT, not '{text}'"))),
    }
}

fn connections_max(given: &Given) -> Result<usize, Failure> {
    let Some(text) = given.text("maxConns") else { return Ok(DEFAULT_CONNECTIONS_MAX) };
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Failure::options("--maxConns must be greater than 0")),
    }
}

fn metrics(given: &Given) -> Result<Option<SocketAddr>, Failure> {
    let Some(port) = given.text("metricsPort") else {
        return match given.text("metricsBindIp") {
            Some(_) => Err(Failure::options("--metricsBindIp needs --metricsPort")),
            None => Ok(None),
        };
    };
    let port = port.trim().parse();
    let port = port.map_err(|_| Failure::options("--metricsPort must be between 0 and 65535"))?;
    let text = given.text("metricsBindIp").unwrap_or("127.0.0.1");
    let address: IpAddr = text.parse().map_err(|_| {
        Failure::options(format!("--metricsBindIp takes an IP address, not '{text}'"))
    })?;
    Ok(Some(SocketAddr::new(address, port)))
}

fn port(given: &Given) -> Result<u16, Failure> {
    let Some(text) = given.text("port") else { return Ok(DEFAULT_PORT) };
    let text = text.trim();
    text.parse().map_err(|_| Failure::options("--port must be between 0 and 65535"))
}

fn endpoints(given: &Given, as_mongod: bool) -> Result<Vec<Endpoint>, Failure> {
    let (port, mode) = (port(given)?, permissions(given)?);
    let mut found = Vec::new();
    if given.flag("bind_ip_all") {
        if given.flag("bind_ip") {
            return Err(Failure::options("--bind_ip and --bind_ip_all exclude each other"));
        }
        add_all_addresses(&mut found, port, given.flag("ipv6"));
    } else {
        for host in given.text("bind_ip").unwrap_or("127.0.0.1").split(',').map(str::trim) {
            add_host(&mut found, host, port, given)?;
        }
    }
    let enabled =
        !given.flag("nounixsocket") && given.text("unixDomainSocketEnabled") != Some("false");
    let asked = as_mongod || given.flag("unixSocketPrefix");
    if enabled && asked && cfg!(unix) && port != 0 {
        let prefix = given.text("unixSocketPrefix").unwrap_or("/tmp");
        let path = PathBuf::from(prefix).join(format!("mongodb-{port}.sock"));
        found.push(Endpoint::Unix(path, mode));
    }
    let open = !access_control(given)?;
    check_exposure(&found, open && !given.flag("allow-anonymous"))?;
    Ok(found)
}

fn add_all_addresses(found: &mut Vec<Endpoint>, port: u16, ipv6: bool) {
    found.push(Endpoint::Tcp(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)));
    if ipv6 {
        found.push(Endpoint::Tcp(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)));
    }
}

fn add_host(
    found: &mut Vec<Endpoint>,
    host: &str,
    port: u16,
    given: &Given,
) -> Result<(), Failure> {
    let ipv6 = given.flag("ipv6");
    if host == "*" {
        add_all_addresses(found, port, ipv6);
        return Ok(());
    }
    if host.starts_with('/') {
        found.push(Endpoint::Unix(PathBuf::from(host), permissions(given)?));
        return Ok(());
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        push(found, SocketAddr::new(address, port));
        return Ok(());
    }
    let unknown = |why: String| Failure::new(NETWORK, format!("--bind_ip {host}: {why}"));
    let addresses = (host, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    let usable: Vec<_> = addresses.filter(|address| ipv6 || address.is_ipv4()).collect();
    if usable.is_empty() {
        return Err(unknown("the host has no IPv4 address; --ipv6 allows others".to_owned()));
    }
    usable.into_iter().for_each(|address| push(found, address));
    Ok(())
}

fn push(found: &mut Vec<Endpoint>, address: SocketAddr) {
    let endpoint = Endpoint::Tcp(address);
    if !found.contains(&endpoint) {
        found.push(endpoint);
    }
}

fn permissions(given: &Given) -> Result<u32, Failure> {
    let text = given.text("filePermissions").unwrap_or("0700");
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err(Failure::options("--filePermissions takes an octal mode such as 0700")),
    }
}

/// Refuses an address that other machines can reach, without logins, unless an option allows it.
fn check_exposure(endpoints: &[Endpoint], refused: bool) -> Result<(), Failure> {
    let exposed = endpoints.iter().find(|endpoint| match endpoint {
        Endpoint::Tcp(address) => !address.ip().is_loopback(),
        Endpoint::Unix(..) => false,
    });
    match exposed {
        Some(endpoint) if refused => Err(Failure::options(format!(
            "{endpoint} can be reached from other machines, and nobody has to log in; \
             add --auth, or --allow-anonymous if that is what you want"
        ))),
        _ => Ok(()),
    }
}

fn profile_level(given: &Given) -> Result<i32, Failure> {
    match given.text("profile") {
        None | Some("0" | "off") => Ok(0),
        Some("1" | "slowOp") => Ok(1),
        Some("2" | "all") => Ok(2),
        Some(_) => Err(Failure::options("--profile is 0 (off), 1 (slowOp) or 2 (all)")),
    }
}

fn slow_sample_rate(given: &Given) -> Result<f64, Failure> {
    let rate = given.text("slowOpSampleRate").map_or(Ok(1.0), str::parse);
    let rate = rate.ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| Failure::options("--slowOpSampleRate must be between 0 and 1"))
}

fn parameters(given: &Given) -> Result<Vec<(String, String)>, Failure> {
    let pairs = given.all("setParameter").iter().filter_map(|pair| pair.split_once('='));
    let mut found: Vec<(String, String)> =
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let known = |name: &str| PARAMETERS.iter().any(|parameter| parameter.name == name);
    if let Some((unknown, _)) = found.iter().find(|(name, _)| !known(name)) {
        let near = did_you_mean(unknown, PARAMETERS.iter().map(|parameter| parameter.name));
        return Err(Failure::options(format!("unknown parameter '{unknown}'{near}")));
    }
    for (option, parameter) in [("slowms", "slowMs")] {
        if let Some(value) = given.text(option) {
            found.push((parameter.to_owned(), value.to_owned()));
        }
    }
    for option in ["notablescan", "quiet", "redactClientLogData"] {
        if given.flag(option) {
            found.push((option.to_owned(), "true".to_owned()));
        }
    }
    if !given.all("verbose").is_empty() {
        found.push(("logLevel".to_owned(), log_level(given.all("verbose"))?.to_string()));
    }
    Ok(found)
}

/// Returns the log level of `-v`, `-vv` and `--verbose LEVEL` together, at most 5.
fn log_level(given: &[String]) -> Result<usize, Failure> {
    let level = |text: &String| match text.bytes().all(|letter| letter == b'v') {
        true => Some(text.len()),
        false => text.parse().ok(),
    };
    let levels: Option<Vec<usize>> = given.iter().map(level).collect();
    let levels = levels.ok_or_else(|| Failure::options("--verbose takes a level from 0 to 5"))?;
    Ok(levels.iter().fold(0usize, |sum, level| sum.saturating_add(*level)).min(5))
}

/// A value or a section of the configuration file.
enum Node {
    Flag,
    Text(String),
    Number(i64),
    Section(BTreeMap<String, Node>),
}

fn parsed(given: &Given) -> DocBuf {
    let mut root = BTreeMap::new();
    for (option, values) in given.iter() {
        let path = if option.config.is_empty() { option.name } else { option.config };
        let last = values.last().map_or("", String::as_str);
        let node = match option.takes {
            Takes::Flag => Node::Flag,
            Takes::Text(_) if option.name == encryption::PASSWORD => {
                Node::Text(encryption::HIDDEN.to_owned())
            }
            Takes::Number(_) => last.parse().map_or(Node::Text(last.to_owned()), Node::Number),
            Takes::Text(_) => Node::Text(last.to_owned()),
            Takes::Pair(_) => {
                let pairs = values.iter().filter_map(|pair| pair.split_once('='));
                let pairs =
                    pairs.map(|(name, value)| (name.to_owned(), Node::Text(value.to_owned())));
                Node::Section(pairs.collect())
            }
        };
        place(&mut root, path, node);
    }
    DocBuf::build(|writer| write_section(writer, &root))
}

fn place(section: &mut BTreeMap<String, Node>, path: &str, node: Node) {
    match path.split_once('.') {
        None => {
            section.insert(path.to_owned(), node);
        }
        Some((first, rest)) => {
            let inner =
                section.entry(first.to_owned()).or_insert_with(|| Node::Section(BTreeMap::new()));
            if let Node::Section(inner) = inner {
                place(inner, rest, node);
            }
        }
    }
}

fn write_section(writer: &mut DocWriter<'_>, section: &BTreeMap<String, Node>) {
    for (name, node) in section {
        match node {
            Node::Flag => {
                writer.append(name, true);
            }
            Node::Text(text) => {
                writer.append(name, text.as_str());
            }
            Node::Number(number) => {
                match i32::try_from(*number) {
                    Ok(small) => writer.append(name, small),
                    Err(_) => writer.append(name, *number),
                };
            }
            Node::Section(inner) => write_section(&mut writer.document(name), inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;
    use std::ffi::OsString;

    fn settings(words: &[&str], as_mongod: bool) -> Result<Settings, Failure> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Settings::new(&Given::from_words(&words, "quire serve")?, as_mongod)
    }

    fn refused(words: &[&str]) -> String {
        match settings(words, false) {
            Err(failure) => failure.message,
            Ok(found) => panic!("{found:?}"),
        }
    }

    fn accepted(words: &[&str], as_mongod: bool) -> Settings {
        settings(words, as_mongod).unwrap_or_else(|failure| panic!("{}", failure.message))
    }

    #[test]
    fn the_profiler_is_set_by_names_and_numbers() {
        let level = |words: &[&str]| accepted(words, false).profile_level;
        assert_eq!(level(&[]), 0);
        assert_eq!((level(&["--profile", "1"]), level(&["--profile", "all"])), (1, 2));
        assert!(refused(&["--profile", "3"]).contains("--profile"));
        assert!(refused(&["--slowOpSampleRate", "1.5"]).contains("between 0 and 1"));
        let found = accepted(&["--slowOpSampleRate", "0.5"], false);
        assert!((found.slow_sample_rate - 0.5).abs() < 1e-9);
    }

    #[test]
    fn defaults_depend_on_the_name() {
        let found = accepted(&[], false);
        assert_eq!(found.dbpath, Some(PathBuf::from("quire-data")));
        assert_eq!(found.set_name.as_deref(), Some("rs0"));
        assert_eq!(found.endpoints, [Endpoint::Tcp(([127, 0, 0, 1], 27017).into())]);
        let found = accepted(&[], true);
        assert_eq!(found.dbpath, Some(PathBuf::from("/data/db")));
        assert_eq!(found.endpoints.len(), 2);
        assert_eq!(accepted(&["--nounixsocket"], true).endpoints.len(), 1);
    }

    /// A regression test: the cache had 256 MB on every machine.
    #[test]
    fn the_cache_has_a_quarter_of_the_memory_unless_a_size_is_given() {
        const GIB: u64 = 1 << 30;
        for (memory, cache) in [(None, GIB / 4), (Some(GIB / 2), GIB / 4), (Some(8 * GIB), 2 * GIB)]
        {
            assert_eq!(default_cache_bytes(memory), cache, "{memory:?}");
        }
        let memory = machine::memory_bytes();
        assert_eq!(accepted(&[], false).cache_bytes, default_cache_bytes(memory));
        let given = |words: &[&str]| accepted(words, false).cache_bytes;
        assert_eq!(given(&["--wiredTigerCacheSizeGB", "0.5"]), GIB / 2);
        let tenth = memory.map(|bytes| (bytes as f64 * 0.1) as u64);
        if let Some(tenth) = tenth.filter(|tenth| *tenth > 16 << 20) {
            assert_eq!(given(&["--wiredTigerCacheSizePct", "10"]), tenth);
        }
    }

    #[test]
    fn addresses_beyond_this_machine_need_a_word() {
        for words in
            [&["--bind_ip", "0.0.0.0"][..], &["--bind_ip_all"], &["--bind_ip", "127.0.0.1,*"]]
        {
            assert!(refused(words).contains("--allow-anonymous"), "{words:?}");
            let mut words = words.to_vec();
            words.push("--allow-anonymous");
            accepted(&words, false);
        }
        accepted(&["--bind_ip", "localhost,127.0.0.2,::1,/tmp/x.sock"], false);
    }

    #[test]
    fn a_key_file_means_that_clients_log_in() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "c2VjcmV0IGtleQ==\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let key = path.to_str().unwrap();
        assert!(accepted(&["--keyFile", key], false).access_control);
        assert!(accepted(&["--keyFile", key, "--auth", "--bind_ip_all"], false).access_control);
        assert!(refused(&["--keyFile", key, "--noauth"]).contains("--keyFile implies --auth"));
        let disabled = ["--keyFile", key, "--authorization", "disabled"];
        assert!(refused(&disabled).contains("--keyFile implies --auth"));
        assert!(refused(&["--keyFile", "/none/such"]).contains("cannot be read"));
        assert!(!accepted(&[], false).access_control);
    }

    #[test]
    fn bad_values_are_refused() {
        assert!(refused(&["--port", "70000"]).contains("between 0 and 65535"));
        assert!(refused(&["--maxConns", "0"]).contains("greater than 0"));
        assert!(refused(&["--advertise", "host"]).contains("HOST:PORT"));
        assert!(refused(&["--standalone", "--replSet", "x"]).contains("exclude"));
        assert!(refused(&["--storageEngine", "mmapv1"]).contains("unknown storage engine"));
        let unknown = refused(&["--setParameter", "slowmss=1"]);
        assert_eq!(unknown, "unknown parameter 'slowmss'; did you mean 'slowMs'?");
        assert!(refused(&["--syslog", "--logpath", "x"]).contains("exclude"));
        assert!(refused(&["--syslogFacility", "user"]).contains("needs --syslog"));
        assert!(refused(&["--syslog", "--syslogFacility", "nope"]).contains("unknown name 'nope'"));
        assert!(refused(&["--logDestination", "file"]).contains("needs --logpath"));
        assert!(refused(&["--logDestination", "x"]).contains("'file' or 'syslog'"));
        assert!(accepted(&["--logDestination", "syslog"], false).log.syslog.is_some());
        assert!(refused(&["--filePermissions", "9"]).contains("octal"));
        assert_eq!(accepted(&["--storageEngine", "ephemeralForTest"], false).dbpath, None);
    }

    #[test]
    fn the_parsed_line_has_the_files_shape() {
        let found =
            accepted(&["--port", "5", "--dbpath", "/d", "--setParameter", "slowMs=1"], false);
        let expected = doc! {
            "net": { "port": 5 }, "setParameter": { "slowMs": "1" }, "storage": { "dbPath": "/d" },
        };
        assert_eq!(found.parsed, expected);
    }
}
