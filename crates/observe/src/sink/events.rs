//! qlog-like events, in one file or in one file per association.

use std::collections::BTreeMap;

use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use anabranch_core::PathId;
use anabranch_core::time::Time;
use anabranch_core::trace::TraceEvent;
use anabranch_net::{CloseReason, DatagramOutcome, KeyChange};
use anabranch_trace::qlog::{Epoch, PacketFate, QLOG_EXTENSION, QlogWriter};
use anabranch_trace::{PathSample, TraceError};

use super::{ObservedDatagram, RecordingInfo, Sink};
use crate::batch::Key;
use crate::directory::AssociationInfo;

/// Open event files.
enum Files {
    /// One file for all events.
    One(Box<QlogWriter>),
    /// A folder with one file per active association.
    Each { folder: PathBuf, open: BTreeMap<Key, QlogWriter> },
}

/// Writer of events.
pub(crate) struct Events {
    about: RecordingInfo,
    files: Files,
    error: Option<TraceError>,
}

impl Events {
    /// Selects the folder `path` if it exists or its name ends with a separator, and otherwise the file `path`.
    pub(crate) fn create(path: &Path, about: &RecordingInfo) -> Result<Self, TraceError> {
        let is_folder = path.is_dir() || path.as_os_str().to_string_lossy().ends_with(MAIN_SEPARATOR);
        let files = if is_folder {
            std::fs::create_dir_all(path).map_err(|error| TraceError { path: path.to_owned(), error })?;
            Files::Each { folder: path.to_owned(), open: BTreeMap::new() }
        } else {
            let mut writer = begin(path, about)?;
            writer.flush()?;
            Files::One(Box::new(writer))
        };
        Ok(Events { about: about.clone(), files, error: None })
    }

    fn writer(&mut self, key: Key) -> Option<&mut QlogWriter> {
        match &mut self.files {
            Files::One(writer) => Some(writer),
            Files::Each { open, .. } => open.get_mut(&key),
        }
    }
}

fn begin(path: &Path, about: &RecordingInfo) -> Result<QlogWriter, TraceError> {
    let epoch = Epoch::WallClock(humantime::format_rfc3339_nanos(about.origin).to_string());
    let title = format!("anabranch {}, {}", env!("CARGO_PKG_VERSION"), about.scheme);
    QlogWriter::create(path, &title, &epoch, about.role)
}

fn fate(outcome: DatagramOutcome) -> PacketFate {
    match outcome {
        DatagramOutcome::Received => PacketFate::Received,
        DatagramOutcome::Sent => PacketFate::Sent,
        DatagramOutcome::Refused => PacketFate::NotSent("refused_by_system"),
        DatagramOutcome::Overflowed => PacketFate::NotSent("socket_blocked"),
        DatagramOutcome::Discarded(reason) => PacketFate::Discarded(crate::metrics::discard_word(reason)),
    }
}

impl Sink for Events {
    fn datagram(&mut self, at: Time, datagram: &ObservedDatagram<'_>) {
        let Some((known, key, path)) = datagram.owner else { return };
        let (fate, payload) = (fate(datagram.outcome), datagram.payload);
        if let Some(writer) = self.writer(key) {
            writer.packet(at, &known.subject, Some(path), fate, payload);
        }
    }

    fn opened(&mut self, at: Time, key: Key, known: &AssociationInfo) {
        if let Files::Each { folder, open } = &mut self.files {
            let name = format!("{}.{QLOG_EXTENSION}", known.subject.name);
            match begin(&folder.join(name), &self.about) {
                Ok(writer) => drop(open.insert(key, writer)),
                Err(error) => drop(self.error.get_or_insert(error)),
            }
        }
        let (scheme, profile) = (self.about.scheme.clone(), self.about.profile);
        if let Some(writer) = self.writer(key) {
            writer.started(at, &known.subject, &scheme, profile);
        }
    }

    fn path_address(&mut self, at: Time, key: Key, known: &AssociationInfo, path: PathId) {
        let Some((local, remote)) = known.addresses[path.index()].split_once(" to ") else { return };
        if let Some(writer) = self.writer(key) {
            writer.path_addresses(at, &known.subject, path, local, remote);
        }
    }

    fn path(&mut self, at: Time, key: Key, known: &AssociationInfo, stand: &PathSample) {
        if let Some(writer) = self.writer(key) {
            writer.write_path_state(at, &known.subject, stand);
        }
    }

    fn decision(&mut self, key: Key, known: &AssociationInfo, event: &TraceEvent) {
        if let Some(writer) = self.writer(key) {
            writer.decided(&known.subject, event);
        }
    }

    fn timeouts(&mut self, at: Time, key: Key, known: &AssociationInfo, total: u64) {
        if let Some(writer) = self.writer(key) {
            writer.timeouts(at, &known.subject, total);
        }
    }

    fn keys(&mut self, at: Time, key: Key, known: &AssociationInfo, change: &KeyChange) {
        if let Some(writer) = self.writer(key) {
            match *change {
                KeyChange::Updated { epoch } => writer.keys_updated(at, &known.subject, epoch),
                KeyChange::Failed(reason) => writer.rekey_failed(at, &known.subject, reason),
            }
        }
    }

    fn closed(&mut self, at: Time, key: Key, known: &AssociationInfo, outcome: &Result<(), CloseReason>) {
        let outcome = match outcome {
            Ok(()) => "closed".to_owned(),
            Err(ended) => ended.to_string(),
        };
        if let Some(writer) = self.writer(key) {
            writer.ended(at, &known.subject, &outcome);
        }
        if let Files::Each { open, .. } = &mut self.files
            && let Some(mut writer) = open.remove(&key)
            && let Err(error) = writer.flush()
        {
            self.error.get_or_insert(error);
        }
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        match &mut self.files {
            Files::One(writer) => writer.flush()?,
            Files::Each { open, .. } => open.values_mut().try_for_each(QlogWriter::flush)?,
        }
        self.error.take().map_or(Ok(()), Err)
    }
}
