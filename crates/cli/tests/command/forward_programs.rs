//! Programs of other people through `forward` and `gateway`, over two links of 20 Mbit/s in network namespaces.

use std::fs;
use std::process::{Command, Stdio};

use super::network::{End, Network, Running, WEB_SERVER};

/// Page that fetches 200 objects and shows the hash of their hashes.
const PAGE: &str = "<!doctype html><title>page</title><body><script>
const hex = bytes => [...new Uint8Array(bytes)].map(byte => byte.toString(16).padStart(2, '0')).join('');
const hash = async bytes => hex(await crypto.subtle.digest('SHA-256', bytes));
const object = async number => hash(await (await fetch(number)).arrayBuffer());
Promise.all([...Array(200).keys()].map(object))
    .then(async all => document.title = await hash(new TextEncoder().encode(all.join(''))))
    .catch(error => document.title = error);
</script>";

/// Two ends with a gateway, and a client that forwards ports and proxies on port 1080.
struct Forwarding {
    network: Network,
    _gateway: Running,
    _forward: Running,
}

impl Forwarding {
    /// Returns `None` if namespaces are not permitted, or a program is missing, which `make setup` installs.
    fn new(programs: &[&str], local: &[&str]) -> Option<Self> {
        for program in programs {
            let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
            if !found.is_ok_and(|found| found.status.success()) {
                eprintln!("skipped: {program} is missing");
                return None;
            }
        }
        let network = Network::new()?;
        let gateway = network.start(End::Server, &["gateway", "--json", "--allow", "127.0.0.1:*"]);
        let fixed = ["forward", "10.91.1.2", "--json", "-D", "1080"];
        let forward = network.start(End::Client, &[&fixed[..], local].concat());
        Some(Forwarding { network, _gateway: gateway, _forward: forward })
    }

    fn web(programs: &[&str]) -> Option<(Self, Running)> {
        let forwarding = Self::new(programs, &[])?;
        fs::create_dir_all(forwarding.network.path("served")).expect("a folder");
        let server = forwarding.network.python(End::Server, WEB_SERVER);
        Some((forwarding, server))
    }

    /// Runs a shell script at an end, and returns its output without the end of the last line.
    #[track_caller]
    fn shell(&self, end: End, script: &str) -> String {
        let mut command = self.network.namespace(end).enter(&["sh", "-euc", script]);
        let home = self.network.path("home");
        fs::create_dir_all(&home).expect("a folder");
        command.current_dir(self.network.path(".")).env("HOME", home).stdin(Stdio::null());
        let output = command.output().expect("a shell");
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{script}: {out}{err}");
        out.trim_end().to_owned()
    }

    /// Starts a shell script at the server, which prints a line once it is ready.
    fn serve(&self, script: &str) -> Running {
        let python = format!("import os; os.execvp('sh', ['sh', '-euc', {script:?}])");
        self.network.python(End::Server, &python)
    }
}

#[test]
fn curl_downloads_through_both_kinds_of_proxy() {
    let Some((forwarding, _server)) = Forwarding::web(&["curl"]) else { return };
    let stored = forwarding.shell(End::Server, "head -c 4000000 /dev/urandom | tee served/file | sha256sum");
    for proxy in ["socks5h", "http"] {
        let download = format!(
            "curl --fail --silent --show-error --proxytunnel --proxy {proxy}://127.0.0.1:1080 \
             http://127.0.0.1:8000/file | sha256sum"
        );
        assert_eq!(forwarding.shell(End::Client, &download), stored, "{proxy}");
    }
}

#[test]
fn git_clones_a_repository() {
    let Some((forwarding, _server)) = Forwarding::web(&["git"]) else { return };
    let history = "
        git init --quiet served/work && cd served/work
        git config user.name us && git config user.email us@example.org
        for number in 1 2 3; do
            for file in $(seq 40); do head -c 9000 /dev/urandom > \"$file\"; done
            git add . && git commit --quiet --message \"commit $number\"
        done
        cd .. && git clone --quiet --bare work project.git && cd project.git
        git update-server-info && git log --format='%H %T' HEAD";
    let stored = forwarding.shell(End::Server, history);
    let clone = "
        git -c http.proxy=socks5h://127.0.0.1:1080 clone --quiet http://127.0.0.1:8000/project.git clone
        cd clone && git fsck --strict --no-progress && git log --format='%H %T' HEAD";
    assert_eq!(forwarding.shell(End::Client, clone), stored);
}

#[test]
fn iperf3_measures_both_directions() {
    let Some(forwarding) = Forwarding::new(&["iperf3"], &["-L", "5202:127.0.0.1:5201"]) else { return };
    let _server = forwarding.serve("exec iperf3 --server --bind 127.0.0.1 --forceflush");
    for direction in ["", "--reverse"] {
        // The server prints before it listens, and each run of the client ends one of the server.
        let run = format!(
            "for try in $(seq 20); do
                 iperf3 --client 127.0.0.1 --port 5202 --time 1 --parallel 3 --json {direction} > got.json && break
                 sleep 0.2
             done
             python3 -c 'import json; print(json.load(open(\"got.json\"))[\"end\"][\"sum_received\"][\"bytes\"])'"
        );
        let bytes: u64 = forwarding.shell(End::Client, &run).parse().expect("a number");
        assert!(bytes > 100_000, "{bytes} B in one second {direction}");
    }
}

#[test]
fn ssh_copies_data_in_both_directions() {
    let Some(forwarding) = Forwarding::new(&["ssh", "dropbear"], &["-L", "2222:127.0.0.1:22"]) else {
        return;
    };
    if forwarding.shell(End::Server, "id -u") != "0" {
        eprintln!("skipped: the server of ssh needs root");
        return;
    }
    let keys = "
        ssh-keygen -q -t ed25519 -N '' -f key && dropbearkey -t ed25519 -f hostkey > /dev/null
        mkdir -m 700 account account/.ssh && cp key.pub account/.ssh/authorized_keys
        echo \"root:x:0:0::$PWD/account:/bin/sh\" > passwd";
    forwarding.shell(End::Server, keys);
    // The server takes the folder of the user from a file of its own.
    let _server = forwarding.serve(
        "exec unshare --mount sh -euc '
             mount --bind passwd /etc/passwd; echo there
             exec dropbear -F -r hostkey -p 127.0.0.1:22 -P dropbear.pid'",
    );
    let copy = "
        head -c 2000000 /dev/urandom > sent
        ssh -F /dev/null -p 2222 -i key -o BatchMode=yes -o ConnectionAttempts=20 -o StrictHostKeyChecking=no \
            -o UserKnownHostsFile=/dev/null root@127.0.0.1 'tee received' < sent > returned 2> ssh.log || { cat ssh.log; exit 1; }
        sha256sum < sent; sha256sum < account/received; sha256sum < returned";
    let hashes = forwarding.shell(End::Client, copy);
    let hashes: Vec<&str> = hashes.lines().collect();
    assert!(hashes.len() == 3 && hashes.iter().all(|hash| hash == &hashes[0]), "{hashes:?}");
}

#[test]
fn browser_loads_a_page_of_200_objects() {
    let Some((forwarding, _server)) = Forwarding::web(&["chromium"]) else { return };
    fs::write(forwarding.network.path("served/page.html"), PAGE).expect("a page");
    let objects = "
        cd served
        for number in $(seq 0 199); do head -c $((500 + number * 37)) /dev/urandom > $number; done
        for number in $(seq 0 199); do sha256sum < $number | cut -d ' ' -f 1 | tr -d '\\n'; done | sha256sum | cut -d ' ' -f 1";
    let stored = forwarding.shell(End::Server, objects);
    // Chromium connects to loopback addresses directly unless the list of exceptions excludes them.
    let page = forwarding.shell(
        End::Client,
        "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=profile \
         --proxy-server=socks5://127.0.0.1:1080 --proxy-bypass-list='<-loopback>' \
         --virtual-time-budget=60000 --dump-dom http://127.0.0.1:8000/page.html 2> chromium.log",
    );
    assert!(page.contains(&format!("<title>{stored}</title>")), "{stored}: {page}");
}
