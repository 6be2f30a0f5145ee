//! What the figures were measured on.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use loop_state_tests::{World, binary};

/// The machine and the versions, a line each.
pub fn describe() -> Vec<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = field(&cpuinfo, "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory: f64 = field(&meminfo, "MemTotal")
        .and_then(|line| line.split(' ').next().and_then(|kib| kib.parse::<f64>().ok()))
        .unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![
        format!("processor: {model}, {cores} cores"),
        format!("memory: {:.1} GB", memory * 1024.0 / 1e9),
        format!("system: {} {}", std::env::consts::OS, kernel.trim()),
        format!("file system of all data: {}", file_system()),
        format!(
            "{}, {}, SQLite {}",
            first_line(binary().as_os_str()),
            first_line("rustc"),
            rusqlite::version()
        ),
    ]
}

/// Processor time since the machine was started, in ticks of all cores together, where
/// the system says.
#[derive(Clone, Copy)]
pub struct Ticks {
    all: u64,
    idle: u64,
    /// Taken by other guests of the same host.
    stolen: u64,
}

impl Ticks {
    /// Until now.
    pub fn now() -> Option<Ticks> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        // user, nice, system, idle, waiting, interrupts (two), stolen; guests' time, which
        // follows, is the users' already.
        let ticks = stat.lines().next()?.split_ascii_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.map(str::parse).collect::<Result<_, _>>().ok()?;
        let [.., idle, waiting, _, _, stolen] = ticks[..] else { return None };
        Some(Ticks { all: ticks.iter().sum(), idle: idle + waiting, stolen })
    }

    /// The shares, in percent, that were spent and that were stolen since.
    pub fn since(self) -> Option<(f64, f64)> {
        let now = Ticks::now()?;
        let all = now.all.checked_sub(self.all).filter(|all| *all > 0)? as f64;
        let share = |ticks: u64| 100.0 * ticks as f64 / all;
        Some((
            100.0 - share(now.idle.saturating_sub(self.idle)),
            share(now.stolen.saturating_sub(self.stolen)),
        ))
    }
}

/// How busy the others keep the machine: the share, in percent, of a second in which
/// this program does nothing, where the system says.
pub fn busy() -> Option<f64> {
    let before = Ticks::now()?;
    thread::sleep(Duration::from_secs(1));
    before.since().map(|(spent, _)| spent)
}

/// A field of a list of `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(found, _)| found.trim() == name)?;
    Some(value.trim().to_owned())
}

/// The type of the file system that a world lies in, and how it is mounted.
fn file_system() -> String {
    let world = World::new();
    let top = world.top().canonicalize().expect("it is there");
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?, words.next()?))
    });
    let on = mounts.filter(|(point, ..)| top.starts_with(point)).max_by_key(|(point, ..)| point.len());
    on.map_or_else(|| "unknown".to_owned(), |(_, kind, options)| format!("{kind} ({options})"))
}

/// What a program says first to `--version`.
fn first_line(program: impl AsRef<std::ffi::OsStr>) -> String {
    let done = Command::new(program).arg("--version").output();
    let said = done.map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).unwrap_or_default();
    said.lines().next().unwrap_or("unknown").to_owned()
}
