//! A running peer, its reports, its output and its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Limit that exceeds all durations, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes of content that are passed at once.
const BLOCK: usize = 64 << 10;

/// Standard input of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    None,
    /// This number of bytes from a generator with this seed.
    Random {
        seed: u64,
        bytes: u64,
    },
}

impl Input {
    fn blocks(self) -> impl Iterator<Item = Vec<u8>> {
        let (seed, mut left) = match self {
            Input::None => (0, 0),
            Input::Random { seed, bytes } => (seed, bytes),
        };
        let mut random = fastrand::Rng::with_seed(seed);
        std::iter::from_fn(move || {
            let length = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            let mut block = vec![0; length];
            random.fill(&mut block);
            left -= length as u64;
            (length > 0).then_some(block)
        })
    }

    /// Returns the SHA-256 of all bytes.
    pub(crate) fn sha256(self) -> Vec<u8> {
        let mut hash = Sha256::new();
        self.blocks().for_each(|block| hash.update(block));
        hash.finalize().to_vec()
    }
}

/// Lines that a peer has reported so far.
#[derive(Debug, Default)]
struct Told {
    lines: Vec<Value>,
    over: bool,
}

/// Results of a peer that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// SHA-256 of its standard output.
    pub(crate) sha256: Vec<u8>,
    /// All lines that it reported.
    pub(crate) lines: Vec<Value>,
}

impl Ended {
    /// Returns its last line.
    #[track_caller]
    pub(crate) fn end(&self) -> &Value {
        self.all("end").next().unwrap_or_else(|| panic!("no end among {:#?}", self.lines))
    }

    pub(crate) fn all(&self, event: &str) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(move |line| line["event"] == event)
    }

    /// Checks that it ended gracefully.
    #[track_caller]
    pub(crate) fn closed(self) -> Self {
        assert_eq!(self.end()["outcome"], "closed", "{:#?}", self.lines);
        self
    }
}

#[derive(Debug)]
pub(crate) struct Peer {
    name: &'static str,
    child: Child,
    told: Arc<(Mutex<Told>, Condvar)>,
    received: Arc<AtomicU64>,
    output: Option<JoinHandle<Vec<u8>>>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    /// Starts a peer that reports lines of JSON on standard error.
    pub(crate) fn start(name: &'static str, mut command: Command, input: Input) -> Self {
        let mut child = command
            .stdin(if input == Input::None { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        if let Some(mut stdin) = child.stdin.take() {
            // A peer that has ended reads no more. The test checks its end elsewhere.
            std::thread::spawn(move || input.blocks().try_for_each(|block| stdin.write_all(&block)));
        }
        let told = Arc::new((Mutex::new(Told::default()), Condvar::new()));
        let stderr = child.stderr.take().expect("a pipe");
        let listener = Arc::clone(&told);
        std::thread::spawn(move || listen(name, BufReader::new(stderr), &listener));
        let received = Arc::new(AtomicU64::new(0));
        let stdout = child.stdout.take().expect("a pipe");
        let counter = Arc::clone(&received);
        let output = Some(std::thread::spawn(move || hash(stdout, &counter)));
        Peer { name, child, told, received, output }
    }

    /// Waits until it reports that event for the `nth` time, from 1 on.
    #[track_caller]
    pub(crate) fn wait_for_nth(&self, event: &str, nth: usize) -> Value {
        let (lock, news) = &*self.told;
        let deadline = Instant::now() + TIMEOUT;
        let mut told = lock.lock().expect("no panic under it");
        loop {
            if let Some(line) = told.lines.iter().filter(|line| line["event"] == event).nth(nth - 1) {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !told.over && !left.is_zero(),
                "{} did not tell of `{event}` but of {:#?}",
                self.name,
                told.lines
            );
            (told, _) = news.wait_timeout(told, left).expect("no panic under it");
        }
    }

    /// Returns the number of reports of that event so far.
    pub(crate) fn count(&self, event: &str) -> usize {
        let told = self.told.0.lock().expect("no panic under it");
        told.lines.iter().filter(|line| line["event"] == event).count()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, event: &str) -> Value {
        self.wait_for_nth(event, 1)
    }

    /// Waits until it has written this number of bytes to standard output.
    #[track_caller]
    pub(crate) fn wait_for_output(&self, bytes: u64) {
        let deadline = Instant::now() + TIMEOUT;
        while self.received.load(Ordering::Relaxed) < bytes {
            assert!(Instant::now() < deadline, "{} has not received {bytes} bytes in time", self.name);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills it as `kill -9` does, without a notice to its peer.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            let told = &self.told.0;
            assert!(
                Instant::now() < deadline,
                "{} does not end; it told {:#?}",
                self.name,
                told.lock().expect("no panic under it").lines
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        let sha256 = self.output.take().expect("taken once").join().expect("no panic in it");
        let (lock, news) = &*self.told;
        let mut told = lock.lock().expect("no panic under it");
        while !told.over {
            told = news.wait(told).expect("no panic under it");
        }
        Ended { status, sha256, lines: std::mem::take(&mut told.lines) }
    }
}

fn listen(name: &str, lines: impl BufRead, told: &(Mutex<Told>, Condvar)) {
    for line in lines.lines().map_while(Result::ok) {
        // A line without JSON is a diagnostic message of a library.
        let Ok(value) = serde_json::from_str::<Value>(&line) else {
            eprintln!("{name}: {line}");
            continue;
        };
        told.0.lock().expect("no panic under it").lines.push(value);
        told.1.notify_all();
    }
    told.0.lock().expect("no panic under it").over = true;
    told.1.notify_all();
}

fn hash(mut output: impl Read, counter: &AtomicU64) -> Vec<u8> {
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK];
    while let Ok(length @ 1..) = output.read(&mut block) {
        hash.update(&block[..length]);
        counter.fetch_add(length as u64, Ordering::Relaxed);
    }
    hash.finalize().to_vec()
}
