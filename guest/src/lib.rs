//! The rules of loop-state-mcp: a component that imports nothing, and the same
//! source as a plain library for tests and embedding.
//!
//! This file alone knows the generated bindings; it hands their plain types to
//! the others under the names of the contract's interfaces, so that a record's
//! fields stand in `wit/` and nowhere else.
//!
//! | module | owns |
//! |---|---|
//! | [`catalogue`] | the tools: everything known of each, in one row |
//! | [`policy`] | what the end of a loop and its latch mean to a tool |
//! | [`tool`] | what each tool decides |
//! | [`desk`] | one call at work: facts, questions, changes, outcome |
//! | [`status`], [`phase`], [`counter`] | the closed sets and the transition table |
//! | [`plan`] | dependencies, the in-flight guard |
//! | [`owed`] | the step that a task owes next |
//! | [`clock`], [`timing`], [`timeline`] | step clocks, what they sum up to, events |
//! | [`resume`], [`manifest`] | where work goes on, what to read before |
//! | [`audit`] | the loop held against its record |
//! | [`document`], [`digest`] | paths and headers of documents, digests |
//! | [`refusal`], [`reply`] | what is said |
//! | [`arguments`], [`text`] | what is understood |
//! | [`render`] | the readable views |

#[allow(unsafe_code, missing_docs, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: "../wit",
        world: "loop-logic",
        additional_derives: [PartialEq],
    });
}

pub use bindings::exports::loop_state::logic::{
    audit as audit_interface, recovery as recovery_interface, timing as timing_interface,
};
pub use bindings::exports::loop_state::logic::{model, rules, tools, views};

mod arguments;
mod audit;
mod catalogue;
mod clock;
mod counter;
mod desk;
mod digest;
mod document;
mod goal;
mod manifest;
mod owed;
// Nothing panics natively in a way that the host would have to read.
#[cfg_attr(not(target_family = "wasm"), allow(dead_code))]
mod panic;
mod phase;
mod plan;
mod policy;
mod refusal;
mod render;
mod reply;
mod resume;
mod status;
mod text;
mod timeline;
mod timing;
mod tool;

#[cfg(test)]
mod tests;

/// The component: the contract's functions over the modules above.
pub struct Logic;

/// For the model, at start-up.
const INSTRUCTIONS: &str = "\
loop-state keeps the record of your development loop: loops, tasks, phases, the timeline, step timings and lessons of \
this project, in one database, with readable views in .projects/loops/{slug}/. It outlives your context; do not keep \
the state yourself, and do not edit the views.\n\
Start: loop_init once per goal, then tasks_derive with the approved plan. Bracket each phase with loop_setPhaseStatus.\n\
Work: one task in flight at a time. Call now_set before each dispatch, event_append (agent-return) when the agent is \
back, task_setStatus after each step; its answer says what the task owes next. verified and secure need evidence, \
task_complete needs the merge SHA. Plans, task specs and reports are documents: loop_writeFile, loop_readFile.\n\
Refused? The text says why and what to do. Make the corrective call on the task it names; other work waits until then. \
Only the user may waive it (loop_clearBlock).\n\
Lost the thread (compaction, crash, new session)? loop_recover first: it says where the loop stands and the one next action.\n\
Before the feature merge: loop_audit.\n\
End: loop_finish done when every task is complete, skipped or superseded, else aborted.";

impl tools::Guest for Logic {
    fn about() -> tools::Identity {
        panic::install();
        tools::Identity {
            name: "loop-state".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: INSTRUCTIONS.to_owned(),
        }
    }

    fn tools() -> Vec<tools::Tool> {
        panic::install();
        catalogue::TOOLS.iter().map(catalogue::Tool::published).collect()
    }

    fn decide(call: tools::Call, facts: tools::Facts) -> tools::Decision {
        panic::install();
        catalogue::decide(&call, facts)
    }
}

impl views::Guest for Logic {
    fn render(state: model::LoopState, memories: Vec<model::Memory>, version: String) -> views::ViewSet {
        panic::install();
        render::all(&state, &memories, &version)
    }

    fn log_lines(events: Vec<model::Event>) -> String {
        panic::install();
        render::log_lines(&events)
    }

    fn stamp(slug: String, head: model::DocumentHead, content: String, version: String) -> String {
        panic::install();
        document::stamp(&slug, &head, &content, &version)
    }

    fn strip(text: String) -> views::Stripped {
        panic::install();
        let (header, body) = render::strip(&text);
        views::Stripped { header, body: body.to_owned() }
    }
}

/// Reads a mode's word.
fn mode(word: &str) -> Result<status::Mode, rules::MoveRefusal> {
    status::Mode::parse(word).ok_or_else(|| rules::MoveRefusal::UnknownMode(word.to_owned()))
}

/// Reads a status' word.
fn status_word(word: &str) -> Result<status::Status, rules::MoveRefusal> {
    status::Status::parse(word).ok_or_else(|| rules::MoveRefusal::UnknownStatus(word.to_owned()))
}

fn words(statuses: impl IntoIterator<Item = status::Status>) -> Vec<String> {
    statuses.into_iter().map(|s| s.word().to_owned()).collect()
}

impl rules::Guest for Logic {
    fn transitions(of: String) -> Result<Vec<rules::Transition>, rules::MoveRefusal> {
        panic::install();
        let mode = mode(&of)?;
        let row = |from: &status::Status| rules::Transition {
            from: from.word().to_owned(),
            to: words(status::targets(mode, *from)),
        };
        Ok(status::Status::ALL.iter().map(row).collect())
    }

    fn check_transition(of: String, from: String, to: String) -> Result<Vec<String>, rules::MoveRefusal> {
        panic::install();
        match status::check_move(mode(&of)?, status_word(&from)?, status_word(&to)?) {
            Ok(hops) => Ok(words(hops)),
            Err(status::IllegalMove::OnlyThrough(tool)) => {
                Err(rules::MoveRefusal::OnlyThrough(rules::OnlyThrough { status: to, tool: tool.to_owned() }))
            }
            Err(status::IllegalMove::NoSuchMove(path)) => {
                Err(rules::MoveRefusal::Illegal(rules::IllegalMove { from, to, path: path.map(words) }))
            }
        }
    }

    fn shortest_path(
        of: String,
        from: String,
        to: String,
    ) -> Result<Option<Vec<String>>, rules::MoveRefusal> {
        panic::install();
        Ok(status::shortest_path(mode(&of)?, status_word(&from)?, status_word(&to)?).map(words))
    }

    fn next_step(
        of: String,
        status: String,
        tech: Option<String>,
        retries: u32,
    ) -> Result<rules::OwedStep, rules::MoveRefusal> {
        panic::install();
        let owed = owed::next_step(mode(&of)?, status_word(&status)?, tech.as_deref(), retries);
        Ok(rules::OwedStep { point: owed.point.to_owned(), action: owed.action, agent: owed.agent })
    }
}

impl audit_interface::Guest for Logic {
    fn audit(state: model::LoopState, proofs: Vec<model::Event>) -> audit_interface::Report {
        use audit_interface as to;
        panic::install();
        let verdict = |v| match v {
            audit::Verdict::Pass => to::Verdict::Pass,
            audit::Verdict::Warn => to::Verdict::Warn,
            audit::Verdict::Fail => to::Verdict::Fail,
        };
        let report = audit::audit(&state, &proofs, &[]);
        to::Report {
            verdict: verdict(report.verdict),
            tasks: report
                .tasks
                .into_iter()
                .map(|t| to::TaskVerdict {
                    verdict: verdict(t.verdict),
                    taskid: t.taskid,
                    status: t.status,
                    issue: t.issue,
                    pr: t.pr,
                    merge_sha: t.merge_sha,
                })
                .collect(),
            findings: report
                .findings
                .into_iter()
                .map(|f| to::Finding {
                    code: f.code.to_owned(),
                    severity: match f.severity {
                        audit::Severity::Fail => to::Severity::Fail,
                        audit::Severity::Warn => to::Severity::Warn,
                    },
                    owner: match f.owner {
                        audit::Owner::Orchestrator => to::Owner::Orchestrator,
                        audit::Owner::User => to::Owner::User,
                    },
                    taskid: f.taskid,
                    message: f.message,
                    fix: f.fix,
                })
                .collect(),
        }
    }
}

impl recovery_interface::Guest for Logic {
    fn resume_point(state: model::LoopState) -> recovery_interface::Resume {
        use recovery_interface as to;
        panic::install();
        let r = resume::resume_point(&state);
        to::Resume {
            kind: match r.kind {
                resume::Kind::Done => to::ResumeKind::Done,
                resume::Kind::Gate => to::ResumeKind::Gate,
                resume::Kind::Task => to::ResumeKind::Task,
                resume::Kind::Phase => to::ResumeKind::Phase,
                resume::Kind::Finish => to::ResumeKind::Finish,
            },
            point: r.point,
            taskid: r.taskid,
            agent: r.agent,
            why: r.why,
            next_action: r.next_action,
            next_call: r.next_call.map(|c| to::NextCall {
                tool: c.tool.to_owned(),
                arguments: c.arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                needs: c.needs.into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    fn manifest(
        state: model::LoopState,
        files: Vec<model::FileEntry>,
        documents: Vec<model::DocumentHead>,
    ) -> Vec<recovery_interface::ManifestEntry> {
        use recovery_interface as to;
        panic::install();
        let resume = resume::resume_point(&state);
        manifest::manifest(&state, &resume, &files, &documents)
            .into_iter()
            .map(|e| to::ManifestEntry {
                path: e.path,
                exists: e.exists,
                bytes: e.bytes,
                priority: match e.priority {
                    manifest::Priority::Must => to::Priority::Must,
                    manifest::Priority::Should => to::Priority::Should,
                    manifest::Priority::Optional => to::Priority::Optional,
                },
                why: e.why,
            })
            .collect()
    }
}

impl timing_interface::Guest for Logic {
    fn sum_up(state: model::LoopState) -> timing_interface::Report {
        use timing_interface as to;
        panic::install();
        let row = |r: timing::Row| to::Row {
            key: r.key,
            steps: r.steps,
            wall_ms: r.wall_ms,
            agent_ms: r.agent_ms,
            orchestrator_ms: r.orchestrator_ms,
            unattributed_ms: r.unattributed_ms,
            clock_ms: r.clock_ms,
        };
        let report = timing::report(&state);
        to::Report {
            steps: report.whole.steps,
            whole: row(report.whole),
            tasks: report.tasks.into_iter().map(row).collect(),
            phases: report.phases.into_iter().map(row).collect(),
            quality: state.loop_.quality,
        }
    }

    fn backfill(events: Vec<model::Event>) -> Vec<model::Step> {
        panic::install();
        timing::backfill(&events).steps
    }
}

#[cfg(target_family = "wasm")]
#[allow(unsafe_code, missing_docs)]
mod export {
    use super::{Logic, bindings};
    bindings::export!(Logic with_types_in bindings);
}
