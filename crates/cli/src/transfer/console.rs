//! Output of a transfer while it runs and at its end: lines drawn in place on a terminal, lines at intervals elsewhere, or JSON.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_net::Endpoint;
use anabranch_transfer::protocol::{Failure, Kind, Offer, Outcome, Reason};
use anabranch_transfer::{Event, PeerText, Totals, escape};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::ShowOptions;
use super::again::{CODE_UNUSED, KEPT, KEPT_BY_CODE, PIPED, PIPED_BY_CODE};
use super::figures::{amount, per_second, rate};
use super::layout::{Snapshot, Waiting};
use super::live::Live;
use super::paths::{PathLine, PathVolume, Paths};
use super::progress::{Pace, Progress, new_bytes};
use crate::endpoint::{AcceptedPeer, Admitted, ProtectionOptions, access_notice, networks};
use crate::live_output;
use crate::output::{self, count};

/// Time between two updates of a transfer.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of names in the first line of a transfer.
const MOST_NAMED: usize = 3;
/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Form of the output.
enum Mode {
    Json,
    /// Lines drawn in place, from the latest snapshot.
    Live {
        screen: Mutex<(Live, Option<Box<Snapshot>>)>,
    },
    Lines {
        next: Mutex<Instant>,
    },
    Quiet,
}

/// Output of one transfer.
pub(super) struct Console {
    mode: Mode,
    /// Origin of a server's transfer, which precedes each line.
    origin: Option<Origin>,
    /// Set if this side sends blocks.
    sends: bool,
    /// Command that resumes the transfer.
    again: Option<String>,
    /// Instructions for resuming an interrupted transfer.
    remedy: &'static str,
    /// Set if the transfer is offered with a one-time code, which ends with this command.
    is_by_code: bool,
    /// Host from which files are fetched.
    source: Option<String>,
    /// Set to print a line for each file.
    verbose: bool,
    /// Set in a dry run, which stores and deletes no files.
    is_dry_run: bool,
    progress: Mutex<Progress>,
}

/// Origin of one of a server's transfers.
pub(super) struct Origin {
    /// Number of its association.
    pub(super) number: u64,
    pub(super) peer: String,
    /// Identity of the peer.
    pub(super) caller: AcceptedPeer,
}

impl Origin {
    /// Returns the beginning of each line.
    fn text(&self) -> String {
        let Origin { number, peer, caller } = self;
        format!("{number} {}: ", caller.at(peer))
    }
}

/// Returns the first line of a server's transfer.
fn started(is_fetched: bool, names: &[PeerText]) -> String {
    match (is_fetched, names) {
        (false, _) => "sends files".to_owned(),
        (true, []) => "fetches everything".to_owned(),
        (true, names) => {
            let shown: Vec<String> = names.iter().take(MOST_NAMED).map(ToString::to_string).collect();
            let more = names.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("fetches {}{more}", shown.join(", "))
        }
    }
}

/// End of a transfer, for its summary.
pub(super) struct End<'a> {
    /// `complete`, `incomplete`, `failed` or `interrupted`.
    pub(super) result: &'static str,
    /// Reason of a failure.
    pub(super) error: Option<String>,
    pub(super) totals: Totals,
    pub(super) carried: &'a [PathVolume],
    /// Set if the same command resumes the transfer.
    pub(super) can_resume: bool,
}

impl Console {
    pub(super) fn new(show: &ShowOptions, sends: bool, again: Option<String>) -> Self {
        let mode = if show.json {
            Mode::Json
        } else if show.quiet {
            Mode::Quiet
        } else if let Some(live) = Live::on_stderr() {
            Mode::Live { screen: Mutex::new((live, None)) }
        } else {
            Mode::Lines { next: Mutex::new(Instant::now() + LINE_EVERY) }
        };
        Console { sends, again, ..Console::in_mode(show, mode) }
    }

    fn in_mode(show: &ShowOptions, mode: Mode) -> Self {
        Console {
            mode,
            origin: None,
            sends: false,
            again: None,
            remedy: KEPT,
            is_by_code: false,
            source: None,
            verbose: show.verbose,
            is_dry_run: false,
            progress: Mutex::new(Progress::new(Instant::now())),
        }
    }

    /// Returns the output of a server's transfer, whose lines name it.
    pub(super) fn of_transfer(show: &ShowOptions, origin: Origin) -> Self {
        let mode = match (show.json, show.quiet) {
            (true, _) => Mode::Json,
            (_, true) => Mode::Quiet,
            _ => Mode::Lines { next: Mutex::new(Instant::now() + LINE_EVERY) },
        };
        Console { origin: Some(origin), ..Console::in_mode(show, mode) }
    }

    /// Names the host from which files are fetched.
    pub(super) fn naming_host(mut self, host: &str) -> Self {
        self.source = Some(host.to_owned());
        self
    }

    /// Marks the transfer as a dry run.
    pub(super) fn dry_run(mut self, is_dry_run: bool) -> Self {
        self.is_dry_run = is_dry_run;
        self
    }

    fn json(&self, mut line: Value) {
        if let (Some(origin), Some(map)) = (&self.origin, line.as_object_mut()) {
            map.insert("transfer".to_owned(), json!(origin.number));
            map.insert("peer".to_owned(), json!(origin.peer));
            map.insert("label".to_owned(), json!(origin.caller.label));
            map.insert("fingerprint".to_owned(), json!(origin.caller.fingerprint));
        }
        live_output::event(&line);
    }

    fn print_notice(&self, text: &str) {
        // Names of files and interfaces are untrusted text, too.
        let text = escape(text);
        let label = self.origin.as_ref().map(Origin::text).unwrap_or_default();
        self.above(|| output::notice(format_args!("{label}{text}")));
    }

    /// Writes above the lines that are drawn in place.
    fn above(&self, write: impl FnOnce()) {
        let Mode::Live { screen } = &self.mode else { return write() };
        let (live, snapshot) = &mut *lock(screen);
        live.clear();
        write();
        if let Some(snapshot) = snapshot {
            live.draw(&snapshot.lines(live.room()));
        }
    }

    /// Returns `true` if the output depends on the size of a terminal.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.mode, Mode::Live { .. })
    }

    /// Draws the latest lines again, after a change of the terminal's size.
    pub(super) fn redraw(&self) {
        self.above(|| {});
    }

    fn is_quiet(&self) -> bool {
        matches!(self.mode, Mode::Quiet)
    }

    /// Prints the first line.
    pub(super) async fn start(&self, command: &str, paths: &mut Paths) {
        if let Mode::Json = self.mode {
            let encrypted =
                paths.association().is_some_and(|association| association.peer_identity().is_some());
            let paths = paths.sample().await;
            self.json(
                json!({ "event": "start", "command": command, "encrypted": encrypted, "dry_run": self.is_dry_run, "paths": paths }),
            );
        }
    }

    pub(super) fn event(&self, event: &Event) {
        lock(&self.progress).event(event, Instant::now());
        if let Mode::Json = self.mode {
            return self.json(event_json(event));
        }
        match event {
            // Only a server reports that the peer began the transfer.
            Event::Started { is_fetched, names } if self.origin.is_some() => {
                self.note(&started(*is_fetched, names));
            }
            Event::Started { .. } => {}
            Event::Begun { name, reused_bytes, .. } if *reused_bytes > 0 && self.verbose => {
                self.print_notice(&format!("{name}: {} exist already", amount(*reused_bytes)));
            }
            Event::Begun { .. } => {}
            Event::Done { name, outcome, .. } => match outcome {
                Outcome::Failed(failure) => self.failed(name, failure),
                Outcome::Stored { renamed: Some(other) } => self.note(&format!("{name}: stored as {other}")),
                _ if !self.verbose => {}
                Outcome::Stored { renamed: None } => self.print_notice(&name.to_string()),
                Outcome::Identical => self.print_notice(&format!("{name}: exists already")),
                Outcome::Planned => self.print_notice(&format!("{name}: would be stored")),
            },
            Event::Deleted { name, is_planned: true } => self.note(&format!("{name}: would be deleted")),
            Event::Deleted { name, is_planned: false } if self.verbose => {
                self.print_notice(&format!("{name}: deleted"));
            }
            Event::Deleted { .. } => {}
            Event::Listed(offer) => {
                self.above(|| {
                    output::print(&format!("{}\n", list_line(offer)));
                });
            }
            Event::Skipped { failure, .. } if failure.reason == Reason::Link => {
                self.note(&failure.to_string());
            }
            Event::Skipped { name, failure } => match &self.source {
                // The host lacks the file.
                Some(host) => self.print_notice(&format!("{host}: {failure}")),
                None => self.failed(name, failure),
            },
            Event::Note(text) => self.note(&text.to_string()),
            Event::Disconnected(why) => self.note(&format!("{why}; trying to connect again")),
            Event::Reconnected => self.note("connected again"),
        }
    }

    fn note(&self, text: &str) {
        if !self.is_quiet() {
            self.print_notice(text);
        }
    }

    fn failed(&self, name: &PeerText, failure: &Failure) {
        let (name, text) = (name.to_string(), failure.to_string());
        self.print_notice(&if text.contains(&name) {
            format!("failed: {text}")
        } else {
            format!("failed: {name}: {text}")
        });
    }

    /// Shows the progress. Call once per second.
    pub(super) fn show_progress(&self, totals: &Totals, paths: Vec<PathLine>) {
        let mut progress = lock(&self.progress);
        let Pace { latest, smoothed, phase } = progress.pace(totals, Instant::now());
        let file = progress.file().map(str::to_owned);
        drop(progress);
        let snapshot =
            Snapshot { totals: *totals, bytes_per_s: smoothed, phase, file, paths, sends: self.sends };
        match &self.mode {
            Mode::Json => self.json(json!({
                "event": "progress",
                "seconds": self.elapsed().as_secs_f64(),
                "rate_bytes_per_s": latest,
                "eta_s": snapshot.seconds_left(),
                "file": snapshot.file,
                "totals": totals_json(totals),
                "paths": snapshot.paths,
            })),
            Mode::Live { screen } => {
                let (live, latest) = &mut *lock(screen);
                live.draw(&snapshot.lines(live.room()));
                *latest = Some(Box::new(snapshot));
            }
            Mode::Lines { next } => {
                let mut next = lock(next);
                if Instant::now() >= *next {
                    *next = Instant::now() + LINE_EVERY;
                    snapshot.plain_lines().iter().for_each(|line| self.print_notice(line));
                }
            }
            Mode::Quiet => {}
        }
    }

    /// Prints the summary.
    pub(super) fn end(&self, end: &End<'_>) {
        let took = self.elapsed();
        let totals = &end.totals;
        let unstarted = self.unstarted(end);
        let new_bytes = new_bytes(totals);
        if let Mode::Live { screen } = &self.mode {
            // The progress lines are final, so later output must not overwrite them.
            lock(screen).1 = None;
        }
        match self.mode {
            Mode::Json => self.json(json!({
                "event": "end",
                "result": end.result,
                "dry_run": self.is_dry_run,
                "error": end.error.as_deref().or(unstarted).map(|error| self.remedied(error)),
                "seconds": took.as_secs_f64(),
                "goodput_bytes_per_s": per_second(new_bytes, took),
                "totals": totals_json(totals),
                "paths": end.carried,
            })),
            Mode::Quiet => {}
            _ => {
                self.print_notice(&match unstarted {
                    Some(reason) => format!("{}: {reason}", end.result),
                    None if self.is_dry_run => of_dry_run(end.result, totals),
                    None => summary(end.result, totals, new_bytes, took),
                });
                let all = end.carried.iter().map(PathVolume::sent_bytes).sum();
                if self.sends && unstarted.is_none() {
                    end.carried.iter().for_each(|path| self.print_notice(&path.text(all)));
                }
            }
        }
        if let (Some(error), false) = (&end.error, matches!(self.mode, Mode::Json)) {
            self.print_notice(&self.remedied(error));
        }
        if end.can_resume && !matches!(self.mode, Mode::Json | Mode::Quiet) {
            match unstarted {
                Some(_) if self.is_by_code => self.print_notice(CODE_UNUSED),
                None if end.error.is_none() => self.print_notice(self.remedy),
                _ => {}
            }
            if let Some(command) = &self.again {
                self.print_notice(&format!("    {command}"));
            }
        }
    }

    /// Returns the reason why a transfer ended before any data was transferred, or `None` if data was transferred.
    fn unstarted(&self, end: &End<'_>) -> Option<&'static str> {
        let Totals { found_files, failed_files, deleted, moved_bytes, .. } = end.totals;
        let is_untouched = found_files + failed_files + deleted + moved_bytes == 0;
        let is_ended_early = matches!(end.result, "interrupted" | "failed");
        (is_untouched && is_ended_early).then(|| match lock(&self.progress).waiting() {
            Some(Waiting::Receiver) => "no receiver has used the code, so nothing was transferred",
            Some(Waiting::Answer) => {
                "the receiver has not accepted the files yet, so nothing was transferred"
            }
            Some(Waiting::Return) => {
                "the receiver left before it accepted the files, so nothing was transferred"
            }
            None => "nothing was transferred",
        })
    }
}

impl Console {
    /// Selects the instructions for resuming a transfer through a pipe if `is_piped` is set.
    pub(super) fn piped(self, is_piped: bool) -> Self {
        if is_piped { Console { remedy: PIPED, again: None, ..self } } else { self }
    }

    /// Selects the instructions for resuming an offer with a one-time code, and shows that the offer waits for a receiver.
    pub(super) fn by_code(self, is_piped: bool) -> Self {
        let remedy = if is_piped { PIPED_BY_CODE } else { KEPT_BY_CODE };
        self.wait_for(Waiting::Receiver);
        Console { remedy, again: None, is_by_code: true, ..self }
    }

    /// Records that the transfer waits for this step of the receiver.
    pub(super) fn wait_for(&self, step: Waiting) {
        lock(&self.progress).wait_for(step);
    }

    fn elapsed(&self) -> Duration {
        lock(&self.progress).elapsed(Instant::now())
    }

    /// Returns an error with the remedy of this transfer.
    fn remedied(&self, error: &str) -> String {
        error.replace(KEPT, self.remedy)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn summary(result: &str, totals: &Totals, new_bytes: u64, took: Duration) -> String {
    let mut text = format!(
        "{result}: {} of {}, {} in {:.1} s, {}",
        totals.done_files,
        count(totals.all_files().unwrap_or(totals.found_files), "file", "files"),
        amount(new_bytes),
        took.as_secs_f64(),
        rate(per_second(new_bytes, took))
    );
    if totals.reused_bytes > 0 {
        text += &format!("; {} existed already", amount(totals.reused_bytes));
    }
    if totals.deleted > 0 {
        text += &format!("; {} deleted", totals.deleted);
    }
    if totals.deletable > 0 {
        text += &format!("; {} would be deleted", totals.deletable);
    }
    if totals.failed_files > 0 {
        text += &format!("; {} omitted", totals.failed_files);
    }
    text
}

/// Returns the summary of a dry run.
fn of_dry_run(result: &str, totals: &Totals) -> String {
    let mut text = format!(
        "dry run, {result}: {} of {}, {} existing; nothing was stored",
        totals.done_files,
        count(totals.found_files, "file", "files"),
        amount(totals.reused_bytes)
    );
    if totals.deletable > 0 {
        text += &format!("; {} would be deleted", totals.deletable);
    }
    if totals.failed_files > 0 {
        text += &format!("; {} omitted", totals.failed_files);
    }
    text
}

fn totals_json(totals: &Totals) -> Value {
    json!({
        "found_files": totals.found_files,
        "found_bytes": totals.found_bytes,
        "all_found": totals.all_found,
        "all_files": totals.all_files(),
        "all_bytes": totals.all_bytes(),
        "skipped_bytes": totals.skipped_bytes,
        "done_files": totals.done_files,
        "failed_files": totals.failed_files,
        "held_bytes": totals.held_bytes,
        "reused_bytes": totals.reused_bytes,
        "moved_bytes": totals.moved_bytes,
        "deleted": totals.deleted,
        "deletable": totals.deletable,
    })
}

fn event_json(event: &Event) -> Value {
    let failed =
        |failure: &Failure| json!({ "reason": format!("{:?}", failure.reason), "text": failure.to_string() });
    match event {
        Event::Started { is_fetched, names } => {
            let direction = if *is_fetched { "fetched" } else { "sent" };
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            json!({ "event": "transfer", "direction": direction, "names": names })
        }
        Event::Begun { name, size_bytes, reused_bytes } => {
            json!({ "event": "begin", "file": name.to_string(), "size_bytes": size_bytes, "reused_bytes": reused_bytes })
        }
        Event::Done { name, size_bytes, outcome } => {
            let (result, renamed, error) = match outcome {
                Outcome::Stored { renamed } => {
                    ("stored", renamed.as_ref().map(ToString::to_string), Value::Null)
                }
                Outcome::Identical => ("identical", None, Value::Null),
                Outcome::Planned => ("planned", None, Value::Null),
                Outcome::Failed(failure) => ("failed", None, failed(failure)),
            };
            json!({ "event": "file", "file": name.to_string(), "size_bytes": size_bytes, "result": result, "renamed": renamed, "error": error })
        }
        Event::Deleted { name, is_planned } => {
            json!({ "event": "deleted", "file": name.to_string(), "planned": is_planned })
        }
        Event::Listed(offer) => {
            let (kind, size_bytes, target) = kind_of(offer);
            json!({
                "event": "listed", "file": offer.name.to_string(), "kind": kind, "size_bytes": size_bytes, "target": target,
                "mode": format!("{:03o}", offer.mode), "changed_s": offer.changed.seconds,
            })
        }
        Event::Skipped { name, failure } if failure.reason == Reason::Link => {
            json!({ "event": "note", "file": name.to_string(), "text": failure.to_string() })
        }
        Event::Skipped { name, failure } => {
            json!({ "event": "file", "file": name.to_string(), "result": "failed", "error": failed(failure) })
        }
        Event::Note(text) => json!({ "event": "note", "text": text.to_string() }),
        Event::Disconnected(text) => json!({ "event": "disconnected", "text": text.to_string() }),
        Event::Reconnected => json!({ "event": "reconnected" }),
    }
}

/// Returns the kind of an entry, its size and the target of a link.
fn kind_of(offer: &Offer) -> (&'static str, Option<u64>, Option<String>) {
    match &offer.kind {
        Kind::File { size_bytes, .. } => ("file", Some(*size_bytes), None),
        Kind::Stream { .. } => ("stream", None, None),
        Kind::Link { target } => ("link", None, Some(target.to_string())),
        Kind::Folder | Kind::FolderEnd => ("folder", None, None),
    }
}

/// Returns a line in the format of `ls -l` and `rsync --list-only`, with times in UTC.
fn list_line(offer: &Offer) -> String {
    let (kind, size_bytes, target) = kind_of(offer);
    let first = match kind {
        "folder" => 'd',
        "link" => 'l',
        _ => '-',
    };
    let bit = |at: u32| if offer.mode & (0o400 >> at) == 0 { '-' } else { ['r', 'w', 'x'][at as usize % 3] };
    let mode: String = (0..9).map(bit).collect();
    let changed = utc(offer.changed.seconds);
    let size = size_bytes.map_or(String::new(), |bytes| bytes.to_string());
    let arrow = target.map_or(String::new(), |target| format!(" -> {target}"));
    format!("{first}{mode} {size:>15} {changed} {}{arrow}", offer.name)
}

/// Returns the date and time of a number of seconds since 1970, or a dash outside of the supported years.
fn utc(seconds: i64) -> String {
    let Ok(at) = OffsetDateTime::from_unix_timestamp(seconds) else { return format!("{:>19}", "-") };
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}", u8::from(month))
}

/// Prints the addresses and accepted peers of a server, for people or programs.
pub(super) fn listening_notice(
    endpoint: &Endpoint,
    show: &ShowOptions,
    (admitted, protection): (&Admitted, &ProtectionOptions),
    what: &str,
) {
    protection.notice(show.quiet || show.json);
    let is_protected = admitted.listening.is_protected();
    let addresses: Vec<String> = endpoint.local_addresses().iter().map(ToString::to_string).collect();
    if show.json {
        let line = json!({
            "event": "listening", "addresses": addresses, "sctp_port": endpoint.sctp_port(),
            "encrypted": is_protected, "from": networks(&admitted.from), "insecure": !is_protected,
        });
        live_output::event(&line);
    } else if !show.quiet {
        output::notice(format_args!("{what} on {}", addresses.join(", ")));
        access_notice(&admitted.from, false);
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transfer::protocol::FileTime;

    use super::*;

    #[test]
    fn a_list_has_the_columns_of_rsync() {
        let offer = |kind, seconds| Offer {
            id: 0,
            name: "a".into(),
            kind,
            changed: FileTime { seconds, nanos: 0 },
            mode: 0o754,
        };
        let file = offer(Kind::File { size_bytes: 1234, first: None }, 951_782_400);
        assert_eq!(list_line(&file), "-rwxr-xr--            1234 2000-02-29 00:00:00 a");
        let link = offer(Kind::Link { target: "b\u{202e}".into() }, -1);
        assert_eq!(list_line(&link), "lrwxr-xr--                 1969-12-31 23:59:59 a -> b\\u{202e}");
        // A peer may send any time.
        for seconds in [i64::MIN, i64::MAX] {
            assert!(list_line(&offer(Kind::Folder, seconds)).starts_with("drwxr-xr--"));
        }
    }

    #[test]
    fn lines_of_a_server_name_the_key() {
        let caller = AcceptedPeer { label: Some("Anna\u{1b}".to_owned()), ..AcceptedPeer::default() };
        let origin = |caller| Origin { number: 3, peer: "192.0.2.7:5".to_owned(), caller };
        assert_eq!(origin(caller).text(), "3 Anna\\u{1b} (192.0.2.7:5): ");
        let unnamed = AcceptedPeer { fingerprint: Some("SHA256:x".to_owned()), ..AcceptedPeer::default() };
        assert_eq!(origin(unnamed).text(), "3 SHA256:x (192.0.2.7:5): ");
        assert_eq!(origin(AcceptedPeer::default()).text(), "3 192.0.2.7:5: ");
        let names = ["a", "b", "c", "d", "e"].map(PeerText::from);
        assert_eq!(started(true, &names), "fetches a, b, c and 2 more");
        assert_eq!(started(true, &[]), "fetches everything");
        assert_eq!(started(false, &[]), "sends files");
    }
}
