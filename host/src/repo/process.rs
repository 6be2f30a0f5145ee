//! Running a program for its output: no longer than a limit, no more than a limit.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::process_group;

/// How much of each of its two outputs is kept, in bytes.
const OUTPUT_MAX: u64 = 64 << 10;

/// How often a program is looked at that has closed its outputs and goes on.
const PAUSE: Duration = Duration::from_millis(1);

/// What a program left behind.
#[derive(Debug)]
pub(super) struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a program with nothing on its standard input. `None` when it was stopped,
/// with all that it started, because the limit was over.
///
/// Output beyond what is kept finds its pipe closed.
pub(super) fn run(mut command: Command, limit: Duration) -> io::Result<Option<Ended>> {
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own: what it starts can be stopped with it, and an
        // interrupt at the terminal is not for it.
        .process_group(0)
        .spawn()?;
    let ended = collect(&mut child, deadline);
    if !matches!(ended, Ok(Some(_))) {
        stop(&mut child);
    }
    ended
}

fn collect(child: &mut Child, deadline: Instant) -> io::Result<Option<Ended>> {
    let stdout = read(child.stdout.take())?;
    let stderr = read(child.stderr.take())?;
    let left = || deadline.saturating_duration_since(Instant::now());
    let Ok(stdout) = stdout.recv_timeout(left()) else { return Ok(None) };
    let Ok(stderr) = stderr.recv_timeout(left()) else { return Ok(None) };
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(Ended { status, stdout: stdout?, stderr: stderr? }));
        }
        if left().is_zero() {
            return Ok(None);
        }
        thread::sleep(PAUSE);
    }
}

/// Reads a pipe on a thread, which ends with the pipe's last writer at the latest.
fn read(pipe: Option<impl Read + Send + 'static>) -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new().name("git-output".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        let result = match pipe {
            Some(pipe) => pipe.take(OUTPUT_MAX).read_to_end(&mut bytes).map(|_| bytes),
            None => Ok(bytes),
        };
        // Nobody listens any more when the limit is over.
        let _ = sender.send(result);
    })?;
    Ok(receiver)
}

fn stop(child: &mut Child) {
    process_group::kill(child);
    let _ = child.kill();
    let _ = child.wait();
}
