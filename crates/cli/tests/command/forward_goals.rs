//! Rates and delays of programs through `forward` over simulated links.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use crate::judged::{Judged, is_reached};
use crate::simulated_links::Linked;

/// Request for bytes without end.
const DATA: u8 = b'd';
/// Request for an echo of each byte.
const ECHO: u8 = b'e';
/// Time without any progress after which a test fails.
const LIMIT: Duration = Duration::from_secs(30);

/// Starts a program that serves both requests, and returns the option that forwards connections to it.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let forwarded = format!("127.0.0.1:0:{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(|| serve(connection));
        }
    });
    forwarded
}

fn serve(mut connection: TcpStream) {
    let (mut request, block) = ([0], vec![0; 1 << 16]);
    let _ = connection.set_nodelay(true);
    let _ = connection.read_exact(&mut request);
    let mut byte = [0];
    while match request {
        [DATA] => connection.write_all(&block),
        _ => connection.read_exact(&mut byte).and_then(|()| connection.write_all(&byte)),
    }
    .is_ok()
    {}
}

fn request(linked: &Linked, kind: u8) -> TcpStream {
    let mut connection = TcpStream::connect(linked.address()).expect("a connection");
    connection.set_nodelay(true).expect("an option");
    connection.set_read_timeout(Some(LIMIT)).expect("an option");
    connection.write_all(&[kind]).expect("a request");
    connection
}

/// Reads for a time. Returns the number of bytes and the longest time without any.
fn read_for(connection: &mut TcpStream, time: Duration) -> (usize, Duration) {
    let (begun, mut buffer) = (Instant::now(), vec![0; 1 << 16]);
    let (mut bytes, mut longest, mut last) = (0, Duration::ZERO, begun);
    while begun.elapsed() < time {
        let read = connection.read(&mut buffer).expect("no reset");
        assert!(read > 0, "the connection ended");
        bytes += read;
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    (bytes, longest)
}

/// Returns the bytes that a download gets in a time over these links, and whether they were in time.
fn download(links: &[&str], time: Duration) -> (f64, bool) {
    let forwarded = server();
    let linked = Linked::new(links, ["-L", &forwarded]);
    let (bytes, _) = read_for(&mut request(&linked, DATA), time);
    (bytes as f64, linked.was_in_time(0..links.len()))
}

/// Measures downloads over each of these sets of links until the goal is reached.
#[track_caller]
fn assert_downloads<const N: usize>(sets: [&[&str]; N], time: Duration, goal: impl Fn([f64; N]) -> bool) {
    is_reached(|| {
        let measured = sets.map(|links| download(links, time));
        let (bytes, in_time) =
            (measured.map(|(bytes, _)| bytes), measured.iter().all(|(_, in_time)| *in_time));
        Judged::new(in_time, goal(bytes), format!("{bytes:?} bytes"))
    });
}

/// Returns the bytes that a rate in Mbit/s carries in a time.
fn bytes_of(mbps: f64, time: Duration) -> f64 {
    mbps * 1e6 / 8.0 * time.as_secs_f64()
}

#[test]
fn two_equal_links_carry_a_download_at_185_percent_of_one() {
    const LINK: &str = "rate=10Mbit,delay=10ms,queue=100ms";
    let time = Duration::from_secs(4);
    assert_downloads([&[LINK], &[LINK, LINK]], time, |[one, both]| {
        one >= 0.8 * bytes_of(10.0, time) && both >= 1.85 * one
    });
}

/// The goal is stated for 300 and 80 Mbit/s. A machine that runs other tests carries a fifteenth of these rates.
#[test]
fn links_of_20_and_5_mbps_carry_90_percent_of_their_sum() {
    const FAST: &str = "rate=20Mbit,delay=10ms,queue=100ms";
    const SLOW: &str = "rate=5.33Mbit,delay=10ms,queue=100ms";
    let sets: [&[&str]; 3] = [&[FAST], &[SLOW], &[FAST, SLOW]];
    let time = Duration::from_secs(4);
    assert_downloads(sets, time, |[fast, slow, both]| {
        fast >= 0.8 * bytes_of(20.0, time) && both >= 0.9 * (fast + slow)
    });
}

/// The goal is stated for 50 and 5 Mbit/s. A machine that runs other tests carries two fifths of these rates.
#[test]
fn slow_late_link_costs_3_percent_of_the_better_one_at_most() {
    const BETTER: &str = "rate=20Mbit,delay=10ms,queue=100ms";
    const LATE: &str = "rate=2Mbit,delay=75ms,queue=100ms";
    let time = Duration::from_secs(5);
    assert_downloads([&[BETTER], &[BETTER, LATE]], time, |[one, both]| {
        one >= 0.8 * bytes_of(20.0, time) && both >= 0.97 * one
    });
}

#[test]
fn cut_link_delays_a_download_by_less_than_300_ms() {
    const LINK: &str = "rate=10Mbit,delay=25ms,queue=100ms";
    let forwarded = server();
    is_reached(|| {
        let linked = Linked::new(&[LINK, LINK], ["-L", &forwarded]);
        let mut data = request(&linked, DATA);
        read_for(&mut data, Duration::from_secs(2));
        linked.cut(0);
        let (bytes, pause) = read_for(&mut data, Duration::from_secs(2));
        assert!(bytes > 0);
        Judged::new(linked.was_in_time(1..2), pause < Duration::from_millis(300), format!("{pause:?}"))
    });
}

#[test]
fn dead_first_path_at_the_start_costs_no_connection() {
    const LINK: &str = "rate=10Mbit,delay=10ms";
    let forwarded = server();
    let linked = Linked::with_dead(&[LINK, LINK], &[0], ["-L", &forwarded]);
    let mut echo = request(&linked, ECHO);
    echo.write_all(b"k").expect("sent");
    echo.read_exact(&mut [0]).expect("an echo");
    let (bytes, _) = read_for(&mut request(&linked, DATA), Duration::from_secs(1));
    assert!(bytes > 0);
}

/// Returns the times of echoes in ascending order.
fn echoes(connection: &mut TcpStream, count: usize) -> Vec<Duration> {
    let echo = |_| {
        let begun = Instant::now();
        connection.write_all(b"k").expect("sent");
        connection.read_exact(&mut [0]).expect("an echo");
        let taken = begun.elapsed();
        thread::sleep(Duration::from_millis(5));
        taken
    };
    let mut times: Vec<Duration> = (0..count).map(echo).collect();
    times.sort_unstable();
    times
}

/// Measures echoes beside this number of downloads until 99 % return within 20 ms of an idle one.
#[track_caller]
fn assert_keystrokes(downloads: usize) {
    const LINK: &str = "rate=10Mbit,delay=10ms,queue=100ms";
    const TIME: Duration = Duration::from_secs(8);
    let forwarded = server();
    is_reached(|| {
        let linked = Linked::new(&[LINK, LINK], ["-L", &forwarded]);
        let mut typed = request(&linked, ECHO);
        let idle = echoes(&mut typed, 20)[10];
        let downloading: Vec<_> = (0..downloads)
            .map(|_| request(&linked, DATA))
            .map(|mut data| thread::spawn(move || read_for(&mut data, TIME).0))
            .collect();
        // Slow start, and the first message of each download.
        thread::sleep(Duration::from_secs(3));
        let beside = echoes(&mut typed, 100);
        let figures = format!("{idle:?} idle, {:?} and {:?} (99 %) beside", beside[50], beside[98]);
        println!("{figures}");
        let downloaded: usize = downloading.into_iter().map(|one| one.join().expect("no failure")).sum();
        assert!(downloaded as f64 > 0.5 * bytes_of(20.0, TIME), "{downloaded} bytes beside");
        Judged::new(linked.was_in_time(0..2), beside[98] < idle + Duration::from_millis(20), figures)
    });
}

#[test]
fn keystrokes_beside_a_download_return_within_20_ms_of_idle() {
    assert_keystrokes(1);
}

#[test]
fn keystrokes_beside_64_downloads_return_within_20_ms_of_idle() {
    assert_keystrokes(64);
}

/// Program that sends datagrams through the proxy.
struct Datagrams {
    socket: UdpSocket,
    proxy: SocketAddr,
    /// Connection that keeps the proxy's socket open.
    _held: TcpStream,
}

impl Datagrams {
    fn new(linked: &Linked) -> Self {
        let mut held = TcpStream::connect(linked.address()).expect("a connection");
        held.set_read_timeout(Some(LIMIT)).expect("an option");
        held.write_all(b"\x05\x01\x00\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00").expect("a request");
        let mut replies = [0; 12];
        held.read_exact(&mut replies).expect("replies");
        let proxy = ([127, 0, 0, 1], u16::from_be_bytes([replies[10], replies[11]])).into();
        Datagrams { socket: socket(), proxy, _held: held }
    }

    /// Sends a datagram to a port of loopback.
    fn send(&self, port: u16, payload: &[u8]) {
        let header = [&b"\x00\x00\x00\x01\x7f\x00\x00\x01"[..], &port.to_be_bytes()].concat();
        self.socket.send_to(&[&header, payload].concat(), self.proxy).expect("sent");
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(3))).expect("an option");
    socket
}

fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().expect("an address").port()
}

/// Answers DNS queries with an address.
fn answer_queries(server: &UdpSocket) {
    let mut buffer = [0; 512];
    loop {
        let Ok((length, from)) = server.recv_from(&mut buffer) else { continue };
        // Flags of an answer, one answer, its name as in the query, type A, class IN, one minute, four bytes.
        let mut answer = buffer[..length].to_vec();
        answer[2..4].copy_from_slice(&[0x81, 0x80]);
        answer[6..8].copy_from_slice(&[0, 1]);
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7]);
        server.send_to(&answer, from).expect("sent");
    }
}

#[test]
fn name_server_behind_the_gateway_answers_a_query() {
    let linked = Linked::new(&["rate=10Mbit,delay=10ms"; 2], ["-D", "127.0.0.1:0"]);
    let (resolver, server) = (Datagrams::new(&linked), socket());
    let at = port(&server);
    thread::spawn(move || answer_queries(&server));
    // One question: the address of host.test.
    let query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04host\x04test\x00\x00\x01\x00\x01";
    let mut answer = [0; 512];
    resolver.send(at, query);
    let length = resolver.socket.recv(&mut answer).expect("an answer");
    // After the header of the proxy.
    assert_eq!((&answer[10..12], &answer[length - 4..length]), (&query[..2], &[192, 0, 2, 7][..]));
}

/// Number of packets of a call, 20 ms apart.
const VOICE_PACKETS: usize = 400;

/// Call whose packets are returned to the caller.
struct Call {
    /// Delays of the packets that arrive, in ascending order.
    delays: Vec<Duration>,
    /// Number of packets that return.
    returned: usize,
    /// Copies on a second path, in the direction of the call.
    copies: u64,
    in_time: bool,
}

impl Call {
    fn p99(&self) -> Duration {
        self.delays.get(VOICE_PACKETS * 99 / 100).copied().unwrap_or(LIMIT)
    }

    /// Returns `true` if at most 0.5 % of the packets were lost in each direction.
    fn is_clear(&self) -> bool {
        let arrived = self.delays.len();
        [VOICE_PACKETS - arrived, arrived - self.returned].iter().all(|lost| lost * 200 <= VOICE_PACKETS)
    }
}

fn call(links: &[&str]) -> Call {
    let mut linked = Linked::new(links, ["-D", "127.0.0.1:0"]);
    let (caller, called) = (Datagrams::new(&linked), socket());
    let (to, begun) = (port(&called), Instant::now());
    let due = move |number: usize| begun + Duration::from_millis(20) * number as u32;
    let listening = thread::spawn(move || {
        let (mut packet, mut delays) = ([0; 160], Vec::new());
        while delays.len() < VOICE_PACKETS
            && let Ok((_, from)) = called.recv_from(&mut packet)
        {
            let number = usize::from(u16::from_be_bytes([packet[0], packet[1]]));
            delays.push(due(number).elapsed());
            called.send_to(&packet, from).expect("sent");
        }
        delays.sort_unstable();
        delays
    });
    let returning = caller.socket.try_clone().expect("a socket");
    let returning = thread::spawn(move || {
        (0..VOICE_PACKETS).take_while(|_| returning.recv(&mut [0; 200]).is_ok()).count()
    });
    for number in 0..VOICE_PACKETS {
        thread::sleep(due(number).saturating_duration_since(Instant::now()));
        let mut packet = [0; 160];
        packet[..2].copy_from_slice(&(number as u16).to_be_bytes());
        caller.send(to, &packet);
    }
    let delays = listening.join().expect("no failure");
    let returned = returning.join().expect("no failure");
    let copies = linked.end_forwarding()["copies"].as_u64().expect("a number");
    Call { delays, returned, copies, in_time: linked.was_in_time(0..links.len()) }
}

#[test]
fn voice_beside_a_lossy_link_loses_half_a_percent_at_most() {
    const CLEAN: &str = "rate=5Mbit,delay=20ms";
    const LOSSY: &str = "rate=5Mbit,delay=20ms,loss=5%,reverse=(loss=5%)";
    is_reached(|| {
        let (alone, both) = (call(&[CLEAN]), call(&[LOSSY, CLEAN]));
        let [p99_alone, p99] = [&alone, &both].map(Call::p99);
        let Call { delays, returned, copies, .. } = &both;
        let figures = format!(
            "{} and alone {} of {VOICE_PACKETS}, {p99:?} and {p99_alone:?} (99 %), {returned} returned, {copies} copies",
            delays.len(),
            alone.delays.len()
        );
        // The clean link loses nothing.
        let is_whole = [alone.delays.len(), alone.returned] == [VOICE_PACKETS; 2] && alone.copies == 0;
        assert!(is_whole || !alone.in_time, "{figures}");
        let reached = both.is_clear() && p99 < p99_alone + Duration::from_millis(30);
        // A copy needs room on both links.
        let is_copied = both.copies as usize * 10 >= VOICE_PACKETS * 9;
        Judged::new(alone.in_time && both.in_time, reached && is_copied, figures)
    });
}
