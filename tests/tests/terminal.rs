//! A real terminal: the live view on it, the terminal as it is left, and the line that
//! says how far long work has come.

use loop_state_tests::{PATIENCE, SLUG, World, binary};
use pty_process::blocking::{Command, Pty};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// The program's command in a world, for a terminal.
fn command(world: &World, arguments: &[&str]) -> Command {
    Command::new(binary())
        .args(&world.args)
        .args(arguments)
        .current_dir(world.project())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", world.home())
        .env("DEV_LOOP_STATE_DIR", world.state())
        .env("TERM", "xterm-256color")
        .envs(world.env.iter().map(|(key, value)| (key, value)))
}

/// A program on a terminal of its own, and what the terminal shows.
struct Terminal {
    pty: Pty,
    child: Child,
    bytes: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// Everything that was ever written to it.
    all: String,
}

impl Terminal {
    fn start(
        world: &World,
        arguments: &[&str],
        rows: u16,
        columns: u16,
        variables: &[(&str, &str)],
    ) -> Terminal {
        let (pty, pts) = pty_process::blocking::open().expect("a terminal");
        pty.resize(pty_process::Size::new(rows, columns)).expect("a size");
        let command = command(world, arguments).envs(variables.iter().copied());
        let child = command.spawn(pts).expect("it starts");
        let mut from = File::from(pty.as_fd().try_clone_to_owned().expect("its other end"));
        let (send, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            // The end of a terminal is an error.
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                if send.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        let size = |number: u16| number.try_into().expect("not nothing");
        Terminal {
            pty,
            child,
            bytes,
            screen: vt100::Parser::new(size(rows), size(columns), 0),
            all: String::new(),
        }
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    fn until(&mut self, what: &str, ready: impl Fn(&Terminal) -> bool) {
        let started = Instant::now();
        while !ready(self) {
            let left = PATIENCE.saturating_sub(started.elapsed());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => {
                    self.screen.process(&bytes);
                    self.all.push_str(&String::from_utf8_lossy(&bytes));
                }
                Err(_) => panic!("no {what}; the screen is\n{}\nof {:?}", self.text(), self.all),
            }
        }
    }

    #[track_caller]
    fn until_text(&mut self, text: &str) {
        self.until(&format!("{text:?}"), |terminal| terminal.text().contains(text));
    }

    fn text(&self) -> String {
        self.screen.screen().contents()
    }

    fn press(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).expect("it reads");
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        let size = |number: u16| number.try_into().expect("not nothing");
        self.screen.screen_mut().set_size(size(rows), size(columns));
        self.pty.resize(pty_process::Size::new(rows, columns)).expect("a size");
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("a signal");
    }

    /// Waits for the end, and for all that was written before.
    #[track_caller]
    fn end(&mut self) -> ExitStatus {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(started.elapsed() < PATIENCE, "it does not end\n{}", self.text());
            std::thread::yield_now();
        };
        while let Ok(bytes) = self.bytes.recv_timeout(PATIENCE) {
            self.screen.process(&bytes);
            self.all.push_str(&String::from_utf8_lossy(&bytes));
        }
        status
    }

    /// Whether lines are edited and shown as they are typed, as a shell expects it.
    fn is_at_rest(&self) -> bool {
        let modes = tcgetattr(self.pty.as_fd()).expect("the terminal's modes").local_modes;
        let screen = self.screen.screen();
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
            && !screen.alternate_screen()
            && !screen.hide_cursor()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tasks(names: &[&str]) -> Value {
    let tasks: Vec<_> =
        names.iter().map(|name| json!({ "taskid": name, "title": format!("Task {name}") })).collect();
    json!({ "tasks": tasks })
}

#[test]
fn a_live_view_shows_what_a_server_changes_and_leaves_the_terminal_as_it_was() {
    let world = World::new();
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", tasks(&["T1", "T2"]));
    let mut terminal = Terminal::start(&world, &["watch", SLUG], 24, 80, &[]);
    terminal.until_text("0/2 closed");
    assert!(terminal.screen.screen().alternate_screen() && terminal.screen.screen().hide_cursor());
    assert!(terminal.text().contains("q quit"), "{}", terminal.text());

    // A server changes the loop while it is looked at.
    client.ok("now_set", json!({ "task": "T1", "agent": "coder", "step": "build" }));
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "in-progress" }));
    terminal.until_text("coder · build on T1");
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "skipped" }));
    terminal.until_text("1/2 closed");

    terminal.press("2");
    terminal.until_text("Task T2");
    terminal.press("\u{1b}[C\u{1b}[C");
    terminal.until_text("4 Steps");
    terminal.resize(10, 40);
    terminal.press("6");
    terminal.until("the events on a small terminal", |terminal| {
        terminal.text().lines().count() <= 10
            && terminal.text().contains("6 Events")
            && terminal.text().contains("q quit")
    });
    terminal.press("q");
    assert!(terminal.end().success());
    assert!(terminal.is_at_rest(), "{:?}", terminal.all);
    assert_eq!(terminal.text().trim(), "", "something of it is left");
    client.ok("task_setStatus", json!({ "taskid": "T2", "status": "in-progress" }));
}

#[test]
fn every_end_leaves_the_terminal_as_it_was() {
    use std::os::unix::process::ExitStatusExt as _;
    let world = World::new();
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", tasks(&["T1"]));
    let start = || {
        let mut terminal = Terminal::start(&world, &["watch", SLUG], 24, 80, &[]);
        terminal.until_text("0/1 closed");
        terminal
    };
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut terminal = start();
        terminal.signal(signal);
        assert_eq!(terminal.end().signal(), Some(signal.as_raw()));
        assert!(terminal.is_at_rest(), "{signal:?}: {:?}", terminal.all);
    }
    for keys in ["\u{3}", "\u{1b}", "Q"] {
        let mut terminal = start();
        terminal.press(keys);
        assert!(terminal.end().success(), "{keys:?}");
        assert!(terminal.is_at_rest(), "{keys:?}: {:?}", terminal.all);
    }
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    use std::os::unix::process::ExitStatusExt as _;
    let world = World::new();
    let _client = world.client_with_loop();
    let (mut pty, pts) = pty_process::blocking::open().expect("a terminal");
    pty.resize(pty_process::Size::new(24, 80)).expect("a size");
    let mut child = command(&world, &["watch", SLUG]).spawn(pts).expect("it starts");
    let mut seen = Vec::new();
    let mut buffer = [0; 4_096];
    while !String::from_utf8_lossy(&seen).contains("phase") {
        let read = pty.read(&mut buffer).expect("a frame");
        seen.extend_from_slice(&buffer[..read]);
    }
    drop(pty);
    let started = Instant::now();
    let status = loop {
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None if started.elapsed() < PATIENCE => std::thread::yield_now(),
            None => {
                let _ = child.kill();
                panic!("it does not end");
            }
        }
    };
    // By the signal, or because it saw for itself.
    assert!(status.signal() == Some(Signal::HUP.as_raw()) || status.code() == Some(1), "{status}");
}

#[test]
fn a_list_is_chosen_from_and_a_loop_that_goes_is_told() {
    let world = World::new();
    let mut client = world.client_with_loop();
    client.ok("loop_init", json!({ "loopSlug": "second", "goal": "another" }));
    let mut terminal = Terminal::start(&world, &["watch"], 24, 80, &[("NO_COLOR", "1")]);
    terminal.until_text("2 at work");
    terminal.press("\u{1b}[B\r");
    terminal.until_text("Esc list");
    terminal.press("\u{1b}");
    terminal.until_text("Enter open");
    terminal.press("\u{1b}[A\r");
    terminal.until_text("second ·");
    client.ok("loop_finish", json!({ "loopSlug": "second", "status": "aborted", "reason": "enough" }));
    client.ok("loop_delete", json!({ "loopSlug": "second", "confirm": "second" }));
    terminal.until_text("is gone");
    let colours = ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m", "\u{1b}[38;5;"];
    assert!(!colours.iter().any(|colour| terminal.all.contains(colour)), "{:?}", terminal.all);
    terminal.press("q");
    assert!(terminal.end().success());
}

#[test]
fn where_there_is_no_terminal_it_says_so() {
    let world = World::new();
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", tasks(&["T1"]));
    let run = |arguments: &[&str]| {
        let mut command = world.command();
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped()).output().expect("it runs")
    };
    let refused = run(&["watch", SLUG]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("watch --once"));
    let frame = run(&["watch", SLUG, "--once"]);
    let text = String::from_utf8(frame.stdout).expect("text");
    assert!(
        frame.status.success() && text.contains("0/1 closed") && text.contains("Newest events"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'));
    let unknown = run(&["watch", "demp"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("nearest: demo"));

    let mut dumb = Terminal::start(&world, &["watch", SLUG], 24, 80, &[("TERM", "dumb")]);
    assert_eq!(dumb.end().code(), Some(2));
    let mut page = Terminal::start(&world, &["report", SLUG], 24, 80, &[]);
    assert_eq!(page.end().code(), Some(2));
    assert!(page.text().contains("--out FILE"), "{}", page.text());
}

/// Fills the database, so that work on it takes a while.
fn fill(world: &World, mebibytes: u32) {
    let db = rusqlite::Connection::open(world.database()).expect("the database");
    db.pragma_update(None, "synchronous", "off").expect("a setting");
    db.execute_batch("BEGIN").expect("a transaction");
    for n in 0..mebibytes {
        let insert = "INSERT INTO scratchpad (project_id, run_id, key, value, updated_at) \
                      SELECT id, 'big', ?1, hex(randomblob(524288)), 1 FROM project LIMIT 1";
        assert_eq!(db.execute(insert, [n]).expect("a row"), 1);
    }
    db.execute_batch("COMMIT").expect("it is stored");
}

#[test]
fn long_work_says_on_a_terminal_how_far_it_is() {
    let world = World::new();
    let mut client = world.client_with_loop();
    fill(&world, 300);

    let mut terminal = Terminal::start(&world, &["backup", "copy.db"], 24, 100, &[]);
    assert!(terminal.end().success());
    assert!(
        terminal.all.contains("copying the database  [") || terminal.all.contains("checking the copy"),
        "{:?}",
        terminal.all
    );
    assert!(terminal.text().starts_with("Copied the database"), "the line is left: {}", terminal.text());

    // The same without a terminal, as JSON, and on one that takes no line back.
    let mut command = world.command();
    let piped = command.args(["backup", "again.db"]).stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let piped = piped.expect("it runs");
    assert!(piped.status.success() && piped.stderr.is_empty(), "{}", String::from_utf8_lossy(&piped.stderr));
    for (name, more, variables) in
        [("json.db", &["--json"][..], &[][..]), ("dumb.db", &[], &[("TERM", "dumb")])]
    {
        let arguments = [&["backup", name][..], more].concat();
        let mut terminal = Terminal::start(&world, &arguments, 24, 100, variables);
        assert!(terminal.end().success());
        assert!(
            !terminal.all.contains("the copy") && !terminal.all.contains("copying"),
            "{:?}",
            terminal.all
        );
    }

    // Work that waits for someone else shows that it is at it.
    let mut other = rusqlite::Connection::open(world.database()).expect("the database");
    let held = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).expect("the lock");
    let mut terminal = Terminal::start(&world, &["vacuum"], 24, 100, &[]);
    terminal.until_text("at work");
    drop(held);
    assert!(terminal.end().success(), "{}", terminal.text());
    assert!(terminal.text().starts_with("The database took"), "{}", terminal.text());

    // Short work shows nothing.
    let mut short = Terminal::start(&world, &["prune", "--older-than", "30"], 24, 100, &[]);
    assert!(short.end().success());
    assert!(!short.all.contains("\u{1b}[K"), "{:?}", short.all);
    client.ok("loop_get", json!({}));
}
