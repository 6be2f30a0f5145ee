//! The command line for people and hooks: what it takes, and how an answer of the
//! service reads as text. The commands call the same tools as MCP clients do, so
//! rules and refusals are the same.

mod brief;

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::cancel::Cancel;
use crate::mcp::{Backend, Profile, Reply};
use crate::service::Service;

/// Record-keeper of an AI coding agent's development loop. Without a command it
/// serves MCP on standard input and output.
#[derive(Debug, clap::Parser)]
#[command(version, about)]
pub struct Options {
    /// The project whose loops are kept; default: LOOP_STATE_PROJECT_ROOT, else the working directory
    #[arg(long, value_name = "DIR", global = true)]
    pub project_root: Option<OsString>,

    /// The tools that are listed to clients; those left out still answer
    #[arg(long, value_name = "LIST", env = "LOOP_STATE_TOOLS", default_value = "all")]
    pub tools: ToolList,

    /// Another logic: a component file that follows the contract
    #[arg(long, value_name = "FILE", env = "LOOP_STATE_LOGIC", global = true)]
    pub logic: Option<PathBuf>,

    /// What to do instead of serving
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// A list of tools by name.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum ToolList {
    /// What a loop cannot do without
    Core,
    /// What most loops use
    Standard,
    /// Everything
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

/// What the program does other than serving.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Print where the loop stands, in short; for the hooks of coding agents
    Brief {
        /// The loop; default: the only active one of the project
        #[arg(long)]
        slug: Option<String>,
        /// The most bytes that are printed
        #[arg(long, value_name = "N", default_value_t = 2_000)]
        max_bytes: usize,
    },
}

/// Runs a command and returns what it prints.
///
/// # Errors
///
/// What the tool said when it refused.
pub fn run(command: Command, service: &Service) -> Result<String, String> {
    match command {
        Command::Brief { slug, max_bytes } => {
            let mut arguments = Map::new();
            if let Some(slug) = slug {
                arguments.insert("loopSlug".to_owned(), slug.into());
            }
            let answer = ask(service, "loop_recover", arguments)?;
            Ok(brief::text(&answer, max_bytes))
        }
    }
}

/// Calls a tool as a client would.
fn ask(service: &Service, tool: &str, arguments: Map<String, Value>) -> Result<Value, String> {
    match service.call(tool, arguments, &Cancel::default()) {
        Reply::Done(answer) => {
            serde_json::from_str(&answer).map_err(|e| format!("{tool} answered with no JSON: {e}"))
        }
        Reply::Refused(why) => Err(why),
        Reply::UnknownTool => Err(format!("this logic has no tool {tool}")),
        Reply::Cancelled => Err(format!("{tool} was cancelled")),
    }
}
