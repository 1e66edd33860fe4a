//! Manual pages of the program and its commands.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

/// Indentation of examples, which leaves room for their lines on a terminal of 80 columns.
const INDENT: usize = 2;
/// Columns of help texts, which man pages indent: clap wraps longer lines, and a wrapped command cannot be copied.
pub(crate) const TEXT_COLUMNS: usize = 80 - INDENT;

/// Writes a page for the command and one for each command below it into the folder.
pub(crate) fn write_pages(command: Command, dir: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_below(&command, dir)
}

fn write_below(command: &Command, dir: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_below(below, dir)?;
    }
    let mut page = Vec::new();
    write_page(command, &mut page)?;
    fs::write(dir.join(Man::new(command.clone()).get_filename()), page)
}

/// Writes the sections of [`Man::render`], except that the text after the options is verbatim.
fn write_page(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone());
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(page)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(page)?;
    }
    if let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        page.write_all(verbatim("EXAMPLES", &text.to_string()).as_bytes())?;
    }
    if command.get_version().is_some() {
        man.render_version_section(page)?;
    }
    Ok(())
}

/// Returns a section whose lines are neither joined nor filled.
fn verbatim(heading: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| escaped(line) + "\n").collect();
    format!(".SH {heading}\n.in {INDENT}n\n.nf\n{lines}.fi\n.in\n")
}

/// Returns a line of text for roff. The string `Aq` is an apostrophe, as the preceding sections define it.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\*(Aq").replace('`', "\\`");
    if line.starts_with('.') { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_after_the_options_keeps_its_lines() {
        let text = "Examples:\n  anabranch run 'a b' \\\n    --seeds 2\n\n.hidden `x`";
        let command = Command::new("anabranch").after_help(text);
        let mut page = Vec::new();
        write_page(&command, &mut page).expect("memory");
        let page = String::from_utf8(page).expect("text");
        let expected = ".SH EXAMPLES\n.in 2n\n.nf\nExamples:\n  anabranch run \\*(Aqa b\\*(Aq \\e\n    \\-\\-seeds 2\n\n\\&.hidden \\`x\\`\n.fi\n.in\n";
        assert!(page.contains(expected), "{page}");
        assert!(page.contains(".ds Aq"), "the apostrophe is defined: {page}");
    }
}
