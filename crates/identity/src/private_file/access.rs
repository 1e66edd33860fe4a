//! Checks for access of other users to a file.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use super::Others;
use crate::error::IdentityError;

/// User who can change every file.
const ROOT: u32 = 0;
/// Permission bits that let other users write.
const WRITABLE: u32 = 0o022;
/// Sticky bit: only the owner of a file may remove or rename it in a folder with this bit.
const STICKY: u32 = 0o1000;

/// Maximum number of links followed on the path to one file, as in the kernel.
const MOST_LINKS: usize = 40;

/// Rejects a file that other users may read or change, or whose path they can redirect.
pub(super) fn check(file: &File, path: &Path, others: Others) -> Result<(), IdentityError> {
    let trusted = Trusted::now()?;
    check_file(&file.metadata().map_err(IdentityError::file(path))?, path, others, &trusted)?;
    check_way(path, &trusted)
}

/// Rejects a path that other users can redirect. Only the existing folders of a missing file are checked.
pub(super) fn check_place(path: &Path) -> Result<(), IdentityError> {
    check_way(path, &Trusted::now()?)
}

/// Users who may own the folders and links on the path to a file.
struct Trusted {
    user: u32,
    /// Owner of `/`, who can replace everything below it. In a user namespace this is not root.
    top: u32,
}

impl Trusted {
    fn now() -> Result<Self, IdentityError> {
        let top = fs::metadata("/").map_err(IdentityError::file("/"))?.uid();
        Ok(Trusted { user: rustix::process::geteuid().as_raw(), top })
    }
}

/// Checks each folder and each link from `/` to the file: the folders of the path as written, those of every link that it follows,
/// and the owners of the links.
fn check_way(path: &Path, trusted: &Trusted) -> Result<(), IdentityError> {
    let absolute = std::path::absolute(path).map_err(IdentityError::file(path))?;
    let mut at = PathBuf::from("/");
    check_folder(&fs::metadata(&at).map_err(IdentityError::file(&at))?, &at, path, trusted)?;
    let mut parts = parts(&absolute);
    let mut links = 0;
    while let Some(part) = parts.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let metadata = match fs::symlink_metadata(&next) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.map_err(IdentityError::file(&next))?,
        };
        check_owner(metadata.uid(), &next, trusted)?;
        if metadata.is_dir() {
            check_folder(&metadata, &next, path, trusted)?;
            at = next;
        } else if metadata.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(IdentityError::content(path, "too many links lead to this file"));
            }
            // A link to an open file, such as one of /proc/self/fd, does not name a path.
            let Ok(target) = fs::read_link(&next) else { return Ok(()) };
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            parts.extend(self::parts(&target));
        } else {
            // The caller has opened and checked the file itself.
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the components of a path in reverse order.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut parts: Vec<OsString> = parts.collect();
    parts.reverse();
    parts
}

fn check_file(
    metadata: &Metadata,
    path: &Path,
    others: Others,
    trusted: &Trusted,
) -> Result<(), IdentityError> {
    check_owner(metadata.uid(), path, trusted)?;
    let mode = metadata.permissions().mode() & 0o777;
    let path = path.to_owned();
    match others {
        Others::Nothing if mode & 0o077 != 0 => Err(IdentityError::Readable { path, mode }),
        Others::MayRead if mode & WRITABLE != 0 => Err(IdentityError::Writable { path, mode }),
        _ => Ok(()),
    }
}

fn check_owner(owner: u32, path: &Path, trusted: &Trusted) -> Result<(), IdentityError> {
    let Trusted { user, top } = *trusted;
    if [user, ROOT, top].contains(&owner) {
        return Ok(());
    }
    Err(IdentityError::Foreign { path: path.to_owned(), owner, user })
}

fn check_folder(
    metadata: &Metadata,
    folder: &Path,
    path: &Path,
    trusted: &Trusted,
) -> Result<(), IdentityError> {
    check_owner(metadata.uid(), folder, trusted)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{set_mode, write};

    const USER: Trusted = Trusted { user: 1000, top: ROOT };

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

    fn link(target: &Path, name: &Path) {
        std::os::unix::fs::symlink(target, name).expect("linked");
    }

    #[test]
    fn writable_folder_above_the_files_own_is_refused() {
        let top = tempfile::tempdir().expect("a folder");
        let loose = top.path().join("loose");
        let inner = loose.join("middle/keys");
        fs::create_dir_all(&inner).expect("folders");
        let file = inner.join("file");
        write(&file, "");
        assert_eq!(checked(&file), Ok(()));
        for mode in [0o777, 0o775, 0o757] {
            set_mode(&loose, mode);
            let text = checked(&file).expect_err("loose");
            assert!(text.contains(&format!("chmod go-w {}", loose.display())), "{text}");
        }
        set_mode(&loose, 0o1777);
        assert_eq!(checked(&file), Ok(()), "in a sticky folder others replace nothing");
    }

    #[test]
    fn every_folder_of_a_chain_of_links_is_checked() {
        let top = tempfile::tempdir().expect("a folder");
        let folders = ["one", "two", "three"].map(|name| top.path().join(name));
        folders.iter().for_each(|folder| fs::create_dir(folder).expect("a folder"));
        let file = folders[2].join("file");
        write(&file, "");
        link(&file, &folders[1].join("second"));
        // Relative, and through a folder that is a link itself.
        link(Path::new("two"), &top.path().join("alias"));
        link(Path::new("../alias/second"), &folders[0].join("first"));
        let first = folders[0].join("first");
        assert_eq!(checked(&first), Ok(()));
        for folder in &folders {
            set_mode(folder, 0o777);
            let text = checked(&first).expect_err("loose");
            assert!(text.contains(&format!("chmod go-w {}", folder.display())), "{text}");
            set_mode(folder, 0o755);
        }
    }

    #[test]
    fn place_of_a_missing_file_is_checked() {
        let top = tempfile::tempdir().expect("a folder");
        let folder = top.path().join("keys");
        fs::create_dir(&folder).expect("a folder");
        let missing = folder.join("deeper/file");
        assert!(check_place(&missing).is_ok());
        set_mode(&folder, 0o777);
        assert!(check_place(&missing).is_err());
    }

    #[test]
    fn links_in_a_circle_are_an_error() {
        let top = tempfile::tempdir().expect("a folder");
        let (one, other) = (top.path().join("one"), top.path().join("other"));
        link(&one, &other);
        link(&other, &one);
        assert!(check_place(&one).is_err_and(|error| error.to_string().contains("too many links")));
    }

    #[test]
    fn open_file_behind_a_link_of_proc_is_taken() {
        use std::os::fd::AsRawFd as _;
        if !Path::new("/proc/self/fd").exists() {
            return;
        }
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        assert_eq!(checked(Path::new(&format!("/proc/self/fd/{}", reader.as_raw_fd()))), Ok(()));
    }

    #[test]
    fn only_files_of_this_user_or_root_are_accepted() {
        let path = Path::new("keys/file");
        for (owner, user) in [(ROOT, ROOT), (ROOT, 1000), (1000, 1000)] {
            assert!(check_owner(owner, path, &Trusted { user, top: ROOT }).is_ok(), "{owner} {user}");
        }
        assert!(check_owner(65_534, path, &Trusted { user: 1000, top: 65_534 }).is_ok());
        for (owner, user) in [(1000, ROOT), (1000, 1001)] {
            let text =
                check_owner(owner, path, &Trusted { user, top: ROOT }).expect_err("foreign").to_string();
            assert!(text.contains(&format!("chown {user} keys/file")), "{text}");
        }
    }

    #[test]
    fn owners_of_files_and_their_folders_are_checked() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        write(&file, "");
        // Only root can change their owner. Owned by another user, they are foreign to every other user unchanged.
        for path in [folder.path(), file.as_path()] {
            let _ = std::os::unix::fs::chown(path, Some(1), None);
        }
        let [of_file, of_folder] =
            [file.as_path(), folder.path()].map(|path| fs::metadata(path).expect("there"));
        let owner = of_file.uid();
        for user in [owner, owner + 1] {
            let (is_taken, trusted) = (user == owner || owner == ROOT, Trusted { user, ..USER });
            assert_eq!(check_file(&of_file, &file, Others::Nothing, &trusted).is_ok(), is_taken);
            assert_eq!(check_folder(&of_folder, folder.path(), &file, &trusted).is_ok(), is_taken);
        }
    }
}
