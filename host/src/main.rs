//! Starts the parts that the command line asks for.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use loop_state_mcp::cli::{self, Options};
use loop_state_mcp::logic::Logic;
use loop_state_mcp::mcp;
use loop_state_mcp::repo::{ProjectRoot, Surroundings};
use loop_state_mcp::service::{Parts, Seams, Service};
use loop_state_mcp::store::{Environment, state_dir};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    log_to_stderr();
    let state_dir = state_dir(&Environment::from_process());
    let logic = match &options.logic {
        None => Logic::embedded().context("the built-in logic does not load")?,
        Some(file) => {
            let cache = state_dir.as_ref().ok().map(|dir| dir.join("logic"));
            Logic::from_file(file, cache.as_deref())?
        }
    };
    let service = Service::new(Parts {
        logic,
        root: ProjectRoot::find(Surroundings::of_process(options.project_root)),
        state_dir,
        seams: Seams::of_process(),
    });
    if let Some(command) = options.command {
        let text = cli::run(command, &service).map_err(anyhow::Error::msg)?;
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(());
    }
    mcp::serve(Arc::new(service), mcp::Options { profile: options.tools.into() })?;
    // A thread that still waits for input must not keep the process up.
    std::process::exit(0)
}

/// Where the log's level comes from, e.g. `debug` or `loop_state_mcp=trace,warn`.
const LOG_VARIABLE: &str = "LOOP_STATE_LOG";

/// Warnings and worse unless asked otherwise; `rmcp` warns of each refused
/// request, which the client is told anyway.
const LOG_DEFAULT: &str = "warn,rmcp=error";

/// Logs to standard error; standard output belongs to the protocol.
fn log_to_stderr() {
    let wanted = std::env::var(LOG_VARIABLE).ok().and_then(|wanted| wanted.parse::<Targets>().ok());
    let filter = wanted.or_else(|| LOG_DEFAULT.parse().ok()).unwrap_or_default();
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
}
