//! docs/tour.md, as its reader follows it: the commands of its blocks in one shell, in their order.
//! Blocks of Python run where the driver is installed, and so do the `sh python` blocks, which need
//! what these have made.

use crate::{Directory, QUIRE, text};
use std::net::TcpListener;
use std::process::Command;

const TOUR: &str = include_str!("../../../../docs/tour.md");

/// Returns the blocks of a page, each with what stands behind its opening fence.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = page.split("\n```").collect();
    // Text and blocks take turns.
    parts.chunks(2).filter_map(|pair| pair.get(1)?.split_once('\n')).collect()
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Makes one script of the blocks. A client that comes too early is refused, so after each start of a
/// server the script waits until a tool can read from it.
fn script(page: &str, has_python: bool) -> String {
    let mut script = "set -eu\nservers=\ntrap 'kill $servers; wait' EXIT\n".to_owned();
    for (number, (kind, block)) in blocks(page).into_iter().enumerate() {
        let is_run = match kind {
            "sh" => true,
            "python" | "sh python" => has_python,
            _ => false,
        };
        if !is_run {
            continue;
        }
        script += &format!("echo '# block {number}: {kind}'\n");
        if kind == "python" {
            script += &format!("python3 <<'BLOCK'\n{block}\nBLOCK\n");
            continue;
        }
        script += &format!("{block}\n");
        if block.starts_with("quire serve ")
            && let Some((_, rest)) = block.split_once("--port ")
            && let Some(port) = rest.split_whitespace().next()
        {
            script += &format!(
                "servers=\"$servers $!\"\nwhile quire export --port {port} -d none -c none 2>&1 | grep -q 'cannot connect'; do\n\
                 sleep 0.1\ndone\n"
            );
        }
    }
    script
}

#[test]
fn every_command_of_the_tour_works() {
    let directory = Directory::new();
    let page = TOUR.replace("27017", &free_port().to_string());
    let page = page.replace("27018", &free_port().to_string());
    let driver = Command::new("python3").args(["-c", "import pymongo"]).output();
    let has_python = driver.is_ok_and(|output| output.status.success());
    let bin = std::path::Path::new(QUIRE).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.arg("-c").arg(script(&page, has_python)).current_dir(&directory.0).env("PATH", path);
    let output = command.output().unwrap();
    let (shown, log) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{shown}\n{log}", output.status);
    let saved = std::fs::read_to_string(directory.join("saved.json")).unwrap();
    assert_eq!(saved.lines().count(), 3, "{saved}");
    assert!(shown.contains("desk"), "{shown}");
}

#[test]
fn blocks_are_told_from_text() {
    let page = "a\n\n```sh\none\ntwo\n```\n\nb\n\n```python\nthree\n```\nc\n";
    assert_eq!(blocks(page), [("sh", "one\ntwo"), ("python", "three")]);
    assert_eq!(blocks(TOUR).iter().filter(|(kind, _)| *kind == "sh").count(), 5);
}
