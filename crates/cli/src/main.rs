//! The binary `quire`; under the name `mongod` it is `quire serve`.

fn main() -> std::process::ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    quire_cli::run(words)
}
