//! MongoDB's wire protocol: bytes to messages and back, without I/O.
