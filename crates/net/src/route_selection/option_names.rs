//! What messages call the options of the program that uses this crate.

/// The names of the options with which a program's users say where paths begin and lead, and which addresses are listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionNames {
    /// Local addresses and interfaces of paths.
    pub path: &'static str,
    /// Remote addresses of paths.
    pub to: &'static str,
    /// Addresses to listen on.
    pub listen: &'static str,
}
