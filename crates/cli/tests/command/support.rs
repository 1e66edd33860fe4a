//! Execution of the program, and checks of its output.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Result of a finished program.
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Returns the program, started in the folder of the workspace.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(arguments).current_dir(workspace()).stdin(Stdio::null());
    command.env("XDG_STATE_HOME", state_dir());
    command.env("ANABRANCH_HOME", home());
    command.env("XDG_RUNTIME_DIR", runtime_dir());
    command
}

/// Returns the folder for control sockets of the programs in all tests, in place of the user's own.
fn runtime_dir() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run");
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    });
    &FOLDER
}

/// Returns the folder with the key of all programs in these tests. Each of them may connect to all others. Known hosts are removed
/// at the beginning, since other tests will use their ports.
pub(crate) fn home() -> &'static Path {
    static HOME: LazyLock<PathBuf> = LazyLock::new(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("home");
        let _ = std::fs::remove_file(home.join("known_hosts"));
        let keys = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
            let output = command.arg("keys").args(arguments).env("ANABRANCH_HOME", &home).output();
            String::from_utf8(output.expect("the program starts").stdout).expect("text")
        };
        keys(&["add", keys(&["show"]).lines().next().expect("a key"), "myself"]);
        home
    });
    &HOME
}

/// Returns the state folder of the programs in all tests, in place of the user's own.
pub(crate) fn state_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("state")
}

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the program to its end.
pub(crate) fn anabranch(arguments: &[&str]) -> Ended {
    let output = command(arguments).output().expect("the program starts");
    Ended {
        status: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Runs `anabranch run` with two short runs for each scheme. Further arguments may override this.
pub(crate) fn short_run(more: &[&str]) -> Ended {
    let short = ["--set", "run.seeds=2", "--set", "run.duration='2 s'"];
    anabranch(&[&["run", "scenarios/two-path.toml"], &short[..], more].concat())
}

impl Ended {
    /// Checks the exit status, and shows the output if it differs.
    #[track_caller]
    pub(crate) fn with_status(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "\nout:\n{}\nerr:\n{}", self.out, self.err);
        self
    }

    /// Returns every line of standard output as JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Returns the cells of the first table's rows.
    pub(crate) fn rows(&self) -> Vec<Vec<&str>> {
        let body = self.out.lines().skip_while(|line| !line.starts_with('─')).skip(1);
        body.take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().collect()).collect()
    }
}

/// Sends a signal such as `INT` to a process.
pub(crate) fn signal(process: u32, name: &str) {
    let kill = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status();
    assert!(kill.expect("kill").success());
}

/// Returns a page of metrics.
pub(crate) fn scrape(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Returns the program under a limit of `ulimit`.
pub(crate) fn within_limit(limit: &str, arguments: &[&str]) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_anabranch")]);
    limited.args(arguments).stdin(Stdio::null());
    limited.env("XDG_STATE_HOME", state_dir()).env("ANABRANCH_HOME", home());
    limited
}
