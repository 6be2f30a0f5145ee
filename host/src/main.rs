//! The command line: without a command it serves MCP on standard input and output.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use loop_state_mcp::logic::Logic;
use loop_state_mcp::mcp::{self, Profile};
use loop_state_mcp::repo::{ProjectRoot, Surroundings};
use loop_state_mcp::service::{Parts, Seams, Service};
use loop_state_mcp::store::{Environment, state_dir};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Record-keeper of an AI coding agent's development loop: an MCP server on
/// standard input and output.
#[derive(Parser)]
#[command(version, about)]
struct Options {
    /// The project whose loops are kept; default: LOOP_STATE_PROJECT_ROOT, else the working directory.
    #[arg(long, value_name = "DIR")]
    project_root: Option<OsString>,

    /// The tools that are listed; those left out still answer.
    #[arg(long, value_name = "LIST", env = "LOOP_STATE_TOOLS", default_value = "all")]
    tools: ToolList,

    /// Another logic: a component file that follows the contract.
    #[arg(long, value_name = "FILE", env = "LOOP_STATE_LOGIC")]
    logic: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ToolList {
    Core,
    Standard,
    All,
}

impl From<ToolList> for Profile {
    fn from(list: ToolList) -> Profile {
        match list {
            ToolList::Core => Profile::Core,
            ToolList::Standard => Profile::Standard,
            ToolList::All => Profile::All,
        }
    }
}

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
