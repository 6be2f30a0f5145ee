//! A host in memory: answers queries from its rows and applies writes to them.

use crate::Logic;
use crate::model::{Event, LoopState, Memory, Step};
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
        if let Some(map) = arguments.as_object_mut().filter(|_| tool != "loop_list") {
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
