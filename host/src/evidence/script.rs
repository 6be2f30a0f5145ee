//! Programs that a gate asks for: run without a shell, only where the user allowed
//! it, and never for longer than their time.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::file::working_folder;
use crate::cancel::Cancel;
use crate::contract::tools::{Script, ScriptRun};
use crate::process_group;

/// The command-line flag that allows scripts.
pub const ALLOW_FLAG: &str = "--allow-scripts";

/// The environment variable that allows scripts when it is `1`.
pub const ALLOW_VARIABLE: &str = "LOOP_STATE_ALLOW_SCRIPTS";

/// How much of the end of what a program prints is kept, in bytes.
const OUTPUT_KEPT: usize = 4096;

/// How long output is waited for once the program has ended: someone that it started
/// may hold its end of the pipe.
const OUTPUT_PATIENCE: Duration = Duration::from_millis(500);

/// The pause between two looks at a running program.
const PAUSE: Duration = Duration::from_millis(5);

/// Whether and how scripts are run.
#[derive(Clone, Copy, Debug)]
pub struct Scripts {
    /// The user allowed them when the server was started.
    pub allowed: bool,
    /// How long one may take.
    pub limit: Duration,
}

impl Default for Scripts {
    fn default() -> Self {
        Self { allowed: false, limit: Duration::from_secs(60) }
    }
}

impl Scripts {
    /// Runs a program in a working folder of the project `root` and tells how it ended.
    ///
    /// It gets no standard input, and a process group of its own, which is killed when
    /// the program ends, when its time is over, and when the call is cancelled.
    pub fn run(&self, root: &Path, script: &Script, cancel: &Cancel) -> ScriptRun {
        if !self.allowed {
            return ScriptRun::Unavailable(format!(
                "scripts are not allowed; the user can allow them with {ALLOW_FLAG} or {ALLOW_VARIABLE}=1"
            ));
        }
        let folder = match working_folder(root, &script.workdir) {
            Ok(Some(folder)) => folder,
            Ok(None) => {
                return ScriptRun::Unavailable("the working folder lies outside the project".to_owned());
            }
            Err(cause) => return ScriptRun::Unavailable(format!("the working folder: {cause}")),
        };
        // A name with a slash is one of the working folder's, as a shell would have it.
        let program = match script.command.contains('/') {
            true => folder.join(&script.command).into_os_string(),
            false => script.command.clone().into(),
        };
        let started = Command::new(program)
            .args(&script.args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        match started {
            Ok(child) => self.wait(child, cancel),
            Err(cause) => ScriptRun::Unavailable(format!("it cannot be started: {cause}")),
        }
    }

    fn wait(&self, mut child: Child, cancel: &Cancel) -> ScriptRun {
        let output = Output::of(&mut child);
        let deadline = Instant::now() + self.limit;
        let stopped = loop {
            match has_ended(&child) {
                Ok(true) => break None,
                Err(cause) => break Some(format!("it cannot be waited for: {cause}")),
                Ok(false) if cancel.is_cancelled() => break Some("the call was cancelled".to_owned()),
                Ok(false) if Instant::now() >= deadline => {
                    break Some(format!("it was stopped after {} s", self.limit.as_secs_f64()));
                }
                Ok(false) => thread::sleep(PAUSE),
            }
        };
        // Also after a proper end: what it left behind is not to outlive the check.
        process_group::kill(&child);
        // It has ended, or was killed just now: this does not wait.
        match (stopped, child.wait()) {
            (Some(why), _) => ScriptRun::Unavailable(why),
            (None, Ok(status)) => tell(status, output),
            (None, Err(cause)) => ScriptRun::Unavailable(format!("it cannot be waited for: {cause}")),
        }
    }
}

fn tell(status: ExitStatus, output: Output) -> ScriptRun {
    match (status.code(), status.signal()) {
        (Some(code), _) => ScriptRun::Exit((code, output.last_line())),
        (None, Some(number)) => ScriptRun::Signal(number),
        (None, None) => ScriptRun::Unavailable(format!("it ended in an unknown way: {status}")),
    }
}

/// Whether a program has ended; it is not waited for yet.
fn has_ended(child: &Child) -> io::Result<bool> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("it has no process id"))?;
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(pid), look)?.is_some())
}

/// The end of what a program prints, on both of its outputs.
struct Output(mpsc::Receiver<Vec<u8>>);

impl Output {
    /// Reads along, so that the program is not stopped by a full pipe.
    fn of(child: &mut Child) -> Self {
        let (done, ends) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            keep_end(stdout, done.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            keep_end(stderr, done);
        }
        Self(ends)
    }

    /// The last line that is not blank.
    fn last_line(self) -> String {
        let deadline = Instant::now() + OUTPUT_PATIENCE;
        let mut last = String::new();
        // One end for each output; errors come later and win where both say something.
        for _ in 0..2 {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(end) = self.0.recv_timeout(left) else { break };
            let text = String::from_utf8_lossy(&end);
            if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
                last = line.trim().to_owned();
            }
        }
        last
    }
}

fn keep_end(mut from: impl Read + Send + 'static, done: mpsc::Sender<Vec<u8>>) {
    let reader = move || {
        let mut kept = VecDeque::with_capacity(2 * OUTPUT_KEPT);
        let mut buffer = [0; OUTPUT_KEPT];
        while let Ok(count) = from.read(&mut buffer) {
            if count == 0 {
                break;
            }
            kept.extend(&buffer[..count]);
            kept.drain(..kept.len().saturating_sub(OUTPUT_KEPT));
        }
        // Whoever asked may have gone on.
        let _ = done.send(kept.into());
    };
    if let Err(error) = thread::Builder::new().name("script output".to_owned()).spawn(reader) {
        tracing::warn!(%error, "a script's output is not read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: Scripts = Scripts { allowed: true, limit: Duration::from_secs(20) };

    fn shell(text: &str) -> Script {
        let args = vec!["-c".to_owned(), text.to_owned()];
        Script { workdir: String::new(), command: "sh".to_owned(), args }
    }

    fn run(scripts: Scripts, script: &Script) -> ScriptRun {
        let root = tempfile::tempdir().expect("a temporary folder");
        scripts.run(root.path(), script, &Cancel::default())
    }

    #[test]
    fn ends() {
        let exit = |code, note: &str| ScriptRun::Exit((code, note.to_owned()));
        assert_eq!(run(ALLOWED, &shell("echo one; echo two; echo")), exit(0, "two"));
        assert_eq!(run(ALLOWED, &shell("exit 3")), exit(3, ""));
        assert_eq!(run(ALLOWED, &shell("kill -TERM $$")), ScriptRun::Signal(15));
        assert_eq!(run(ALLOWED, &shell("read x || echo no input")), exit(0, "no input"));
        // More than a pipe holds.
        assert_eq!(run(ALLOWED, &shell("yes | head -c 1000000; echo end")), exit(0, "end"));
    }

    #[test]
    fn what_does_not_run_is_unavailable() {
        let missing =
            Script { workdir: String::new(), command: "no-such-program".to_owned(), args: Vec::new() };
        let nowhere = Script { workdir: "nowhere".to_owned(), ..shell("true") };
        let short = Scripts { limit: Duration::from_millis(50), ..ALLOWED };
        for (scripts, script, why) in [
            (Scripts::default(), shell("true"), "scripts are not allowed"),
            (ALLOWED, missing, "it cannot be started"),
            (ALLOWED, nowhere, "the working folder"),
            (short, shell("sleep 100"), "it was stopped after 0.05 s"),
        ] {
            match run(scripts, &script) {
                ScriptRun::Unavailable(said) => assert!(said.starts_with(why), "{said}"),
                other => panic!("{script:?}: {other:?}"),
            }
        }
    }

    /// A child that the program left behind goes with it, at its end and at its time.
    #[test]
    fn the_whole_group_is_stopped() {
        let root = tempfile::tempdir().expect("a temporary folder");
        for (text, limit) in [
            ("sleep 1000 & echo $! > child", Duration::from_secs(20)),
            ("sleep 1000 & echo $! > child; wait", Duration::from_millis(300)),
        ] {
            let _ = Scripts { limit, ..ALLOWED }.run(root.path(), &shell(text), &Cancel::default());
            let child = std::fs::read_to_string(root.path().join("child")).expect("its number");
            // The kill takes effect when the process is next scheduled; then it may wait
            // to be reaped, as a zombie.
            let alive = || {
                let stat =
                    std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
                let state = stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
                !matches!(state, None | Some('Z' | 'X'))
            };
            let deadline = Instant::now() + Duration::from_secs(10);
            while alive() && Instant::now() < deadline {
                thread::yield_now();
            }
            assert!(!alive(), "{text}");
        }
    }

    #[test]
    fn a_cancelled_call_stops_it() {
        let cancel = Cancel::default();
        cancel.cancel();
        let root = tempfile::tempdir().expect("a temporary folder");
        let run = ALLOWED.run(root.path(), &shell("sleep 100"), &cancel);
        assert_eq!(run, ScriptRun::Unavailable("the call was cancelled".to_owned()));
    }
}
