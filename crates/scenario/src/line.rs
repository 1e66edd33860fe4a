//! Links in one line of text, such as `rate=10Mbit,delay=45ms,loss=1%`, with the keys of `[[link]]`.
//!
//! A table is `(KEY=VALUE,…)` or an inline table of TOML, and a list is `[VALUE,…]`. `WORD(KEY=VALUE,…)` is a table with this word
//! as `model`. Values are written as in scenario files. Quotes and the `/s` of a rate are optional, and `p` means `packets`.

use std::ops::Range;

use crate::document::{Entry, Node, Table, Value, parse_value};
use crate::draft::{RawValue, entries};
use crate::error::{ProblemKind, ScenarioError};
use crate::fault::Fault;
use crate::field::Field;
use crate::link::{DuplexRows, Link, LinkRows, read_link};
use crate::origin::Origin;
use crate::reader::Reader;
use crate::report::Report;
use crate::section::Section as _;
use crate::sections::home_in_link;
use crate::text::quoted;
use crate::writer::Writer;

/// Maximum depth of tables and lists.
const DEEPEST: usize = 8;

/// Quotes of a string in TOML, the longer ones first.
const QUOTES: [&str; 4] = ["\"\"\"", "'''", "\"", "'"];

/// Characters that end a key or a value without quotes.
const SPECIAL: [char; 8] = ['=', ',', '(', ')', '[', ']', '{', '}'];

impl Link {
    /// Reads a link. If `reverse` is missing, both directions are equal. `option` names the text in errors.
    ///
    /// # Errors
    /// Returns all errors of the text with their places, or the first syntax error.
    ///
    /// ```
    /// use anabranch_scenario::Link;
    /// let link = Link::parse("rate=10Mbit,delay=45ms,loss=1%,reverse=(rate=1Mbit)", "--link", "link-1")?;
    /// assert_eq!((link.duplex.forward.loss.len(), link.duplex.reverse.loss.len()), (1, 0));
    /// # Ok::<(), anabranch_scenario::ScenarioError>(())
    /// ```
    pub fn parse(text: &str, option: &str, default_name: &str) -> Result<Link, ScenarioError> {
        let report = Report::new(option, text, &[]).with_homes(home_in_link);
        let origin = Origin::File(0..text.len());
        let parsed =
            Parser { text, at: 0, depth: 0 }.items(None).map_err(|fault| report.add(&origin, "", fault));
        let link = parsed.ok().and_then(|table| {
            let mut reader = Reader::new(&table, origin, String::new(), &report);
            reader.set_one_way();
            let is_symmetric = !reader.has("reverse");
            let mut link =
                read_link(reader, |rows| Some(rows.name.unwrap_or_else(|| default_name.to_owned())))?;
            if is_symmetric {
                link.duplex.reverse = link.duplex.forward.clone();
            }
            Some(link)
        });
        report.finish(link)
    }

    /// Returns the link in one line, with every default.
    pub fn to_line(&self) -> String {
        let mut out = Writer::inline();
        LinkRows { name: Some(self.name.clone()) }.write_rows(&mut out);
        DuplexRows::from(&self.duplex).write_rows(&mut out);
        out.finish().0
    }

    /// Returns every key with its value, in canonical order.
    pub fn given(&self) -> Vec<(String, RawValue)> {
        let table = Parser { text: &self.to_line(), at: 0, depth: 0 }.items(None);
        table.map_or_else(|_| Vec::new(), |table| entries(table).collect())
    }

    /// Returns the keys of a link in canonical order.
    pub fn fields() -> Vec<Field> {
        [LinkRows::fields(), DuplexRows::fields()].concat()
    }
}

/// Parser of a link, with the place that it has reached.
struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// Parses the items of a table up to the closing character, or up to the end of the text.
    fn items(&mut self, close: Option<char>) -> Result<Table, Fault> {
        let mut table = Table::default();
        loop {
            let (key, span) = self.bare();
            if self.peek() != Some('=') || key.is_empty() {
                let message = format!("{} is not KEY=VALUE", quoted(key));
                return Err(fault(message, "write a table as (KEY=VALUE,…) and a list as [VALUE,…]", span));
            }
            self.at += 1;
            let node = self.value()?;
            let origin = Origin::File(span);
            if table.get(key).is_some() {
                let message = format!("`{}` is given twice", key.escape_debug());
                return Err(
                    Fault::explained(ProblemKind::Duplicate, message, "remove one of the two").at(&origin)
                );
            }
            table.entries.push(Entry { key: key.to_owned(), origin, node });
            if self.ends(close)? {
                return Ok(table);
            }
        }
    }

    fn value(&mut self) -> Result<Node, Fault> {
        self.depth += 1;
        let (word, span) = self.bare();
        let start = span.start;
        if self.depth > DEEPEST {
            return Err(fault(
                "tables and lists are too deep",
                format!("use at most {DEEPEST} levels"),
                span,
            ));
        }
        let value = match self.peek() {
            Some(open @ ('(' | '{')) if open == '(' || word.is_empty() => {
                self.at += 1;
                let mut table = self.items(Some(if open == '(' { ')' } else { '}' }))?;
                if !word.is_empty() {
                    let origin = Origin::File(span);
                    table.set("model", Node { value: Value::Text(word.to_owned()), origin });
                }
                Value::Table(table)
            }
            Some('[') if word.is_empty() => {
                self.at += 1;
                Value::List(self.list()?)
            }
            _ if word.is_empty() => return Err(fault("a value is missing", "write KEY=VALUE", span)),
            _ => scalar(word, &Origin::File(span)),
        };
        self.depth -= 1;
        Ok(Node { value, origin: Origin::File(start..self.text[..self.at].trim_end().len()) })
    }

    fn list(&mut self) -> Result<Vec<Node>, Fault> {
        let mut items = Vec::new();
        self.skip_blanks();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(items);
        }
        loop {
            items.push(self.value()?);
            if self.ends(Some(']'))? {
                return Ok(items);
            }
        }
    }

    /// Consumes a comma, or the closing character or the end of the text. Returns `true` at the end.
    fn ends(&mut self, close: Option<char>) -> Result<bool, Fault> {
        self.skip_blanks();
        let found = self.peek();
        let span = self.at..self.at + found.map_or(0, char::len_utf8);
        self.at = span.end;
        if found == close || found == Some(',') {
            return Ok(found == close);
        }
        let end = close.map_or_else(|| "the end".to_owned(), |close| format!("`{close}`"));
        let found = found.map_or_else(|| "the end".to_owned(), |found| quoted(&found.to_string()));
        let fault = Fault::new(ProblemKind::Syntax).with_message("not a link");
        Err(fault.with_expected(format!("`,` or {end}")).with_found(found).at(&Origin::File(span)))
    }

    /// Returns a key or a value without blanks around it. The text may be empty, and includes its quotes.
    fn bare(&mut self) -> (&'t str, Range<usize>) {
        self.skip_blanks();
        let start = self.at;
        let mut open: Option<&str> = None;
        while let Some(c) = self.peek() {
            let rest = &self.text[self.at..];
            let quote = QUOTES.into_iter().find(|quote| rest.starts_with(open.unwrap_or(quote)));
            match (open, quote) {
                (None, None) if SPECIAL.contains(&c) => break,
                (None, Some(quote)) => {
                    open = Some(quote);
                    self.at += quote.len();
                }
                (Some(end), Some(_)) => {
                    open = None;
                    self.at += end.len();
                    // Quotes before the end of a string in three quotes belong to it.
                    while end.len() == 3 && self.text[self.at..].starts_with(&end[..1]) {
                        self.at += 1;
                    }
                }
                (Some("\"" | "\"\"\""), None) if c == '\\' => {
                    self.at += 1;
                    self.at += self.peek().map_or(0, char::len_utf8);
                }
                _ => self.at += c.len_utf8(),
            }
        }
        let word = self.text[start..self.at].trim_end();
        (word, start..start + word.len())
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }
}

fn fault(message: impl Into<String>, help: impl Into<String>, span: Range<usize>) -> Fault {
    Fault::explained(ProblemKind::Syntax, message, help).at(&Origin::File(span))
}

/// Returns a value of TOML, or else a string in which a short unit is replaced.
fn scalar(word: &str, origin: &Origin) -> Value {
    if let Ok(node) = parse_value(word, origin) {
        return node.value;
    }
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    Value::Text(match (&word[..end], word[end..].trim_start()) {
        ("", _) => word.to_owned(),
        (number, "p") => format!("{number} packets"),
        (_, unit) if unit.ends_with("bit") => format!("{word}/s"),
        _ => word.to_owned(),
    })
}
