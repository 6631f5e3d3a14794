//! The binary `quire`; under the name `mongod` it is `quire serve`.

fn main() -> std::process::ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    quire_cli::run(words)
}

/// One thread allocates what a server keeps, another frees it, in any order: blocks of the cache,
/// write buffers, sessions, cursors. glibc's allocator keeps several times their size in holes then
/// (docs/adr/0021-jemalloc.md). Its options are in `.cargo/config.toml`.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
