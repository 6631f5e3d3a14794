//! Tests that need a separate binary: memory is measured with a counting allocator, and time with
//! the checks of the interrupt.

mod allocator;
mod memory;
mod time;
