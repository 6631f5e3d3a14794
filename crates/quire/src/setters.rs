//! The macros that write the setters of actions.

/// Writes a setter for each option: `name: Type => "field"`, with a conversion after `as` if the
/// type is not a BSON value. The setters set fields of the command, or with `statement;` in front
/// fields of its only statement.
macro_rules! options {
    ($target:ident; $($(#[$doc:meta])* $name:ident: $kind:ty => $field:literal $(as $convert:path)?,)*) => { $(
        $(#[$doc])*
        pub fn $name(mut self, value: $kind) -> Self {
            $(let value = $convert(value);)?
            self.$target.set($field, value);
            self
        }
    )* };
    ($($options:tt)*) => { $crate::setters::options! { command; $($options)* } };
}
pub(crate) use options;

/// Writes the setters of common options, by name.
macro_rules! standard_options {
    ($($name:ident),*) => { $($crate::setters::standard_option!($name, command);)* };
    ($target:ident; $($name:ident),*) => { $($crate::setters::standard_option!($name, $target);)* };
}
pub(crate) use standard_options;

/// Writes the setter of one common option.
macro_rules! standard_option {
    (bypass_document_validation, $target:ident) => {
        $crate::setters::options! { $target;
            /// True if the writes bypass the collection's validator.
            bypass_document_validation: bool => "bypassDocumentValidation",
        }
    };
    (collation, $target:ident) => {
        $crate::setters::options! { $target;
            /// The collation of string comparisons.
            collation: bson::Document => "collation",
        }
    };
    (comment, $target:ident) => {
        $crate::setters::options! { $target;
            /// A comment for the log and `currentOp`.
            comment: impl Into<bson::Bson> => "comment",
        }
    };
    (hint, $target:ident) => {
        $crate::setters::options! { $target;
            /// The index to use.
            hint: $crate::options::Hint => "hint",
        }
    };
    (let_vars, $target:ident) => {
        $crate::setters::options! { $target;
            /// Variables for expressions.
            let_vars: bson::Document => "let",
        }
    };
    (max_time, $target:ident) => {
        $crate::setters::options! { $target;
            /// The time after which the server ends the operation.
            max_time: std::time::Duration => "maxTimeMS" as $crate::options::millis,
        }
    };
    (read_concern, $target:ident) => {
        $crate::setters::options! { $target;
            /// The read concern: which writes it must see.
            read_concern: $crate::options::ReadConcern => "readConcern",
        }
    };
    (write_concern, $target:ident) => {
        $crate::setters::options! { $target;
            /// The write concern: how durable its writes must be.
            write_concern: $crate::options::WriteConcern => "writeConcern",
        }
    };
    (session, $target:ident) => {
        /// Runs the operation in a session.
        pub fn session(mut self, session: &$crate::ClientSession) -> Self {
            self.$target.set_session(&session.state);
            self
        }
    };
}
pub(crate) use standard_option;
