//! Tests that need a separate binary: memory is measured with a counting allocator, and time with
//! the checks of the interrupt.

#[allow(dead_code)] // Only the tests of commands count calls.
mod allocator;
mod memory;
mod time;
