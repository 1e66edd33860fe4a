//! Random numbers that cannot be guessed.

use thiserror::Error;

/// Failure of the system to provide random bytes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the system gave no random bytes ({0})")]
pub struct RandomError(String);

/// Returns 16 random bytes.
pub(crate) fn token() -> Result<[u8; 16], RandomError> {
    let mut token = [0; 16];
    getrandom::fill(&mut token).map_err(|error| RandomError(error.to_string()))?;
    Ok(token)
}
