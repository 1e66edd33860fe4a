//! Signals that end what waits for sockets.

use anyhow::Context;

/// Comes to an end at Ctrl-C, or when the system asks the process to end.
#[cfg(unix)]
pub(crate) fn interrupted() -> anyhow::Result<impl Future<Output = ()> + use<>> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).context("cannot watch for Ctrl-C");
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
pub(crate) fn interrupted() -> anyhow::Result<impl Future<Output = ()> + use<>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
