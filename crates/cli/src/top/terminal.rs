//! Screen of a terminal, and its keys.

use std::io::{self, Stdout, Write};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};
use tokio::runtime::Runtime;

use super::frame::{Emphasis, Line, Size, screen};
use super::sample::Sample;
use super::{EVERY, Session, named};
use crate::exit::{CommandError, Status};
use crate::output;

/// Order of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Selects the link with this distance from the selected one.
    Move(isize),
    /// Takes the selected link out or back.
    Toggle,
    /// Takes the link with this index out or back.
    ToggleLink(usize),
    Quit,
    Redraw,
}

/// Terminal in raw mode, restored when it is dropped.
struct Screen {
    out: Stdout,
}

impl Screen {
    fn enter(out: Stdout) -> io::Result<Self> {
        enable_raw_mode()?;
        let mut screen = Screen { out };
        execute!(screen.out, EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    fn draw(&mut self, lines: &[Line]) -> io::Result<()> {
        for (row, line) in (0..).zip(lines) {
            let attribute = match line.emphasis {
                Emphasis::Plain => Attribute::Reset,
                Emphasis::Title => Attribute::Bold,
                Emphasis::Unused => Attribute::Dim,
                Emphasis::Selected => Attribute::Reverse,
            };
            queue!(self.out, MoveTo(0, row), SetAttribute(attribute), Print(&line.text))?;
            queue!(self.out, SetAttribute(Attribute::Reset), Clear(ClearType::UntilNewLine))?;
        }
        queue!(self.out, Clear(ClearType::FromCursorDown))?;
        self.out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = execute!(self.out, Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// State of the screen.
struct View {
    sample: Sample,
    selected: usize,
    message: String,
}

/// Shows samples until the user quits or the command ends.
pub(super) fn show(out: Stdout, runtime: &Runtime, session: &mut Session) -> Result<Status, CommandError> {
    let sample = runtime.block_on(session.sample())?;
    let mut view = View { sample, selected: 0, message: String::new() };
    let screen = Screen::enter(out).context("the terminal cannot be used; give --json")?;
    match run(screen, &mut view, runtime, session) {
        // The screen has been left, so that the message stays.
        Err(error) if session.has_ended() => {
            output::notice(error);
            Ok(Status::Success)
        }
        ended => ended,
    }
}

fn run(
    mut terminal: Screen,
    view: &mut View,
    runtime: &Runtime,
    session: &mut Session,
) -> Result<Status, CommandError> {
    let mut next = Instant::now() + EVERY;
    loop {
        terminal.draw(&view.lines()).context("the terminal cannot be written")?;
        match wait(next.saturating_duration_since(Instant::now())).context("the terminal cannot be read")? {
            Some(Action::Quit) => return Ok(Status::Success),
            Some(Action::Move(distance)) => view.select(distance),
            Some(Action::Toggle) => runtime.block_on(view.toggle(session, view.selected)),
            Some(Action::ToggleLink(link)) => runtime.block_on(view.toggle(session, link)),
            Some(Action::Redraw) => {}
            None => {
                next = Instant::now() + EVERY;
                view.sample = runtime.block_on(session.sample())?;
                view.select(0);
            }
        }
    }
}

/// Waits for an order of the user. Returns `None` after this time.
fn wait(time: Duration) -> io::Result<Option<Action>> {
    let until = Instant::now() + time;
    loop {
        if !event::poll(until.saturating_duration_since(Instant::now()))? {
            return Ok(None);
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if let Some(action) = action_of(key) {
                    return Ok(Some(action));
                }
            }
            Event::Resize(..) => return Ok(Some(Action::Redraw)),
            _ => {}
        }
    }
}

fn action_of(key: KeyEvent) -> Option<Action> {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Action::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Action::Quit),
        KeyCode::Up | KeyCode::Char('k') => Some(Action::Move(-1)),
        KeyCode::Down | KeyCode::Char('j') => Some(Action::Move(1)),
        KeyCode::Char(' ') => Some(Action::Toggle),
        KeyCode::Char(digit @ '1'..='9') => Some(Action::ToggleLink(digit as usize - '1' as usize)),
        _ => None,
    }
}

impl View {
    fn lines(&self) -> Vec<Line> {
        let (columns, rows) = size().unwrap_or((80, 24));
        let size = Size { columns: columns.into(), rows: rows.into() };
        screen(&self.sample, self.selected, &self.message, size)
    }

    fn select(&mut self, distance: isize) {
        let last = self.sample.links.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(distance).min(last);
    }

    /// Takes a link out of use, or back if it is out.
    async fn toggle(&mut self, session: &mut Session, at: usize) {
        let Some(link) = self.sample.links.get(at) else {
            self.message = format!("there is no link {}", at + 1);
            return;
        };
        let is_out = !self.sample.taken_out.contains(link);
        self.message = match session.order(link, is_out).await {
            Ok(()) if is_out => format!("{} is out of use", named(link)),
            Ok(()) => format!("{} is in use again", named(link)),
            Err(error) => error.to_string(),
        };
        // An error is shown after the next second.
        if let Ok(sample) = session.sample().await {
            self.sample = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_select_toggle_and_quit() {
        let of = |code| action_of(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(of(KeyCode::Down), Some(Action::Move(1)));
        assert_eq!(of(KeyCode::Char(' ')), Some(Action::Toggle));
        assert_eq!(of(KeyCode::Char('3')), Some(Action::ToggleLink(2)));
        assert_eq!(of(KeyCode::Char('q')), Some(Action::Quit));
        assert_eq!(of(KeyCode::Char('0')), None);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action_of(interrupt), Some(Action::Quit));
    }
}
