//! Every command: arguments, reply, and the one registry.
