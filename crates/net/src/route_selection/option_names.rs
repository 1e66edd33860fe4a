//! Names of the program's options in messages.

/// Names of the options that select where paths begin and end, and the addresses to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionNames {
    /// Option for local addresses and interfaces of paths.
    pub path: &'static str,
    /// Option for remote addresses of paths.
    pub to: &'static str,
    /// Option for addresses to listen on.
    pub listen: &'static str,
}
