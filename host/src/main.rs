//! Starts the parts that the command line asks for.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use loop_state_mcp::cli::{self, Command, Options};
use loop_state_mcp::evidence::Scripts;
use loop_state_mcp::logic::Logic;
use loop_state_mcp::mcp;
use loop_state_mcp::progress::Progress;
use loop_state_mcp::repo::{ProjectRoot, Surroundings};
use loop_state_mcp::service::{Parts, Seams, Service};
use loop_state_mcp::store::{Environment, state_dir};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    log_to_stderr();
    let state_dir = state_dir(&Environment::from_process());
    let examines = matches!(options.command, Some(Command::Doctor));
    // Compiled code is kept for the next start, but not by a command that changes nothing.
    let cache = state_dir.as_ref().ok().filter(|_| !examines).map(|dir| dir.join("logic"));
    let file = options.logic.as_deref();
    let (logic, trouble) = match file.map(|file| Logic::from_file(file, cache.as_deref())) {
        None => (Logic::embedded(), None),
        Some(Ok(logic)) => (logic, None),
        Some(Err(error)) if examines => (Logic::embedded(), Some(error.to_string())),
        Some(Err(error)) => return Err(error.into()),
    };
    let takes_long = options.command.as_ref().is_some_and(Command::may_take_long);
    let progress = if takes_long { Progress::watched() } else { Progress::default() };
    let service = Service::new(Parts {
        logic,
        root: ProjectRoot::find(Surroundings::of_process(options.project_root)),
        state_dir,
        seams: Seams::of_process(),
        scripts: Scripts {
            allowed: options.allow_scripts,
            limit: Duration::from_secs(options.script_seconds.into()),
        },
        progress: progress.clone(),
    });
    if let Some(command) = options.command {
        let failure_status = command.failure_status();
        let answer = match trouble {
            Some(trouble) => Ok(cli::doctor(&service, Some(trouble))),
            None => {
                let _shown = takes_long.then(|| cli::Shown::begin(&progress, options.json));
                cli::run(command, &service)
            }
        };
        return match answer {
            Ok(answer) => {
                answer.print(options.json)?;
                Ok(if answer.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
            }
            Err(refusal) => {
                // Where nobody listens there is nobody to tell.
                let _ = writeln!(std::io::stderr(), "{}", cli::on_terminal(&refusal.why));
                Ok(ExitCode::from(refusal.status.unwrap_or(failure_status)))
            }
        };
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
