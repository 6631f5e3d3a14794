//! The sections of `serverStatus` about logins and encryption.

use crate::frame::metrics::LoginMetrics;
use crate::frame::service::Service;
use quire_document::{DocWriter, Value};

/// `security`: logins by mechanism, and the server's certificate.
pub fn security(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let metrics = &service.metrics;
    {
        let mut logins = section.document("authentication");
        let mut mechanisms = logins.document("mechanisms");
        for (name, counts) in [
            ("MONGODB-X509", &metrics.x509),
            ("SCRAM-SHA-1", &metrics.scram_sha1),
            ("SCRAM-SHA-256", &metrics.scram_sha256),
        ] {
            write_logins(counts, &mut mechanisms.document(name));
        }
    }
    if let Some(certificate) = &service.options.certificate {
        section.append("SSLServerSubjectName", certificate.subject().as_str());
        section.append("SSLServerHasCertificateAuthority", true);
        let end = Value::Date(certificate.not_after_ms());
        section.append("SSLServerCertificateExpirationDate", end);
    }
}

fn write_logins(counts: &LoginMetrics, out: &mut DocWriter<'_>) {
    let parts = [
        ("speculativeAuthenticate", &counts.speculative_received, &counts.speculative_successful),
        ("authenticate", &counts.received, &counts.successful),
    ];
    for (name, received, successful) in parts {
        let mut part = out.document(name);
        part.append("received", received.get() as i64);
        part.append("successful", successful.get() as i64);
    }
    // A replica set with one member has no other member that could log in.
    let mut members = out.document("clusterAuthenticate");
    members.append("received", 0i64).append("successful", 0i64);
}

/// Appends `transportSecurity`: the number of connections by TLS version. Versions before 1.2 are
/// not supported.
pub fn transport(service: &Service, _asked: Option<Value<'_>>, section: &mut DocWriter<'_>) {
    let transport = &service.metrics.transport;
    section.append("1.0", 0i64).append("1.1", 0i64);
    section.append("1.2", transport.tls12.get() as i64);
    section.append("1.3", transport.tls13.get() as i64);
    section.append("unknown", 0i64);
}
