//! Lines of the log about documents that do not comply with the validator of their collection, for
//! the validation actions `warn` and `errorAndLog`.

use crate::frame::account::shown_body;
use crate::frame::log::{LogLine, Severity};
use crate::frame::service::Service;
use quire_collections::Violation;
use quire_document::DocBuf;
use quire_error::Result;
use std::sync::{Arc, Weak};

impl Service {
    /// Makes the violations of validators that are to be logged lines of the log.
    ///
    /// # Errors
    /// 1 InternalError if the store has an observer already.
    pub(crate) fn log_violations(self: &Arc<Self>) -> Result<()> {
        let service: Weak<Service> = Arc::downgrade(self);
        self.store.observe_violations(Box::new(move |violation| {
            if let Some(service) = service.upgrade() {
                service.log_violation(violation);
            }
        }))
    }

    fn log_violation(&self, violation: &Violation<'_>) {
        let Violation { collection, doc, err_info, refused } = violation;
        let values = self.logged_values();
        let attributes = DocBuf::build(|writer| {
            writer.append("namespace", collection.namespace.as_str());
            writer.append("document", &values.of(shown_body(&[], *doc)));
            writer.append("errInfo", &values.of(shown_body(&[], err_info.as_doc())));
        });
        let message = match refused {
            true => "Document failed validation",
            false => "Document would fail validation",
        };
        self.log().write(LogLine {
            severity: Severity::Warning,
            component: "STORAGE",
            id: 20294,
            context: "validation",
            message,
            attributes,
        });
    }
}
