//! `anabranch keys`.

use std::path::PathBuf;

use anabranch_identity::{
    AuthorizedKey, AuthorizedKeys, Home, HostName, IdentityError, KeyPair, KnownHosts, Label, PublicKey,
    Rights,
};
use anabranch_net::route_selection::Target;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::exit::{CommandError, Status};
use crate::output;
use crate::quantity;
use crate::table::TextTable;

const EXAMPLES: &str = "\
Examples:
  Print this user's key, and its fingerprint to compare on the telephone:
    anabranch keys show
  Allow the owner of a key to connect, and revoke the permission:
    anabranch keys add \\
        ed25519:Q2hlY2sgdGhpcyBrZXkgd2l0aCBpdHMgb3duZXIgISE Anna, laptop
    anabranch keys remove 'Anna, laptop'
  Restrict Bert to adding files, 10 GB in total, to a folder below the served
  one:
    anabranch keys add --allow write --folder bert --quota 10GB KEY Bert
  Trust a host before the first connection, or remove its key after the host
  has changed it:
    anabranch keys add --host example.org \\
        ed25519:Q2hlY2sgdGhpcyBrZXkgd2l0aCBpdHMgb3duZXIgISE
    anabranch keys forget example.org
  List the authorised keys and the known hosts:
    anabranch keys list

Keys are in $ANABRANCH_HOME, or else in $XDG_CONFIG_HOME/anabranch, or else in
~/.config/anabranch:
identity.pem is this user's private key, which is created at first use and
must not be copied to another machine; authorized_keys lists the peers that
may connect; known_hosts has the keys of the hosts connected to.
Exit status: 0 if all went well, 1 if a file cannot be read or written or
has no such key, 2 if the command line is wrong.";

/// Show this user's key, and manage the trusted keys.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct KeysArguments {
    #[command(subcommand)]
    command: KeysCommand,

    #[command(flatten)]
    home: HomeOptions,

    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

/// Options for the folder of keys.
#[derive(Clone, Debug, Args)]
pub(crate) struct HomeOptions {
    /// Folder with this user's key, known_hosts and authorized_keys [default: $ANABRANCH_HOME, or else $XDG_CONFIG_HOME/anabranch,
    /// or else ~/.config/anabranch]
    #[arg(long, value_name = "DIR", global = true)]
    keys: Option<PathBuf>,
}

impl HomeOptions {
    pub(crate) fn home(&self) -> Result<Home, IdentityError> {
        self.keys.as_ref().map_or_else(Home::of_user, |folder| Ok(Home::at(folder)))
    }
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Print this user's key and its fingerprint; a missing key is created
    Show,
    /// List the authorised keys and the known hosts
    List,
    /// Allow the holder of a key to connect, or trust a host
    Add(AddArguments),
    /// Withdraw a key's right to connect
    Remove {
        /// Key, fingerprint or label
        #[arg(value_name = "KEY|FINGERPRINT|LABEL")]
        which: String,
    },
    /// Remove the keys of a host from known_hosts, so that its next key can be trusted
    Forget {
        /// Host as named when connecting [port: 9899]
        #[arg(value_name = "HOST[:PORT]", value_parser = read_host)]
        host: HostName,
    },
}

#[derive(Debug, Args)]
struct AddArguments {
    /// Rights of the key's holder to files here, within those that a server permits: read, write, overwrite (needs write), delete
    /// (needs write); and forward, to use a gateway; separated by commas [default: those of the server]
    #[arg(long, value_name = "RIGHTS", value_delimiter = ',', conflicts_with = "host")]
    allow: Vec<String>,

    /// Subfolder of the served folder to which the key's holder is confined; created at first use
    #[arg(long, value_name = "DIR", conflicts_with = "host")]
    folder: Option<String>,

    /// Maximum size of all files in that folder, such as 10GB
    #[arg(long, value_name = "SIZE", value_parser = quantity::read_size, conflicts_with = "host")]
    quota: Option<u64>,

    /// Key as printed by `anabranch keys show` of its owner
    #[arg(value_name = "KEY")]
    key: PublicKey,

    /// Owner of the key; options go before the key
    #[arg(value_name = "LABEL", trailing_var_arg = true, conflicts_with = "host")]
    label: Vec<String>,

    /// Add the key as that of this host, not as a key that may connect
    #[arg(long, value_name = "HOST[:PORT]", value_parser = read_host)]
    host: Option<HostName>,
}

/// Reads a host in the form of the commands that connect.
pub(crate) fn read_host(text: &str) -> Result<HostName, String> {
    let target = Target::read(text).map_err(|error| error.to_string())?;
    HostName::new(target.host(), target.port()).map_err(|error| error.to_string())
}

impl From<IdentityError> for CommandError {
    fn from(error: IdentityError) -> Self {
        CommandError::failure(error)
    }
}

/// Runs the command.
pub(crate) fn keys(arguments: &KeysArguments) -> Result<Status, CommandError> {
    let home = arguments.home.home()?;
    let json = arguments.json;
    let text = match &arguments.command {
        KeysCommand::Show => show(&home, json)?,
        KeysCommand::List => list(&home, json)?,
        KeysCommand::Add(add) => add_key(&home, add, json)?,
        KeysCommand::Remove { which } => remove(&home, which, json)?,
        KeysCommand::Forget { host } => forget(&home, host, json)?,
    };
    output::print(&text);
    Ok(Status::Success)
}

fn show(home: &Home, json: bool) -> Result<String, CommandError> {
    let key = KeyPair::load_or_create(&home.key())?.public();
    let (fingerprint, file) = (key.fingerprint().to_string(), home.key());
    Ok(if json {
        json!({ "key": key.to_string(), "fingerprint": fingerprint, "file": file }).to_string() + "\n"
    } else {
        format!("{key}\n{fingerprint}\n")
    })
}

fn list(home: &Home, json: bool) -> Result<String, CommandError> {
    let authorized = AuthorizedKeys::load(home.authorized_keys())?;
    let hosts = KnownHosts::load(home.known_hosts())?;
    if json {
        let authorized: Vec<_> = authorized.entries().map(authorized_json).collect();
        let hosts: Vec<_> = hosts.entries().map(|entry| entry_json(entry.key, "host", &entry.host)).collect();
        return Ok(json!({ "authorized": authorized, "hosts": hosts }).to_string() + "\n");
    }
    let mut table = TextTable::new().text("kind").text("who").text("fingerprint").text("rights");
    for entry in authorized.entries() {
        table.row(vec![
            "connecting".to_owned(),
            entry.label.to_string(),
            entry.key.fingerprint().to_string(),
            // One option per line, so that fingerprints are not broken on a narrow terminal.
            if entry.rights.is_empty() { "-".to_owned() } else { entry.rights.options().join(",\n") },
        ]);
    }
    for entry in hosts.entries() {
        table.row(vec![
            "host".to_owned(),
            entry.host.to_string(),
            entry.key.fingerprint().to_string(),
            String::new(),
        ]);
    }
    Ok(if table.is_empty() {
        format!("no keys in {}\n", anabranch_transfer::escape(&home.folder().to_string_lossy()))
    } else {
        table.print()
    })
}

fn authorized_json(entry: &AuthorizedKey) -> serde_json::Value {
    let mut json = entry_json(entry.key, "label", &entry.label);
    json["rights"] = (!entry.rights.is_empty()).then(|| entry.rights.to_string()).into();
    json
}

fn entry_json(key: PublicKey, what: &str, name: &impl ToString) -> serde_json::Value {
    json!({ "key": key.to_string(), "fingerprint": key.fingerprint().to_string(), what: name.to_string() })
}

fn add_key(home: &Home, add: &AddArguments, json: bool) -> Result<String, CommandError> {
    let fingerprint = add.key.fingerprint();
    let added = match &add.host {
        Some(host) => KnownHosts::add(&home.known_hosts(), host, add.key)?,
        None => authorize(home, add)?,
    };
    Ok(match (json, added) {
        (true, _) => json!({ "added": added, "fingerprint": fingerprint.to_string() }).to_string() + "\n",
        (false, true) => format!("added {fingerprint}\n"),
        (false, false) => format!("{fingerprint} exists already\n"),
    })
}

/// Adds a line to `authorized_keys`. A known key keeps its line, so other rights for it are an error.
fn authorize(home: &Home, add: &AddArguments) -> Result<bool, CommandError> {
    if let Some(option) = add.label.iter().find(|word| word.starts_with("--")) {
        return Err(CommandError::usage(format!(
            "{option}: options go before KEY, and behind it is the label"
        )));
    }
    let label: Label = add.label.join(" ").parse().map_err(CommandError::usage)?;
    let rights =
        Rights::from_parts(&add.allow, add.folder.as_deref(), add.quota).map_err(CommandError::usage)?;
    let path = home.authorized_keys();
    let entry = AuthorizedKey { rights, key: add.key, label };
    if AuthorizedKeys::add(&path, &entry)? {
        return Ok(true);
    }
    let keys = AuthorizedKeys::load(&path)?;
    let there = keys.entries().find(|there| there.key == entry.key);
    match there {
        Some(there) if there.rights != entry.rights && !entry.rights.is_empty() => {
            Err(CommandError::failure(format!(
                "{}: this key exists already with {}; run `anabranch keys remove {}` first",
                path.display(),
                if there.rights.is_empty() {
                    "no rights of its own".to_owned()
                } else {
                    there.rights.to_string()
                },
                entry.key.fingerprint()
            )))
        }
        _ => Ok(false),
    }
}

fn remove(home: &Home, which: &str, json: bool) -> Result<String, CommandError> {
    let path = home.authorized_keys();
    let is_meant = |entry: &AuthorizedKey| {
        let names = [entry.key.to_string(), entry.key.fingerprint().to_string(), entry.label.to_string()];
        names.iter().any(|name| !name.is_empty() && name == which)
    };
    match AuthorizedKeys::remove(&path, is_meant)? {
        0 => Err(CommandError::failure(format!(
            "{}: no key, fingerprint or label `{which}`; `anabranch keys list` shows them",
            path.display()
        ))),
        removed => Ok(removed_text(removed, json)),
    }
}

fn forget(home: &Home, host: &HostName, json: bool) -> Result<String, CommandError> {
    let path = home.known_hosts();
    match KnownHosts::forget(&path, host)? {
        0 => Err(CommandError::failure(format!(
            "{}: no key of {host}; `anabranch keys list` shows the hosts that are known",
            path.display()
        ))),
        removed => Ok(removed_text(removed, json)),
    }
}

fn removed_text(removed: usize, json: bool) -> String {
    match (json, removed) {
        (true, _) => json!({ "removed": removed }).to_string() + "\n",
        (false, 1) => "removed 1 key\n".to_owned(),
        (false, _) => format!("removed {removed} keys\n"),
    }
}
