//! `rotateCertificates`: reads the TLS files again. Open connections keep their certificate.
//! Without TLS it does nothing.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::log::{LogLine, Severity};
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let mut message = None;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "message" => message = Some(arg.string()?),
            _ => return Err(arg.unknown()),
        }
    }
    let Some(certificate) = &cx.service.options.certificate else { return Ok(()) };
    certificate.rotate()?;
    let attributes = DocBuf::build(|out| {
        out.append("subject", certificate.subject().as_str());
        if let Some(message) = message {
            out.append("message", message);
        }
    });
    cx.service.log().write(LogLine {
        severity: Severity::Info,
        component: "NETWORK",
        id: 4913400,
        context: cx.connection.name(),
        message: "Successfully rotated X509 certificates.",
        attributes,
    });
    Ok(())
}
