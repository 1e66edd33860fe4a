//! Output of a running command: events on standard output and notices on standard error, written by a thread.
//!
//! The thread may wait for a reader that is slow, such as a full pipe or a stopped terminal. The command and its network do not: if
//! too many lines wait, further ones are dropped, and the next line that has room reports their number.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde_json::{Value, json};

use crate::output;

/// Maximum number of lines that wait for the reader.
const MOST_LINES: usize = 1024;
/// Time that the end of a command waits for the reader.
const END_LIMIT: Duration = Duration::from_secs(2);
/// Pause between two attempts to queue the end.
const PAUSE: Duration = Duration::from_millis(10);

/// Line for a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    /// Object for programs, on standard output.
    Event(String),
    /// Text for people, on standard error.
    Notice(String),
}

impl Line {
    /// Returns the line of this kind that reports dropped ones.
    fn dropped(&self, lines: u64) -> Self {
        match self {
            Line::Event(_) => {
                Line::Event(format!("{}\n", json!({ "event": "lines_dropped", "lines": lines })))
            }
            Line::Notice(_) => Line::Notice(format!(
                "{} dropped, because the reader of this output was too slow",
                output::count(lines, "line was", "lines were")
            )),
        }
    }

    fn write(&self) {
        match self {
            Line::Event(text) => drop(output::print(text)),
            Line::Notice(text) => output::notice(text),
        }
    }
}

/// Item for the thread.
#[derive(Debug)]
enum Item {
    Line(Line),
    /// Request to report that all earlier lines are written.
    End(SyncSender<()>),
}

/// Queue of the lines of this process.
#[derive(Debug)]
struct LineQueue {
    items: SyncSender<Item>,
    dropped: Mutex<u64>,
}

impl LineQueue {
    /// Starts the thread that passes lines to `write`.
    fn start(mut write: impl FnMut(&Line) + Send + 'static) -> io::Result<Self> {
        let (items, queued): (_, Receiver<Item>) = sync_channel(MOST_LINES);
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            for item in queued {
                match item {
                    Item::Line(line) => write(&line),
                    // A command that has stopped waiting needs no answer.
                    Item::End(written) => drop(written.try_send(())),
                }
            }
        })?;
        Ok(LineQueue { items, dropped: Mutex::new(0) })
    }

    fn offer(&self, line: Line) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        if *dropped > 0 && self.items.try_send(Item::Line(line.dropped(*dropped))).is_ok() {
            *dropped = 0;
        }
        if *dropped > 0 || self.items.try_send(Item::Line(line)).is_err() {
            *dropped += 1;
        }
    }

    /// Waits until all lines are written, at most for `limit`. Returns `true` if they are.
    fn finish(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let (written, answer) = sync_channel(1);
        let mut end = Item::End(written);
        while let Err(TrySendError::Full(item)) = self.items.try_send(end) {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(PAUSE);
            end = item;
        }
        answer.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok()
    }
}

/// Queue of this process, from its first line on; `None` if there can be no thread.
static QUEUE: OnceLock<Option<LineQueue>> = OnceLock::new();

fn show(line: Line) {
    match QUEUE.get_or_init(|| LineQueue::start(Line::write).ok()) {
        Some(queue) => queue.offer(line),
        None => line.write(),
    }
}

/// Shows an event to programs.
pub(crate) fn event(object: &Value) {
    show(Line::Event(format!("{object}\n")));
}

/// Shows a notice to people.
pub(crate) fn notice(text: String) {
    show(Line::Notice(text));
}

/// Waits for the lines of a command at its end. A reader that does not read gets no more.
pub(crate) fn finish() {
    if let Some(Some(queue)) = QUEUE.get() {
        queue.finish(END_LIMIT);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar};

    use super::*;

    /// Reader that reads nothing before [`begin`](Self::begin).
    #[derive(Default)]
    struct SlowReader {
        reads: Mutex<bool>,
        changed: Condvar,
        lines: Mutex<Vec<String>>,
    }

    impl SlowReader {
        fn read(&self, line: &Line) {
            let reads = self.reads.lock().expect("no panic");
            drop(self.changed.wait_while(reads, |reads| !*reads).expect("no panic"));
            let (Line::Event(text) | Line::Notice(text)) = line;
            self.lines.lock().expect("no panic").push(text.clone());
        }

        fn begin(&self) {
            *self.reads.lock().expect("no panic") = true;
            self.changed.notify_all();
        }
    }

    #[test]
    fn reader_that_does_not_read_stops_no_caller_and_learns_what_was_dropped() {
        let reader = Arc::new(SlowReader::default());
        let reading = Arc::clone(&reader);
        let queue = LineQueue::start(move |line| reading.read(line)).expect("a thread");
        // The thread may have taken one line already.
        let offered = MOST_LINES + 11;
        (0..offered).for_each(|number| queue.offer(Line::Event(number.to_string())));
        assert!(!queue.finish(Duration::ZERO));
        reader.begin();
        assert!(queue.finish(Duration::from_secs(60)));
        queue.offer(Line::Event("last".to_owned()));
        assert!(queue.finish(Duration::from_secs(60)));
        let lines = reader.lines.lock().expect("no panic").clone();
        let shown = lines.len() - 2;
        assert!((MOST_LINES..=MOST_LINES + 1).contains(&shown), "{shown}");
        assert_eq!(lines[..shown], (0..shown).map(|number| number.to_string()).collect::<Vec<_>>());
        let dropped = json!({ "event": "lines_dropped", "lines": offered - shown });
        assert_eq!(lines[shown..], [format!("{dropped}\n"), "last".to_owned()]);
    }

    #[test]
    fn notices_report_dropped_lines_as_text() {
        let Line::Notice(text) = Line::Notice(String::new()).dropped(2) else { panic!("another kind") };
        assert_eq!(text, "2 lines were dropped, because the reader of this output was too slow");
    }
}
