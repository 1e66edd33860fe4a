//! Figures of the system about this process, and the start of others.

use std::fs;
use std::process::{Command, Stdio};

use crate::Failure;

/// Clock ticks per second in `/proc` (USER_HZ, proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns a runtime like that of the command, for two processors.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Returns the processor time of this process and of its children that have ended.
pub(crate) fn cpu_seconds() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in parentheses, may contain any character: fields are counted from its end.
    let (_, fields) = text.rsplit_once(')').ok_or("no name in /proc/self/stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // The fields utime, stime, cutime and cstime are 14 to 17, and the state behind the name is field 3.
    let ticks = fields.get(11..15).ok_or("/proc/self/stat is short")?;
    let ticks: Result<Vec<f64>, _> = ticks.iter().map(|field| field.parse::<f64>()).collect();
    Ok(ticks?.iter().sum::<f64>() / TICKS_PER_SECOND)
}

/// Returns the resident memory of this process in bytes.
pub(crate) fn resident_bytes() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024.0)
}

/// Returns a command that runs this program with other arguments.
pub(crate) fn this_program(arguments: &[String]) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit());
    Ok(command)
}

/// Returns the last line that this program prints with these arguments, as a number.
pub(crate) fn figure_of(arguments: &[String]) -> Result<f64, Failure> {
    let output = this_program(arguments)?.output()?;
    if !output.status.success() {
        return Err(format!("`{}` ended with {}", arguments.join(" "), output.status).into());
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(text.trim().lines().last().unwrap_or_default().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time_and_memory() {
        let (cpu, resident) = (cpu_seconds().expect("Linux"), resident_bytes().expect("Linux"));
        let mut block = vec![0_u8; 32 << 20];
        while cpu_seconds().expect("Linux") == cpu {
            block.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        }
        assert!(resident_bytes().expect("Linux") > resident + (16 << 20) as f64);
        assert!(block.iter().all(|&byte| byte == block[0]));
    }
}
