//! Pages of the book about schemes and components, and the lists in other pages that link to them.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::schemes::markdown::{MADE, cell, page};
use crate::schemes::subject::Subject;

const BEGIN: &str = "<!-- cards: begin -->";
const END: &str = "<!-- cards: end -->";

/// Writes every page, removes obsolete ones, and inserts the lists between their marks.
pub(super) fn write(folder: &Path) -> anyhow::Result<()> {
    let subjects = Subject::all();
    let pages = folder.join("schemes");
    fs::create_dir_all(&pages).with_context(|| pages.display().to_string())?;
    remove_stale(&pages, &subjects)?;
    for subject in &subjects {
        save(&pages.join(format!("{}.md", subject.name())), &page(subject))?;
    }
    refresh(&folder.join("schemes.md"), &overview(&subjects))?;
    refresh(&folder.join("SUMMARY.md"), &chapters(&subjects))
}

fn remove_stale(pages: &Path, subjects: &[Subject]) -> anyhow::Result<()> {
    let entries = fs::read_dir(pages).with_context(|| pages.display().to_string())?;
    for entry in entries {
        let file = entry.with_context(|| pages.display().to_string())?.path();
        let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_page = file.extension().is_some_and(|extension| extension == "md");
        if !is_page || subjects.iter().any(|subject| subject.name() == name) {
            continue;
        }
        if read(&file)?.starts_with(MADE) {
            fs::remove_file(&file).with_context(|| file.display().to_string())?;
        }
    }
    Ok(())
}

/// Returns the tables of the overview page.
fn overview(subjects: &[Subject]) -> String {
    let (mut schemes, mut components) = (String::new(), String::new());
    for subject in subjects {
        let name = subject.name();
        let link = format!("[`{name}`](schemes/{name}.md)");
        let (about, source) = (cell(subject.about()), cell(subject.source()));
        match subject {
            Subject::Scheme(_) => schemes += &format!("| {link} | {about} | {source} |\n"),
            Subject::Component(component) => {
                components += &format!("| {link} | {} | {about} | {source} |\n", component.role);
            }
        }
    }
    let mut text = format!("\n| scheme | what it does | source |\n| --- | --- | --- |\n{schemes}\n");
    if !components.is_empty() {
        let header = "| component | role | what it does | source |\n| --- | --- | --- | --- |\n";
        text += &format!("{header}{components}\n");
    }
    text
}

/// Returns the lines of the book's summary below the overview.
fn chapters(subjects: &[Subject]) -> String {
    subjects.iter().map(|subject| format!("  - [{0}](schemes/{0}.md)\n", subject.name())).collect()
}

/// Replaces the text between the two marks of a file.
fn refresh(file: &Path, block: &str) -> anyhow::Result<()> {
    let text = read(file)?;
    let lines = || text.split_inclusive('\n');
    let is = |line: &str, mark: &str| line.trim() == mark;
    let (Some(begin), Some(end)) =
        (lines().position(|line| is(line, BEGIN)), lines().position(|line| is(line, END)))
    else {
        bail!("{}: no line `{BEGIN}` with a line `{END}` after it", file.display());
    };
    if begin >= end {
        bail!("{}: `{END}` precedes `{BEGIN}`", file.display());
    }
    let before: String = lines().take(begin + 1).collect();
    let after: String = lines().skip(end).collect();
    save(file, &format!("{before}{block}{after}"))
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| file.display().to_string())
}

fn save(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| file.display().to_string())
}
