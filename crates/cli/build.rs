//! Notes the commit that the program is built from, for `--version` and `buildInfo`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=QUIRE_COMMIT");
    // A build outside of a repository, such as that of a package, may name its commit itself.
    if std::env::var_os("QUIRE_COMMIT").is_some() {
        return;
    }
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return };
    println!("cargo::rustc-env=QUIRE_COMMIT={commit}");
    // The log of HEAD changes with each commit and each checkout.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// Returns the output of a git command; `None` if it fails, as it does outside of a repository.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
