//! Reports in a real browser: nothing overflows, everything can be read, nothing is
//! fetched and nothing is run.
//!
//! Needs Chromium; root on a Debian gets it installed, others are told what to install
//! and the test is skipped. The screenshots lie in `target/screenshots`.

#[path = "browser/devtools.rs"]
mod devtools;
#[path = "browser/lives.rs"]
mod lives;

use base64::Engine as _;
use devtools::Browser;
use lives::Life;
use loop_state_tests::SLUG;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The highest screenshot that is taken.
const HIGHEST: f64 = 9_000.0;

fn screenshots() -> PathBuf {
    let exe = std::env::current_exe().expect("a test knows its own path");
    let target = exe.ancestors().find(|folder| folder.ends_with("release") || folder.ends_with("debug"));
    let target = target.and_then(Path::parent).expect("a target folder");
    let folder = target.join("screenshots");
    std::fs::create_dir_all(&folder).expect("a new folder");
    folder
}

fn report(life: &Life, of: Option<&str>, file: &Path) {
    let mut command = life.world.command();
    command.arg("report").args(of).arg("--out").arg(file).stdin(Stdio::null());
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The page at one width and colour scheme; returns what is wrong with it.
fn look(browser: &mut Browser, file: &Path, width: u32, scheme: &str, name: &str) -> Vec<String> {
    let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
    browser.ask("Emulation.setDeviceMetricsOverride", metrics);
    let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
    browser.ask("Emulation.setEmulatedMedia", json!({ "media": "", "features": features }));
    browser.open(file);
    let found = browser.evaluate(include_str!("browser/legible.js"));
    assert!(found["texts"].as_u64() > Some(20), "the page is empty: {found}");
    let mut problems: Vec<String> = found["problems"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|text| text.as_str().unwrap_or_default().to_owned())
        .collect();
    for event in &browser.events {
        let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
        let own = url.starts_with("data:") || Path::new(url.trim_start_matches("file://")) == file;
        match event["method"].as_str() {
            Some("Network.requestWillBeSent") if !own => problems.push(format!("it asks for {url}")),
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => {
                problems.push(format!("the console says {}", event["params"]));
            }
            _ => {}
        }
    }
    let size = browser.ask("Page.getLayoutMetrics", json!({}))["cssContentSize"].clone();
    let height = size["height"].as_f64().unwrap_or(0.0).min(HIGHEST);
    let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
    let shot = browser.ask("Page.captureScreenshot", json!({ "captureBeyondViewport": true, "clip": clip }));
    let image = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap_or_default());
    let file = screenshots().join(format!("{name}-{width}-{scheme}.png"));
    std::fs::write(file, image.expect("base64")).expect("a screenshot");
    problems.into_iter().map(|problem| format!("{name} at {width}, {scheme}: {problem}")).collect()
}

#[test]
fn reports_can_be_read_on_every_screen() {
    let program = match devtools::find() {
        Ok(program) => program,
        Err(why) => {
            eprintln!("skipped: reports are not looked at in a browser ({why})");
            return;
        }
    };
    let folder = screenshots();
    let (small, large) = (lives::small(), lives::large());
    let wanted = [("small", &small, Some(SLUG)), ("large", &large, Some(SLUG)), ("overview", &large, None)];
    let pages = wanted.map(|(name, life, of)| {
        let file = folder.join(format!("{name}.html"));
        report(life, of, &file);
        (name, file)
    });
    let mut browser = Browser::start(&program);
    browser.ask("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    let mut problems = Vec::new();
    for (name, file) in &pages {
        for width in [390, 1_280, 1_920] {
            for scheme in ["light", "dark"] {
                problems.extend(look(&mut browser, file, width, scheme, name));
            }
        }
        let paper = browser.ask("Page.printToPDF", json!({ "printBackground": true }));
        assert!(paper["data"].as_str().map_or(0, str::len) > 10_000, "{name} does not print");
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
