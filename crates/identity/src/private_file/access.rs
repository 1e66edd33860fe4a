//! Who else could read or change a file.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::Others;
use crate::error::IdentityError;

/// The user that may change every file anyway.
const ROOT: u32 = 0;
/// Others may write to it.
const WRITABLE: u32 = 0o022;
/// In a folder with this bit, only the owner of a file may remove or rename it.
const STICKY: u32 = 0o1000;

/// Refuses a file that others may read or change, or put another one in the place of.
pub(super) fn check(file: &File, path: &Path, others: Others) -> Result<(), IdentityError> {
    let user = rustix::process::geteuid().as_raw();
    check_file(&file.metadata().map_err(IdentityError::file(path))?, path, others, user)?;
    for folder in folders(path) {
        let metadata = fs::metadata(&folder).map_err(IdentityError::file(&folder))?;
        check_folder(&metadata, &folder, path, user)?;
    }
    Ok(())
}

fn check_file(metadata: &Metadata, path: &Path, others: Others, user: u32) -> Result<(), IdentityError> {
    check_owner(metadata.uid(), path, user)?;
    let mode = metadata.permissions().mode() & 0o777;
    let path = path.to_owned();
    match others {
        Others::Nothing if mode & 0o077 != 0 => Err(IdentityError::Readable { path, mode }),
        Others::MayRead if mode & WRITABLE != 0 => Err(IdentityError::Writable { path, mode }),
        _ => Ok(()),
    }
}

fn check_owner(owner: u32, path: &Path, user: u32) -> Result<(), IdentityError> {
    if owner == user || owner == ROOT {
        return Ok(());
    }
    Err(IdentityError::Foreign { path: path.to_owned(), owner, user })
}

fn check_folder(metadata: &Metadata, folder: &Path, path: &Path, user: u32) -> Result<(), IdentityError> {
    check_owner(metadata.uid(), folder, user)?;
    let mode = metadata.permissions().mode();
    if mode & WRITABLE == 0 || mode & STICKY != 0 {
        return Ok(());
    }
    Err(IdentityError::WritableFolder {
        folder: folder.to_owned(),
        path: path.to_owned(),
        mode: mode & 0o777,
    })
}

/// The folder of the name, and that of what it leads to if it is a link.
fn folders(path: &Path) -> Vec<PathBuf> {
    let named = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
        Some(folder) => folder.to_owned(),
        None => return Vec::new(),
    };
    // What leads to a pipe has no path of its own.
    let target = path.is_symlink().then(|| fs::canonicalize(path).ok()).flatten();
    let target = target.and_then(|target| target.parent().map(Path::to_owned));
    std::iter::once(named).chain(target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{set_mode, write};

    fn checked(path: &Path) -> Result<(), String> {
        let file = File::open(path).expect("there");
        check(&file, path, Others::MayRead).map_err(|error| error.to_string())
    }

    #[test]
    fn a_folder_in_which_others_may_replace_files_is_refused_with_the_remedy() {
        let top = tempfile::tempdir().expect("a folder");
        let folder = top.path().join("keys");
        fs::create_dir(&folder).expect("a folder");
        let (file, link) = (folder.join("file"), top.path().join("link"));
        write(&file, "");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        for mode in [0o700, 0o755, 0o1777] {
            set_mode(&folder, mode);
            assert_eq!(checked(&file), Ok(()), "{mode:o}");
        }
        for mode in [0o770, 0o702, 0o777] {
            set_mode(&folder, mode);
            for path in [&file, &link] {
                let text = checked(path).expect_err("loose");
                assert!(text.contains(&path.display().to_string()), "{text}");
                assert!(text.contains(&format!("chmod go-w {}", folder.display())), "{text}");
            }
        }
    }

    #[test]
    fn what_belongs_to_this_user_or_to_root_is_taken_and_nothing_else() {
        let path = Path::new("keys/file");
        for (owner, user) in [(ROOT, ROOT), (ROOT, 1000), (1000, 1000)] {
            assert!(check_owner(owner, path, user).is_ok(), "{owner} {user}");
        }
        for (owner, user) in [(1000, ROOT), (1000, 1001)] {
            let text = check_owner(owner, path, user).expect_err("foreign").to_string();
            assert!(text.contains(&format!("chown {user} keys/file")), "{text}");
        }
    }

    #[test]
    fn files_and_their_folders_are_asked_for_their_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        write(&file, "");
        // Only root can give them away; of another user they are foreign to everybody else as they are.
        for path in [folder.path(), file.as_path()] {
            let _ = std::os::unix::fs::chown(path, Some(1), None);
        }
        let [of_file, of_folder] =
            [file.as_path(), folder.path()].map(|path| fs::metadata(path).expect("there"));
        let owner = of_file.uid();
        for user in [owner, owner + 1] {
            let is_taken = user == owner || owner == ROOT;
            assert_eq!(check_file(&of_file, &file, Others::Nothing, user).is_ok(), is_taken);
            assert_eq!(check_folder(&of_folder, folder.path(), &file, user).is_ok(), is_taken);
        }
    }
}
