//! A real browser, spoken to by its debugging protocol over two pipes: no driver, no
//! library, no port.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The browsers that are looked for, the lightest first.
const BROWSERS: [&str; 4] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// Debian's package of the first of them, and type to draw with.
const PACKAGES: [&str; 2] = ["chromium-headless-shell", "fonts-dejavu-core"];

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn installed() -> Option<PathBuf> {
    BROWSERS.iter().find_map(|name| on_path(name))
}

/// A browser that is there or can be installed, else why there is none.
///
/// Only root on a Debian installs; everyone else is told what to install.
pub fn find() -> Result<PathBuf, String> {
    if let Some(found) = installed() {
        return Ok(found);
    }
    let hint = format!("no browser: install {}", PACKAGES.join(" and "));
    if on_path("apt-get").is_none() || !rustix::process::geteuid().is_root() {
        return Err(hint);
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command.output().is_ok_and(|output| output.status.success())
    };
    let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
    install.extend(PACKAGES);
    if !apt(&install) {
        let _ = apt(&["update", "-q"]);
        let _ = apt(&install);
    }
    installed().ok_or(hint)
}

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    ids: u64,
    session: Option<String>,
    /// What it told without being asked since the last navigation.
    pub events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    pub fn start(program: &Path) -> Browser {
        let profile = tempfile::tempdir().expect("a temporary folder");
        let (to, from) = (profile.path().join("to"), profile.path().join("from"));
        let made = Command::new("mkfifo").args([&to, &from]).status().expect("mkfifo runs");
        assert!(made.success(), "mkfifo failed");
        let child = Command::new("sh")
            .args(["-c", "to=$1 from=$2; shift 2; exec \"$@\" 3<\"$to\" 4>\"$from\"", "sh"])
            .args([&to, &from])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        // Each end waits for the other, in this order.
        let to = File::options().write(true).open(to).expect("the pipe to the browser");
        let from = BufReader::new(File::open(from).expect("the pipe from the browser"));
        let mut browser =
            Browser { child, to, from, ids: 0, session: None, events: Vec::new(), _profile: profile };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.ask("Target.attachToTarget", attached);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn receive(&mut self) -> Value {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message).expect("the browser's answer");
        assert_eq!(message.pop(), Some(0), "the browser ended");
        serde_json::from_slice(&message).expect("JSON from the browser")
    }

    /// Gives a command and returns its result.
    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.ids += 1;
        let mut message = json!({ "id": self.ids, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser reads");
        loop {
            let mut answer = self.receive();
            if answer["id"] == self.ids {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        self.events.clear();
        self.ask("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push(event);
        }
    }

    /// What an expression comes to on the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
