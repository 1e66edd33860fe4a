//! Permissions of stored files and folders, folders without read permission, and interrupted pipes.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::protection::{Listening, Users};
use crate::support::{Ended, command, signal};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("its owner may");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

/// Returns the program behind a shell command such as `umask 077 &&`, or behind a command that starts it.
fn behind(shell: &str, arguments: &[&str]) -> Command {
    let program = command(arguments);
    let mut shelled = Command::new("sh");
    shelled
        .args(["-c", &format!("{shell} \"$0\" \"$@\"")])
        .arg(program.get_program())
        .args(program.get_args());
    shelled.envs(program.get_envs().filter_map(|(key, value)| Some((key, value?)))).stdin(Stdio::null());
    shelled.current_dir(program.get_current_dir().expect("the workspace"));
    shelled
}

fn ended(mut command: Command) -> Ended {
    let output = command.output().expect("the program starts");
    Ended {
        status: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Starts a user's server with a tree. Returns it with the arguments that fetch the tree into the inbox.
fn serving_tree(users: &Users) -> (Listening, Vec<String>) {
    let tree = users.path("tree");
    fs::create_dir_all(tree.join("open")).expect("folders");
    fs::create_dir(tree.join("private")).expect("a folder");
    for (name, bits) in [("open/file", 0o666), ("open/tool", 0o4777), ("private/file", 0o600)] {
        fs::write(tree.join(name), name).expect("written");
        set_mode(&tree.join(name), bits);
    }
    for (name, bits) in [("open", 0o1777), ("private", 0o700)] {
        set_mode(&tree.join(name), bits);
    }
    let (keys, dir) = (users.text("bert"), users.text(""));
    users.authorize("anna", "bert");
    let serve =
        ["serve", "--json", "--dir", &dir, "--listen", "127.0.0.71:0", "--keys", &keys, "--allow", "read"];
    let server = Listening::start(&serve);
    let (inbox, keys) = (users.text("inbox"), users.text("anna"));
    let fetch = ["recv", &server.address, "tree", "--dir", &inbox, "--keys", &keys, "--path", "127.0.0.72"];
    let fetch = fetch.iter().map(|word| (*word).to_owned()).collect();
    (server, fetch)
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

#[test]
fn umask_of_the_receiver_limits_files_and_folders() {
    let users = Users::new();
    let (_server, fetch) = serving_tree(&users);
    ended(behind("umask 027 &&", &words(&fetch))).with_status(0);
    let modes = ["open", "open/file", "open/tool", "private", "private/file"]
        .map(|name| mode(&users.path("inbox/tree").join(name)));
    assert_eq!(modes.map(|mode| format!("{mode:o}")), ["1750", "640", "750", "700", "600"]);
}

#[test]
fn folders_in_a_setgid_folder_inherit_the_bit_and_files_do_not() {
    let users = Users::new();
    set_mode(&users.path("inbox"), 0o2775);
    let (_server, fetch) = serving_tree(&users);
    ended(behind("umask 002 &&", &words(&fetch))).with_status(0);
    let modes = ["", "open", "private", "open/tool", "private/file"]
        .map(|name| mode(&users.path("inbox/tree").join(name)) & 0o7000);
    assert_eq!(modes.map(|mode| format!("{mode:o}")), ["2000", "3000", "2000", "0", "0"]);
}

/// Prefix that removes root's override of permissions, which would bypass the bits of a folder.
const WITHOUT_OVERRIDE: &str = "setpriv --bounding-set=-dac_override,-dac_read_search";

fn can_drop_override() -> bool {
    let tried = Command::new("sh").args(["-c", &format!("{WITHOUT_OVERRIDE} true")]).output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        println!("skipped: setpriv cannot drop capabilities here");
    }
    can
}

#[test]
fn folder_that_can_only_be_written_to_takes_files() {
    let users = Users::new();
    let (_server, fetch) = serving_tree(&users);
    if !can_drop_override() {
        return;
    }
    set_mode(&users.path("inbox"), 0o300);
    let fetched = ended(behind(WITHOUT_OVERRIDE, &words(&fetch)));
    set_mode(&users.path("inbox"), 0o700);
    let fetched = fetched.with_status(0);
    assert!(!fetched.err.contains("denied"), "{}", fetched.err);
    assert_eq!(fs::read(users.path("inbox/tree/open/file")).expect("it has arrived"), b"open/file");
}

#[test]
fn folder_that_cannot_be_written_to_is_named_before_connecting() {
    let users = Users::new();
    if !can_drop_override() {
        return;
    }
    set_mode(&users.path("inbox"), 0o500);
    let (inbox, keys) = (users.text("inbox"), users.text("anna"));
    let fetch = ["recv", "127.0.0.71:9", "--all", "--dir", &inbox, "--keys", &keys];
    let refused = ended(behind(WITHOUT_OVERRIDE, &fetch)).with_status(1);
    let expected = format!("--dir {inbox}: no file can be made in it: Permission denied");
    assert!(refused.err.contains(&expected), "{}", refused.err);
}

#[test]
fn interrupted_pipe_has_to_be_sent_from_its_beginning() {
    let users = Users::new();
    users.authorize("anna", "bert");
    let mut server = users.serve("bert", &[]);
    let keys = users.text("anna");
    let address = server.address.clone();
    let send = ["send", "-", "--name", "piped", &address, "--path", "127.0.0.72", "--keys", &keys];
    let mut sending = command(&send);
    sending.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = sending.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&[7; 3_000_000]).expect("taken");
    server.event("begin");
    signal(child.id(), "INT");
    let output = child.wait_with_output().expect("it ends");
    drop(input);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    let expected = "a pipe cannot be resumed by another command: start again from the beginning";
    assert!(err.contains(expected), "{err}");
    assert!(!err.contains("to continue") && !err.contains("anabranch send"), "{err}");
}
