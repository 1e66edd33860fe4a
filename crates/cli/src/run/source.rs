//! Origin of a scenario: a file, standard input, or the program itself.

use std::io::Read;
use std::path::{Path, PathBuf};

use anabranch_scenario::{Override, Scenario, ScenarioError};

use crate::builtin;
use crate::exit::CommandError;
use crate::init;

/// Maximum number of bytes that are read from standard input.
const MOST_BYTES: u64 = 16 << 20;

/// Text of a scenario before it is parsed.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Name in messages.
    name: String,
    /// Folder to which its file names are relative.
    pub(crate) folder: PathBuf,
    text: Text,
}

#[derive(Clone, Debug)]
enum Text {
    InFile(PathBuf),
    Here(String),
}

impl Source {
    /// Returns the scenario for `-`, the name of a built-in scenario, or a path. A file precedes a built-in scenario of the same
    /// name.
    pub(crate) fn of(path: &Path) -> Result<Source, CommandError> {
        let here = |name: &str, text: String| Source {
            name: name.to_owned(),
            folder: PathBuf::new(),
            text: Text::Here(text),
        };
        if path == Path::new("-") {
            return Ok(here("standard input", read(std::io::stdin().lock())?));
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let name = path.display().to_string();
        if path.exists() && !path.is_dir() {
            return Ok(Source { name, folder, text: Text::InFile(path.to_owned()) });
        }
        if let Some(file) = path.to_str().and_then(builtin::scenario) {
            return Ok(here(file.name, file.text.to_owned()));
        }
        match path.components().count() == 1 && path.extension().is_none() && !path.exists() {
            true => Err(CommandError::usage(unknown(&path.display().to_string()))),
            // The error of the system about the file is more specific.
            false => Ok(Source { name, folder, text: Text::InFile(path.to_owned()) }),
        }
    }

    /// Reads the scenario and applies the overrides.
    pub(crate) fn load(&self, changes: &[Override]) -> Result<Scenario, ScenarioError> {
        match &self.text {
            Text::InFile(path) => Scenario::load(path, changes),
            Text::Here(text) => Scenario::parse(text, &self.name, changes),
        }
    }
}

/// Returns the error about a name that is neither a file nor a built-in scenario.
fn unknown(name: &str) -> String {
    let known = builtin::SCENARIOS.iter().map(|file| file.name);
    match init::nearest(name, known) {
        Some(near) => format!("{name}: neither a file nor a built-in scenario; did you mean `{near}`?"),
        None => format!(
            "{name}: neither a file nor a built-in scenario; `anabranch init` lists the built-in ones"
        ),
    }
}

fn read(from: impl Read) -> Result<String, CommandError> {
    let wrong = |what: &str| CommandError::usage(format!("standard input: {what}"));
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::failure(format!("standard input: cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(wrong("it has more than 16 MiB, the limit of scenarios"));
    }
    String::from_utf8(bytes).map_err(|_| wrong("this is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_scenario_names_the_nearest_built_in_one() {
        let error = Source::of(Path::new("two-pth")).expect_err("no such scenario").to_string();
        assert!(error.ends_with("did you mean `two-path`?"), "{error}");
        let error = Source::of(Path::new("something-else")).expect_err("no such scenario").to_string();
        assert!(error.contains("`anabranch init` lists"), "{error}");
    }

    #[test]
    fn piped_scenario_is_limited_in_size() {
        let error = read(std::io::repeat(b'#')).expect_err("too much").to_string();
        assert!(error.contains("more than 16 MiB"), "{error}");
        let error = read(&[0xff_u8, 0xfe][..]).expect_err("no text").to_string();
        assert!(error.contains("UTF-8"), "{error}");
        assert_eq!(read(&b"[run]"[..]).expect("text"), "[run]");
    }
}
