//! The beginning of a loop.

use crate::arguments::{Said, Slug, arguments};
use crate::desk::{Accepted, Desk, Done, Found, OpenLoop};
use crate::goal::ledger::{self, Draft, Kind, Tip};
use crate::model::{Event, Loop, LoopState, Marks, Phase};
use crate::phase::{LoopStatus, Pointer, Rung, RungStatus};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::status::Mode;
use crate::text::{is_blank, present};
use crate::timeline::name;
use crate::timing::NO_QUALITY;
use crate::tools::{ProjectEvidence, RootKind, RootSource};
use serde_json::{Value, json};

arguments! {
    /// Arguments of `loop_init`.
    pub struct Init {
        slug: Slug = "loopSlug", "Short kebab-case name; also the folder's.";
        goal: Said = "goal", "The user's goal, word for word.";
        title: Option<String> = "title", "Default: the goal.";
        mode: Option<Mode> = "mode", "poc needs no pull request. Default standard.";
        default_branch: Option<String> = "defaultBranch", "";
        branch_mode: Option<String> = "branchMode", "new-feature-branch or existing-worktree.";
        feature_branch: Option<String> = "featureBranch", "";
    }
}

/// Creates a loop, or finds the one of the slug.
pub fn init(args: Init, desk: &mut Desk) -> Done {
    let given = Given::new(args);
    let found = desk.find(&given.slug)?;
    if let Found::Detached(state) = &found {
        desk.gone = Some(state.loop_.project_root.clone());
    }
    if let Found::Here(state) | Found::Detached(state) = found {
        return Accepted::reading(
            init_reply(&state.loop_, desk)
                .with("reused", true)
                .with("status", state.loop_.status.clone())
                .with("differs", given.differs(&state.loop_)),
        );
    }
    let place = &desk.facts.place;
    if place.root_kind != RootKind::Folder && place.root_source == RootSource::Directory {
        let (flag, variable) = (place.root_flag.clone(), place.root_variable.clone());
        return Err(Refusal::BareRoot { root: desk.facts.project.root.clone(), flag, variable }.into());
    }
    let goal = given.goal.clone();
    let mut open = OpenLoop::create(desk.policy, new_state(given, desk), desk.facts.now);
    let event = Event {
        to: Some(LoopStatus::Active.word().to_owned()),
        note: Some(goal),
        ..open.event(name::LOOP_INIT)
    };
    open.record(event);
    // A loop that begins has no ledger yet.
    let started = Draft::new(open.now, Kind::RunStarted, 0, open.row().goal.clone());
    open.log_run(vec![ledger::append(&mut Tip::genesis(), started)]);
    let reply = init_reply(open.row(), desk);
    open.done_with_lessons(reply, Vec::new())
}

/// What `loop_init` was given, absent spellings sorted out.
struct Given {
    slug: String,
    goal: String,
    title: Option<String>,
    mode: Option<Mode>,
    default_branch: Option<String>,
    branch_mode: Option<String>,
    feature_branch: Option<String>,
}

impl Given {
    fn new(args: Init) -> Given {
        Given {
            slug: args.slug.0,
            goal: args.goal.0,
            title: args.title.filter(|t| !is_blank(t)),
            mode: args.mode,
            default_branch: present(args.default_branch),
            branch_mode: present(args.branch_mode),
            feature_branch: present(args.feature_branch),
        }
    }

    /// Lists each argument that is not what is stored.
    fn differs(&self, l: &Loop) -> Vec<Value> {
        let stored: [(&str, Option<&str>, Option<&str>); 6] = [
            ("goal", Some(&self.goal), Some(&l.goal)),
            ("title", self.title.as_deref(), Some(&l.title)),
            ("mode", self.mode.map(Mode::word), Some(&l.mode)),
            ("defaultBranch", self.default_branch.as_deref(), l.default_branch.as_deref()),
            ("branchMode", self.branch_mode.as_deref(), l.branch_mode.as_deref()),
            ("featureBranch", self.feature_branch.as_deref(), l.feature_branch.as_deref()),
        ];
        stored
            .into_iter()
            .filter(|(_, given, stored)| given.is_some() && given != stored)
            .map(
                |(argument, given, stored)| json!({ "argument": argument, "given": given, "stored": stored }),
            )
            .collect()
    }
}

fn new_state(given: Given, desk: &Desk) -> LoopState {
    let facts = &desk.facts;
    let now = facts.now;
    LoopState {
        loop_: Loop {
            id: facts.fresh_id.clone(),
            title: given.title.unwrap_or_else(|| given.goal.clone()),
            slug: given.slug,
            goal: given.goal,
            mode: given.mode.unwrap_or(Mode::Standard).word().to_owned(),
            status: LoopStatus::Active.word().to_owned(),
            phase: Pointer::Preflight.word().to_owned(),
            project_id: facts.project.id.clone(),
            project_root: facts.project.root.clone(),
            project_key: facts.project.key.clone(),
            default_branch: given.default_branch,
            branch_mode: given.branch_mode,
            feature_branch: given.feature_branch,
            legal: None,
            memory_harvest: None,
            docs_sync: None,
            deferred_gate: None,
            qa_report: None,
            f_unresolved_pr: None,
            f_security_deferred: None,
            total_failed_gates: 0,
            splits_done: 0,
            qa_rounds: 0,
            awaiting_user: None,
            blocked: None,
            now: None,
            goal_config: None,
            goal_config_sha256: None,
            mcp_version: Some(facts.version.clone()),
            created_at: now,
            updated_at: now,
            finished_at: None,
            pruned_at: None,
            marks: Marks {
                revision: 0,
                event_seq: 0,
                log_bytes: 0,
                step_seq: 0,
                memory_seq: 0,
                memory_bytes: 0,
            },
            quality: NO_QUALITY,
        },
        phases: Rung::ALL
            .iter()
            .map(|rung| Phase {
                phase: rung.word().to_owned(),
                status: RungStatus::Pending.word().to_owned(),
                updated_at: now,
            })
            .collect(),
        tasks: Vec::new(),
        totals: Vec::new(),
        open_step: None,
        goals: Vec::new(),
    }
}

fn init_reply(l: &Loop, desk: &Desk) -> Reply {
    Reply::new()
        .with("id", l.id.clone())
        .with("loopSlug", l.slug.clone())
        .with("title", l.title.clone())
        .with("loopdir", desk.folder(&l.slug))
        .with("project", project(desk))
}

/// Which project the server keeps, and how it was found.
pub fn project(desk: &Desk) -> Value {
    let (project, place) = (&desk.facts.project, &desk.facts.place);
    let named_by = match place.root_source {
        RootSource::Flag => place.root_flag.as_str(),
        RootSource::Variable => place.root_variable.as_str(),
        RootSource::Directory => "working directory",
    };
    let evidence = match project.evidence {
        ProjectEvidence::KnownRoot => "known root",
        ProjectEvidence::Remote => "remote",
        ProjectEvidence::Repository => "repository",
        ProjectEvidence::Folder => "root folder",
    };
    let below = project.below.as_ref();
    Reply::new()
        .with("name", project.name.clone())
        .with("key", project.key.clone())
        .with("evidence", evidence)
        .with("root_from", named_by)
        .with_some("below", below.map(|top| format!("the root lies below the work tree's top, {top}")))
        .with_some("note", project.note.clone())
        .into_value()
}
