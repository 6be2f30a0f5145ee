//! The tools: one entry each, with all that is known of it.
//!
//! Name, description, arguments, what it does to the state, what the end of a
//! loop and its latch mean to it, and the function that decides it stand in one
//! row. Adding a tool is adding a row.

use crate::arguments::{Argument, ArgumentError, Ignored};
use crate::desk::{Desk, Done, Halt, refused};
use crate::policy::{AfterEnd, LatchReach, Policy};
use crate::refusal::Refusal;
use crate::reply::json_text;
use crate::tool::{
    archive, batch, documents, goals, init, inspect, lessons, loops, now, retention, runs, tasks, timeline,
};
use crate::tools::{Call, Decision, Facts, Profile, Tool as Published};
use serde_json::{Map, Value};

/// What a call does to the state, as MCP's annotations put it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Writes nothing.
    Reads,
    /// Calling it again with the same arguments changes nothing more.
    Sets,
    /// Each call changes something.
    Adds,
    /// Takes something away; what is not there any more cannot be taken away again.
    Destroys,
    /// Takes something away; calling it again changes nothing more.
    Empties,
}

/// One tool.
pub struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub profile: Profile,
    pub effect: Effect,
    pub policy: Policy,
    schema: fn() -> Map<String, Value>,
    decide: fn(Value, &mut Desk, &mut Ignored) -> Done,
}

macro_rules! tool {
    ($name:literal, $title:literal, $description:expr, $profile:ident, $effect:ident, $after_end:ident, $latch:ident, $args:ty, $decide:path) => {
        Tool {
            name: $name,
            title: $title,
            description: $description,
            profile: Profile::$profile,
            effect: Effect::$effect,
            policy: Policy { op: $name, after_end: AfterEnd::$after_end, latch: LatchReach::$latch },
            schema: <$args as Argument>::schema,
            decide: |raw, desk, ignored| $decide(<$args as Argument>::read(raw, "", ignored)?, desk),
        }
    };
}

/// Every tool, in the order it is published.
#[rustfmt::skip]
pub static TOOLS: &[Tool] = &[
    tool!("loop_init", "Start a loop",
        "Creates a loop, or finds the one that has the slug (reused, and what differs). Call once per goal.",
        Core, Sets, Allowed, Free, init::Init, init::init),
    tool!("loop_get", "Read a loop",
        "Returns the whole stored state: loop, phases, tasks.",
        Standard, Reads, Allowed, Free, loops::Get, loops::get),
    tool!("loop_list", "List loops",
        "Lists this project's loops, newest-touched first, with a count of tasks. Active ones unless includeFinished.",
        Core, Reads, Allowed, Free, loops::List, loops::list),
    tool!("loop_recover", "Recover a loop",
        "Call first in a session that did not start the loop (compaction, crash). Returns where it stands, the next action, what to read and what is off.",
        Core, Reads, Allowed, Free, inspect::Recover, inspect::recover),
    tool!("loop_audit", "Audit a loop",
        "Call before the feature merge. Returns a verdict and findings, each with its fix and who can make it. A fail refuses that phase.",
        Core, Reads, Allowed, Free, inspect::Audit, inspect::audit),
    tool!("loop_timings", "Report timings",
        "Returns what steps took, by task and phase, the slowest ones, and how far the figures are to be trusted.",
        Standard, Reads, Allowed, Free, inspect::Timings, inspect::timings),
    tool!("loop_files", "List a loop's files",
        "Lists what is on disk in the loop's folder. Use it in place of glob, which .gitignore can blind.",
        Standard, Reads, Allowed, Free, inspect::Files, inspect::files),
    tool!("loop_setPhase", "Move the phase pointer",
        "Sets the phase that the loop is in. The ladder's statuses are loop_setPhaseStatus's.",
        Standard, Sets, Refused, Whole, loops::SetPhase, loops::set_phase),
    tool!("loop_setPhaseStatus", "Set a phase's status",
        "Records where a phase stands: in-progress before you dispatch it, done, skipped or failed after.",
        Core, Sets, Refused, Whole, loops::SetPhaseStatus, loops::set_phase_status),
    tool!("loop_setAwaitingUser", "Wait for the user",
        "Records that the loop waits for its user; \"\" clears it. It asks nobody: put the question yourself.",
        Core, Sets, Refused, Free, loops::SetAwaitingUser, loops::set_awaiting_user),
    tool!("loop_setField", "Set a field of the loop",
        "Stores one field of the loop; null clears it.",
        Standard, Sets, Refused, Whole, loops::SetField, loops::set_field),
    tool!("loop_bumpCounter", "Count up for the loop",
        "Adds to a counter of the loop and says whether it is over its cap.",
        Standard, Adds, Refused, Whole, loops::BumpCounter, loops::bump_counter),
    tool!("loop_finish", "End a loop",
        "Ends the loop. done needs every task complete, skipped or superseded.",
        Core, Sets, Allowed, WhenDone, loops::Finish, loops::finish),
    tool!("loop_render", "Write the views anew",
        "Writes every view of the loop's folder from the database, for when files were damaged or deleted.",
        Standard, Sets, Allowed, Free, loops::Render, loops::render_views),
    tool!("loop_clearBlock", "Lift a refusal",
        "Lifts the block that a refused call left, on the user's decision. The corrective call lifts it by itself.",
        Core, Sets, Allowed, Free, loops::ClearBlock, loops::clear_block),
    tool!("loop_writeFile", "Write a document",
        "Stores a document as its next revision and writes it to the loop's folder with a header.",
        Core, Sets, Allowed, Free, documents::WriteFile, documents::write_file),
    tool!("loop_readFile", "Read a document",
        "Reads a document, or a view. A long one comes in parts: more counts the characters left.",
        Core, Reads, Allowed, Free, documents::ReadFile, documents::read_file),
    tool!("loop_materialize", "Bring documents to disk",
        "Writes the loop's documents to its folder, e.g. in a fresh work tree. Files that differ are kept and listed.",
        Standard, Sets, Allowed, Free, documents::Materialize, documents::materialize),
    tool!("tasks_derive", "Store the plan",
        "Creates or updates tasks by taskid, all or none. Status, counters and evidence stay.",
        Core, Sets, Refused, Whole, batch::Derive, batch::derive),
    tool!("tasks_split", "Split a task",
        "Replaces a task that is too big by subtasks, which take its place and its dependencies.",
        Standard, Adds, Refused, ByTask, batch::Split, batch::split),
    tool!("tasks_append", "Append tasks",
        "Adds tasks found on the way (QA fixes, deferred findings) at the end of the plan; all of them or none.",
        Standard, Adds, Refused, Whole, batch::Append, batch::append),
    tool!("task_setStatus", "Move a task",
        "Moves a task one legal step and says what it owes next. verified and secure need evidence; complete is task_complete's.",
        Core, Sets, Refused, ByTask, tasks::SetStatus, tasks::set_status),
    tool!("task_bumpCounter", "Count up for a task",
        "Adds to a counter of the task and says whether it is over its cap of 2.",
        Standard, Adds, Refused, ByTask, tasks::BumpCounter, tasks::bump_counter),
    tool!("task_complete", "Complete a task",
        "Completes a merged task (mode poc: a secure one) whose dependencies are met. mergeEvidence is the merge SHA.",
        Core, Sets, Refused, ByTask, tasks::Complete, tasks::complete),
    tool!("now_set", "Point at the step at work",
        "Call before each dispatch: shows who does what and starts the step's clock.",
        Core, Adds, Refused, ByTask, now::Set, now::set),
    tool!("now_clear", "Clear the pointer",
        "Call when a dispatch is over: stops the step's clock.",
        Standard, Sets, Allowed, Free, now::Clear, now::clear),
    tool!("event_append", "Write to the timeline",
        "Appends an event that no other call writes, e.g. agent-return. Left-out task, agent and phase come from the pointer.",
        Core, Adds, Allowed, Free, timeline::Append, timeline::append),
    tool!("memory_append", "Keep a lesson",
        "Appends a lesson to the loop's memory.",
        Core, Adds, Allowed, Free, lessons::Append, lessons::append),
    tool!("loop_archive", "Archive a loop",
        "Moves an ended loop with its rows, documents and files to cold storage. Its folder stays.",
        All, Destroys, Allowed, Free, archive::Archive, archive::archive),
    tool!("archive_list", "List archives",
        "Lists archives of all projects, newest first.",
        All, Reads, Allowed, Free, archive::List, archive::list),
    tool!("archive_get", "Look at an archive",
        "Returns an archive's header and its files.",
        All, Reads, Allowed, Free, archive::Get, archive::get),
    tool!("archive_readFile", "Read an archived file",
        "Returns one file of an archive, checked. A long one comes in parts: more counts the characters left.",
        All, Reads, Allowed, Free, archive::ReadFile, archive::read_file),
    tool!("archive_restore", "Restore an archive",
        "Makes an archive a live loop again, in its own project root or in targetDir. The archive stays.",
        All, Adds, Allowed, Free, archive::Restore, archive::restore),
    tool!("archive_delete", "Delete an archive",
        "Deletes an archive for good.",
        All, Destroys, Allowed, Free, archive::Delete, archive::delete),
    tool!("loop_prune", "Drop old history",
        "Drops events and steps of loops that ended long ago, in all projects; rows, tasks, lessons and documents stay. A preview unless dryRun is false.",
        All, Empties, Allowed, Free, retention::Prune, retention::prune),
    tool!("loop_delete", "Delete a loop",
        "Deletes an ended loop. Its documents are kept unless purgeDocuments.",
        All, Destroys, Allowed, Free, retention::Delete, retention::delete),
    tool!("db_vacuum", "Shrink the database",
        "Returns space that archiving, pruning and deleting freed to the file system.",
        All, Sets, Allowed, Free, retention::Vacuum, retention::vacuum),
    tool!("loopsmith_plan", "Plan a graph of work",
        "Reads a goal configuration and returns its graph's waves, critical path, speedup and a schedule.",
        All, Reads, Allowed, Free, goals::PlanArgs, goals::plan),
    tool!("loopsmith_gate_evaluate", "Rule on a goal",
        "Derives from evidence whether a goal is met. With run_id the ruling is recorded, and only what the server reads itself counts.",
        All, Adds, Allowed, Free, goals::GateArgs, goals::evaluate),
    tool!("loopsmith_ledger", "Read a run's ledger",
        "Returns the newest entries of a run, oldest first, and says when the chain was tampered with.",
        All, Reads, Allowed, Free, runs::LedgerArgs, runs::read_ledger),
    tool!("loopsmith_goal_states", "Read recorded rulings",
        "Returns the newest recorded ruling on each target of a run.",
        All, Reads, Allowed, Free, runs::StatesArgs, runs::goal_states),
    tool!("loopsmith_record_episode", "Record an episode",
        "Keeps what a node of a run did and by whom; role judge with a judgment is a judge's word.",
        All, Adds, Allowed, Free, runs::EpisodeArgs, runs::record_episode),
    tool!("loopsmith_episodes", "Read episodes",
        "Returns the newest episodes of a run, oldest first.",
        All, Reads, Allowed, Free, runs::EpisodesArgs, runs::episodes),
    tool!("loopsmith_scratchpad", "Use a run's scratchpad",
        "Writes a note by key, reads it without value, removes it with clear.",
        All, Sets, Allowed, Free, runs::ScratchpadArgs, runs::scratchpad),
];

impl Tool {
    /// Finds a tool by its name.
    pub fn find(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|t| t.name == name)
    }

    /// Reads the arguments and runs the tool on them.
    fn run(&'static self, raw: &str, desk: &mut Desk, ignored: &mut Ignored) -> Done {
        let value = if raw.trim().is_empty() {
            Value::Object(Map::new())
        } else {
            serde_json::from_str(raw).map_err(|e| ArgumentError::NoObject(e.to_string()))?
        };
        if !value.is_object() {
            return Err(ArgumentError::NoObject("it is none".to_owned()).into());
        }
        (self.decide)(value, desk, ignored)
    }

    /// The tool as MCP publishes it.
    pub fn published(&self) -> Published {
        Published {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            description: self.description.to_owned(),
            input_schema: json_text(&(self.schema)()),
            profile: self.profile,
            read_only: self.effect == Effect::Reads,
            destructive: matches!(self.effect, Effect::Destroys | Effect::Empties),
            idempotent: !matches!(self.effect, Effect::Adds | Effect::Destroys),
        }
    }
}

/// Decides a call as far as the facts allow.
pub fn decide(call: &Call, facts: Facts) -> Decision {
    let Some(tool) = Tool::find(&call.tool) else {
        return Decision::Done(refused(&Refusal::UnknownTool(call.tool.clone())));
    };
    let version = facts.version.clone();
    let mut ignored = Ignored::default();
    let mut desk = Desk { policy: tool.policy, facts, gone: None };
    match tool.run(&call.arguments, &mut desk, &mut ignored) {
        Ok(accepted) => Decision::Done(accepted.outcome(ignored.0, desk.gone.as_deref(), &version)),
        Err(Halt::Need(queries)) => Decision::Need(queries),
        Err(Halt::Refuse(refusal)) => Decision::Done(refused(&refusal)),
        Err(Halt::Latch(latch)) => Decision::Done(latch.outcome(&version)),
    }
}
