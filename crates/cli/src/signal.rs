//! Signals: those that end a command that waits for sockets, and that of a resized terminal.

use anyhow::Context;

/// Ends at Ctrl-C, or when the system requests the end of the process.
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

/// Changes of the terminal's size. The default value reports no changes.
#[derive(Debug, Default)]
pub(crate) struct Resizes {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Resizes {
    /// Reports changes from now on, if the system has a signal for them.
    pub(crate) fn watch() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            // If the signal is not available, the next redraw uses the new size.
            Resizes { signal: signal(SignalKind::window_change()).ok() }
        }
        #[cfg(not(unix))]
        Resizes::default()
    }

    /// Waits for the next change. Cancel-safe.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
