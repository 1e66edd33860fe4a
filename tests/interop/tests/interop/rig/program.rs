//! Programs of both sides. Programs that are not written in Rust are built at first use.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns this project's peer.
pub(crate) fn ours() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_interop-peer"))
}

/// Returns the peer on usrsctp.
pub(crate) fn usrsctp() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peer/usrsctp_peer.c");
        let built = target("usrsctp_peer");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&built, &source])
            .args(["-lusrsctp", "-lpthread"]);
        build(&mut compiler, "install a C compiler and libusrsctp-dev");
        built
    })
}

/// Returns the peer on pion/sctp.
pub(crate) fn pion() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = target("pion_peer");
        let mut compiler = Command::new("go");
        compiler
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("peer/pion"))
            .args(["build", "-mod=readonly", "-o"])
            .arg(&built)
            .arg(".");
        build(&mut compiler, "install Go, and let it reach its module proxy once");
        built
    })
}

fn target(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn build(command: &mut Command, remedy: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {remedy}"));
    assert!(
        output.status.success(),
        "{command:?} failed; {remedy}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
