//! The command line for people and hooks: what it takes, and how an answer of the
//! service reads as text. What a tool does, a command does by calling the tool, so
//! rules and refusals are the same.

mod answer;
mod archives;
mod brief;
mod doctor;
mod documents;
mod gantt;
mod goals;
mod loops;
mod page;
mod progress;
mod projects;
mod report;
mod tools;
mod transfer;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::json;

use crate::mcp::Profile;
use crate::service::Service;
use crate::{plain, time};

pub use answer::Answer;
pub use doctor::doctor;
pub use progress::Shown;
use tools::{arguments, ask};

/// Record-keeper of an AI coding agent's development loop. Without a command it
/// serves MCP on standard input and output.
#[derive(Debug, clap::Parser)]
#[command(
    version,
    about,
    after_help = "Exit status: 0 done, 1 refused or failed (the reason is on standard error; for doctor: something is wrong; for gate: not satisfied), 2 wrong usage (for gate also: refused or failed)."
)]
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

    /// Print one line of JSON instead of text; times are UTC in both
    #[arg(long, global = true)]
    pub json: bool,

    /// Let goal checks run the programs that a configuration names
    #[arg(long, env = "LOOP_STATE_ALLOW_SCRIPTS", value_parser = clap::builder::BoolishValueParser::new(), global = true)]
    pub allow_scripts: bool,

    /// The longest that such a program may run
    #[arg(long, value_name = "SECONDS", env = "LOOP_STATE_SCRIPT_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600), global = true)]
    pub script_seconds: u32,

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
    /// List the loops of the project that are not finished
    List {
        /// The loops of all projects
        #[arg(long)]
        all_projects: bool,
        /// Finished ones as well
        #[arg(long)]
        finished: bool,
    },
    /// List the tools of the logic
    Tools,
    /// Show a loop with its phases and tasks
    Show {
        /// The loop
        slug: String,
    },
    /// Draw a loop, or the project's list of loops, as one page for a browser
    Report {
        /// The loop: its slug, or its id; default: all loops of the project
        #[arg(value_name = "SLUG|UUID")]
        of: Option<String>,
        /// The file, which is replaced as a whole; - or none: standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show a loop, or the project's list of loops, live on the terminal
    Watch {
        /// The loop: its slug, or its id; default: all loops of the project
        #[arg(value_name = "SLUG|UUID")]
        of: Option<String>,
        /// Print one frame as text, and end
        #[arg(long)]
        once: bool,
    },
    /// List the documents of a loop
    Documents {
        /// The loop: its slug, or its id, which also finds one that was deleted
        #[arg(value_name = "SLUG|UUID", required_unless_present = "deleted")]
        of: Option<String>,
        /// Documents that outlived their loop: list their loops' ids, or those of one id
        #[arg(long)]
        deleted: bool,
    },
    /// Print a document
    Document {
        /// The loop: its slug, or its id, which also finds one that was deleted
        #[arg(value_name = "SLUG|UUID")]
        of: String,
        /// The document, relative to the loop's folder
        path: String,
        /// Its revision; default: the newest
        #[arg(long, value_name = "N")]
        rev: Option<u32>,
    },
    /// List the known projects, or change what is known of them
    Projects {
        /// What to do with them
        #[command(subcommand)]
        action: Option<projects::Action>,
    },
    /// Move an ended loop into cold storage
    Archive {
        /// The loop
        slug: String,
    },
    /// List archives, show one, or print a file of one
    #[command(args_conflicts_with_subcommands = true)]
    Archives {
        /// The archive to show
        id: Option<String>,
        /// The file of it to print
        path: Option<String>,
        /// Only those with this in slug, title or goal
        #[arg(long, value_name = "TEXT", conflicts_with = "id")]
        search: Option<String>,
        /// Only those of loops in this project root
        #[arg(long, value_name = "DIR", conflicts_with = "id")]
        root: Option<String>,
        /// What to do with one
        #[command(subcommand)]
        action: Option<ArchivesAction>,
    },
    /// Make an archive a live loop again; the archive stays
    Restore {
        /// The archive
        id: String,
        /// Another slug than it had
        #[arg(long = "as", value_name = "SLUG")]
        as_slug: Option<String>,
        /// Another project root than it had; made if missing
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
    },
    /// Show the loops that ended long ago, in all projects; with --apply drop their history
    Prune {
        /// Only loops that ended more days ago than this
        #[arg(long, value_name = "DAYS")]
        older_than: u32,
        /// Drop their events and steps
        #[arg(long)]
        apply: bool,
    },
    /// Delete an ended loop
    Delete {
        /// The loop
        slug: String,
        /// The slug once more
        #[arg(long, value_name = "SLUG")]
        confirm: Option<String>,
        /// Its documents as well, with all their revisions
        #[arg(long)]
        purge_documents: bool,
    },
    /// Draw the graph of a goal configuration: waves, critical path, schedule
    Plan {
        /// The configuration, below the project root
        file: PathBuf,
    },
    /// Rule on a goal from its evidence; exit status 0 satisfied, 1 not satisfied, 2 error
    Gate {
        /// The configuration, below the project root
        file: PathBuf,
        /// The goal, or overall
        #[arg(default_value = "overall")]
        target: String,
        /// Where the evidence lies, below the project root; default: the root
        #[arg(long, value_name = "DIR")]
        workdir: Option<String>,
        /// Record the ruling in this run; a loop's slug names the loop's own
        #[arg(long, value_name = "NAME")]
        run: Option<String>,
    },
    /// Return freed pages of the database to the file system
    Vacuum,
    /// Look whether all is well, and change nothing
    Doctor,
    /// Write a loop, or everything, into one file from which it can be imported
    #[command(allow_missing_positional = true)]
    Export {
        /// The loop: its slug, or its id, whichever project it is in
        #[arg(value_name = "SLUG|UUID", required_unless_present = "all", conflicts_with = "all")]
        of: Option<String>,
        /// The file, which must not exist
        file: PathBuf,
        /// All loops and archives of all projects
        #[arg(long)]
        all: bool,
    },
    /// Read what an export wrote
    Import {
        /// The file
        file: PathBuf,
        /// Another slug, for a file of one loop
        #[arg(long = "as", value_name = "SLUG")]
        as_slug: Option<String>,
    },
    /// Copy the database into a new file while servers may be at work
    Backup {
        /// The file, which must not exist
        file: PathBuf,
    },
}

/// What to do with one archive.
#[derive(Debug, clap::Subcommand)]
pub enum ArchivesAction {
    /// Delete an archive
    Delete {
        /// The archive
        id: String,
        /// The id once more
        #[arg(long, value_name = "ID")]
        confirm: Option<String>,
    },
}

impl Command {
    /// Whether it may take long, and is worth a line that says how far it has come.
    pub fn may_take_long(&self) -> bool {
        use Command::*;
        matches!(
            self,
            Archive { .. }
                | Restore { .. }
                | Export { .. }
                | Import { .. }
                | Backup { .. }
                | Vacuum
                | Prune { .. }
        )
    }

    /// The exit status of the command when it is refused or fails.
    pub fn failure_status(&self) -> u8 {
        match self {
            // 1 says that it worked and that the goal is not satisfied.
            Command::Gate { .. } => 2,
            _ => 1,
        }
    }
}

/// A command that was refused or failed.
#[derive(Debug)]
pub struct Refused {
    /// Why, and what to do.
    pub why: String,
    /// The exit status, where it is another one than the command's own.
    pub status: Option<u8>,
}

impl Refused {
    /// The command was used in a way in which it cannot work.
    fn misuse(why: impl Into<String>) -> Refused {
        Refused { why: why.into(), status: Some(2) }
    }
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused { why, status: None }
    }
}

/// Runs a command.
///
/// # Errors
///
/// What the tool, or the store, said when it refused.
pub fn run(command: Command, service: &Service) -> Result<Answer, Refused> {
    let answer = match command {
        Command::Report { of, out } => return report::run(service, of.as_deref(), out.as_deref()),
        Command::Watch { of, once } => return watch::run(service, of.as_deref(), once),
        Command::Brief { slug, max_bytes } => {
            ask(service, "loop_recover", arguments(json!({ "loopSlug": slug }))).map(|answer| {
                let text = brief::text(&answer, max_bytes);
                Answer::text(answer, text)
            })
        }
        Command::List { all_projects: true, finished } => loops::list_everywhere(service, finished),
        Command::List { all_projects: false, finished } => loops::list(service, finished),
        Command::Tools => tools::list(service),
        Command::Show { slug } => loops::show(service, &slug),
        Command::Documents { of: Some(of), deleted } => documents::list(service, &of, deleted),
        Command::Documents { of: None, .. } => documents::list_deleted(service),
        Command::Document { of, path, rev } => documents::read(service, &of, &path, rev),
        Command::Projects { action } => projects::run(service, action),
        Command::Archive { slug } => archives::archive(service, &slug),
        Command::Archives { action: Some(ArchivesAction::Delete { id, confirm }), .. } => {
            archives::delete(service, &id, confirm)
        }
        Command::Archives { id: Some(id), path: Some(path), .. } => archives::file(service, &id, &path),
        Command::Archives { id: Some(id), .. } => archives::show(service, &id),
        Command::Archives { search, root, .. } => archives::list(service, search, root),
        Command::Restore { id, as_slug, to } => archives::restore(service, &id, as_slug, to.as_deref()),
        Command::Prune { older_than, apply } => loops::prune(service, older_than, apply),
        Command::Delete { slug, confirm, purge_documents } => {
            loops::delete(service, &slug, confirm, purge_documents)
        }
        Command::Plan { file } => goals::plan(service, &file),
        Command::Gate { file, target, workdir, run } => {
            goals::gate(service, &file, &target, workdir.as_deref(), run.as_deref())
        }
        Command::Vacuum => transfer::vacuum(service),
        Command::Doctor => Ok(doctor(service, None)),
        Command::Export { of, file, .. } => transfer::export(service, of.as_deref(), &file),
        Command::Import { file, as_slug } => transfer::import(service, &file, as_slug.as_deref()),
        Command::Backup { file } => transfer::backup(service, &file),
    };
    answer.map_err(Refused::from)
}

/// A sentence for standard error: what users wrote in it does not act on a terminal.
pub fn on_terminal(sentence: &str) -> String {
    plain::block(sentence)
}
