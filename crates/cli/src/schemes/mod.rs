//! `anabranch schemes`.

mod book;
mod composition;
mod json;
mod markdown;
mod subject;
mod text;

use std::path::PathBuf;

use anabranch_schemes::registry;
use clap::Args;

use crate::exit::{CommandError, Status};
use crate::output;

use self::subject::Subject;

const EXAMPLES: &str = "\
Examples:
  List all schemes, and the components that can be added to them:
    anabranch schemes
  Show one scheme in detail: its rules, its open points, and the range of its
  parameters:
    anabranch schemes cmt-pf
  Show the parts of an expression:
    anabranch schemes 'cmt(rtx=rtx-asap,sfr=false)'
  Use a scheme with parameters of your choice:
    anabranch run scenarios/two-path.toml \\
        --schemes 'cmt,cmt(rtx=rtx-asap,sfr=false)'";

/// List schemes and components: rules, parameters and sources.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemesArguments {
    /// Show this one only, in detail: a scheme, a component, or an expression
    name: Option<String>,

    /// Print JSON: an array with one object per scheme and component, or one object for an expression
    #[arg(long)]
    json: bool,

    /// Print Markdown, or write it into the folder of a book's pages: one page each, and the lists that lead there
    #[arg(long, value_name = "DIR", num_args = 0..=1, conflicts_with = "json")]
    markdown: Option<Option<PathBuf>>,
}

/// Returns every scheme and component as JSON, as `anabranch schemes --json` prints them.
pub fn cards_json() -> String {
    json::cards(&Subject::all())
}

/// Runs the command.
pub(crate) fn schemes(arguments: &SchemesArguments) -> Result<Status, CommandError> {
    match (&arguments.name, &arguments.markdown) {
        (Some(_), Some(Some(_))) => {
            return Err(CommandError::usage("--markdown DIR writes every page; omit the name, or DIR"));
        }
        (None, Some(Some(folder))) => return write_book(folder),
        _ => {}
    }
    let text = match &arguments.name {
        None => all(arguments),
        Some(name) => match Subject::named(name) {
            Some(subject) => one(arguments, subject),
            None => expression(arguments, name)?,
        },
    };
    output::print(&text);
    Ok(Status::Success)
}

fn write_book(folder: &std::path::Path) -> Result<Status, CommandError> {
    if !folder.is_dir() {
        let folder = folder.display();
        let message =
            format!("{folder}: no such folder; one page alone is `anabranch schemes NAME --markdown`");
        return Err(CommandError::usage(message));
    }
    book::write(folder)?;
    Ok(Status::Success)
}

fn all(arguments: &SchemesArguments) -> String {
    let subjects = Subject::all();
    if arguments.json {
        json::cards(&subjects)
    } else if arguments.markdown.is_some() {
        subjects.iter().map(markdown::page).collect::<Vec<_>>().join("\n")
    } else {
        text::list(&subjects)
    }
}

fn one(arguments: &SchemesArguments, subject: Subject) -> String {
    if arguments.json {
        json::cards(&[subject])
    } else if arguments.markdown.is_some() {
        markdown::page(&subject)
    } else {
        text::card(&subject)
    }
}

fn expression(arguments: &SchemesArguments, text: &str) -> Result<String, CommandError> {
    let scheme = registry::parse(text).map_err(CommandError::usage)?;
    if arguments.markdown.is_some() {
        let message = format!("`{scheme}` has no page; --markdown prints that of a scheme or component");
        return Err(CommandError::usage(message));
    }
    Ok(if arguments.json { json::composition(&scheme) } else { composition::text(&scheme) })
}
