//! Runs cargo: the steps of CI, the tools in other crates, fuzzing and crash rounds.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Runs every step of CI in order; stops at the first failure.
pub fn run() -> Result<(), String> {
    step("format", || cargo(&["fmt", "--all", "--check"]))?;
    step("layers", || crate::layers::check(&crate::root()))?;
    step("tidy", || crate::tidy::check(&crate::root()))?;
    step("clippy", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])
    })?;
    step("fuzz targets", || {
        let mut command = Command::new(env!("CARGO"));
        command.args(["check", "--manifest-path", "fuzz/Cargo.toml", "--quiet"]);
        command.args(["--target-dir", "target/fuzz-check"]).current_dir(crate::root());
        // A check links nothing, so libFuzzer, which needs a C++ compiler, is not built.
        command
            .env("CUSTOM_LIBFUZZER_PATH", "target/not-built.a")
            .env("RUSTFLAGS", "--deny warnings");
        run_command(&mut command)
    })?;
    step("documentation", || {
        let mut command = Command::new(env!("CARGO"));
        command.args(["doc", "--workspace", "--no-deps", "--quiet"]).current_dir(crate::root());
        run_command(command.env("RUSTDOCFLAGS", "--deny warnings"))
    })?;
    step("tests", || cargo(&["test", "--workspace"]))
}

fn step(name: &str, run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    println!("== {name}");
    let started = Instant::now();
    run().map_err(|error| format!("{name}: {error}"))?;
    println!("== {name}: {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn cargo(args: &[&str]) -> Result<(), String> {
    run_command(Command::new(env!("CARGO")).args(args).current_dir(crate::root()))
}

/// Runs a binary of the test kit.
pub fn cargo_bin(name: &str, args: &[String]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--package", "quire-testkit", "--bin", name, "--"]).args(args);
    run_command(&mut command)
}

/// Writes COMPATIBILITY.md from the registries.
pub fn compatibility(root: &Path) -> Result<(), String> {
    write_page(root, "COMPATIBILITY.md", &[])?;
    write_page(root, "docs/options.md", &["options"])
}

fn write_page(root: &Path, name: &str, words: &[&str]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--package", "quire-cli", "--example", "compatibility", "--"]);
    let output =
        command.args(words).current_dir(root).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    std::fs::write(root.join(name), output.stdout).map_err(|error| error.to_string())
}

/// Runs every fuzz target for some seconds. Needs `cargo install cargo-fuzz`. RUSTC_BOOTSTRAP
/// enables the sanitizer flags on the stable compiler.
pub fn fuzz(root: &Path, args: &[String]) -> Result<(), String> {
    let seconds: u32 = match args.first() {
        Some(text) => text.parse().map_err(|_| format!("not a number of seconds: {text}"))?,
        None => 60,
    };
    let targets =
        std::fs::read_dir(root.join("fuzz/fuzz_targets")).map_err(|error| error.to_string())?;
    let mut names: Vec<String> = targets
        .filter_map(|entry| {
            entry.ok()?.path().file_stem().map(|stem| stem.to_string_lossy().into_owned())
        })
        .collect();
    names.sort();
    for name in names {
        println!("== {name}");
        let limit = format!("-max_total_time={seconds}");
        let mut command = Command::new(env!("CARGO"));
        command.args(["fuzz", "run", "--sanitizer", "none", &name, "--", &limit]);
        run_command(command.current_dir(root).env("RUSTC_BOOTSTRAP", "1"))?;
    }
    Ok(())
}

/// Kills a writing engine, a writing server and repairs repeatedly, damages their files, and checks
/// the result.
pub fn crash(args: &[String]) -> Result<(), String> {
    let rounds: u64 = match args.first() {
        Some(rounds) => rounds.parse().map_err(|_| format!("'{rounds}' is no number"))?,
        None => 200,
    };
    let cargo = || {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(crate::root());
        command
    };
    // The library that records calls on files is an example, which `--test` does not build.
    run_command(cargo().args([
        "build",
        "--release",
        "--package",
        "quire-storage-lsm",
        "--examples",
    ]))?;
    ["quire-storage-lsm", "quire-cli"].into_iter().try_for_each(|package| {
        let mut command = cargo();
        command.args(["test", "--release", "--package", package]);
        command.args(["--test", "it", "--", "crash", "damage", "--nocapture"]);
        command.env("QUIRE_CRASH_ROUNDS", rounds.to_string());
        run_command(command.env("QUIRE_POWER_CUTS", (rounds * 50).to_string()))
    })?;
    let mut command = cargo();
    command.args(["test", "--release", "--package", "quire-commands", "--test", "it", "--"]);
    command.args(["patterns::random", "patterns::together", "rollups::mix"]);
    run_command(command.env("QUIRE_PATTERN_SEEDS", (rounds * 50).to_string()))
}

/// Runs the official drivers, mongosh and the dump tools against a server; `args` selects some of
/// them.
pub fn drivers(root: &Path, args: &[String]) -> Result<(), String> {
    run_command(Command::new("python3").arg(root.join("tests/drivers/run")).args(args))
}

fn run_command(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{status}")) }
}
