//! Tests that need a binary of their own: memory is measured by an allocator that counts.

mod allocator;
mod memory;
