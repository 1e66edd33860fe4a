//! Recording of endpoints: files, the thread that writes them, and the observers that feed it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::SystemTime;

use anabranch_core::Statistics;
use anabranch_core::time::Time;
use anabranch_net::Config;
use anabranch_net::Observer;
use anabranch_sim::pcapng::SnapLength;
use anabranch_trace::TraceError;
use anabranch_trace::qlog::Role;

use crate::batch::{Batch, Inbox, Key, Record};
use crate::directory::Directory;
use crate::feed::{EndpointObserver, Selection};
use crate::sink::{Capture, Events, ObservedDatagram, RecordingInfo, Sink, Tables, Totals};

/// Files to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// Capture for Wireshark.
    pub pcap: Option<PathBuf>,
    /// Maximum number of bytes that the capture keeps of each packet. [`Outputs::default`] keeps whole packets, which
    /// decryption needs.
    pub snap_length: SnapLength,
    /// Folder for traces in the simulator's format.
    pub trace: Option<PathBuf>,
    /// File of qlog-like events, or a folder with one file per association. An existing folder or a name that ends with a slash
    /// selects the latter.
    pub qlog: Option<PathBuf>,
}

impl Outputs {
    /// Returns `true` if no file is to be written.
    pub fn is_empty(&self) -> bool {
        self.pcap.is_none() && self.trace.is_none() && self.qlog.is_none()
    }
}

/// Result of a recording.
#[derive(Debug, Default)]
pub struct Report {
    /// Write errors. A file with an error ends at the failed write.
    pub errors: Vec<TraceError>,
    /// Number of records that were dropped because the disk was slower than the endpoints.
    pub records_dropped: u64,
}

/// Recording of endpoints, from [`Recording::start`] until it is [finished](Recording::finish) or dropped.
///
/// Files are flushed many times per second, so they are readable at any time, even after the process was killed. Associations that
/// are still active at the end count up to it.
#[derive(Debug)]
pub struct Recording {
    inbox: Arc<Inbox>,
    origin: SystemTime,
    wants: Selection,
    endpoints: AtomicUsize,
    writer: Option<JoinHandle<Report>>,
}

impl Recording {
    /// Creates the files and starts the writer thread. Files name this scheme expression and the profile of `config`.
    ///
    /// # Errors
    /// Returns [`TraceError`] if a file cannot be created.
    pub fn start(outputs: &Outputs, role: Role, scheme: &str, config: &Config) -> Result<Self, TraceError> {
        let origin = SystemTime::now();
        let about = RecordingInfo {
            origin,
            role,
            scheme: scheme.to_owned(),
            profile: config.core().profile.name,
            lost_counts_until_resent: config.core().profile.lost_counts_until_resent,
        };
        let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
        if let Some(path) = &outputs.pcap {
            sinks.push(Box::new(Capture::create(path, outputs.snap_length, origin)?));
        }
        if let Some(folder) = &outputs.trace {
            sinks.push(Box::new(Tables::create(folder, &about)?));
        }
        if let Some(path) = &outputs.qlog {
            sinks.push(Box::new(Events::create(path, &about)?));
        }
        let inbox = Arc::new(Inbox::default());
        let writer = Writer::new(Arc::clone(&inbox), origin, sinks);
        let thread = std::thread::Builder::new().name("anabranch-observe".to_owned());
        let writer = thread
            .spawn(move || writer.run())
            .map_err(|error| TraceError { path: PathBuf::from("(the thread that writes)"), error })?;
        let wants = Selection { associations: outputs.trace.is_some() || outputs.qlog.is_some() };
        Ok(Recording { inbox, origin, wants, endpoints: AtomicUsize::new(0), writer: Some(writer) })
    }

    /// Returns an observer for [`EndpointBuilder::observer`](anabranch_net::EndpointBuilder::observer). Each endpoint needs its
    /// own observer.
    pub fn observer(&self) -> impl Observer + use<> {
        let endpoint = self.endpoints.fetch_add(1, Ordering::Relaxed);
        EndpointObserver::new(Arc::clone(&self.inbox), endpoint, self.origin, self.wants)
    }

    /// Writes the waiting records and closes the files. Later events of endpoints are not recorded.
    pub fn finish(mut self) -> Report {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Report> {
        self.inbox.finish();
        self.writer.take()?.join().ok()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// State of the writer thread.
struct Writer {
    inbox: Arc<Inbox>,
    origin: SystemTime,
    sinks: Vec<Box<dyn Sink>>,
    directory: Directory,
    statistics: BTreeMap<Key, Statistics>,
    /// Sums over closed associations.
    totals: Totals,
    report: Report,
}

impl Writer {
    fn new(inbox: Arc<Inbox>, origin: SystemTime, sinks: Vec<Box<dyn Sink>>) -> Self {
        Writer {
            inbox,
            origin,
            sinks,
            directory: Directory::default(),
            statistics: BTreeMap::new(),
            totals: Totals::default(),
            report: Report::default(),
        }
    }

    fn run(mut self) -> Report {
        let mut batch = Batch::default();
        loop {
            let last = self.inbox.take(&mut batch);
            self.write(&batch);
            batch.clear();
            self.each(|sink| sink.flush());
            if last {
                break;
            }
        }
        for statistics in self.statistics.values() {
            self.totals.add(statistics);
        }
        let since = self.origin.elapsed().unwrap_or_default();
        let at = Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        let totals = self.totals;
        self.each(|sink| sink.finish(at, &totals));
        Report { records_dropped: self.totals.records_dropped, ..self.report }
    }

    /// Calls all sinks. A sink that fails is removed.
    fn each(&mut self, mut what: impl FnMut(&mut Box<dyn Sink>) -> Result<(), TraceError>) {
        let errors = &mut self.report.errors;
        self.sinks.retain_mut(|sink| what(sink).map_err(|error| errors.push(error)).is_ok());
    }

    fn write(&mut self, batch: &Batch) {
        self.totals.records_dropped += batch.dropped;
        for (key, statistics) in &batch.statistics {
            self.statistics.insert(*key, *statistics);
        }
        for record in &batch.records {
            self.record(batch, record);
        }
    }

    fn record(&mut self, batch: &Batch, record: &Record) {
        let Writer { sinks, directory, .. } = self;
        match *record {
            Record::Endpoint { ref locals } => sinks.iter_mut().for_each(|sink| sink.endpoint(locals)),
            Record::Datagram { at, endpoint, local, remote, outcome, ref bytes } => {
                let payload = &batch.bytes[bytes.clone()];
                let found = directory.find(endpoint, local, remote, outcome, payload);
                let owner = found.and_then(|(key, path)| Some((directory.get(key)?, key, path)));
                let datagram = ObservedDatagram { local, remote, outcome, payload, owner };
                sinks.iter_mut().for_each(|sink| sink.datagram(at, &datagram));
            }
            Record::Opened { key, at, peer_port } => {
                directory.open(key, peer_port);
                self.for_each_sink(key, |sink, known| sink.opened(at, key, known));
            }
            Record::PathAddress { key, at, path, local, remote } => {
                directory.path_address(key, path, local, remote);
                self.for_each_sink(key, |sink, known| sink.path_address(at, key, known, path));
            }
            Record::Path { key, at, stand } => {
                let stand = &batch.stands[stand];
                self.for_each_sink(key, |sink, known| sink.path(at, key, known, stand));
            }
            Record::Decision { key, decision } => {
                let event = &batch.decisions[decision];
                self.for_each_sink(key, |sink, known| sink.decision(key, known, event));
            }
            Record::Timeouts { key, at, total } => {
                self.for_each_sink(key, |sink, known| sink.timeouts(at, key, known, total));
            }
            Record::Keys { key, at, ref change } => {
                self.for_each_sink(key, |sink, known| sink.keys(at, key, known, change));
            }
            Record::Closed { key, at, ref outcome } => {
                self.for_each_sink(key, |sink, known| sink.closed(at, key, known, outcome));
                self.directory.close(key);
                if let Some(statistics) = self.statistics.remove(&key) {
                    self.totals.add(&statistics);
                }
            }
        }
    }

    fn for_each_sink(
        &mut self,
        key: Key,
        mut what: impl FnMut(&mut dyn Sink, &crate::directory::AssociationInfo),
    ) {
        let Some(known) = self.directory.get(key) else { return };
        self.sinks.iter_mut().for_each(|sink| what(sink.as_mut(), known));
    }
}

impl Totals {
    fn add(&mut self, statistics: &Statistics) {
        self.retransmissions += statistics.retransmissions;
        self.timeouts += statistics.timeouts;
        self.blocked_by_peer_window_ns += statistics.blocked_by_peer_window_ns;
    }
}
