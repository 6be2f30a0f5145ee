//! A host in memory: answers queries from its rows and applies writes to them.

use crate::Logic;
use crate::model::{DocumentHead, Event, FileEntry, LoopState, Memory, Step};
use crate::model::{LoopSummary, StatusCount};
use crate::tools::{
    Answer, Call, Decision, Fact, Facts, Guest, LoopPage, Outcome, Project, Query, RootKind, RootSource,
    Write,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// One loop with its history.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub state: LoopState,
    pub events: Vec<Event>,
    pub steps: Vec<Step>,
    pub memories: Vec<Memory>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Bench {
    pub loops: BTreeMap<String, Kept>,
    pub now: i64,
    pub root_kind: RootKind,
    pub root_source: RootSource,
    pub documents: Vec<DocumentHead>,
    /// What lies beside the views; `None` when there is no folder.
    pub files: Option<Vec<FileEntry>>,
    ids: u32,
}

/// What a call came to.
pub type Said = Result<Value, String>;

pub const SLUG: &str = "demo";

impl Bench {
    pub fn new() -> Bench {
        Bench {
            loops: BTreeMap::new(),
            now: 1_760_000_000_000,
            root_kind: RootKind::Folder,
            root_source: RootSource::Directory,
            documents: Vec::new(),
            files: None,
            ids: 0,
        }
    }

    /// A bench with one loop, in a mode.
    pub fn with_loop(mode: &str) -> Bench {
        let mut bench = Bench::new();
        bench.ok("loop_init", serde_json::json!({ "goal": "try it", "mode": mode }));
        bench
    }

    pub fn kept(&self) -> &Kept {
        &self.loops[SLUG]
    }

    pub fn state(&self) -> &LoopState {
        &self.kept().state
    }

    pub fn status(&self, taskid: &str) -> &str {
        let task = self.state().tasks.iter().find(|t| t.taskid == taskid);
        &task.expect("the test names a task it made").status
    }

    pub fn last_event(&self) -> &Event {
        self.kept().events.last().expect("a loop begins with an event")
    }

    /// Calls a tool on the loop [`SLUG`], unless the arguments name another.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Said {
        self.outcome(tool, arguments).map(|o| serde_json::from_str(&o.reply).expect("a reply is JSON"))
    }

    /// The same for a call that the test expects to pass.
    #[track_caller]
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        match self.call(tool, arguments) {
            Ok(reply) => reply,
            Err(refusal) => panic!("{tool} was refused: {refusal}"),
        }
    }

    /// The same for a call that the test expects to be refused.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments) {
            Err(refusal) => refusal,
            Ok(reply) => panic!("{tool} passed: {reply}"),
        }
    }

    pub fn outcome(&mut self, tool: &str, mut arguments: Value) -> Result<Outcome, String> {
        if let Some(map) = arguments.as_object_mut().filter(|_| !matches!(tool, "loop_list" | "loop_recover"))
        {
            map.entry("loopSlug").or_insert_with(|| SLUG.into());
        }
        let call = Call { tool: tool.to_owned(), arguments: arguments.to_string() };
        self.now += 1_000;
        self.ids += 1;
        let mut facts = Facts {
            now: self.now,
            fresh_id: format!("00000000-0000-4000-8000-{:012}", self.ids),
            version: "1.2.3".to_owned(),
            project: Project {
                id: "p".to_owned(),
                name: "project".to_owned(),
                root: "/home/me/project".to_owned(),
                root_source: self.root_source,
                root_kind: self.root_kind,
                key: None,
                evidence: "root folder".to_owned(),
                loops_folder: ".projects/loops".to_owned(),
            },
            answers: Vec::new(),
        };
        for _ in 0..5 {
            match Logic::decide(call.clone(), facts.clone()) {
                Decision::Need(queries) => {
                    for query in queries {
                        assert!(!facts.answers.iter().any(|f| f.query == query), "asked twice: {query:?}");
                        let answer = self.answer(&query);
                        facts.answers.push(Fact { query, answer });
                    }
                }
                Decision::Done(outcome) => {
                    self.apply(outcome.writes.clone());
                    return if outcome.refused { Err(outcome.reply) } else { Ok(outcome) };
                }
            }
        }
        panic!("{tool} did not decide");
    }

    fn answer(&self, query: &Query) -> Answer {
        match query {
            Query::LoopState(slug) => Answer::LoopState(self.loops.get(slug).map(|k| k.state.clone())),
            Query::LoopSlugs => Answer::LoopSlugs(self.loops.keys().cloned().collect()),
            Query::Memories(id) => Answer::Memories(self.by_id(id).memories.clone()),
            Query::RecentEvents((id, limit)) => {
                let events = &self.by_id(id).events;
                Answer::RecentEvents(events[events.len().saturating_sub(*limit as usize)..].to_vec())
            }
            Query::Proofs(id) => {
                let events = self.by_id(id).events.iter();
                Answer::Proofs(events.filter(|e| e.evidence.is_some()).cloned().collect())
            }
            Query::Timeline(id) => Answer::Timeline(self.by_id(id).events.clone()),
            Query::SlowestSteps((id, limit)) => {
                let mut steps: Vec<_> =
                    self.by_id(id).steps.iter().filter(|s| s.ended_at.is_some()).cloned().collect();
                steps.sort_by_key(|s| (s.started_at - s.ended_at.unwrap_or(0), s.seq));
                steps.truncate(*limit as usize);
                Answer::SlowestSteps(steps)
            }
            Query::Documents(_) => Answer::Documents(self.documents.clone()),
            Query::LoopFiles(_) => Answer::LoopFiles(self.files.clone()),
            Query::FileText((slug, path)) => Answer::FileText(self.file_text(slug, path)),
            Query::LoopList(filter) => {
                let mut loops: Vec<_> = self.loops.values().collect();
                loops.retain(|k| filter.include_finished || k.state.loop_.finished_at.is_none());
                loops.sort_by_key(|k| -k.state.loop_.updated_at);
                Answer::LoopList(LoopPage {
                    total: loops.len() as u32,
                    loops: loops
                        .into_iter()
                        .skip(filter.offset as usize)
                        .take(filter.limit as usize)
                        .map(summary)
                        .collect(),
                })
            }
        }
    }

    /// The views as a host would have written them.
    fn file_text(&self, slug: &str, path: &str) -> Option<String> {
        let kept = &self.loops[slug];
        match path {
            "loop.md" => Some(crate::render::loop_page(&kept.state, "1.2.3")),
            "memory.md" => Some(crate::render::lessons_page(&kept.state.loop_, &kept.memories, "1.2.3")),
            _ => None,
        }
    }

    fn by_id(&self, id: &str) -> &Kept {
        self.loops.values().find(|k| k.state.loop_.id == id).expect("the logic names loops it was given")
    }

    fn apply(&mut self, writes: Vec<Write>) {
        for write in writes {
            match write {
                Write::CreateLoop(row) => {
                    let slug = row.slug.clone();
                    let state = LoopState {
                        loop_: row,
                        phases: Vec::new(),
                        tasks: Vec::new(),
                        totals: Vec::new(),
                        open_step: None,
                    };
                    let kept = Kept { state, events: Vec::new(), steps: Vec::new(), memories: Vec::new() };
                    assert!(self.loops.insert(slug, kept).is_none(), "created twice");
                }
                Write::PutLoop(row) => {
                    let id = row.id.clone();
                    self.of(&id).state.loop_ = row;
                }
                Write::PutPhase((id, phase)) => {
                    put(&mut self.of(&id).state.phases, phase, |a, b| a.phase == b.phase);
                }
                Write::PutTask((id, task)) => {
                    let tasks = &mut self.of(&id).state.tasks;
                    put(tasks, task, |a, b| a.taskid.eq_ignore_ascii_case(&b.taskid));
                    tasks.sort_by_key(|t| t.position);
                }
                Write::AppendEvent((id, event)) => {
                    let events = &mut self.of(&id).events;
                    assert_eq!(event.seq, events.len() as u64 + 1, "a gap in the events");
                    events.push(event);
                }
                Write::PutStep((id, step)) => {
                    let kept = self.of(&id);
                    put(&mut kept.steps, step, |a, b| a.seq == b.seq);
                    let mut open = kept.steps.iter().filter(|s| s.ended_at.is_none());
                    kept.state.open_step = open.next().cloned();
                    assert!(open.next().is_none(), "two steps are open");
                }
                Write::PutStepTotal((id, total)) => {
                    put(&mut self.of(&id).state.totals, total, |a, b| a.task == b.task && a.phase == b.phase);
                }
                Write::AppendMemory((id, memory)) => {
                    let memories = &mut self.of(&id).memories;
                    assert_eq!(memory.seq, memories.len() as u64 + 1, "a gap in the lessons");
                    memories.push(memory);
                }
            }
        }
    }

    fn of(&mut self, id: &str) -> &mut Kept {
        self.loops.values_mut().find(|k| k.state.loop_.id == id).expect("writes name a loop")
    }
}

fn put<T>(rows: &mut Vec<T>, row: T, same: impl Fn(&T, &T) -> bool) {
    match rows.iter_mut().find(|r| same(r, &row)) {
        Some(place) => *place = row,
        None => rows.push(row),
    }
}

fn summary(kept: &Kept) -> LoopSummary {
    let l = &kept.state.loop_;
    let mut counts = BTreeMap::new();
    for task in &kept.state.tasks {
        *counts.entry(task.status.clone()).or_insert(0) += 1;
    }
    LoopSummary {
        slug: l.slug.clone(),
        title: l.title.clone(),
        phase: l.phase.clone(),
        status: l.status.clone(),
        tasks: counts.into_iter().map(|(status, count)| StatusCount { status, count }).collect(),
        updated_at: l.updated_at,
        project_root: l.project_root.clone(),
    }
}
