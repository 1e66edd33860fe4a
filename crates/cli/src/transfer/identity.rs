//! Identity of this user as a sender, generated once at random and stored.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anabranch_transfer::SenderId;
use serde_json::json;

use super::ShowOptions;
use crate::exit::CommandError;
use crate::live_output;
use crate::output;
use crate::state_dir::state_dir;

/// Name of the file. Transfers exclude the file, so that it is never sent, even if its folder is served.
const FILE: &str = ".anabranch-sender";
const DIGITS: usize = 2 * SenderId::LEN;

/// Returns the stored identity. If the identity cannot be stored, returns one for this run only and prints a note.
pub(super) fn sender(show: &ShowOptions) -> Result<SenderId, CommandError> {
    let kept = match state_dir() {
        Some(dir) => load_or_create(&dir.join("anabranch")).map_err(|(path, error)| {
            format!("{}: {error}; without it no later run can resume an unfinished transfer", path.display())
        }),
        None => Err("neither XDG_STATE_HOME nor a home folder is known: set one of them, \
                     so that another run continues what this one leaves unfinished"
            .to_owned()),
    };
    match kept {
        Ok(sender) => Ok(sender),
        Err(why) => {
            if show.json {
                live_output::event(&json!({ "event": "note", "text": why }));
            } else if !show.quiet {
                output::notice(why);
            }
            SenderId::random().map_err(CommandError::failure)
        }
    }
}

fn load_or_create(dir: &Path) -> Result<SenderId, (PathBuf, io::Error)> {
    let path = dir.join(FILE);
    let made = match load(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => create(dir, &path).and_then(|()| load(&path)),
        loaded => loaded,
    };
    made.map_err(|error| (path, error))
}

fn load(path: &Path) -> io::Result<SenderId> {
    let text = fs::read_to_string(path)?;
    let damaged = || io::Error::new(ErrorKind::InvalidData, "it is damaged; remove it to get a new one");
    let digits = text.trim_end();
    if digits.len() != DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(damaged());
    }
    let mut bytes = [0; SenderId::LEN];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).map_err(|_| damaged())?;
    }
    Ok(SenderId::from_bytes(bytes))
}

/// Creates the file completely or not at all. Keeps an existing file, which another process may have created since the caller looked for
/// it.
fn create(dir: &Path, path: &Path) -> io::Result<()> {
    make_private_dir(dir)?;
    let sender = SenderId::random().map_err(|error| io::Error::other(error.to_string()))?;
    let digits: String = sender.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let draft = dir.join(format!("{FILE}.{}", std::process::id()));
    let written = make_private_file(&draft).and_then(|mut file| {
        writeln!(file, "{digits}")?;
        file.sync_all()?;
        match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    });
    // If this fails, the file stays until a process with the same number overwrites it.
    let _ = fs::remove_file(&draft);
    written
}

fn make_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn make_private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_created_once_with_private_permissions() {
        let state = tempfile::tempdir().expect("a folder");
        let dir = state.path().join("new/anabranch");
        let first = load_or_create(&dir).expect("made");
        assert_eq!(load_or_create(&dir).expect("read"), first);
        create(&dir, &dir.join(FILE)).expect("existing file is kept");
        assert_eq!(load_or_create(&dir).expect("read"), first);
        assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
            assert_eq!((mode(&dir), mode(&dir.join(FILE))), (0o700, 0o600));
        }
    }

    #[test]
    fn a_damaged_identity_is_named_and_not_replaced() {
        let state = tempfile::tempdir().expect("a folder");
        load_or_create(state.path()).expect("made");
        for text in ["", "abc", &"é".repeat(16), &"+1".repeat(16), &"0".repeat(33)] {
            fs::write(state.path().join(FILE), text).expect("written");
            let (path, error) = load_or_create(state.path()).expect_err(text);
            assert!(
                path.ends_with(FILE) && error.to_string().contains("remove it to get a new one"),
                "{error}"
            );
            assert_eq!(fs::read_to_string(path).expect("there"), text);
        }
    }
}
