//! The `anabranch` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    anabranch_cli::main_with(std::env::args_os())
}
