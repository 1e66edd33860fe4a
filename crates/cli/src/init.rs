//! `anabranch init`.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::builtin::{self, File, PLANS, SCENARIOS};
use crate::exit::{CommandError, Status};
use crate::output::{self, labelled};

/// Name of all files together.
const EXAMPLE: &str = "example";

/// Columns for the names in the list.
const LABEL: usize = 20;

const EXAMPLES: &str = "\
Examples:
  List them:
    anabranch init
  Run one unchanged, from any folder:
    anabranch run two-path
    anabranch sweep second-path --out out/second-path
  Write one here, change it, and run it:
    anabranch init two-path
    anabranch run two-path.toml
  Write a folder with all of them and an introduction:
    anabranch init example

Exit status: 0 on success, 1 if a file exists already or cannot be written, 2
if the name is unknown.";

/// List the built-in scenarios and plans, or write one to a file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArguments {
    /// Scenario or plan to write; `example` is a folder with all of them. Without a name they are listed
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Folder to write to
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Replace existing files
    #[arg(long)]
    force: bool,
}

/// Returns the names that can be written.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().chain(PLANS).map(|file| file.name).chain([EXAMPLE])
}

/// Runs the command.
pub(crate) fn init(arguments: &InitArguments) -> Result<Status, CommandError> {
    let Some(name) = &arguments.name else {
        output::print(&list());
        return Ok(Status::Success);
    };
    let (dir, files) = match files(name) {
        Some(files) if name == EXAMPLE => (arguments.dir.join("anabranch-example"), files),
        Some(files) => (arguments.dir.clone(), files),
        None => return Err(CommandError::usage(unknown(name))),
    };
    let taken = files.iter().map(|(name, _)| dir.join(name)).find(|path| path.symlink_metadata().is_ok());
    if let (Some(path), false) = (taken, arguments.force) {
        return Err(CommandError::failure(format!(
            "{}: exists already; name another folder with --dir, or replace it with --force",
            path.display()
        )));
    }
    fs::create_dir_all(&dir).map_err(|error| cannot(&dir, &error))?;
    let mut said = String::new();
    for (name, text) in &files {
        let path = dir.join(name);
        write(&path, text, arguments.force).map_err(|error| cannot(&path, &error))?;
        said += &format!("{}\n", path.display());
    }
    output::print(&said);
    Ok(Status::Success)
}

fn list() -> String {
    let rows = |files: &[File]| -> String {
        files.iter().map(|file| labelled(&format!("  {}", file.name), &file.about(), LABEL)).collect()
    };
    format!(
        "Scenarios, for `anabranch run NAME`:\n{}\nPlans, for `anabranch sweep NAME`:\n{}\n\
         `anabranch init NAME` writes one here, a plan with its scenario; `anabranch init {EXAMPLE}` writes all of them.\n",
        rows(SCENARIOS),
        rows(PLANS)
    )
}

/// Returns the files with this name.
fn files(name: &str) -> Option<Vec<(String, String)>> {
    if name == EXAMPLE {
        let mut all = vec![("README.md".to_owned(), include_str!("init/README.md").to_owned())];
        all.extend(SCENARIOS.iter().map(whole));
        all.extend(PLANS.iter().map(plan));
        return Some(all);
    }
    built_in_files(name)
}

fn whole(file: &File) -> (String, String) {
    (file.file_name(), file.text.to_owned())
}

fn plan(file: &File) -> (String, String) {
    (file.file_name(), builtin::with_local_scenario(file))
}

/// Returns the names and texts of the files that `anabranch init` writes for a built-in scenario or plan, that one first. Returns
/// `None` if the name is unknown.
pub fn built_in_files(name: &str) -> Option<Vec<(String, String)>> {
    if let Some(file) = builtin::scenario(name) {
        return Some(vec![whole(file)]);
    }
    let found = PLANS.iter().find(|file| file.name == name)?;
    let (file_name, text) = plan(found);
    let mut files = vec![(file_name, text.clone())];
    let named = |file: &&File| text.contains(&format!("scenario = \"{}\"", file.file_name()));
    files.extend(SCENARIOS.iter().filter(named).map(whole));
    Some(files)
}

/// Returns the names of the built-in scenarios and plans.
pub fn built_in_names() -> Vec<&'static str> {
    SCENARIOS.iter().chain(PLANS).map(|file| file.name).collect()
}

/// Returns the known name that a mistyped one most likely stands for.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.min_by_key(|known| strsim::levenshtein(known, name));
    near.filter(|known| strsim::levenshtein(known, name) <= 3)
}

/// Returns the error about a name that does not exist.
pub(crate) fn unknown(name: &str) -> String {
    match nearest(name, names()) {
        Some(known) => format!("{name}: unknown name; did you mean `{known}`?"),
        None => format!("{name}: unknown name; `anabranch init` lists the known ones"),
    }
}

fn write(path: &Path, text: &str, replace: bool) -> std::io::Result<()> {
    if replace {
        return fs::write(path, text);
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

fn cannot(path: &Path, error: &std::io::Error) -> CommandError {
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied => "; name another folder with --dir",
        _ => "",
    };
    CommandError::failure(format!("{}: cannot be written: {error}{remedy}", path.display()))
}
