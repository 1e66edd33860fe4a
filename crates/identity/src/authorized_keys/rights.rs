//! Rights of a key: the options before it in `authorized_keys`.
//!
//! ```text
//! write,folder="anna",quota=10GB ed25519:... Anna, laptop
//! ```
//!
//! Commas separate options, as in OpenSSH's file of the same name. A value may be quoted; then `\"` and `\\` represent a quote and
//! a backslash. Options restrict the server's own options and never extend them.

use std::fmt;

/// List of options, for messages.
const OPTIONS: &str = "read, write, overwrite, delete, forward, folder=\"NAME\" and quota=SIZE";

/// Maximum length of a folder's name, in bytes.
const LONGEST_FOLDER: usize = 255;

/// Units of a quota, largest first, so that the first that divides a size prints it shortest.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Rights of the holder of a key. The default leaves all decisions to the server's options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Permitted operations. If it is `None`, the entry names none, and the server's options decide.
    pub operations: Option<Operations>,
    /// Folder below the served one that the holder sees as the root.
    pub folder: Option<String>,
    /// Maximum total size of the files in that folder, in bytes.
    pub quota_bytes: Option<u64>,
}

/// Operations on the files of a server, and the use of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Fetch files.
    pub read: bool,
    /// Store new files.
    pub write: bool,
    /// Replace existing files. Needs `write`.
    pub overwrite: bool,
    /// Remove files that the sender does not have (`send --delete`). Needs `write`.
    pub delete: bool,
    /// Forward connections through a gateway (`anabranch forward`).
    pub forward: bool,
}

impl Operations {
    fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("read", self.read),
            ("write", self.write),
            ("overwrite", self.overwrite),
            ("delete", self.delete),
            ("forward", self.forward),
        ];
        all.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }

    fn flag(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "read" => Some(&mut self.read),
            "write" => Some(&mut self.write),
            "overwrite" => Some(&mut self.overwrite),
            "delete" => Some(&mut self.delete),
            "forward" => Some(&mut self.forward),
            _ => None,
        }
    }
}

impl Rights {
    /// Returns `true` if only the server's options decide.
    pub fn is_empty(&self) -> bool {
        *self == Rights::default()
    }

    /// Returns `true` if the holder may use a gateway: the entry names `forward`, or neither an operation nor a folder.
    pub fn permit_forwarding(&self) -> bool {
        self.operations.map_or(self.folder.is_none(), |operations| operations.forward)
    }

    /// Parses options. Returns them with the rest of the line after the blank that ends them.
    pub(super) fn parse_line(line: &str) -> Result<(Self, &str), String> {
        let (mut rights, mut rest, mut number) = (Rights::default(), line, 1);
        loop {
            let (name, value, behind) = next_option(rest).map_err(|why| format!("option {number}: {why}"))?;
            rights.set(name, value).map_err(|why| format!("option {number}: {why}"))?;
            match behind.strip_prefix(',') {
                Some(more) => (rest, number) = (more, number + 1),
                None => {
                    rights.check()?;
                    return Ok((rights, behind.trim_start()));
                }
            }
        }
    }

    fn set(&mut self, name: &str, value: Option<String>) -> Result<(), String> {
        let twice = || format!("{name} is given twice; omit one of them");
        match (name, value) {
            ("folder", Some(value)) if self.folder.is_none() => self.folder = Some(checked_folder(value)?),
            ("quota", Some(value)) if self.quota_bytes.is_none() => {
                self.quota_bytes = Some(parse_size(&value)?);
            }
            ("folder" | "quota", Some(_)) => return Err(twice()),
            ("folder" | "quota", None) => return Err(format!("{name} needs a value, as in {OPTIONS}")),
            (name, None) => match self.operations.get_or_insert_default().flag(name) {
                Some(flag) if *flag => return Err(twice()),
                Some(flag) => *flag = true,
                // The message does not repeat the text, because the line may be a private key in the wrong file.
                None => return Err(unknown()),
            },
            (_, Some(_)) => return Err(unknown()),
        }
        Ok(())
    }

    /// # Errors
    /// Fails for rights that require another one.
    fn check(&self) -> Result<(), String> {
        let Some(operations) = self.operations else { return Ok(()) };
        let needy = [("overwrite", operations.overwrite), ("delete", operations.delete)];
        match needy.into_iter().find(|(_, is_set)| *is_set && !operations.write) {
            Some((name, _)) => Err(format!("{name} has no effect without write; add write")),
            None => Ok(()),
        }
    }

    /// Creates rights from the values of a command line: operations separated by commas, a folder and a size.
    ///
    /// # Errors
    /// Describes the error in the rights and its correction.
    pub fn from_parts(
        operations: &[String],
        folder: Option<&str>,
        quota_bytes: Option<u64>,
    ) -> Result<Self, String> {
        let mut rights = Rights { quota_bytes, ..Rights::default() };
        for name in operations {
            rights.set(name, None)?;
        }
        rights.folder = folder.map(|folder| checked_folder(folder.to_owned())).transpose()?;
        rights.check().map(|()| rights)
    }
}

fn unknown() -> String {
    format!("it is none of {OPTIONS}; a line is [OPTIONS] KEY [LABEL]")
}

/// Splits off one option: its name, its value, and the rest of the text.
fn next_option(text: &str) -> Result<(&str, Option<String>, &str), String> {
    let is_end = |c: char| c == ',' || c == ' ' || c == '\t';
    let end = text.find(|c| is_end(c) || c == '=').unwrap_or(text.len());
    let (name, behind) = text.split_at(end);
    let Some(value) = behind.strip_prefix('=') else { return Ok((name, None, behind)) };
    let Some(quoted) = value.strip_prefix('"') else {
        let (value, behind) = value.split_at(value.find(is_end).unwrap_or(value.len()));
        return Ok((name, Some(value.to_owned()), behind));
    };
    let mut unquoted = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let behind = &quoted[at + 1..];
                let is_ended = behind.is_empty() || behind.starts_with(is_end);
                return is_ended
                    .then_some((name, Some(unquoted), behind))
                    .ok_or_else(|| "the closing quote has to end the option".to_owned());
            }
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\\'))) => unquoted.push(escaped),
                _ => return Err("a backslash stands before a quote or a backslash only".to_owned()),
            },
            character => unquoted.push(character),
        }
    }
    Err("a quote is not closed; add \" at the end of the value".to_owned())
}

/// Accepts the name of a folder below the served one, whether or not it exists.
fn checked_folder(folder: String) -> Result<String, String> {
    let wrong =
        |why: &str| Err(format!("folder {why}; name a folder below the served one, such as folder=\"anna\""));
    if folder.len() > LONGEST_FOLDER {
        return wrong(&format!("has more than {LONGEST_FOLDER} B"));
    }
    if folder.starts_with('/') {
        return wrong("is absolute");
    }
    if folder.chars().any(char::is_control) {
        return wrong("has a control character");
    }
    for part in folder.split('/') {
        match part {
            "" => return wrong("has an empty part"),
            "." | ".." => return wrong("has a part `.` or `..`"),
            _ => {}
        }
    }
    Ok(folder)
}

/// Parses a size such as `10GB`, `512 MiB` or `10G`. A number without a unit is in bytes. K, M, G and T are powers of 1024, as on
/// the command line.
fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "" => "B",
        "K" | "k" => "KiB",
        "M" | "m" => "MiB",
        "G" | "g" => "GiB",
        "T" | "t" => "TiB",
        unit => unit,
    };
    let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
    let bytes = number.parse::<u64>().ok().zip(scale).and_then(|(number, scale)| number.checked_mul(scale));
    bytes.ok_or_else(|| {
        "quota is a whole number of bytes, or one with a unit, such as quota=10GB, quota=512MiB or quota=10G".to_owned()
    })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Rights {
    /// Returns the options in the format of the file, one by one.
    pub fn options(&self) -> Vec<String> {
        let mut options: Vec<String> =
            self.operations.into_iter().flat_map(Operations::names).map(ToOwned::to_owned).collect();
        options.extend(self.folder.as_deref().map(|folder| format!("folder={}", quoted(folder))));
        options.extend(self.quota_bytes.map(|bytes| {
            let divides = |(_, scale): &&(&str, u64)| bytes % scale == 0;
            let (unit, scale) = UNITS.iter().find(divides).unwrap_or(&UNITS[UNITS.len() - 1]);
            format!("quota={}{unit}", bytes / scale)
        }));
        options
    }
}

/// Format of the file, without a trailing blank.
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.options().join(","))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Rights, String> {
        let line = format!("{text} KEY");
        Rights::parse_line(&line).map(|(rights, rest)| {
            assert_eq!(rest, "KEY");
            rights
        })
    }

    #[test]
    fn options_are_read_as_in_openssh() {
        let all = Operations { read: true, write: true, overwrite: true, delete: true, forward: true };
        for (text, operations, folder, quota_bytes) in [
            ("read", Some(Operations { read: true, ..Operations::default() }), None, None),
            ("delete,overwrite,write,read,forward", Some(all), None, None),
            ("folder=anna/in,quota=10GB", None, Some("anna/in"), Some(10_000_000_000)),
            (r#"folder="a b,\"c\"\\d",quota="5 MiB""#, None, Some(r#"a b,"c"\d"#), Some(5 << 20)),
            ("quota=0B", None, None, Some(0)),
            ("quota=10", None, None, Some(10)),
            ("quota=10g", None, None, Some(10 << 30)),
        ] {
            let folder = folder.map(ToOwned::to_owned);
            assert_eq!(parse(text), Ok(Rights { operations, folder, quota_bytes }), "{text}");
        }
    }

    #[test]
    fn wrong_option_is_refused_with_its_number_and_the_remedy() {
        for (text, expected) in [
            ("read,wirte", "option 2: it is none of read, write"),
            ("Anna", "a line is [OPTIONS] KEY [LABEL]"),
            ("read,read", "option 2: read is given twice"),
            ("read=yes", "option 1: it is none of"),
            ("overwrite", "add write"),
            ("read,delete", "add write"),
            ("folder", "option 1: folder needs a value"),
            ("folder=\"a", "a quote is not closed"),
            ("folder=\"a\"b", "closing quote"),
            (r#"folder="a\b""#, "a backslash stands before"),
            ("folder=/anna", "absolute"),
            ("folder=anna/../bert", "`.` or `..`"),
            (&format!("folder={}", "x".repeat(256)), "more than 255 B"),
            ("folder=.", "`.` or `..`"),
            ("folder=\"\"", "empty part"),
            ("folder=\"a//b\"", "empty part"),
            ("folder=\"a\u{1b}\"", "control character"),
            ("quota=ten", "such as quota=10GB"),
            ("quota=-1GB", "such as quota=10GB"),
            ("quota=99999999999TB", "such as quota=10GB"),
            ("quota=1GB,quota=2GB", "option 2: quota is given twice"),
            ("", "option 1"),
            ("read,", "option 2"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("wirte") && !error.contains("Anna"), "{error}");
        }
    }

    #[test]
    fn forwarding_needs_its_right_if_the_entry_names_others_or_a_folder() {
        for (text, permitted) in [
            ("forward", true),
            ("read,forward", true),
            ("forward,folder=anna", true),
            ("quota=1GB", true),
            ("write", false),
            ("folder=anna", false),
        ] {
            assert_eq!(parse(text).expect(text).permit_forwarding(), permitted, "{text}");
        }
        assert!(Rights::default().permit_forwarding());
    }

    proptest! {
        #[test]
        fn rights_are_read_as_they_were_written(
            flags in any::<[bool; 5]>(), folder in "[a-z \"\\\\,=]{1,9}", quota in any::<Option<u64>>()
        ) {
            let [read, write, overwrite, delete, forward] = flags;
            let rights = Rights {
                operations: (read || write || forward).then_some(Operations {
                    read, write, overwrite: overwrite && write, delete: delete && write, forward,
                }),
                folder: Some(folder),
                quota_bytes: quota,
            };
            prop_assert_eq!(parse(&rights.to_string()), Ok(rights));
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = Rights::parse_line(&text);
        }
    }
}
