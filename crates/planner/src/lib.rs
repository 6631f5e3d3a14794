//! Request, catalog and statistics to a plan; prints explain; does no I/O.
