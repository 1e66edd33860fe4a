//! A card as a page of the book.

use crate::schemes::subject::{Subject, default_of, fairness, values_of};

/// The first line of every page, by which pages that nothing stands behind any more are found.
pub(super) const MADE: &str = "<!-- Made from the cards in crates/schemes/src by `make cards`: change the card there, not this page. -->";

/// The page of a scheme or component.
pub(super) fn page(subject: &Subject) -> String {
    let mut text = format!("{MADE}\n\n# `{}`\n\n{}\n\n", subject.name(), sentence(subject.about()));
    text += &format!("{}\n\n", prose(&subject.card().summary.join(" ")));
    let (label, place) = subject.place();
    text += &format!("* Source: {}\n", prose(subject.source()));
    text += &format!("* {}: {}\n", capital(label), prose(&place));
    if let Some(fairness) = fairness(subject) {
        text += &format!("* [Fairness](../fairness.md): {}\n", prose(&fairness));
    }
    let partners = subject.partners();
    if !partners.is_empty() {
        let label = match subject {
            Subject::Scheme(_) => "Components that can be added",
            Subject::Component(_) => "Schemes it can be added to",
        };
        let links: Vec<String> = partners.iter().map(|name| format!("[`{name}`]({name}.md)")).collect();
        text += &format!("* {label}: {}\n", links.join(", "));
    }
    text += &format!("* Example: `--schemes '{}'`\n", subject.example());
    text + &parameters(subject) + &rules(subject) + &choices(subject)
}

fn parameters(subject: &Subject) -> String {
    let parameters = subject.parameters();
    if parameters.is_empty() {
        return String::new();
    }
    let mut text = "\n## Parameters\n\n| parameter | default | values | what it does | source |\n".to_owned();
    text += "| --- | --- | --- | --- | --- |\n";
    for parameter in parameters {
        let cells =
            [&default_of(parameter), &values_of(parameter), parameter.about, parameter.source].map(cell);
        text += &format!("| `{}` | {} |\n", parameter.name, cells.join(" | "));
    }
    text
}

fn rules(subject: &Subject) -> String {
    let mut equations = subject.card().equations().peekable();
    if equations.peek().is_none() {
        return String::new();
    }
    let mut text = "\n## Rules\n\n".to_owned();
    for equation in equations {
        let (name, rule) = (prose(equation.name), prose(equation.rule));
        text += &format!("* **{name}:** {rule} (`{}`)\n", equation.place());
    }
    text
}

fn choices(subject: &Subject) -> String {
    let mut choices = subject.card().choices().peekable();
    if choices.peek().is_none() {
        return String::new();
    }
    let mut text = "\n## Open points and choices\n\n".to_owned();
    for choice in choices {
        text += &format!("* **{}** {}", prose(choice.question), sentence(choice.answer));
        let names: Vec<String> = choice.parameters().map(|name| format!("`{name}`")).collect();
        if !names.is_empty() {
            text += &format!(" Change it with {}.", names.join(", "));
        }
        text.push('\n');
    }
    text
}

/// Prose with a full stop.
fn sentence(text: &str) -> String {
    format!("{}.", prose(text.trim_end_matches('.')))
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// Text in which only what stands in backticks means anything to Markdown.
pub(super) fn prose(text: &str) -> String {
    let in_pairs = text.matches('`').count().is_multiple_of(2);
    let mut out = String::with_capacity(text.len());
    let (mut code, mut before) = (false, ' ');
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        code ^= character == '`' && in_pairs;
        let inside_word =
            before.is_alphanumeric() && characters.peek().is_some_and(|next| next.is_alphanumeric());
        let special = match character {
            '\\' | '*' | '<' | '[' | '&' | '~' => true,
            '_' => !inside_word,
            '`' => !in_pairs,
            _ => false,
        };
        if special && !code {
            out.push('\\');
        }
        out.push(character);
        before = character;
    }
    out
}

/// Prose that can stand in a table.
pub(super) fn cell(text: &str) -> String {
    prose(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_backticks_mean_anything() {
        assert_eq!(
            prose("a * b < [c] and x_i, _x_ with `a * b`"),
            "a \\* b \\< \\[c] and x_i, \\_x\\_ with `a * b`"
        );
        assert_eq!(prose("one ` alone"), "one \\` alone");
        assert_eq!(cell("a | b"), "a \\| b");
        assert_eq!(capital("new data"), "New data");
    }
}
