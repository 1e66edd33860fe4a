//! `forward` and `gateway` over two direct links in network namespaces.

use std::fs;

use super::network::{End, LONGEST_PAUSE, Network, assert_same, longest_pause};

/// Serves the folder `served` over HTTP on port 8000 of loopback.
const WEB_SERVER: &str = "
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory='served')
server = http.server.ThreadingHTTPServer(('127.0.0.1', 8000), handler)
sys.stderr = open('server.log', 'w')
print('listening')
server.serve_forever()
";

/// Downloads each file through the forwarded port, one connection for each.
const DOWNLOAD: &str = "
import shutil, urllib.request
print('started')
for number in range(14):
    with urllib.request.urlopen(f'http://127.0.0.1:8001/{number}') as answer, open(f'got/{number}', 'wb') as file:
        shutil.copyfileobj(answer, file, 16384)
";

#[test]
fn cables_pulled_during_downloads_cost_no_connection() {
    let Some(network) = Network::new() else { return };
    network.files("served", 14);
    fs::create_dir_all(network.path("got")).expect("a folder");
    let _web = network.python(End::Server, WEB_SERVER);
    let mut gateway = network.start(End::Server, &["gateway", "--json", "--allow", "127.0.0.1:8000"]);
    let mut forwarding =
        network.start(End::Client, &["forward", "10.91.1.2", "--json", "-L", "8001:127.0.0.1:8000"]);
    forwarding.event("listening");
    let mut download = network.python(End::Client, DOWNLOAD);
    let pause = longest_pause(
        &mut download,
        &network.path("got"),
        &[
            &|| network.pull(End::Server, 1),
            &|| network.plug(End::Server, 1),
            &|| network.interrupt(2),
            &|| network.restore(2),
        ],
    );
    download.wait();
    assert_same(&network.path("served"), &network.path("got"), 14);
    assert!(pause < LONGEST_PAUSE, "{pause:?} without progress");
    gateway.interrupt();
    let end = gateway.event("end");
    assert_eq!((&end["complete"], &end["reset"]), (&14.into(), &0.into()), "{end}");
}
