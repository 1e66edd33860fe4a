//! Client of a control socket.

use std::io;
use std::time::Duration;

use rustix::process::geteuid;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::folder::Listed;
use super::message::{Answer, MAX_ANSWER_BYTES, Request, line};

/// Time for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Reason for which a request has no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// The command has ended.
    #[error("{command} (process {pid}) has ended")]
    Ended {
        /// Name of the command.
        command: String,
        /// Process identifier.
        pid: u32,
    },
    /// The command does not answer.
    #[error("{command} (process {pid}) does not answer: {why}")]
    Silent {
        /// Name of the command.
        command: String,
        /// Process identifier.
        pid: u32,
        /// Reason, for people.
        why: String,
    },
}

/// Connection with a control socket.
#[derive(Debug)]
pub struct Client {
    listed: Listed,
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to a control socket of this user, or as root to one of any user.
    ///
    /// # Errors
    /// Returns [`AskError`] if the command has ended, or if another user listens.
    pub async fn connect(listed: &Listed) -> Result<Self, AskError> {
        let connected = UnixStream::connect(&listed.socket).await;
        let stream = connected.map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => ended(listed),
            _ => silent(listed, format!("{}: {error}", listed.socket.display())),
        })?;
        let own = geteuid();
        if !own.is_root() && !stream.peer_cred().is_ok_and(|peer| peer.uid() == own.as_raw()) {
            return Err(silent(listed, format!("{} is of another user", listed.socket.display())));
        }
        Ok(Client { listed: listed.clone(), stream: BufReader::new(stream) })
    }

    /// Returns the name of the socket to which the client is connected.
    pub fn listed(&self) -> &Listed {
        &self.listed
    }

    /// Sends a request and returns its answer.
    ///
    /// # Errors
    /// Returns [`AskError`] if the command has ended or does not answer within five seconds.
    pub async fn ask(&mut self, request: &Request) -> Result<Answer, AskError> {
        match timeout(ANSWERED_WITHIN, self.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(silent(&self.listed, format!("no answer within {} s", ANSWERED_WITHIN.as_secs()))),
        }
    }

    async fn exchange(&mut self, request: &Request) -> Result<Answer, AskError> {
        let Client { listed, stream } = self;
        let sent = stream.get_mut().write_all(line(request).as_bytes()).await;
        sent.map_err(|_| ended(listed))?;
        let mut answer = Vec::new();
        let mut reading = stream.take(MAX_ANSWER_BYTES as u64);
        reading.read_until(b'\n', &mut answer).await.map_err(|_| ended(listed))?;
        match answer.last() {
            Some(b'\n') => {}
            Some(_) if answer.len() == MAX_ANSWER_BYTES => {
                return Err(silent(listed, "its answer is too long".to_owned()));
            }
            _ => return Err(ended(listed)),
        }
        serde_json::from_slice(&answer).map_err(|error| {
            silent(
                listed,
                format!("its answer is not understood: {error}; use the same version of anabranch"),
            )
        })
    }
}

fn ended(listed: &Listed) -> AskError {
    AskError::Ended { command: listed.command.clone(), pid: listed.pid }
}

fn silent(listed: &Listed, why: String) -> AskError {
    AskError::Silent { command: listed.command.clone(), pid: listed.pid, why }
}
