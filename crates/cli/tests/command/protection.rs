//! Authentication of transfers, and confidentiality of their packets.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Ended, anabranch, command, scrape};

/// Content of the transfer: a text for which captures are searched.
const CONTENT: &[u8] = b"the content that nobody else is to see";

/// Folders of two users, and the file that they transfer.
pub(crate) struct Users {
    folder: TempDir,
}

impl Users {
    pub(crate) fn new() -> Self {
        let users = Users { folder: tempfile::tempdir().expect("a folder") };
        fs::create_dir(users.path("inbox")).expect("a folder");
        fs::write(users.path("film.mkv"), CONTENT).expect("written");
        users
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        text(&self.path(name)).to_owned()
    }

    pub(crate) fn key_of(&self, user: &str) -> String {
        let shown = anabranch(&["keys", "show", "--keys", &self.text(user)]).with_status(0).out;
        shown.lines().next().expect("a key").to_owned()
    }

    pub(crate) fn fingerprint_of(&self, user: &str) -> String {
        let shown = anabranch(&["keys", "show", "--keys", &self.text(user)]).with_status(0).out;
        shown.lines().nth(1).expect("a fingerprint").to_owned()
    }

    pub(crate) fn authorize(&self, user: &str, at: &str) {
        anabranch(&["keys", "add", "--keys", &self.text(at), &self.key_of(user), user]).with_status(0);
    }

    /// Starts `serve` of a user.
    pub(crate) fn serve(&self, user: &str, more: &[&str]) -> Listening {
        let (keys, inbox) = (self.text(user), self.text("inbox"));
        let fixed = ["serve", "--json", "--dir", &inbox, "--listen", "127.0.0.71:0"];
        let keys = if more.contains(&"--insecure") { vec![] } else { vec!["--keys", keys.as_str()] };
        Listening::start(&[&fixed[..], &keys, more].concat())
    }

    pub(crate) fn send(&self, user: &str, to: &str, more: &[&str]) -> Ended {
        let (keys, film) = (self.text(user), self.text("film.mkv"));
        let fixed = ["send", film.as_str(), to, "--path", "127.0.0.72", "--connect-timeout", "5"];
        let keys = if more.contains(&"--insecure") { vec![] } else { vec!["--keys", keys.as_str()] };
        anabranch(&[&fixed[..], &keys, more].concat())
    }

    /// Returns the allocated bytes of unfinished files in the inbox.
    fn unfinished_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        let parts = files_below(&self.path("inbox")).into_iter();
        let parts = parts.filter(|path| text(path).ends_with(".anabranch-part"));
        parts.filter_map(|path| fs::metadata(path).ok()).map(|there| there.blocks() * 512).sum()
    }

    pub(crate) fn arrived(&self) -> bool {
        fs::read(self.path("inbox/film.mkv")).is_ok_and(|content| content == CONTENT)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A listening command or relay that prints JSON, ended when dropped.
pub(crate) struct Listening {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) address: String,
}

impl Listening {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_command(command(arguments))
    }

    pub(crate) fn start_command(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut listening = Listening { child, out, address: String::new() };
        let line = listening.event("listening");
        let address = line["addresses"][0].as_str().or(line["listen"].as_str());
        listening.address = address.expect("an address").to_owned();
        listening
    }

    pub(crate) fn event(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).expect("a line") > 0, "no event {event}");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if line["event"] == event {
                return line;
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn end(mut self) -> Ended {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).expect("text");
        let status = self.child.wait().expect("it ends").code();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
        Ended { status, out, err }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_host_is_trusted_at_first_use_and_refused_with_another_key() {
    let users = Users::new();
    users.authorize("anna", "bert");
    let server = users.serve("bert", &[]);
    let first = users.send("anna", &server.address, &[]).with_status(0);
    assert!(users.arrived());
    assert!(first.err.contains(&users.fingerprint_of("bert")), "{}", first.err);
    let second = users.send("anna", &server.address, &["--json"]).with_status(0);
    assert_eq!(second.json_lines()[0]["encrypted"], true);
    assert!(!second.err.contains("new host"), "{}", second.err);
    // A server with another key answers there.
    let address = server.address.clone();
    drop(server);
    users.authorize("anna", "mallory");
    let inbox = users.text("inbox");
    fs::remove_file(users.path("inbox/film.mkv")).expect("there");
    let keys = users.text("mallory");
    let mallory = ["serve", "--json", "--dir", &inbox, "--listen", &address, "--keys", &keys];
    let _mallory = Listening::start(&mallory);
    let refused = users.send("anna", &address, &[]).with_status(4);
    let line = format!("{}:1", users.path("anna/known_hosts").display());
    for part in [&users.fingerprint_of("bert"), &users.fingerprint_of("mallory"), &line] {
        assert!(refused.err.contains(part.as_str()), "{part}: {}", refused.err);
    }
    assert!(refused.err.contains(&format!("anabranch keys forget {address}")), "{}", refused.err);
    assert!(!users.path("inbox/film.mkv").exists(), "nothing is sent to it");
}

#[test]
fn transfer_ends_if_another_peer_answers_mid_transfer() {
    let users = Users::new();
    users.authorize("anna", "bert");
    users.authorize("anna", "mallory");
    fs::write(users.path("film.mkv"), vec![7; 8 << 20]).expect("written");
    let server = users.serve("bert", &[]);
    let address = server.address.clone();
    let (anna, film) = (users.text("anna"), users.text("film.mkv"));
    let send = ["send", &film, &address, "--keys", &anna, "--path", "127.0.0.72", "--limit", "8Mbit"];
    let sending = command(&[&send[..], &["--timeout", "5"]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    while fs::read_dir(users.path("inbox")).expect("a folder").next().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(server);
    let (inbox, keys) = (users.text("inbox"), users.text("mallory"));
    let mallory = ["serve", "--json", "--dir", &inbox, "--listen", &address, "--keys", &keys];
    let _mallory = Listening::start(&mallory);
    let ended = sending.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(4), "{err}");
    assert!(err.contains("shows a key other than before"), "{err}");
}

#[test]
fn only_authorised_keys_connect_and_a_new_key_counts_at_once() {
    let users = Users::new();
    users.authorize("carol", "bert");
    let server = users.serve("bert", &[]);
    let refused = users.send("anna", &server.address, &[]).with_status(1);
    let remedy = format!("anabranch keys add {}", users.key_of("anna"));
    assert!(refused.err.contains(&remedy), "{}", refused.err);
    assert!(!users.arrived());
    users.authorize("anna", "bert");
    // The server checks its file every two seconds.
    let sent = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        users.send("anna", &server.address, &[]).status == Some(0)
    });
    assert!(sent && users.arrived());
}

#[test]
fn without_protection_both_sides_have_to_say_so() {
    let users = Users::new();
    users.authorize("anna", "bert");
    let plain = users.serve("bert", &["--insecure", "--from", "127.0.0.0/8"]);
    let refused = users.send("anna", &plain.address, &[]).with_status(1);
    assert!(refused.err.contains("--insecure"), "{}", refused.err);
    assert!(!users.arrived());
    let sent = users.send("anna", &plain.address, &["--insecure"]).with_status(0);
    assert_eq!(sent.err.matches("warning: --insecure").count(), 1, "{}", sent.err);
    assert!(users.arrived());
    let protected = users.serve("bert", &[]);
    let refused = users.send("anna", &protected.address, &["--insecure"]).with_status(1);
    assert!(refused.err.contains("omit --insecure"), "{}", refused.err);
}

#[test]
fn a_capture_shows_nothing_until_it_is_decrypted_with_the_keys() {
    let users = Users::new();
    users.authorize("anna", "bert");
    let server = users.serve("bert", &[]);
    let [capture, keys, plain] = ["capture", "keys", "plain"].map(|name| users.text(name));
    users.send("anna", &server.address, &["--pcap", &capture, "--keylog", &keys]).with_status(0);
    let holds = |file: &str| {
        let bytes = fs::read(file).expect("a file");
        bytes.windows(CONTENT.len()).any(|window| window == CONTENT)
    };
    assert!(!holds(&capture));
    let done = anabranch(&["decrypt", &capture, "--keylog", &keys, "-o", &plain, "--json"]).with_status(0);
    let done = &done.json_lines()[0];
    assert!(done["decrypted"].as_u64() > Some(4) && done["without_key"] == 0, "{done}");
    assert!(holds(&plain));
    let missing =
        anabranch(&["decrypt", &capture, "--keylog", &plain, "-o", &users.text("x")]).with_status(1);
    assert!(missing.err.contains("plain"), "{}", missing.err);
}

#[test]
fn decrypting_nothing_is_an_error_with_its_reason() {
    let users = Users::new();
    users.authorize("anna", "bert");
    let server = users.serve("bert", &[]);
    let [capture, keys, others, out] = ["capture", "keys", "others", "out"].map(|name| users.text(name));
    users.send("anna", &server.address, &["--pcap", &capture, "--keylog", &keys]).with_status(0);
    users.send("anna", &server.address, &["--keylog", &others]).with_status(0);
    let ended = anabranch(&["decrypt", &capture, "--keylog", &others, "-o", &out]).with_status(1);
    assert!(ended.out.starts_with("0 packets decrypted, "), "{}", ended.out);
    assert!(ended.err.contains("without a matching key: name the key log"), "{}", ended.err);
    let again = anabranch(&["decrypt", &out, "--keylog", &keys, "-o", &users.text("plain")]).with_status(0);
    assert!(
        !again.out.starts_with("0 packets"),
        "the output contains the packets as they were: {}",
        again.out
    );
}

/// Returns the files in a folder and below it.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Returns `true` if a key is contained in the bytes, raw or in hexadecimal digits.
fn shows(bytes: &[u8], hex: &str) -> bool {
    let raw: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits"))
        .collect();
    let forms = [hex.to_lowercase().into_bytes(), hex.to_uppercase().into_bytes(), raw];
    forms.iter().any(|form| bytes.windows(form.len()).any(|window| window == form))
}

#[test]
fn keys_are_written_to_the_key_log_only() {
    let users = Users::new();
    users.authorize("anna", "bert");
    let outputs = |side: &str| {
        fs::create_dir(users.path(side)).expect("a folder");
        ["--pcap", "c.pcapng", "--trace", "trace", "--qlog", "events.qlog"].map(|word| {
            if word.starts_with("--") { word.to_owned() } else { users.text(&format!("{side}/{word}")) }
        })
    };
    let [of_server, of_client] = ["server", "client"].map(outputs);
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let metrics = ["--metrics".to_owned(), port.to_string()];
    let more: Vec<&str> = of_server.iter().chain(&metrics).map(String::as_str).collect();
    let server = users.serve("bert", &more);
    let keys = users.text("keys");
    let more: Vec<&str> = of_client.iter().map(String::as_str).chain(["--keylog", &keys, "-v"]).collect();
    let sent = users.send("anna", &server.address, &more).with_status(0);
    let page = scrape(port).expect("a page");
    assert!(page.contains("anabranch_"), "{page}");
    drop(server);
    let log = fs::read_to_string(&keys).expect("a key log");
    let secrets: Vec<&str> = log
        .split_ascii_whitespace()
        .filter(|word| word.len() >= 24 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .collect();
    assert!(secrets.len() >= 6, "key, mask and initialization vector, both ways: {}", secrets.len());
    let mut written: Vec<(String, Vec<u8>)> = ["server", "client"]
        .iter()
        .flat_map(|side| files_below(&users.path(side)))
        .map(|file| (file.display().to_string(), fs::read(&file).expect("a file")))
        .collect();
    assert!(written.len() >= 6, "{written:?}");
    written.extend(
        [("metrics", page), ("standard output", sent.out), ("standard error", sent.err)]
            .map(|(name, text)| (name.to_owned(), text.into_bytes())),
    );
    for secret in secrets {
        assert!(shows(log.as_bytes(), secret));
        for (name, bytes) in &written {
            assert!(!shows(bytes, secret), "a key stands in {name}");
        }
    }
}

/// Starts `send --code` of a user, and returns it with its code.
fn offer(users: &Users, user: &str, more: &[&str]) -> (Listening, String) {
    let (keys, film) = (users.text(user), users.text("film.mkv"));
    let fixed = ["send", "--code", &film, "--json", "--listen", "127.0.0.73:0", "--keys", &keys];
    let mut offering = Listening::start(&[&fixed[..], more].concat());
    let code = offering.event("code")["code"].as_str().expect("a code").to_owned();
    (offering, code)
}

fn fetch(users: &Users, user: &str, code: &str, address: &str, more: &[&str]) -> Ended {
    let (keys, inbox, at) = (users.text(user), users.text("inbox"), format!("{code}@{address}"));
    let fixed = ["recv", &at, "--dir", &inbox, "--keys", &keys, "--path", "127.0.0.74"];
    anabranch(&[&fixed[..], more].concat())
}

#[test]
fn shared_code_alone_allows_a_transfer() {
    let users = Users::new();
    let (mut offering, code) = offer(&users, "bert", &["--pin"]);
    // People type codes in this form.
    let typed = code.replace('-', " ").to_uppercase();
    let fetched = fetch(&users, "anna", &typed, &offering.address, &["--yes", "--pin"]).with_status(0);
    assert!(fetched.err.contains("film.mkv  1 file, 38 B"), "{}", fetched.err);
    assert!(users.arrived());
    let proved = offering.event("note")["text"].as_str().expect("text").to_owned();
    assert!(
        proved.contains("has proved the code") && proved.contains(&users.fingerprint_of("anna")),
        "{proved}"
    );
    let address = offering.address.clone();
    offering.end().with_status(0);
    // Both sides know each other from now on.
    let server = [
        "serve",
        "--json",
        "--dir",
        &users.text("inbox"),
        "--listen",
        &address,
        "--keys",
        &users.text("bert"),
    ];
    let server = Listening::start(&server);
    let sent = users.send("anna", &server.address, &[]).with_status(0);
    assert!(!sent.err.contains("new host"), "{}", sent.err);
}

#[test]
fn a_code_is_read_from_standard_input_where_it_is_no_argument() {
    let users = Users::new();
    let (offering, code) = offer(&users, "bert", &[]);
    let (keys, inbox, at) = (users.text("anna"), users.text("inbox"), format!("@{}", offering.address));
    let fetch = ["recv", &at, "--dir", &inbox, "--keys", &keys, "--path", "127.0.0.74", "--yes"];
    let with_input = |text: &str| {
        let pipes = [Stdio::piped(), Stdio::null(), Stdio::piped()];
        let [input, out, err] = pipes;
        let mut child = command(&fetch).stdin(input).stdout(out).stderr(err).spawn().expect("it starts");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
        child.wait_with_output().expect("it ends")
    };
    let empty = with_input("");
    assert_eq!(empty.status.code(), Some(2), "{}", String::from_utf8_lossy(&empty.stderr));
    let fetched = with_input(&format!("{code}\n"));
    assert_eq!(fetched.status.code(), Some(0), "{}", String::from_utf8_lossy(&fetched.stderr));
    assert!(users.arrived());
}

#[test]
fn hidden_names_are_taken_only_from_a_list_that_was_shown() {
    let users = Users::new();
    fs::create_dir(users.path(".ssh")).expect("a folder");
    fs::write(users.path(".ssh/authorized_keys"), "a key").expect("written");
    let offered = |more: &[&str]| {
        let (keys, hidden) = (users.text("bert"), users.text(".ssh"));
        let offer = ["send", "--code", &hidden, "--json", "--listen", "127.0.0.73:0", "--keys", &keys];
        let mut offering = Listening::start(&offer);
        let code = offering.event("code")["code"].as_str().expect("a code").to_owned();
        fetch(&users, "anna", &code, &offering.address, more)
    };
    let taken = offered(&["--yes"]).with_status(2);
    assert!(taken.err.contains("`.ssh` is offered, and --yes refuses names"), "{}", taken.err);
    assert!(taken.err.contains("the code stays valid"), "{}", taken.err);
    assert!(!users.path("inbox/.ssh").exists());
}

#[test]
fn interrupted_question_takes_nothing_and_the_code_stays_valid() {
    let users = Users::new();
    let (offering, code) = offer(&users, "bert", &[]);
    let (keys, inbox, at) = (users.text("anna"), users.text("inbox"), format!("{code}@{}", offering.address));
    let asking = command(&["recv", &at, "--dir", &inbox, "--keys", &keys, "--path", "127.0.0.74"]);
    let program = asking.get_program().to_str().expect("UTF-8").to_owned();
    let words: Vec<&str> = asking.get_args().map(|word| word.to_str().expect("UTF-8")).collect();
    // Ctrl-C reaches the shell too. Without the trap it may end before it prints the status.
    let line = format!("trap : INT; {program} {}; echo status $?", words.join(" "));
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qc", &line, "/dev/null"]).envs(asking.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let Ok(mut child) = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        println!("skipped: script is not installed");
        return;
    };
    let (mut shown, mut out) = (Vec::new(), child.stdout.take().expect("a pipe"));
    while !String::from_utf8_lossy(&shown).contains("take this?") {
        let mut byte = [0];
        out.read_exact(&mut byte).expect("the question is asked");
        shown.push(byte[0]);
    }
    let mut input = child.stdin.take().expect("a pipe");
    // Ctrl-C as a typed character.
    input.write_all(&[3]).expect("typed");
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    drop(input);
    child.wait().expect("it ends");
    assert!(rest.contains("no file was received; the code stays valid for this receiver"), "{rest:?}");
    assert!(rest.contains("status 130"), "{rest:?}");
    assert!(!users.arrived());
    // The same receiver takes it with the same code, and no other one does.
    let other = fetch(&users, "carol", &code, &offering.address, &["--yes"]).with_status(4);
    assert!(other.err.contains("another receiver has used this code"), "{}", other.err);
    fetch(&users, "anna", &code, &offering.address, &["--yes"]).with_status(0);
    assert!(users.arrived());
    offering.end().with_status(0);
}

#[test]
#[cfg(target_os = "linux")]
fn small_disk_refuses_the_offer_and_the_code_stays_valid() {
    let users = Users::new();
    let in_namespace = |script: &str, arguments: &[&str]| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "sh", "-c", script]).args(arguments).stdin(Stdio::null());
        unshare
    };
    let mount = format!("mount -t tmpfs -o size=64k tmpfs {}", users.text("inbox"));
    if !in_namespace(&mount, &[]).output().is_ok_and(|output| output.status.success()) {
        println!("skipped: a namespace cannot mount a file system here");
        return;
    }
    fs::write(users.path("film.mkv"), vec![7; 300_000]).expect("written");
    let (offering, code) = offer(&users, "bert", &[]);
    let (keys, inbox, at) = (users.text("anna"), users.text("inbox"), format!("{code}@{}", offering.address));
    let recv = command(&["recv", &at, "--dir", &inbox, "--keys", &keys, "--path", "127.0.0.74", "--yes"]);
    let words = [recv.get_program()].into_iter().chain(recv.get_args());
    let words: Vec<&str> = words.map(|word| word.to_str().expect("UTF-8")).collect();
    let mut small = in_namespace(&format!("{mount} && exec \"$0\" \"$@\""), &words);
    small.envs(recv.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let refused = small.output().expect("it starts");
    let err = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{err}");
    assert!(err.contains("no file was received: 300 kB are offered and 66 kB are free in"), "{err}");
    assert!(err.contains("the code stays valid for this receiver"), "{err}");
    fetch(&users, "anna", &code, &offering.address, &["--yes"]).with_status(0);
    assert_eq!(fs::read(users.path("inbox/film.mkv")).expect("it has arrived").len(), 300_000);
    offering.end().with_status(0);
}

#[test]
fn a_wrong_code_is_the_only_guess() {
    let users = Users::new();
    let (offering, code) = offer(&users, "bert", &[]);
    let number = code.split('-').next().expect("a number");
    let other = if number == "7" { "8" } else { "7" };
    let wrong = code.replacen(number, other, 1);
    let refused = fetch(&users, "anna", &wrong, &offering.address, &["--yes"]).with_status(4);
    assert!(refused.err.contains("the code is wrong"), "{}", refused.err);
    let ended = offering.end().with_status(4);
    assert!(ended.err.contains("a wrong code was tried"), "{}", ended.err);
    assert!(!users.arrived());
}

#[test]
fn command_that_cannot_work_is_refused_before_the_code_is_used() {
    let users = Users::new();
    let (offering, code) = offer(&users, "bert", &[]);
    let misspelt = fetch(&users, "anna", &format!("{code}x"), &offering.address, &["--yes"]).with_status(2);
    assert!(misspelt.err.contains("the code was not used"), "{}", misspelt.err);
    let named = fetch(&users, "anna", &code, &offering.address, &["other"]).with_status(2);
    assert!(named.err.contains("the code determines the offer"), "{}", named.err);
    let unasked = fetch(&users, "anna", &code, &offering.address, &[]).with_status(2);
    assert!(unasked.err.contains("use --yes") && unasked.err.contains("was not used"), "{}", unasked.err);
    let pattern = fetch(&users, "anna", &code, &offering.address, &["--yes", "--exclude", "a["]);
    assert!(pattern.with_status(2).err.contains("a["));
    let (keys, at) = (users.text("anna"), format!("{code}@{}", offering.address));
    let read_only = anabranch(&["recv", &at, "--dir", "/proc", "--keys", &keys, "--yes"]).with_status(1);
    assert!(read_only.err.contains("--dir /proc: no file can be made in it"), "{}", read_only.err);
    // Other receivers can still use it, so no key has been pinned.
    let fetched = fetch(&users, "carol", &code, &offering.address, &["--yes", "--max", "1kB"]).with_status(0);
    assert!(users.arrived(), "{}", fetched.err);
    offering.end().with_status(0);
}

#[test]
fn refused_offer_keeps_the_code_valid() {
    let users = Users::new();
    let (offering, code) = offer(&users, "bert", &[]);
    let large = fetch(&users, "anna", &code, &offering.address, &["--yes", "--max", "10B"]).with_status(1);
    assert!(large.err.contains("--max allows") && large.err.contains("stays valid"), "{}", large.err);
    let other = fetch(&users, "carol", &code, &offering.address, &["--yes"]).with_status(4);
    assert!(other.err.contains("another receiver has used this code"), "{}", other.err);
    let planned = fetch(&users, "anna", &code, &offering.address, &["--yes", "--dry-run"]).with_status(0);
    assert!(!users.arrived(), "{}", planned.err);
    fs::write(users.path("inbox/film.mkv"), "another film").expect("written");
    let clash = fetch(&users, "anna", &code, &offering.address, &["--yes"]).with_status(3);
    assert!(clash.err.contains("--on-clash rename"), "{}", clash.err);
    let more = ["--yes", "--on-clash", "overwrite"];
    fetch(&users, "anna", &code, &offering.address, &more).with_status(0);
    assert!(users.arrived());
    offering.end().with_status(0);
}

#[test]
fn interrupted_receiver_completes_with_the_same_command() {
    let users = Users::new();
    let film: Vec<u8> = (0..6_u32 << 20).map(|at| (at % 251) as u8).collect();
    fs::write(users.path("film.mkv"), &film).expect("written");
    let (offering, code) = offer(&users, "bert", &["--limit", "16Mbit"]);
    let (keys, inbox, at) = (users.text("anna"), users.text("inbox"), format!("{code}@{}", offering.address));
    let fetch = ["recv", &at, "--dir", &inbox, "--keys", &keys, "--path", "127.0.0.74", "--yes"];
    for _ in 0..2 {
        let received = || users.unfinished_bytes();
        let before = received();
        let child = command(&fetch).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        while received() < before + (1 << 20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        crate::support::signal(child.id(), "INT");
        let ended = child.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(130), "{err}");
        assert!(err.contains(&format!("anabranch recv {at} --dir {inbox}")), "{err}");
    }
    let completed = anabranch(&fetch).with_status(0);
    assert!(completed.err.contains("existed already"), "{}", completed.err);
    assert!(fs::read(users.path("inbox/film.mkv")).expect("there") == film);
    offering.end().with_status(0);
}

/// Binds an endpoint at this address that agrees on protection, and ends `count` associations before there are keys.
fn end_handshakes(address: std::net::SocketAddr, count: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let wanted = anabranch_core::protection::Protection {
            mode: anabranch_core::protection::ProtectionMode::Strict,
            roles: anabranch_core::protection::KeyManagementRoles::Server,
            methods: vec![anabranch_core::protection::KeyManagementMethod::TLS],
            restart: false,
        };
        let config = anabranch_net::Config::default().with_core(|core| core.protection = Some(wanted));
        let builder = anabranch_net::Endpoint::builder(anabranch_net::Protection::Insecure);
        let endpoint = builder.local(address).accept(config).bind().expect("bound");
        let monitor = endpoint.monitor();
        for _ in 0..count {
            let accepted =
                tokio::time::timeout(Duration::from_secs(60), endpoint.accept()).await.expect("a handshake");
            let association = accepted.expect("accepted");
            association.abort();
            let _ = association.closed().await;
        }
        drop(endpoint);
        monitor.gone().await;
    });
}

#[test]
fn handshake_ended_by_a_server_that_restarts_is_retried_until_it_is_back() {
    let users = Users::new();
    users.authorize("anna", "bert");
    let address = std::net::SocketAddr::from(([127, 0, 0, 73], free_udp_port([127, 0, 0, 73])));
    let (keys, film, to) = (users.text("anna"), users.text("film.mkv"), address.to_string());
    let sending = ["send", &film, &to, "--path", "127.0.0.72", "--keys", &keys, "--retry", "60"];
    let mut sending =
        command(&sending).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    end_handshakes(address, 2);
    let (keys, inbox) = (users.text("bert"), users.text("inbox"));
    let _server = Listening::start(&["serve", "--json", "--dir", &inbox, "--listen", &to, "--keys", &keys]);
    let status = sending.wait().expect("it ends").code();
    let mut err = String::new();
    sending.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("possibly") && err.contains("trying again"), "{err}");
    assert!(!err.contains("keys add"), "an ABORT is not a verdict on the key: {err}");
    assert!(users.arrived());
}

fn free_udp_port(address: [u8; 4]) -> u16 {
    let socket = std::net::UdpSocket::bind(std::net::SocketAddr::from((address, 0))).expect("bound");
    socket.local_addr().expect("an address").port()
}
