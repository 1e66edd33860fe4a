//! `anabranch send`, `recv` and `serve`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Ended, anabranch, command, home, state_dir, within_limit};

const MB: usize = 1_000_000;

fn noise(length: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(length).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn names(dir: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
    let mut names: Vec<String> =
        fs::read_dir(dir).expect("a folder").map(|entry| name(entry.expect("an entry"))).collect();
    names.retain(|name| name != ".anabranch-stored");
    names.sort();
    names
}

/// Extensions of the files that an unfinished file has.
const UNFINISHED: [&str; 2] = [".anabranch-journal", ".anabranch-part"];

fn is_unfinished(dir: &Path) -> bool {
    let names = names(dir);
    names.len() == 2 && UNFINISHED.iter().zip(&names).all(|(ending, name)| name.ends_with(ending))
}

/// A running program that prints JSON.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Running { child, out }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    /// Returns the next line with this event.
    fn event(&mut self, event: &str) -> Value {
        std::iter::repeat_with(|| self.line()).find(|line| line["event"] == event).expect("endless")
    }

    fn signal(&self, signal: &str) {
        crate::support::signal(self.child.id(), signal);
    }

    fn end(mut self) -> Ended {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).expect("text");
        let status = self.child.wait().expect("it ends").code();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
        Ended { status, out, err }
    }
}

/// A server at two addresses, ended when dropped.
struct Serving {
    running: Running,
    addresses: Vec<String>,
    dir: TempDir,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.running.child.kill();
        let _ = self.running.child.wait();
    }
}

const LISTEN: [&str; 6] = ["--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0", "--from", "127.0.0.0/8"];

impl Serving {
    fn start(more: &[&str]) -> Serving {
        let dir = tempfile::tempdir().expect("a folder");
        let fixed = ["serve", "--json", "--dir", text(dir.path())];
        let both: &[&str] = if more.contains(&"--allow") { &[] } else { &["--allow", "both"] };
        let running = Running::start(command(&[&fixed[..], &LISTEN, both, more].concat()));
        Serving::of(running, dir)
    }

    fn of(mut running: Running, dir: TempDir) -> Serving {
        let line = running.event("listening");
        let addresses = line["addresses"].as_array().expect("a list");
        let addresses = addresses.iter().map(|address| address.as_str().expect("text").to_owned()).collect();
        Serving { running, addresses, dir }
    }

    /// Returns the arguments of a command that uses both paths, with JSON output.
    fn arguments<'a>(&'a self, verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let (first, second) = (self.addresses[0].as_str(), self.addresses[1].as_str());
        let paths = ["--path", "127.0.0.3", "--to", first, "--path", "127.0.0.4", "--to", second, "--json"];
        let mut all = vec![verb];
        if verb == "send" {
            all.extend(more);
            all.push(first);
        } else {
            all.push(first);
            all.extend(more);
        }
        all.extend(paths);
        all
    }

    fn run(&self, verb: &str, more: &[&str]) -> Ended {
        anabranch(&self.arguments(verb, more))
    }

    fn there(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.path().join(name)).expect(name)
    }
}

fn last(ended: &Ended) -> Value {
    ended.json_lines().pop().expect("a summary")
}

#[test]
fn a_folder_goes_over_two_paths_and_comes_back() {
    let serving = Serving::start(&[]);
    let from = tempfile::tempdir().expect("a folder");
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("sub")).expect("made");
    fs::write(tree.join("big"), noise(6 * MB)).expect("written");
    fs::write(tree.join("sub/run"), "#!/bin/sh").expect("written");
    fs::set_permissions(tree.join("sub/run"), fs::Permissions::from_mode(0o750)).expect("set");
    let when = SystemTime::UNIX_EPOCH + Duration::from_secs(1_234_567_890);
    fs::File::options().write(true).open(tree.join("big")).expect("open").set_modified(when).expect("set");
    let ended = serving.run("send", &[text(&tree)]).with_status(0);
    let end = last(&ended);
    assert_eq!((&end["event"], &end["result"]), (&Value::from("end"), &Value::from("complete")));
    assert_eq!(end["totals"]["done_files"], 2);
    let paths = end["paths"].as_array().expect("paths");
    assert_eq!(paths.len(), 2);
    // The share of each path depends on the scheduler and the machine here; tests/wire counts it at relays.
    let sent: Vec<u64> = paths.iter().map(|path| path["sent_bytes"].as_u64().expect("a number")).collect();
    assert!(sent.iter().all(|&bytes| bytes > 0) && sent.iter().sum::<u64>() >= 6_000_009, "{end}");
    assert!(serving.there("tree/big") == noise(6 * MB));
    let to = tempfile::tempdir().expect("a folder");
    serving.run("recv", &["tree", "--dir", text(to.path())]).with_status(0);
    assert!(fs::read(to.path().join("tree/big")).expect("there") == noise(6 * MB));
    let metadata = |name: &str| fs::metadata(to.path().join(name)).expect(name);
    assert_eq!(metadata("tree/big").modified().expect("a time"), when);
    assert_eq!(metadata("tree/sub/run").permissions().mode() & 0o777, 0o750);
}

#[test]
fn a_sender_that_is_killed_sends_less_than_a_twentieth_again() {
    let mut serving = Serving::start(&[]);
    let from = tempfile::tempdir().expect("a folder");
    let file = from.path().join("file");
    let content = noise(64 << 20);
    fs::write(&file, &content).expect("written");
    let limited = serving.arguments("send", &[text(&file), "--limit", "160Mbit"]);
    let mut first = Running::start(command(&limited));
    while first.event("progress")["totals"]["held_bytes"].as_u64() < Some(25_000_000) {}
    first.signal("KILL");
    assert_eq!(first.end().status, None);
    assert!(is_unfinished(serving.dir.path()));
    let end = last(&serving.run("send", &[text(&file)]).with_status(0));
    let total = |key: &str| end["totals"][key].as_u64().expect("a number");
    assert!(total("reused_bytes") >= 25_000_000, "{end}");
    // The receiver counts the data of both senders, since data in the buffers of the killed one was never sent.
    let received = |line: Value| line["totals"]["moved_bytes"].as_u64().expect("a number");
    let received = received(serving.running.event("end")) + received(serving.running.event("end"));
    let again = received - content.len() as u64;
    assert!(again * 20 < content.len() as u64, "{again} B were received twice");
    assert!(serving.there("file") == content);
    assert_eq!(names(serving.dir.path()), ["file"]);
}

#[test]
fn signal_on_either_side_leaves_a_resumable_transfer() {
    let from = tempfile::tempdir().expect("a folder");
    let file = from.path().join("file");
    fs::write(&file, noise(20 * MB)).expect("written");
    for (signal, of_sender) in [("INT", true), ("TERM", true), ("INT", false), ("TERM", false)] {
        let mut serving = Serving::start(&[]);
        let limited = serving.arguments("send", &[text(&file), "--limit", "40Mbit", "--retry", "0"]);
        let mut sending = Running::start(command(&limited));
        while sending.event("progress")["totals"]["held_bytes"].as_u64() < Some(3_000_000) {}
        if of_sender {
            sending.signal(signal);
            let ended = sending.end().with_status(130);
            assert_eq!(last(&ended)["result"], "interrupted");
            assert_eq!(serving.running.event("end")["result"], "failed");
        } else {
            serving.running.signal(signal);
            assert_eq!(serving.running.child.wait().expect("it ends").code(), Some(130));
            let ended = sending.end().with_status(1);
            assert!(last(&ended)["error"].as_str().expect("text").contains("start it again to resume"));
        }
        assert!(is_unfinished(serving.dir.path()), "{:?}", names(serving.dir.path()));
        if !of_sender {
            let fixed = ["serve", "--json", "--dir", text(serving.dir.path())];
            serving.running = Running::start(command(&[&fixed[..], &LISTEN].concat()));
            let line = serving.running.event("listening");
            let address = |at: usize| line["addresses"][at].as_str().expect("text").to_owned();
            serving.addresses = vec![address(0), address(1)];
        }
        let end = last(&serving.run("send", &[text(&file)]).with_status(0));
        assert!(end["totals"]["reused_bytes"].as_u64() >= Some(3_000_000), "{end}");
        assert!(serving.there("file") == noise(20 * MB));
    }
}

#[test]
fn pipes_are_sent_and_received() {
    let serving = Serving::start(&[]);
    let content = noise(3 * MB + 1);
    let arguments = serving.arguments("send", &["-", "--name", "d/piped"]);
    let mut child = command(&arguments);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(&content).expect("taken");
    assert!(child.wait().expect("it ends").success());
    assert!(serving.there("d/piped") == content);
    for option in ["--stdout", "--dir=-"] {
        let out = command(&["recv", &serving.addresses[0], "d/piped", option]).output().expect("it runs");
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        assert!(out.stdout == content);
    }
    // A folder is no stream.
    let out = anabranch(&["recv", &serving.addresses[0], "d", "--stdout"]).with_status(3);
    assert!(out.err.contains("d is a folder; a pipe takes one file only"), "{}", out.err);
    assert_eq!(out.out, "");
}

#[test]
fn command_ends_after_one_transfer() {
    let dir = tempfile::tempdir().expect("a folder");
    let fixed = ["recv", "--json", "--dir", text(dir.path()), "file"];
    let waiting = Running::start(command(&[&fixed[..], &LISTEN].concat()));
    let waiting = Serving::of(waiting, dir);
    let from = tempfile::tempdir().expect("a folder");
    fs::write(from.path().join("file"), "content").expect("written");
    fs::write(from.path().join("other"), "content").expect("written");
    let refused = waiting.run("send", &[text(&from.path().join("other"))]).with_status(1);
    assert!(refused.out.contains("other was not requested"), "{}", refused.out);
    waiting.run("send", &[text(&from.path().join("file"))]).with_status(0);
    assert_eq!(waiting.there("file"), b"content");
    let mut waiting = waiting;
    assert_eq!(waiting.running.event("end")["result"], "complete");
    assert_eq!(waiting.running.child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn all_and_hidden_names_are_fetched_on_separate_request() {
    let serving = Serving::start(&[]);
    for name in [".bashrc", "file"] {
        fs::write(serving.dir.path().join(name), "content").expect("written");
    }
    let to = tempfile::tempdir().expect("a folder");
    let ended = serving.run("recv", &["--all", "--dir", text(to.path())]).with_status(3);
    assert!(ended.out.contains("stored with --hidden or if requested by name"), "{}", ended.out);
    assert_eq!(names(to.path()), ["file"]);
    serving.run("recv", &["--all", "--hidden", "--dir", text(to.path())]).with_status(0);
    assert_eq!(names(to.path()), [".bashrc", "file"]);
    // The shell completes folders with a slash.
    let named = tempfile::tempdir().expect("a folder");
    serving.run("recv", &["file/", "--dir", text(named.path())]).with_status(0);
    assert_eq!(names(named.path()), ["file"]);
    // Senders to that folder follow the same rule.
    let ended = serving.run("send", &[text(&to.path().join(".bashrc"))]).with_status(3);
    assert!(ended.out.contains("omitted by the receiver"), "{}", ended.out);
}

#[test]
fn clash_is_reported_to_both_sides_and_no_file_is_lost() {
    let mut serving = Serving::start(&[]);
    fs::write(serving.dir.path().join("file"), "theirs").expect("written");
    let from = tempfile::tempdir().expect("a folder");
    fs::write(from.path().join("file"), "our own").expect("written");
    fs::write(from.path().join("other"), "fine").expect("written");
    let paths = [from.path().join("file"), from.path().join("other")];
    let ended = serving.run("send", &[text(&paths[0]), text(&paths[1])]).with_status(3);
    let lines = ended.json_lines();
    let failed = lines.iter().find(|line| line["result"] == "failed").expect("a failure");
    assert_eq!((&failed["file"], &failed["error"]["reason"]), (&Value::from("file"), &Value::from("Clash")));
    assert!(failed["error"]["text"].as_str().expect("text").contains("send with --on-clash rename"));
    assert_eq!(
        (last(&ended)["result"].as_str(), serving.there("file")),
        (Some("incomplete"), b"theirs".to_vec())
    );
    assert_eq!(serving.there("other"), b"fine");
    assert_eq!(serving.running.event("end")["result"], "incomplete");
    // The suggested command succeeds.
    serving.run("send", &[text(&paths[0]), "--on-clash", "rename"]).with_status(0);
    assert_eq!((serving.there("file"), serving.there("file.1")), (b"theirs".to_vec(), b"our own".to_vec()));
    let said = anabranch(&["send", text(&paths[0]), &serving.addresses[0]]).with_status(3);
    assert!(said.err.contains("failed: ") && said.err.contains("1 omitted"), "{}", said.err);
    assert!(!said.err.contains("not encrypted"), "{}", said.err);
    let quiet = anabranch(&["send", text(&paths[1]), &serving.addresses[0], "--quiet"]).with_status(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
}

#[test]
fn a_disk_that_is_full_is_named_and_leaves_no_half_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_anabranch");
    // A small disk in a private mount namespace.
    let script = format!(
        "mount -t tmpfs -o size=5m tmpfs '{0}' && \
         cd '{0}' && exec {program} serve --json --dir . --allow both --from 127.0.0.0/8 --listen 127.0.0.1:0 --listen 127.0.0.2:0",
        text(dir.path())
    );
    let mut unshared = Command::new("unshare");
    unshared.args(["-Urm", "sh", "-c", &script]).stdin(Stdio::null()).env("XDG_STATE_HOME", state_dir());
    unshared.env("ANABRANCH_HOME", home());
    if !Command::new("unshare").args(["-Urm", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("left out: no namespaces here");
        return;
    }
    let serving = Serving::of(Running::start(unshared), dir);
    let from = tempfile::tempdir().expect("a folder");
    fs::write(from.path().join("big"), noise(9 * MB)).expect("written");
    fs::write(from.path().join("small"), "small").expect("written");
    let ended = serving.run("send", &[text(&from.path().join("big"))]).with_status(3);
    let failed = ended.json_lines().into_iter().find(|line| line["result"] == "failed").expect("a failure");
    assert_eq!(failed["error"]["reason"], "NoSpace");
    let text_of = failed["error"]["text"].as_str().expect("text");
    assert!(text_of.contains("big: ") && text_of.contains("make room and send it again"), "{text_of}");
    // Data from a pipe has no size by which it could be refused.
    let arguments = serving.arguments("send", &["-", "--name", "piped"]);
    let mut child = command(&arguments);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    // The program does not read all of it.
    let _ = child.stdin.take().expect("a pipe").write_all(&noise(9 * MB));
    let out = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(out.stdout).expect("text");
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert!(said.contains("NoSpace") && said.contains("make room and send it again"), "{said}");
    let to = tempfile::tempdir().expect("a folder");
    serving.run("recv", &["--all", "--dir", text(to.path())]).with_status(0);
    assert!(names(to.path()).is_empty(), "nothing has its final name");
}

#[test]
#[cfg(target_os = "linux")]
fn server_and_senders_short_of_descriptors_leave_no_file_out() {
    const SENDERS: usize = 4;
    const FILES: usize = 120;
    let dir = tempfile::tempdir().expect("a folder");
    let fixed = ["serve", "--json", "--dir", text(dir.path())];
    let mut serving =
        Serving::of(Running::start(within_limit("-n 72", &[&fixed[..], &LISTEN].concat())), dir);
    let from = tempfile::tempdir().expect("a folder");
    let name = |sender: usize, file: usize| format!("tree-{sender}/{}/deep/er/{file}", file % 7);
    let senders: Vec<Running> = (0..SENDERS)
        .map(|sender| {
            for file in 0..FILES {
                let path = from.path().join(name(sender, file));
                fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                fs::write(path, noise(100 + file)).expect("written");
            }
            let tree = from.path().join(format!("tree-{sender}"));
            Running::start(within_limit("-n 40", &serving.arguments("send", &[text(&tree)])))
        })
        .collect();
    let Running { child, out } = &mut serving.running;
    let ended: Vec<Ended> = std::thread::scope(|scope| {
        // The server blocks if no program reads its lines.
        scope.spawn(|| std::io::copy(out, &mut std::io::sink()));
        let ended = senders.into_iter().map(Running::end).collect();
        child.kill().expect("killed");
        ended
    });
    for (sender, ended) in ended.into_iter().enumerate() {
        let ended = ended.with_status(0);
        let totals = &last(&ended)["totals"];
        assert_eq!((&totals["done_files"], &totals["failed_files"]), (&FILES.into(), &0.into()), "{totals}");
        for file in 0..FILES {
            let name = name(sender, file);
            assert_eq!(serving.there(&name), noise(100 + file), "{name}");
        }
    }
}

#[test]
fn overwrite_of_a_killed_sender_is_resumed_by_the_same_command() {
    let serving = Serving::start(&["--on-clash", "overwrite"]);
    let from = tempfile::tempdir().expect("a folder");
    let file = from.path().join("file");
    let content = noise(20 * MB);
    fs::write(&file, &content).expect("written");
    let mut old = content.clone();
    old.reverse();
    fs::write(serving.dir.path().join("file"), old).expect("written");
    let mut killed = Running::start(command(&serving.arguments("send", &[text(&file), "--limit", "40Mbit"])));
    while killed.event("progress")["totals"]["held_bytes"].as_u64().expect("a number") < 5_000_000 {}
    killed.child.kill().expect("killed");
    let ended = serving.run("send", &[text(&file)]).with_status(0);
    let totals = &last(&ended)["totals"];
    assert!(totals["reused_bytes"].as_u64().expect("a number") > 0, "{totals}");
    assert!(serving.there("file") == content);
    let _ = killed.child.wait();
}

#[test]
#[cfg(target_os = "linux")]
fn server_raises_its_limit_of_open_files() {
    let dir = tempfile::tempdir().expect("a folder");
    let fixed = ["serve", "--json", "--dir", text(dir.path())];
    let limited = within_limit("-S -n 100", &[&fixed[..], &LISTEN].concat());
    let serving = Serving::of(Running::start(limited), dir);
    let limits = fs::read_to_string(format!("/proc/{}/limits", serving.running.child.id())).expect("limits");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    let of_files: Vec<&str> = files.split_whitespace().skip(3).take(2).collect();
    assert!(of_files[0] == of_files[1] && of_files[0] != "100", "{files}");
}

#[test]
fn transfer_fails_when_the_peer_never_returns() {
    let mut serving = Serving::start(&[]);
    let from = tempfile::tempdir().expect("a folder");
    let file = from.path().join("file");
    fs::write(&file, noise(20 * MB)).expect("written");
    let timeouts = ["--limit", "40Mbit", "--timeout", "5", "--retry", "7", "--connect-timeout", "5"];
    let arguments = serving.arguments("send", &[&[text(&file)], &timeouts[..]].concat());
    let mut sending = Running::start(command(&arguments));
    sending.event("progress");
    serving.running.child.kill().expect("killed");
    let ended = sending.end().with_status(1);
    let lines = ended.json_lines();
    assert!(lines.iter().any(|line| line["event"] == "disconnected"), "{}", ended.out);
    let end = last(&ended);
    assert_eq!(end["result"], "failed");
    assert!(end["error"].as_str().expect("text").contains("start it again"), "{end}");
}

#[test]
fn errors_name_the_remedy() {
    let serving = Serving::start(&["--allow", "read"]);
    let address = serving.addresses[0].as_str();
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("file");
    fs::write(&file, "content").expect("written");
    let file = text(&file);
    let missing = format!("{address}: no such file: d/nothing\n");
    for (arguments, status, expected) in [
        (&["send", file][..], 2, "send"),
        (&["send", "/no/such/file", address], 1, "/no/such/file: No such file"),
        (&["send", file, "127.0.0.1:1", "--connect-timeout", "0.5"], 1, "port 1 of 127.0.0.1 is closed"),
        (&["send", file, "no.such.host.invalid"], 1, "no.such.host.invalid"),
        (&["send", file, address], 1, "start it with --allow write or both"),
        (&["send", "-", "-", address], 2, "there is one standard input"),
        (&["send", "-", address, "--name", "../x"], 2, "--name ../x: it contains `.` or `..`"),
        (&["send", file, address, "--limit", "quick"], 2, "--limit"),
        (&["send", file, address, "--timeout", "1"], 2, "`1` is not between 5s and 720h"),
        (&["send", file, address, "--scheme", "cmtt"], 2, "did you mean `cmt`"),
        (&["recv"], 2, "HOST"),
        (
            &["recv", address, "--all", "--dir", "/dev/null/dir"],
            1,
            "--dir /dev/null/dir: cannot make this folder",
        ),
        (&["recv", address, "x", "--stdout", "--json"], 2, "--json"),
        (&["recv", address, "x", "--dir", "-", "--json"], 2, "--json"),
        (&["recv", "--listen", "127.0.0.9:0", "--to", "127.0.0.1:9"], 2, "--to applies to connecting"),
        (&["recv", address, "d/nothing", "--dir", text(dir.path())], 3, &missing),
        (&["recv", address, "../x", "--dir", text(dir.path())], 2, "contains `.` or `..`"),
        (&["recv", address], 2, "with --all"),
        (&["recv", "--listen", "127.0.0.9:0", "--insecure"], 2, "with --all"),
        (&["recv", address, "x", "--all"], 2, "omit one of them"),
        (&["recv", address, "x", "--hidden"], 2, "--all"),
        (&["recv", address, "x", "--stdout", "--delete"], 2, "standard output has no files to remove"),
        (&["recv", address, "x", "--allow-delete"], 2, "--listen"),
        (
            &["recv", "--listen", "127.0.0.9:0", "--insecure", "--all", "--delete"],
            2,
            "--allow-delete lets it",
        ),
        (&["serve", "--dir", ".", "--insecure", "--allow", "read", "--allow-delete"], 2, "omit it"),
        (&["serve"], 2, "--dir"),
        (&["serve", "--dir", ".", "--insecure", "--memory", "10MiB"], 2, "64 transfers need 192 MiB"),
        (
            &["serve", "--dir", file, "--listen", "127.0.0.9:0", "--insecure"],
            1,
            "name a folder, which is created if missing",
        ),
        (&["recv", address, "x", "--dir", file], 1, "name a folder, which is created if missing"),
        (&["serve", "--dir", ".", "--listen", address, "--from", "::1"], 1, "cannot listen"),
    ] {
        let ended = anabranch(arguments).with_status(status);
        assert!(ended.err.contains(expected), "{arguments:?}: {}", ended.err);
        // The name of the server's folder stays private.
        assert!(!ended.err.contains(text(serving.dir.path())), "{arguments:?}: {}", ended.err);
    }
    assert_eq!(names(dir.path()), ["file"]);
}

/// Creates a folder `tree` with a file that the server also has. The server's folder has additional entries.
fn tree_with_surplus_at(serving: &Serving) -> TempDir {
    let from = tempfile::tempdir().expect("a folder");
    for dir in [from.path(), serving.dir.path()] {
        fs::create_dir_all(dir.join("tree/sub")).expect("made");
        fs::write(dir.join("tree/file"), "content").expect("written");
    }
    for name in ["old", "sub/old", "keep.o"] {
        fs::write(serving.dir.path().join("tree").join(name), "content").expect("written");
    }
    from
}

#[test]
fn surplus_files_are_removed_if_both_sides_allow_deletion() {
    let mut serving = Serving::start(&["--allow-delete"]);
    let from = tree_with_surplus_at(&serving);
    let (tree, address) = (from.path().join("tree"), serving.addresses[0].clone());
    let send = ["send", text(&tree), &address, "--delete", "--exclude", "*.o"];
    let planned = anabranch(&[&send[..], &["--dry-run"]].concat()).with_status(0);
    assert!(planned.err.contains("tree/sub/old: would be deleted"), "{}", planned.err);
    assert!(planned.err.contains("; 2 would be deleted"), "{}", planned.err);
    assert!(planned.err.contains("dry run, complete: "), "{}", planned.err);
    assert!(planned.err.contains("; nothing was stored"), "{}", planned.err);
    assert_eq!(serving.there("tree/old"), b"content");
    let done = anabranch(&[&send[..], &["-v"]].concat()).with_status(0);
    assert!(done.err.contains("tree/old: deleted") && done.err.contains("; 2 deleted"), "{}", done.err);
    assert_eq!(names(&serving.dir.path().join("tree")), ["file", "keep.o", "sub"]);
    assert_eq!(serving.running.event("deleted")["planned"], true);
    let end = serving.running.event("end");
    assert_eq!(end["totals"]["deletable"], 2);
    assert_eq!(serving.running.event("end")["totals"]["deleted"], 2);
    fs::write(tree.join("old"), "content").expect("written");
    let into = text(from.path());
    serving.run("recv", &["tree", "--dir", into]).with_status(0);
    assert_eq!(names(&tree), ["file", "keep.o", "old", "sub"]);
    let ended = serving.run("recv", &["tree", "--dir", into, "--delete"]).with_status(0);
    assert!(ended.json_lines().iter().any(|line| line["event"] == "deleted" && line["file"] == "tree/old"));
    assert_eq!(names(&tree), ["file", "keep.o", "sub"]);
}

#[test]
fn refused_deletion_is_reported_with_the_remedy() {
    let serving = Serving::start(&[]);
    let from = tree_with_surplus_at(&serving);
    let tree = from.path().join("tree");
    let refused = anabranch(&["send", text(&tree), &serving.addresses[0], "--delete"]).with_status(1);
    let advice = "start it with --allow-delete, or send without --delete";
    assert!(refused.err.contains(advice), "{}", refused.err);
    anabranch(&["send", text(&tree), &serving.addresses[0]]).with_status(0);
    assert_eq!(names(&serving.dir.path().join("tree")), ["file", "keep.o", "old", "sub"]);
}

#[test]
fn missing_folder_is_created_and_reported_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let inbox = dir.path().join("new/inbox");
    let fixed = ["serve", "--json", "--allow", "both", "--dir", text(&inbox)];
    let mut running = Running::start(command(&[&fixed[..], &LISTEN].concat()));
    assert_eq!(running.line()["text"], format!("made the folder {}", text(&inbox)));
    let serving = Serving::of(running, dir);
    fs::write(inbox.join("file"), "content").expect("written");
    let to = serving.dir.path().join("fetched");
    let fetch = ["recv", &serving.addresses[0], "file", "--dir", text(&to)];
    let said = anabranch(&fetch).with_status(0).err;
    assert_eq!(said.matches(&format!("made the folder {}\n", text(&to))).count(), 1, "{said}");
    assert_eq!(fs::read(to.join("file")).expect("there"), b"content");
    let said = anabranch(&fetch).with_status(0).err;
    assert!(!said.contains("made the folder"), "{said}");
}

#[test]
fn links_that_leave_the_folder_are_reported_without_failure() {
    let serving = Serving::start(&[]);
    let from = tempfile::tempdir().expect("a folder");
    let tree = from.path().join("tree");
    fs::create_dir(&tree).expect("made");
    fs::write(tree.join("file"), "content").expect("written");
    for (target, name) in [("file", "link"), ("/etc/passwd", "out")] {
        std::os::unix::fs::symlink(target, tree.join(name)).expect("linked");
    }
    let ended = anabranch(&["send", text(&tree), &serving.addresses[0]]).with_status(0);
    assert!(ended.err.contains("tree/out was omitted: it leads out of the folder"), "{}", ended.err);
    assert!(!ended.err.contains("failed") && ended.err.contains("complete: 1 of 1 file, "), "{}", ended.err);
    let there = serving.dir.path().join("tree");
    assert_eq!(names(&there), ["file", "link"]);
    assert_eq!(fs::read_link(there.join("link")).expect("a link"), Path::new("file"));
    // The host sends the targets of links.
    let to = tempfile::tempdir().expect("a folder");
    serving.run("recv", &["tree", "--links", "follow", "--dir", text(to.path())]).with_status(0);
    assert!(fs::symlink_metadata(to.path().join("tree/link")).expect("there").is_file());
}

#[test]
fn host_lists_files_in_order_without_excluded_ones() {
    let serving = Serving::start(&[]);
    let from = tempfile::tempdir().expect("a folder");
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("sub")).expect("made");
    for name in ["b.o", "a.c", "keep.o", "sub/c.o"] {
        fs::write(tree.join(name), name).expect("written");
    }
    // The first matching rule decides, of either option.
    let rules = ["--include", "keep.o", "--exclude", "*.o"];
    let dry = [&["send", text(&tree), &serving.addresses[0], "--dry-run", "-v"], &rules[..]].concat();
    let said = anabranch(&dry).with_status(0).err;
    let planned: Vec<&str> = said.lines().filter_map(|line| line.strip_suffix(": would be stored")).collect();
    assert_eq!(planned, ["tree", "tree/a.c", "tree/keep.o", "tree/sub"]);
    assert!(names(serving.dir.path()).is_empty());
    let said =
        anabranch(&[&["send", text(&tree), &serving.addresses[0]], &rules[..]].concat()).with_status(0).err;
    assert!(said.contains("complete: 2 of 2 files") && !said.contains("tree/a.c"), "a summary alone: {said}");
    let said = anabranch(&["send", text(&tree), &serving.addresses[0], "-v"]).with_status(0).err;
    for line in ["tree/a.c: exists already", "tree/b.o", "tree/keep.o: exists already", "tree/sub/c.o"] {
        assert!(said.lines().any(|said| said == line), "{line}: {said}");
    }
    let list =
        anabranch(&["recv", &serving.addresses[0], "--list", "tree", "--exclude", "b.*"]).with_status(0);
    let listed: Vec<&str> = list.out.lines().map(|line| line.rsplit(' ').next().expect("a name")).collect();
    assert_eq!(listed, ["tree", "tree/a.c", "tree/keep.o", "tree/sub", "tree/sub/c.o"]);
    assert!(
        list.out.lines().nth(1).is_some_and(|line| line.starts_with("-rw") && line.contains(" 3 20")),
        "{}",
        list.out
    );
    for (arguments, expected) in [
        (&["recv", &serving.addresses[0], "--list", "--dir", "x"][..], "cannot be used with"),
        (&["recv", &serving.addresses[0], "tree", "--exclude", "[a"], "`[a` is not a pattern"),
        (
            &["recv", "--listen", "127.0.0.9:0", "--insecure", "x", "--dry-run"],
            "--dry-run applies to fetching",
        ),
    ] {
        let ended = anabranch(arguments).with_status(2);
        assert!(ended.err.contains(expected), "{arguments:?}: {}", ended.err);
    }
}

#[test]
fn portable_names_option_refuses_other_names() {
    let from = tempfile::tempdir().expect("a folder");
    for name in ["aux.txt", "fine.txt"] {
        fs::write(from.path().join(name), "content").expect("written");
    }
    let paths = ["aux.txt", "fine.txt"].map(|name| text(&from.path().join(name)).to_owned());
    let paths = [paths[0].as_str(), paths[1].as_str()];
    let portable = Serving::start(&["--portable-names"]);
    let ended = portable.run("send", &paths).with_status(3);
    assert!(
        ended.out.contains("`aux.txt` is not taken: it is the name of a device on Windows"),
        "{}",
        ended.out
    );
    assert_eq!(names(portable.dir.path()), ["fine.txt"]);
    let other = Serving::start(&[]);
    other.run("send", &paths).with_status(0);
    let to = tempfile::tempdir().expect("a folder");
    other.run("recv", &["--all", "--portable-names", "--dir", text(to.path())]).with_status(3);
    assert_eq!(names(to.path()), ["fine.txt"]);
}

#[test]
fn server_reports_and_keeps_unfinished_files() {
    let dir = tempfile::tempdir().expect("a folder");
    let left = [".a.00.anabranch-part", ".a.00.anabranch-journal"];
    fs::create_dir(dir.path().join("d")).expect("made");
    for name in left {
        fs::write(dir.path().join("d").join(name), noise(3000)).expect("written");
    }
    let fixed = ["serve", "--json", "--dir", text(dir.path())];
    let mut running = Running::start(command(&[&fixed[..], &LISTEN].concat()));
    let note = running.event("note")["text"].as_str().expect("text").to_owned();
    assert!(
        note.starts_with("1 unfinished file, 3 kB, the oldest unchanged for less than a minute: "),
        "{note}"
    );
    running.signal("INT");
    running.end().with_status(130);
    assert_eq!(names(&dir.path().join("d")).len(), 2);
}

#[test]
fn sender_that_cannot_store_its_identity_warns_and_sends() {
    let serving = Serving::start(&[]);
    let from = tempfile::tempdir().expect("a folder");
    let file = from.path().join("file");
    fs::write(&file, "content").expect("written");
    let mut sending = command(&serving.arguments("send", &[text(&file)]));
    let out = sending.env("XDG_STATE_HOME", &file).output().expect("it runs");
    let said = String::from_utf8(out.stdout).expect("text");
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains(".anabranch-sender: Not a directory"), "{said}");
    assert_eq!(serving.there("file"), b"content");
}
