//! Tests that need a binary of their own: memory is measured by an allocator
//! that counts, time by looks at the interrupt.

mod allocator;
mod memory;
mod time;
