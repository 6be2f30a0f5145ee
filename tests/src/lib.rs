//! What black-box tests, the demo and the bench share: a sealed environment, a
//! client over real pipes, and a few ways to look at what is on disk.
//!
//! Nothing in here links the product; it is started as a client would start it.
//!
//! | module | does |
//! |---|---|
//! | [`chance`] | seeded randomness that says its seed when a test fails |
//! | [`contract`] | the files of the contract, and its README's examples |
//! | [`look`] | what is in a database and in a folder, to be compared |
//! | [`packages`] | programs of others, from their registries |
//! | [`views`] | whether a folder shows what the database holds |

pub mod chance;
pub mod contract;
pub mod look;
pub mod packages;
pub mod views;

use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The slug that tests use when any will do.
pub const SLUG: &str = "demo";

/// How long a server may take to end once it should.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The server's binary: `LOOP_STATE_BIN`, else the one built beside the tests.
///
/// # Panics
///
/// When there is none; `make build` makes it.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("LOOP_STATE_BIN") {
        return path.into();
    }
    let exe = std::env::current_exe().expect("a test knows its own path");
    let found = exe.ancestors().map(|dir| dir.join("loop-state-mcp")).find(|path| path.is_file());
    found.expect("the server is not built: run `make build`")
}

/// A throw-away home, state folder and project, gone when dropped.
pub struct World {
    dir: TempDir,
    /// Further variables for the server.
    pub env: Vec<(OsString, OsString)>,
    /// Further arguments for the server.
    pub args: Vec<OsString>,
}

impl World {
    /// Makes the folders.
    ///
    /// # Panics
    ///
    /// When the system gives no temporary folder.
    #[must_use]
    pub fn new() -> World {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let world = World { dir, env: Vec::new(), args: Vec::new() };
        for folder in [world.home(), world.project()] {
            std::fs::create_dir(folder).expect("a new folder");
        }
        world
    }

    /// A world whose clock stands at `ms` until [`World::set_clock`] moves it.
    #[must_use]
    pub fn with_clock(ms: i64) -> World {
        let mut world = World::new();
        world.env.push(("LOOP_STATE_TEST_CLOCK".into(), world.clock().into()));
        world.set_clock(ms);
        world
    }

    /// The same world, whose servers keep to themselves what a test expects them to
    /// complain about.
    #[must_use]
    pub fn quiet(mut self) -> World {
        self.env.push(("LOOP_STATE_LOG".into(), "off".into()));
        self
    }

    /// Has the world's servers run this component in place of the built-in logic.
    ///
    /// It is compiled by the first world of a process that takes it; later ones get the
    /// machine code as a server's second start finds it.
    ///
    /// # Panics
    ///
    /// When the server does not take the component.
    pub fn take_logic(&mut self, component: &[u8]) {
        static COMPILED: Mutex<Vec<(Vec<u8>, TempDir)>> = Mutex::new(Vec::new());
        let file = self.dir.path().join("logic.wasm");
        std::fs::write(&file, component).expect("the component");
        self.args.extend(["--logic".into(), file.into()]);
        let kept = self.state().join("logic");
        // A test that failed meanwhile left a list that is whole all the same.
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        match compiled.iter().find(|(known, _)| known == component) {
            Some((_, folder)) => copy_closed(folder.path(), &kept),
            None => {
                let warm = self.run(&["tools"]);
                assert!(warm.status.success(), "{}", String::from_utf8_lossy(&warm.stderr));
                let folder = tempfile::tempdir().expect("a temporary folder");
                copy_closed(&kept, folder.path());
                compiled.push((component.to_owned(), folder));
            }
        }
    }

    /// Moves the clock.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub fn set_clock(&self, ms: i64) {
        std::fs::write(self.clock(), ms.to_string()).expect("the clock file");
    }

    fn clock(&self) -> PathBuf {
        self.dir.path().join("clock")
    }

    /// The folder around all others.
    #[must_use]
    pub fn top(&self) -> &Path {
        self.dir.path()
    }

    /// The user's home.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The folder that holds the database.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.state().join("loops.db")
    }

    /// The project, which is the server's working directory.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// The folder of a loop.
    #[must_use]
    pub fn folder(&self, slug: &str) -> PathBuf {
        self.project().join(".projects/loops").join(slug)
    }

    /// A view of the loop [`SLUG`], as it is on disk.
    ///
    /// # Panics
    ///
    /// When it is not there.
    #[must_use]
    pub fn view(&self, name: &str) -> String {
        let path = self.folder(SLUG).join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The server's command in this world, nothing of the outside let in.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command
            .args(&self.args)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("DEV_LOOP_STATE_DIR", self.state())
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        command
    }

    /// Runs a command to its end, and keeps what it says.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command();
        let command = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped());
        command.output().expect("the server starts")
    }

    /// Starts a server and shakes hands.
    #[must_use]
    pub fn client(&self) -> Client {
        let mut client = Client::spawn(&mut self.command());
        client.initialize();
        client
    }

    /// Starts a server with the loop [`SLUG`] in it.
    #[must_use]
    pub fn client_with_loop(&self) -> Client {
        let mut client = self.client();
        client.ok("loop_init", json!({ "goal": "try it" }));
        client
    }
}

/// Copies the files of a folder; only its owner may open what comes out.
fn copy_closed(from: &Path, to: &Path) {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(to);
    made.expect("a folder of its own");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy, with its rights");
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

/// A client that writes one line and reads one line.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    ids: u64,
}

impl Client {
    /// Starts a server; its stdin and stdout have to be piped.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn spawn(command: &mut Command) -> Client {
        // A test that copies the server may be forked by another one while it still has
        // the copy open for writing; that passes.
        let busy = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ExecutableFileBusy;
        let mut child = loop {
            match command.spawn() {
                Err(error) if busy(&error) => std::thread::yield_now(),
                started => break started.expect("the server starts"),
            }
        };
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        Client { child, input, output, ids: 0 }
    }

    /// The server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Shakes hands and returns the server's answer.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub fn initialize(&mut self) -> Value {
        let answer = self.request(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": { "name": "tests", "version": "0" },
            }),
        );
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    /// Writes one message.
    ///
    /// # Panics
    ///
    /// When the server does not take it.
    pub fn send(&mut self, message: &Value) {
        assert!(self.try_send(message), "the server no longer reads");
    }

    /// Writes one message; false when the server no longer reads.
    pub fn try_send(&mut self, message: &Value) -> bool {
        self.write(format!("{message}\n").as_bytes())
    }

    /// Writes bytes as they are; false when the server no longer reads.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        self.input.as_mut().is_some_and(|i| i.write_all(bytes).is_ok())
    }

    /// Reads one line without its end; `None` at the end of the stream, where half
    /// a line may stand.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.output.as_mut()?.read_line(&mut line) {
            Ok(n) if n > 0 && line.ends_with('\n') => {
                line.pop();
                Some(line)
            }
            _ => None,
        }
    }

    /// Reads one message; `None` at the end of the stream.
    ///
    /// # Panics
    ///
    /// When the line is not JSON.
    pub fn receive(&mut self) -> Option<Value> {
        let line = self.line()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}")))
    }

    /// Sends a request and returns its `result`, or the whole answer when it is an
    /// error.
    ///
    /// # Panics
    ///
    /// When the server ends instead of answering.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.ids += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.ids, "method": method, "params": params }));
        let mut answer = self.receive().expect("an answer");
        assert_eq!(answer["id"], self.ids, "{answer}");
        match answer.get_mut("result") {
            Some(result) => result.take(),
            None => answer,
        }
    }

    /// The message of a tool call, with [`SLUG`] as its loop where it names none.
    pub fn message(&mut self, tool: &str, mut arguments: Value) -> Value {
        let other = ["loop_list", "loop_prune", "archive_", "db_", "loopsmith_", "board_", "card_"];
        let on_a_loop = !other.iter().any(|start| tool.starts_with(start));
        if let Some(map) = arguments.as_object_mut().filter(|_| on_a_loop) {
            map.entry("loopSlug").or_insert_with(|| SLUG.into());
        }
        self.ids += 1;
        json!({
            "jsonrpc": "2.0",
            "id": self.ids,
            "method": "tools/call",
            "params": { "name": tool, "arguments": arguments },
        })
    }

    /// Calls a tool: its answer, or what it said when it refused. `None` when the
    /// server ended instead.
    pub fn try_call(&mut self, tool: &str, arguments: Value) -> Option<Result<Value, String>> {
        let message = self.message(tool, arguments);
        if !self.try_send(&message) {
            return None;
        }
        self.receive().map(|answer| read_answer(&answer))
    }

    /// The same for a server that has to stay.
    ///
    /// # Panics
    ///
    /// When the server ends, or the call is no success of the protocol.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        match self.try_call(tool, arguments) {
            Some(result) => result,
            None => panic!("the server ended during {tool}"),
        }
    }

    /// Calls a tool that has to pass.
    ///
    /// # Panics
    ///
    /// When it is refused.
    #[track_caller]
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        match self.call(tool, arguments) {
            Ok(reply) => reply,
            Err(refusal) => panic!("{tool} was refused: {refusal}"),
        }
    }

    /// Calls a tool that has to be refused and returns what it says.
    ///
    /// # Panics
    ///
    /// When it passes.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments) {
            Err(refusal) => refusal,
            Ok(reply) => panic!("{tool} passed: {reply}"),
        }
    }

    /// Kills the server as a power cut would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Closes the server's input, so that it ends.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Hands out the server's input, for a thread that writes by itself.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.input.take()
    }

    /// Closes the end at which the server's output is read.
    pub fn close_output(&mut self) {
        self.output = None;
    }

    /// Waits until the server has ended by itself.
    ///
    /// # Panics
    ///
    /// When it is still there after [`PATIENCE`].
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child to wait for") {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Closes the input and returns the exit status.
    ///
    /// # Panics
    ///
    /// When the server does not end.
    #[track_caller]
    pub fn end(mut self) -> ExitStatus {
        self.input = None;
        self.wait()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Reads the answer to a tool call; checks the shape that every one has.
///
/// # Panics
///
/// When it is a protocol error, or the text and the structured content differ.
pub fn read_answer(answer: &Value) -> Result<Value, String> {
    let result = &answer["result"];
    assert!(result.is_object(), "no result: {answer}");
    let content = result["content"].as_array().expect("content");
    assert_eq!(content.len(), 1, "{answer}");
    let text = content[0]["text"].as_str().expect("a text block");
    if result["isError"] == true {
        assert!(result.get("structuredContent").is_none(), "{answer}");
        return Err(text.to_owned());
    }
    let value: Value = serde_json::from_str(text).expect("an answer is JSON");
    assert_eq!(value, result["structuredContent"], "the two contents differ");
    Ok(value)
}
