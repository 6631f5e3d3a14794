//! All options of the server in one table. The command line, the configuration file, the help and
//! COMPATIBILITY.md are made from it.

use Status::{NoEffect, Refused, Works};
use Takes::{Flag, Number, Pair, Text};

/// One option of `quire serve`.
pub struct ServeOption {
    /// The spelling after `--`.
    pub name: &'static str,
    /// The spelling after `-`.
    pub short: Option<char>,
    /// The path in the configuration file; empty for an option of the command line only.
    pub config: &'static str,
    /// The kind of its value.
    pub takes: Takes,
    /// Its effect in this server.
    pub status: Status,
    /// Values that request nothing that this server does not do anyway: accepted whatever the
    /// status.
    pub harmless: &'static [&'static str],
    /// One sentence for the help text.
    pub summary: &'static str,
    /// True if `--help` shows it; `--help-all` shows every option.
    pub usual: bool,
}

/// The kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The option takes no value.
    Flag,
    /// A text; the string is its name in the help.
    Text(&'static str),
    /// A whole number.
    Number(&'static str),
    /// `name=value`, any number of times.
    Pair(&'static str),
}

/// The effect of an option in this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does what its summary says.
    Works,
    /// It is accepted without effect, because what it requests is true anyway; for this reason.
    NoEffect(&'static str),
    /// It is refused, for this reason.
    Refused(&'static str),
}

const fn row(
    name: &'static str,
    config: &'static str,
    takes: Takes,
    status: Status,
    summary: &'static str,
) -> ServeOption {
    ServeOption { name, short: None, config, takes, status, harmless: &[], summary, usual: false }
}

const fn short(short: char, option: ServeOption) -> ServeOption {
    ServeOption { short: Some(short), ..option }
}

const fn usual(option: ServeOption) -> ServeOption {
    ServeOption { usual: true, ..option }
}

const fn harmless(values: &'static [&'static str], option: ServeOption) -> ServeOption {
    ServeOption { harmless: values, ..option }
}

const NO_SHARDS: Status = Refused("there are no shards");
const JOURNALED: Status = NoEffect("writes are always journaled");
const ONE_MEMBER: Status = Refused("a set has one member");
const OLD_TLS: Status = Refused("the options that begin with --tls take its place");
const FILE_SYSTEM: Status = Refused(
    "data are not encrypted here; encrypt the file system of the data directory, which holds for logs and spilled data too",
);
const NO_DIRECTORY: Status = Refused("users are stored here; logins are SCRAM and certificates");
const ENGINE: Status = NoEffect("the storage engine has no such knob");
const ONE_LAYOUT: Status = Refused("all databases share one set of files");

/// All options, in the order of the help.
#[rustfmt::skip] // One option on each line, as a table.
pub static OPTIONS: &[ServeOption] = &[
    usual(short('h', row("help", "", Flag, Works, "Shows the usual options."))),
    usual(row("help-all", "", Flag, Works, "Shows every option.")),
    usual(row("version", "", Flag, Works, "Shows the version.")),
    usual(short('f', row("config", "", Text("FILE"), Works, "Reads options from a YAML file; the command line takes precedence."))),
    row("configExpand", "", Text("WHAT"), Refused("the configuration file is not expanded"), "Expands the configuration file."),
    // Storage.
    usual(row("dbpath", "storage.dbPath", Text("DIR"), Works, "The data directory. Default: ./quire-data (as mongod: /data/db).")),
    usual(row("create", "", Flag, Works, "Creates the directory of --dbpath if it does not exist.")),
    usual(row("memory", "storage.memory", Flag, Works, "Keeps all data in memory; they are lost when the process ends.")),
    row("storageEngine", "storage.engine", Text("NAME"), Works, "'wiredTiger' means the default engine, 'inMemory' and 'ephemeralForTest' mean --memory."),
    row("wiredTigerCacheSizeGB", "storage.wiredTiger.engineConfig.cacheSizeGB", Text("GB"), Works, "The largest size of the block cache. Default: a quarter of the memory that the process may use, at least 0.25."),
    row("wiredTigerCacheSizePct", "storage.wiredTiger.engineConfig.cacheSizePct", Text("PERCENT"), Works, "The same in percent of the memory that the process may use."),
    row("wiredTigerJournalCompressor", "storage.wiredTiger.engineConfig.journalCompressor", Text("NAME"), ENGINE, "How the journal is compressed."),
    row("wiredTigerCollectionBlockCompressor", "storage.wiredTiger.collectionConfig.blockCompressor", Text("NAME"), ENGINE, "How data is compressed; here always lz4."),
    row("wiredTigerIndexPrefixCompression", "storage.wiredTiger.indexConfig.prefixCompression", Text("BOOL"), ENGINE, "How indexes are compressed."),
    row("wiredTigerStatisticsLogDelaySecs", "storage.wiredTiger.engineConfig.statisticsLogDelaySecs", Number("SECONDS"), ENGINE, "How often statistics are logged."),
    row("wiredTigerEngineConfigString", "storage.wiredTiger.engineConfig.configString", Text("TEXT"), Refused("the engine is not WiredTiger"), "WiredTiger's own settings."),
    row("wiredTigerDirectoryForIndexes", "storage.wiredTiger.engineConfig.directoryForIndexes", Flag, ONE_LAYOUT, "A directory for indexes."),
    row("zstdDefaultCompressionLevel", "storage.wiredTiger.engineConfig.zstdCompressionLevel", Number("LEVEL"), ENGINE, "The compression level of zstd."),
    row("inMemorySizeGB", "storage.inMemory.engineConfig.inMemorySizeGB", Text("GB"), Refused("the memory engine has no limit"), "The memory engine's limit."),
    row("directoryperdb", "storage.directoryPerDB", Flag, ONE_LAYOUT, "A directory for each database."),
    row("journal", "storage.journal.enabled", Flag, JOURNALED, "Journals writes."),
    row("nojournal", "", Flag, JOURNALED, "Journals nothing."),
    row("journalCommitInterval", "storage.journal.commitIntervalMs", Number("MS"), NoEffect("a write that asks for it is durable before its reply; others within 100 ms"), "How often the journal is flushed."),
    row("syncdelay", "storage.syncPeriodSecs", Text("SECONDS"), NoEffect("there are no checkpoints; the journal is sufficient"), "The time between checkpoints."),
    row("oplogMinRetentionHours", "storage.oplogMinRetentionHours", Text("HOURS"), Works, "How long the change log keeps changes at least, whatever its size. Default: 0."),
    row("repair", "", Flag, Refused("use 'quire check --repair DIR'"), "Repairs the data."),
    row("upgrade", "", Flag, NoEffect("a readable format is upgraded at the start"), "Upgrades the data."),
    row("validate", "", Flag, Refused("use 'quire check DIR'"), "Validates the data."),
    row("restore", "", Flag, Refused("a restored directory needs no option"), "Starts on restored files."),
    // Network.
    usual(row("port", "net.port", Number("PORT"), Works, "The port to listen on. Default: 27017; 0 chooses a free one.")),
    usual(row("bind_ip", "net.bindIp", Text("HOSTS"), Works, "The addresses to listen on, separated by commas. Default: 127.0.0.1. A path is a unix socket.")),
    row("metricsPort", "net.metricsPort", Number("PORT"), Works, "Answers Prometheus at http://127.0.0.1:PORT/metrics. Default: not at all; 0 chooses a free port."),
    row("metricsBindIp", "net.metricsBindIp", Text("ADDRESS"), Works, "The address of --metricsPort, whose readers need no login. Default: 127.0.0.1."),
    row("bind_ip_all", "net.bindIpAll", Flag, Works, "Listens on all addresses."),
    row("allow-anonymous", "security.allowAnonymous", Flag, Works, "Allows connections from other machines without logins."),
    row("advertise", "net.advertise", Text("HOST:PORT"), Works, "The address that hello shows to clients. Default: the address of each connection."),
    row("ipv6", "net.ipv6", Flag, Works, "Resolves host names to IPv6 addresses too."),
    row("maxConns", "net.maxIncomingConnections", Number("COUNT"), Works, "The largest number of connections. Default: 20000, or what the limit on open files allows."),
    row("listenBacklog", "net.listenBacklog", Number("COUNT"), NoEffect("the system's own limit applies"), "The number of waiting connections."),
    row("unixSocketPrefix", "net.unixDomainSocket.pathPrefix", Text("DIR"), Works, "Creates a unix socket mongodb-PORT.sock in this directory. Default as mongod: /tmp."),
    row("nounixsocket", "", Flag, Works, "Creates no unix socket."),
    row("unixDomainSocketEnabled", "net.unixDomainSocket.enabled", Text("BOOL"), Works, "Whether there is a unix socket."),
    row("filePermissions", "net.unixDomainSocket.filePermissions", Text("OCTAL"), Works, "The permissions of the unix socket. Default: 0700."),
    row("networkMessageCompressors", "net.compression.compressors", Text("NAMES"), NoEffect("snappy, zstd and zlib are offered; the client chooses"), "The compressors to offer."),
    row("objcheck", "net.wireObjectCheck", Flag, NoEffect("documents from clients are always checked"), "Checks documents from clients."),
    // Replication.
    usual(row("replSet", "replication.replSetName", Text("NAME"), Works, "The name of the replica set. Default: rs0.")),
    row("standalone", "replication.standalone", Flag, Works, "Presents a standalone server to drivers."),
    row("oplogSize", "replication.oplogSizeMB", Number("MB"), Works, "The size beyond which the change log drops its oldest changes. Default: 5 % of the disk, from 128 MB to 16 GB. With --memory there is no change log without this option."),
    harmless(&["true"], row("enableMajorityReadConcern", "replication.enableMajorityReadConcern", Text("BOOL"), Refused("majority reads cannot be turned off"), "Allows majority reads.")),
    row("shardsvr", "", Flag, NO_SHARDS, "Makes the server a shard."),
    row("configsvr", "", Flag, NO_SHARDS, "Makes the server a config server."),
    row("clusterRole", "sharding.clusterRole", Text("ROLE"), NO_SHARDS, "The role in a sharded cluster."),
    // Logs and the process.
    usual(row("logpath", "systemLog.path", Text("FILE"), Works, "Logs to a file instead of the standard error (as mongod: the standard output).")),
    usual(row("logFormat", "systemLog.format", Text("FORMAT"), Works, "The form of log lines: 'plain' or 'json'. Default: plain on a terminal, else json.")),
    row("logappend", "systemLog.logAppend", Flag, Works, "Appends to an existing log file instead of renaming it."),
    row("logRotate", "systemLog.logRotate", Text("HOW"), Works, "What SIGUSR1 does with the log file: 'rename' or 'reopen'."),
    row("logDestination", "systemLog.destination", Text("WHERE"), Works, "The destination of logs: 'file', which needs a path, or 'syslog'."),
    harmless(&["iso8601-utc", "iso8601-local"], row("timeStampFormat", "systemLog.timeStampFormat", Text("FORMAT"), Refused("times are ISO 8601"), "How times are logged; always UTC.")),
    row("syslog", "", Flag, Works, "Logs to the system's log, at /dev/log."),
    row("syslogFacility", "systemLog.syslogFacility", Text("NAME"), Works, "The facility of --syslog. Default: user."),
    usual(short('v', row("verbose", "systemLog.verbosity", Text("LEVEL"), Works, "Logs every operation, as --slowms 0 does, e.g. -v or --verbose 1."))),
    row("quiet", "systemLog.quiet", Flag, Works, "Does not log connections."),
    row("pidfilepath", "processManagement.pidFilePath", Text("FILE"), Works, "Writes the process id to a file."),
    row("timeZoneInfo", "processManagement.timeZoneInfo", Text("DIR"), NoEffect("time zones are built in"), "The directory of time zones."),
    row("fork", "processManagement.fork", Flag, Refused("run it under a service manager such as systemd"), "Runs in the background."),
    usual(row("setParameter", "setParameter", Pair("NAME=VALUE"), Works, "Sets a server parameter.")),
    usual(row("slowms", "operationProfiling.slowOpThresholdMs", Number("MS"), Works, "Operations that take longer are logged. Default: 100.")),
    row("profile", "operationProfiling.mode", Text("LEVEL"), Works, "Records operations in system.profile: 0 or off, 1 or slowOp, 2 or all."),
    row("slowOpSampleRate", "operationProfiling.slowOpSampleRate", Text("RATE"), Works, "The share of slow operations that are logged or recorded, from 0 to 1. Default: 1."),
    row("recorder", "operationProfiling.recorder", Text("ON"), Works, "Counts statements by shape, 'on' or 'off'. Default: on."),
    row("profileFilter", "operationProfiling.filter", Text("FILTER"), Refused("the command 'profile' sets a filter"), "The filter of recorded operations."),
    row("notablescan", "", Flag, Works, "Refuses queries without an index."),
    row("noscripting", "", Flag, NoEffect("there is no JavaScript in the server"), "Runs no JavaScript."),
    harmless(&["false"], row("javascriptEnabled", "security.javascriptEnabled", Text("BOOL"), NoEffect("there is no JavaScript in the server; its operators return an error"), "Runs JavaScript.")),
    row("cpu", "", Flag, NoEffect("there is nothing to show"), "Shows CPU use."),
    // Security.
    row("noauth", "", Flag, Works, "No logins are required. This is the default."),
    usual(row("auth", "", Flag, Works, "Clients must log in, and need privileges.")),
    row("authorization", "security.authorization", Text("MODE"), Works, "'enabled' means --auth, 'disabled' the default."),
    row("keyFile", "security.keyFile", Text("FILE"), Works, "The key of a replica set. It is checked and implies --auth; the set has one member, so no member logs in with it."),
    harmless(&["keyFile"], row("clusterAuthMode", "security.clusterAuthMode", Text("MODE"), ONE_MEMBER, "How members of a replica set log in.")),
    row("auditDestination", "auditLog.destination", Text("WHERE"), Works, "Keeps an audit log: 'file'."),
    row("auditFormat", "auditLog.format", Text("FORMAT"), Works, "The format of the audit log: 'JSON'."),
    row("auditPath", "auditLog.path", Text("FILE"), Works, "The file of the audit log, which is appended to and readable by its owner only."),
    row("auditFilter", "auditLog.filter", Text("FILTER"), Works, "A filter of audit events, e.g. '{ atype: \"authenticate\" }'."),
    harmless(&["mongo"], row("auditSchema", "auditLog.schema", Text("SCHEMA"), Refused("events have MongoDB's own schema, 'mongo'"), "The schema of audit events.")),
    row("auditRuntimeConfiguration", "auditLog.runtimeConfiguration", Flag, Refused("the filter is set at the start"), "Allows changes of the audit filter while the server runs."),
    row("auditCompressionMode", "auditLog.compressionMode", Text("MODE"), Refused("the audit log is neither compressed nor encrypted"), "Compresses the audit log."),
    row("auditEncryptionKeyIdentifier", "auditLog.auditEncryptionKeyIdentifier", Text("ID"), Refused("the audit log is neither compressed nor encrypted"), "Encrypts the audit log."),
    row("auditLocalKeyFile", "auditLog.localAuditKeyFile", Text("FILE"), Refused("the audit log is neither compressed nor encrypted"), "Encrypts the audit log with a key of this machine."),
    row("transitionToAuth", "security.transitionToAuth", Flag, ONE_MEMBER, "Allows members with and without login."),
    row("enableEncryption", "security.enableEncryption", Flag, FILE_SYSTEM, "Encrypts the data files."),
    row("encryptionCipherMode", "security.encryptionCipherMode", Text("MODE"), FILE_SYSTEM, "The cipher of encrypted data files."),
    row("encryptionKeyFile", "security.encryptionKeyFile", Text("FILE"), FILE_SYSTEM, "The key of encrypted data files."),
    row("kmipServerName", "security.kmip.serverName", Text("HOST"), FILE_SYSTEM, "The server that keeps the key of encrypted data files."),
    row("kmipPort", "security.kmip.port", Number("PORT"), FILE_SYSTEM, "The port of the key server."),
    row("kmipClientCertificateFile", "security.kmip.clientCertificateFile", Text("FILE"), FILE_SYSTEM, "The client certificate for the key server."),
    row("kmipServerCAFile", "security.kmip.serverCAFile", Text("FILE"), FILE_SYSTEM, "The authority of the key server."),
    row("kmipKeyIdentifier", "security.kmip.keyIdentifier", Text("ID"), FILE_SYSTEM, "The id of the key."),
    row("kmipRotateMasterKey", "security.kmip.rotateMasterKey", Flag, FILE_SYSTEM, "Rotates the key of encrypted data files."),
    row("redactClientLogData", "security.redactClientLogData", Flag, Works, "Shows ### in the log in place of the values of commands and documents."),
    row("ldapServers", "security.ldap.servers", Text("HOSTS"), NO_DIRECTORY, "The LDAP servers of users."),
    row("ldapUserToDNMapping", "security.ldap.userToDNMapping", Text("TEXT"), NO_DIRECTORY, "The mapping of user names in the directory."),
    row("ldapAuthzQueryTemplate", "security.ldap.authz.queryTemplate", Text("TEXT"), NO_DIRECTORY, "The query for a user's roles in the directory."),
    row("saslHostName", "security.sasl.hostName", Text("HOST"), NO_DIRECTORY, "The server's name for Kerberos."),
    row("saslServiceName", "security.sasl.serviceName", Text("NAME"), NO_DIRECTORY, "The service's name for Kerberos."),
    usual(row("tlsMode", "net.tls.mode", Text("MODE"), Works, "Which clients use TLS: 'disabled', 'allowTLS' or 'preferTLS' (optional), 'requireTLS'.")),
    row("tlsCertificateKeyFile", "net.tls.certificateKeyFile", Text("FILE"), Works, "The server's certificate, its chain and its key, as PEM."),
    row("tlsCertificateKeyFilePassword", "net.tls.certificateKeyFilePassword", Text("TEXT"), Works, "The password of an encrypted key (PKCS #8); better set in the configuration file than here."),
    row("tlsCAFile", "net.tls.CAFile", Text("FILE"), Works, "The authorities whose client certificates are trusted, as PEM."),
    row("tlsCRLFile", "net.tls.CRLFile", Text("FILE"), Works, "Lists of revoked certificates, as PEM: one for each authority of clients."),
    row("tlsAllowConnectionsWithoutCertificates", "net.tls.allowConnectionsWithoutCertificates", Flag, Works, "Clients need no certificate; one that they send must be valid."),
    row("tlsDisabledProtocols", "net.tls.disabledProtocols", Text("NAMES"), Works, "Versions to refuse, separated by commas: TLS1_2, TLS1_3. Older ones are not supported."),
    row("tlsAllowInvalidHostnames", "net.tls.allowInvalidHostnames", Flag, NoEffect("the server makes no connections to others"), "Does not check the names of other members."),
    row("tlsAllowInvalidCertificates", "net.tls.allowInvalidCertificates", Flag, Refused("an unchecked certificate proves nothing; use --tlsAllowConnectionsWithoutCertificates"), "Does not check certificates."),
    row("tlsClusterFile", "net.tls.clusterFile", Text("FILE"), ONE_MEMBER, "The certificate for other members."),
    row("tlsClusterPassword", "net.tls.clusterPassword", Text("TEXT"), ONE_MEMBER, "The password of that certificate's key."),
    row("tlsClusterCAFile", "net.tls.clusterCAFile", Text("FILE"), ONE_MEMBER, "The authority of other members."),
    row("tlsClusterAuthX509ExtensionValue", "net.tls.clusterAuthX509.extensionValue", Text("TEXT"), ONE_MEMBER, "The extension that marks the certificates of other members."),
    row("tlsLogVersions", "net.tls.logVersions", Text("NAMES"), NoEffect("serverStatus.transportSecurity counts the versions"), "The versions whose use is logged."),
    row("tlsCertificateSelector", "net.tls.certificateSelector", Text("TEXT"), Refused("--tlsCertificateKeyFile names a file"), "The certificate in the system's store."),
    row("tlsClusterCertificateSelector", "net.tls.clusterCertificateSelector", Text("TEXT"), ONE_MEMBER, "The same for other members."),
    row("tlsFIPSMode", "net.tls.FIPSMode", Flag, Refused("the cryptography here is not certified"), "Uses FIPS mode."),
    row("tlsOnNormalPorts", "", Flag, OLD_TLS, "Uses TLS on the port."),
    harmless(&["disabled"], row("sslMode", "net.ssl.mode", Text("MODE"), OLD_TLS, "Uses TLS.")),
    row("sslPEMKeyFile", "net.ssl.PEMKeyFile", Text("FILE"), OLD_TLS, "The server's certificate and key."),
    row("sslCAFile", "net.ssl.CAFile", Text("FILE"), OLD_TLS, "The certificate authority."),
];

/// Returns the option of this name.
pub fn by_name(name: &str) -> Option<&'static ServeOption> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// Returns the names of the options that work.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().filter(|option| option.status == Works).map(|option| option.name)
}

/// Returns the option with this letter.
pub fn by_letter(letter: char) -> Option<&'static ServeOption> {
    OPTIONS.iter().find(|option| option.short == Some(letter))
}

/// Returns the option with this path in the configuration file.
pub fn by_path(path: &str) -> Option<&'static ServeOption> {
    OPTIONS.iter().find(|option| option.config == path && !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_letters_and_paths_are_unique() {
        let names: BTreeSet<_> = OPTIONS.iter().map(|option| option.name).collect();
        assert_eq!(names.len(), OPTIONS.len());
        let paths: Vec<_> =
            OPTIONS.iter().map(|option| option.config).filter(|path| !path.is_empty()).collect();
        assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), paths.len());
        let letters: Vec<_> = OPTIONS.iter().filter_map(|option| option.short).collect();
        assert_eq!(letters.iter().collect::<BTreeSet<_>>().len(), letters.len());
    }
}
