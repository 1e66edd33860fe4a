//! A client and a server in network namespaces, with links whose cables can be pulled.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_tests::namespace::Namespace;
use serde_json::Value;
use tempfile::TempDir;

pub(super) const MB: usize = 1_000_000;

/// Maximum time without progress while another pair works.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Serves the folder `served` over HTTP on port 8000 of loopback.
pub(super) const WEB_SERVER: &str = "
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory='served')
server = http.server.ThreadingHTTPServer(('127.0.0.1', 8000), handler)
sys.stderr = open('server.log', 'w')
print('listening')
server.serve_forever()
";

/// Ends of links: `c1` and further at the client, `s1` and further at the server.
#[derive(Clone, Copy)]
pub(super) enum End {
    Client,
    Server,
}

impl End {
    pub(super) fn letter(self) -> char {
        match self {
            End::Client => 'c',
            End::Server => 's',
        }
    }
}

/// A client and a server with two links of 20 Mbit/s. Link `n` leads from 10.91.`n`.1 to 10.91.`n`.2 through a switch in a separate
/// namespace, so that each end can lose its carrier alone.
pub(super) struct Network {
    // Dropped in this order, since the others were created from within the first one.
    pub(super) client: Namespace,
    pub(super) server: Namespace,
    pub(super) middle: Namespace,
    folder: TempDir,
    /// Lock for one network at a time, because pauses are measured.
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Network {
    /// Returns `None` if namespaces are not permitted.
    pub(super) fn new() -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let made = Namespace::create().and_then(|middle| Some((middle.nested()?, middle.nested()?, middle)));
        let Some((client, server, middle)) = made else {
            eprintln!("skipped: network namespaces are not permitted here");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let network = Network { client, server, middle, folder, _turn: turn };
        for link in 1..=2 {
            network.add_link(link);
        }
        network.trust();
        Some(network)
    }

    fn add_link(&self, link: u8) {
        self.middle.run(&format!("ip link add sw{link} type bridge; ip link set sw{link} up"));
        let middle = self.middle.id();
        for (namespace, end, host) in [(&self.client, 'c', 1), (&self.server, 's', 2)] {
            let (near, far) = (format!("{end}{link}"), format!("m{end}{link}"));
            namespace.run(&format!(
                "ip link set lo up; ip link add {near} type veth peer name {far} netns {middle}; \
                 ip addr add 10.91.{link}.{host}/24 dev {near}; ip link set {near} up"
            ));
            self.middle.run(&format!(
                "ip link set {far} master sw{link}; ip link set {far} up; \
                 tc qdisc add dev {far} root tbf rate 20mbit burst 16kb limit 90kb"
            ));
        }
    }

    /// Adds the client's key to those that the server knows.
    pub(super) fn trust(&self) {
        let mut show = self.anabranch(End::Client, &["keys", "show"]);
        let key = show.stdout(Stdio::piped()).output().expect("it starts").stdout;
        let key = String::from_utf8(key).expect("text");
        let key = key.lines().next().expect("a key");
        let added = self.anabranch(End::Server, &["keys", "add", key, "client"]).status().expect("it starts");
        assert!(added.success());
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn namespace(&self, end: End) -> &Namespace {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }

    /// Returns the command at an end, with a home of its own. It sees the files `hosts` and `resolv.conf` in `/etc`, if they exist.
    pub(super) fn anabranch(&self, end: End, arguments: &[&str]) -> Command {
        let files = ["hosts", "resolv.conf"].into_iter().filter(|name| self.path(name).exists());
        let bind = |name| format!("mount --bind '{}' /etc/{name} && ", self.path(name).display());
        let bound = files.map(bind).collect::<String>() + "exec \"$@\"";
        let mut words = vec!["unshare", "-m", "sh", "-c", bound.as_str(), "sh"];
        if !bound.contains("mount") {
            words.clear();
        }
        words.push(env!("CARGO_BIN_EXE_anabranch"));
        words.extend(arguments);
        let mut command = self.namespace(end).enter(&words);
        let home = self.path(&format!("home-{}", end.letter()));
        command.env("ANABRANCH_HOME", &home).env("XDG_STATE_HOME", home.join("state"));
        command.env("XDG_RUNTIME_DIR", self.folder.path());
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts `anabranch` and waits for its first output.
    pub(super) fn start(&self, end: End, arguments: &[&str]) -> Running {
        self.start_command(self.anabranch(end, arguments))
    }

    /// Starts a program of Python, which prints a line at its beginning.
    pub(super) fn python(&self, end: End, source: &str) -> Running {
        self.python_in(self.namespace(end), source)
    }

    pub(super) fn python_in(&self, namespace: &Namespace, source: &str) -> Running {
        let mut command = namespace.enter(&["python3", "-u", "-c", source]);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        self.start_command(command)
    }

    fn start_command(&self, mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut first = String::new();
        out.read_line(&mut first).expect("text");
        assert!(!first.is_empty(), "{command:?} prints nothing");
        Running { child, first, out }
    }

    pub(super) fn serve(&self, arguments: &[&str]) -> Running {
        self.start(End::Server, &[&["serve", "--json", "--dir", "served"], arguments].concat())
    }

    pub(super) fn pull(&self, end: End, link: u8) {
        self.middle.run(&format!("ip link set m{}{link} down", end.letter()));
    }

    pub(super) fn plug(&self, end: End, link: u8) {
        self.middle.run(&format!("ip link set m{}{link} up", end.letter()));
    }

    /// Drops all packets of a link, without a report to either end.
    pub(super) fn interrupt(&self, link: u8) {
        self.middle.run(&format!("ip link set mc{link} nomaster"));
    }

    pub(super) fn restore(&self, link: u8) {
        self.middle.run(&format!("ip link set mc{link} master sw{link}"));
    }

    /// Creates a folder with files of 2 MB.
    pub(super) fn files(&self, folder: &str, count: usize) {
        fs::create_dir_all(self.path(folder)).expect("a folder");
        for number in 0..count {
            let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1);
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            };
            let bytes: Vec<u8> = std::iter::repeat_with(&mut next).flatten().take(2 * MB).collect();
            fs::write(self.path(folder).join(format!("{number}")), bytes).expect("written");
        }
    }
}

/// A program that prints JSON, ended when dropped.
pub(super) struct Running {
    child: Child,
    first: String,
    out: BufReader<std::process::ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Waits for the line with this event.
    #[track_caller]
    pub(super) fn event(&mut self, event: &str) -> Value {
        let mut line = std::mem::take(&mut self.first);
        loop {
            if line.is_empty() {
                assert!(self.out.read_line(&mut line).expect("text") > 0, "no event {event}");
            }
            let value: Value = serde_json::from_str(&line).expect("JSON");
            if value["event"] == event {
                return value;
            }
            line.clear();
        }
    }

    /// Sends Ctrl-C.
    pub(super) fn interrupt(&self) {
        crate::support::signal(self.child.id(), "INT");
    }

    /// Waits for the end of a program that succeeds.
    #[track_caller]
    pub(super) fn wait(mut self) {
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }

    /// Returns the remaining lines of a program that succeeds.
    #[track_caller]
    pub(super) fn lines(mut self) -> Vec<Value> {
        let lines: Vec<String> = (&mut self.out).lines().map(|line| line.expect("text")).collect();
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {lines:?}");
        lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Returns the last of them.
    #[track_caller]
    pub(super) fn end(self) -> Value {
        self.lines().pop().expect("a line")
    }
}

/// Returns the allocated disk blocks below a folder.
pub(super) fn stored(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => stored(&entry.path()),
        Ok(metadata) => metadata.blocks(),
        Err(_) => 0,
    };
    entries.filter_map(Result::ok).map(of).sum()
}

/// Time between two checks of the folder, and the maximum that one counts for: a delay of this program by the machine is no pause.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const MOST_PER_LOOK: Duration = Duration::from_millis(60);

/// Executes the steps, one every 1.5 s, then waits for the end. Returns the longest time in which the folder did not grow.
pub(super) fn longest_pause(running: &mut Running, folder: &Path, steps: &[&dyn Fn()]) -> Duration {
    let begun = Instant::now();
    let mut steps = steps.iter().zip(1..);
    let mut next = steps.next();
    let (mut last, mut pause, mut longest) = (0, Duration::ZERO, Duration::ZERO);
    let mut looked = begun;
    while running.child.try_wait().expect("a status").is_none() {
        if let Some((step, number)) = next
            && begun.elapsed() >= Duration::from_millis(1500) * number
        {
            step();
            next = steps.next();
        }
        let (now, since) = (stored(folder), looked.elapsed());
        looked = Instant::now();
        // The time before the first byte belongs to the handshake.
        pause = if now == last && now > 0 { pause + since.min(MOST_PER_LOOK) } else { Duration::ZERO };
        longest = longest.max(pause);
        last = now;
        assert!(begun.elapsed() < Duration::from_secs(90), "it does not end");
        std::thread::sleep(LOOK_EVERY);
    }
    assert!(next.is_none(), "it ended before the last step");
    longest
}

/// Cuts one link after the other, each once, while a program downloads the 14 files of `served` to `got`.
#[track_caller]
pub(super) fn assert_cut_links_stop_no_download(network: &Network, mut download: Running) {
    let pause = longest_pause(
        &mut download,
        &network.path("got"),
        &[
            &|| network.pull(End::Server, 1),
            &|| network.plug(End::Server, 1),
            &|| network.interrupt(2),
            &|| network.restore(2),
        ],
    );
    download.wait();
    assert_same(&network.path("served"), &network.path("got"), 14);
    assert!(pause < LONGEST_PAUSE, "{pause:?} without progress");
}

/// Returns the pairs that have carried data.
pub(super) fn pairs(end: &Value) -> Vec<String> {
    let paths = end["paths"].as_array().expect("paths");
    let carried = paths.iter().filter(|path| path["sent_bytes"].as_u64().expect("a number") > 50_000);
    let address = |path: &Value, key: &str| path[key].as_str().expect("text").replace(":9899", "");
    carried.map(|path| format!("{}>{}", address(path, "local"), address(path, "remote"))).collect()
}

pub(super) fn assert_same(one: &Path, other: &Path, count: usize) {
    for number in 0..count {
        let name = number.to_string();
        assert!(fs::read(one.join(&name)).expect("a file") == fs::read(other.join(&name)).expect("a file"));
    }
}
