//! The fjall engine: conformance, crashes, damaged logs, bounded memory, space that comes back.

mod conformance;
mod crash;
mod damage;
mod directory;
mod space;
mod support;
