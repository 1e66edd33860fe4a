//! Threads that pass packets from devices through an [`Impairment`] in real time.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Span, Time};
use anabranch_relay::{Amount, Direction, Impairment};
use serde_json::{Value, json};

/// Maximum length of an IP packet, in bytes.
const LARGEST_PACKET: usize = 65_535;

/// Devices at the ends of the link.
pub(crate) struct Pair {
    /// Device at the client.
    pub(crate) near: File,
    /// Device at the server.
    pub(crate) far: File,
}

impl Pair {
    /// Returns the device whose packets enter the link in this direction.
    pub(crate) const fn source(&self, direction: Direction) -> &File {
        match direction {
            Direction::Forward => &self.near,
            Direction::Reverse => &self.far,
        }
    }

    const fn sink(&self, direction: Direction) -> &File {
        match direction {
            Direction::Forward => &self.far,
            Direction::Reverse => &self.near,
        }
    }
}

/// Link with a clock, for use by several threads.
pub(crate) struct Emulator {
    state: Mutex<State>,
    /// Notified when a packet has entered the link.
    entered: Condvar,
    /// Instant of the link's time zero. The link stands still before it.
    start: Instant,
}

struct State {
    link: Impairment,
    lateness: Lateness,
}

/// Delay between delivery by the link and transmission, over all packets.
#[derive(Default)]
struct Lateness {
    packets: u32,
    sum: Duration,
    most: Duration,
}

impl Lateness {
    fn count(&mut self, late: Duration) {
        self.packets += 1;
        self.sum += late;
        self.most = self.most.max(late);
    }
}

impl Emulator {
    pub(crate) fn new(link: Impairment, start: Instant) -> Self {
        let state = State { link, lateness: Lateness::default() };
        Emulator { state: Mutex::new(state), entered: Condvar::new(), start }
    }

    /// Returns the time of the link.
    fn now(&self) -> Time {
        Time::ZERO + Span::from(Instant::now().saturating_duration_since(self.start))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads packets from a device until it is closed.
    pub(crate) fn read(&self, direction: Direction, mut device: File) {
        let mut packet = vec![0; LARGEST_PACKET];
        loop {
            match device.read(&mut packet) {
                Ok(0) => return,
                Ok(length) => {
                    let mut state = self.lock();
                    // The time is read under the lock, so that both directions see a clock that does not go back.
                    let now = self.now();
                    state.link.offer(direction, now, 0, &packet[..length]);
                    self.entered.notify_one();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Sends packets when they have crossed the link. Runs until the process ends.
    pub(crate) fn send(&self, devices: &Pair) {
        let mut packet = PacketBuffer::new();
        loop {
            let direction = self.next(&mut packet);
            // A device that is down rejects the packet, which is then lost as on a real interface.
            drop(devices.sink(direction).write(&packet));
        }
    }

    /// Waits for the next packet that has crossed the link.
    fn next(&self, packet: &mut PacketBuffer) -> Direction {
        let mut state = self.lock();
        loop {
            let now = self.now();
            if let Some(delivery) = state.link.poll_deliver(now, packet) {
                state.lateness.count(now.since(delivery.at).into());
                return delivery.direction;
            }
            state = match state.link.poll_timeout() {
                None => self.entered.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let due = self.start + Duration::from(due.since(Time::ZERO));
                    let left = due.saturating_duration_since(Instant::now());
                    self.entered.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Returns the counters of both directions as JSON.
    pub(crate) fn counters(&self) -> Value {
        let state = self.lock();
        let Lateness { packets, sum, most } = &state.lateness;
        let mean = sum.checked_div(*packets).unwrap_or_default();
        let amount = |amount: Amount| json!({"packets": amount.packets, "bytes": amount.wire.get()});
        let of = |direction| {
            let totals = state.link.totals(direction);
            json!({
                "offered": amount(totals.offered),
                "delivered": amount(totals.delivered),
                "lost": amount(totals.lost),
                "dropped_queue": amount(totals.overflowed),
                "dropped_outage": amount(totals.outage),
            })
        };
        json!({
            "elapsed_s": self.now().as_secs_f64(),
            "forward": of(Direction::Forward),
            "reverse": of(Direction::Reverse),
            "late_mean_us": mean.as_secs_f64() * 1e6,
            "late_max_us": most.as_secs_f64() * 1e6,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::impairment;

    /// Client and server of an emulated link.
    struct Ends {
        client: UnixDatagram,
        server: UnixDatagram,
        emulator: Arc<Emulator>,
        began: Instant,
    }

    fn ends(link: &str) -> Ends {
        let pair = || UnixDatagram::pair().expect("a pair of sockets");
        let file = |socket: UnixDatagram| File::from(OwnedFd::from(socket));
        let ((client, near), (server, far)) = (pair(), pair());
        let (devices, began) = (Pair { near: file(near), far: file(far) }, Instant::now());
        let emulator = Arc::new(Emulator::new(impairment(link, 1).expect("a valid link"), began));
        for direction in Direction::BOTH {
            let (emulator, source) = (Arc::clone(&emulator), devices.source(direction).try_clone());
            let source = source.expect("a second descriptor");
            thread::spawn(move || emulator.read(direction, source));
        }
        let sending = Arc::clone(&emulator);
        thread::spawn(move || sending.send(&devices));
        Ends { client, server, emulator, began }
    }

    /// Sends numbered packets of 1,500 bytes and returns the numbers that arrive, with the time of the last one.
    fn numbers(ends: &Ends, count: u8, arriving: usize) -> (Vec<u8>, Duration) {
        for number in 0..count {
            ends.client.send(&[number; 1500]).expect("sent");
        }
        let mut packet = [0; 2000];
        let mut next = || {
            let length = ends.server.recv(&mut packet).expect("received");
            assert_eq!(length, 1500);
            packet[0]
        };
        ((0..arriving).map(|_| next()).collect(), ends.began.elapsed())
    }

    #[test]
    fn packets_arrive_in_order_and_not_before_rate_and_delay_permit() {
        let ends = ends("rate=12Mbit,delay=30ms,queue=100p");
        let (numbers, took) = numbers(&ends, 20, 20);
        assert_eq!(numbers, (0..20).collect::<Vec<_>>());
        // Each packet takes 1 ms.
        assert!(took >= Duration::from_millis(50), "{took:?}");
    }

    #[test]
    fn answers_cross_the_reverse_direction() {
        let ends = ends("rate=12Mbit,delay=1ms,reverse=(rate=12Mbit,delay=40ms)");
        ends.server.send(b"answer").expect("sent");
        let mut packet = [0; 20];
        let length = ends.client.recv(&mut packet).expect("received");
        assert_eq!(&packet[..length], b"answer");
        assert!(ends.began.elapsed() >= Duration::from_millis(40));
    }

    #[test]
    fn lost_packets_are_those_of_the_model_with_the_same_seed() {
        let text = "rate=100Mbit,delay=0ms,loss=20%,queue=300p";
        let mut model = impairment(text, 1).expect("a valid link");
        for number in 0..200 {
            model.offer(Direction::Forward, Time::ZERO, 0, &[number; 1500]);
        }
        let mut kept = Vec::new();
        let mut packet = PacketBuffer::new();
        while let Some(due) = model.poll_timeout() {
            while model.poll_deliver(due, &mut packet).is_some() {
                kept.push(packet[0]);
            }
        }
        assert!((100..190).contains(&kept.len()));
        let ends = ends(text);
        assert_eq!(numbers(&ends, 200, kept.len()).0, kept);
        assert_eq!(ends.emulator.counters()["forward"]["lost"]["packets"], 200 - kept.len());
    }

    #[test]
    fn packets_wait_for_the_opportunities_of_a_trace() {
        let folder = std::env::temp_dir().join(format!("arena-link-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("capacity.csv");
        std::fs::write(&file, "time,mbps\n0,12\n0.01,0\n0.08,12\n").expect("written");
        let ends = ends(&format!("capacity=(file=\"{}\",repeat=false),delay=0ms,queue=100p", file.display()));
        let (numbers, took) = numbers(&ends, 20, 20);
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(numbers.len(), 20);
        // Ten packets leave in the first 10 ms at most, and the others after the gap.
        assert!(took >= Duration::from_millis(85), "{took:?}");
    }

    #[test]
    fn link_stands_still_before_its_time_zero() {
        let link = impairment("rate=12Mbit,delay=0ms", 1).expect("a valid link");
        let emulator = Emulator::new(link, Instant::now() + Duration::from_secs(3600));
        assert_eq!(emulator.now(), Time::ZERO);
        emulator.lock().link.offer(Direction::Forward, emulator.now(), 0, &[0; 100]);
        assert_eq!(emulator.counters()["forward"]["delivered"]["packets"], 0);
    }
}
