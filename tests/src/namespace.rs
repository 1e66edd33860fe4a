//! Network namespaces, as root or in a user namespace. Each ends with the process that created it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Shell command that reports the namespace, and keeps it until standard input ends: it ends with its creator in any case.
const HOLD: &str = "echo there; exec cat";

/// A network namespace, which is removed when dropped.
#[derive(Debug)]
pub struct Namespace {
    holder: Child,
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // The process may have ended already.
        let _ = self.holder.wait();
    }
}

impl Namespace {
    /// Returns `None` if namespaces are not permitted, or if util-linux is missing.
    #[must_use]
    pub fn create() -> Option<Self> {
        let mut unshare = Command::new("unshare");
        unshare.arg(if is_root() { "-n" } else { "-Urn" });
        Self::hold(unshare)
    }

    /// Creates a namespace to which this one can move interfaces. It has to be dropped first.
    #[must_use]
    pub fn nested(&self) -> Option<Self> {
        let mut unshare = self.enter(&["unshare"]);
        unshare.arg("-n");
        Self::hold(unshare)
    }

    fn hold(mut command: Command) -> Option<Self> {
        command.args(["sh", "-c", HOLD]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.stderr(Stdio::null()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(holder.stdout.take()?).read_line(&mut line).ok()?;
        let namespace = Namespace { holder };
        (line.trim() == "there").then_some(namespace)
    }

    /// Returns the process by which `ip link` names the namespace.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.holder.id()
    }

    /// Returns a command that runs in the namespace.
    #[must_use]
    pub fn enter(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.id().to_string(), "-n"]);
        if !is_root() {
            command.args(["-U", "--preserve-credentials"]);
        }
        command.arg("--").args(words);
        command
    }

    /// Runs a shell script in the namespace.
    ///
    /// # Panics
    /// If it fails.
    pub fn run(&self, script: &str) {
        let output = self.enter(&["sh", "-ec", script]).output().expect("a shell");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Returns `true` if this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
