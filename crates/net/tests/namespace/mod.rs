//! Tests in their own network namespaces.

use std::process::Command;

/// Starts this program again in a new namespace, whose loopback interface is up, and runs one of its ignored tests there after
/// these shell commands.
#[track_caller]
pub(crate) fn in_namespace(test: &str, prepare: &[String]) {
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("a path");
    let prepare: String = prepare.iter().map(|command| format!("{command} && ")).collect();
    let run = format!("ip link set lo up && {prepare}exec '{program}' --ignored --exact {test} --nocapture");
    let ended = Command::new("unshare").args(["-U", "-r", "-n", "sh", "-c", &run]).output().expect("unshare");
    let text = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
}
