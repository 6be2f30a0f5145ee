//! A host in memory: answers queries from its rows and applies writes to them.

use crate::Logic;
use crate::digest::sha256;
use crate::model::{
    ArchiveHead, ArchivedFile, Document, DocumentHead, Episode, Event, FileEntry, GoalState, LedgerEntry,
    LoopPlace, LoopState, LoopSummary, Memory, StatusCount, Step, TreeEntry,
};
use crate::render::strip;
use crate::tools::{
    Answer, ArchiveDetail, ArchivePage, ArchivedLoop, Archiving, Call, Captured, CapturedFile, Decision,
    EpisodePage, EvidenceFile, Fact, Facts, FileFact, FoundFile, FoundLoop, Guest, LedgerPage, LoopPage,
    Outcome, Place, Project, ProjectEvidence, PruneCandidate, Query, RootKind, RootSource, Run, ScriptRun,
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
    /// Every revision, oldest first.
    pub documents: Vec<Document>,
}

/// The record of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRows {
    pub states: Vec<GoalState>,
    pub ledger: Vec<LedgerEntry>,
    pub episodes: Vec<Episode>,
    pub notes: BTreeMap<String, String>,
}

/// An archive: the loop as it was, and the names of the captured files.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub kept: Kept,
    pub request: Archiving,
}

/// Where the bench's server was started.
pub const ROOT: &str = "/home/me/project";

#[derive(Clone, Debug, PartialEq)]
pub struct Bench {
    pub loops: BTreeMap<String, Kept>,
    pub now: i64,
    pub root_kind: RootKind,
    pub root_source: RootSource,
    /// Documents that are listed beside those that were written.
    pub documents: Vec<DocumentHead>,
    /// What lies beside the views; `None` when there is no folder.
    pub files: Option<Vec<FileEntry>>,
    /// The texts of files, by path.
    pub texts: BTreeMap<String, String>,
    /// The whole tree of the loop's folder.
    pub tree: Option<Vec<TreeEntry>>,
    /// Loops of other roots of the project, and whether their roots are there.
    pub elsewhere: Vec<(LoopState, bool)>,
    pub archives: Vec<Stored>,
    /// By name.
    pub runs: BTreeMap<String, RunRows>,
    /// Files that gates and configurations are read from, by path below the project
    /// root; `None` stands for something that is no file.
    pub evidence: BTreeMap<String, Option<Vec<u8>>>,
    /// How programs end, by command.
    pub scripts: BTreeMap<String, ScriptRun>,
    /// Loops by id that calls may change and that no slug finds.
    unkept: BTreeMap<String, Kept>,
    pub last: Option<Outcome>,
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
            texts: BTreeMap::new(),
            tree: None,
            elsewhere: Vec::new(),
            archives: Vec::new(),
            runs: BTreeMap::new(),
            evidence: BTreeMap::new(),
            scripts: BTreeMap::new(),
            unkept: BTreeMap::new(),
            last: None,
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

    /// What a call that the test expects to pass comes to, for a loop that the bench
    /// does not keep.
    pub fn outcome_without_applying(&mut self, tool: &str, arguments: Value) -> Outcome {
        let mut copy = self.clone();
        for (state, _) in &self.elsewhere {
            let kept = Kept {
                state: state.clone(),
                events: Vec::new(),
                steps: Vec::new(),
                memories: Vec::new(),
                documents: Vec::new(),
            };
            copy.unkept.insert(state.loop_.id.clone(), kept);
        }
        copy.outcome(tool, arguments).expect("the call passes")
    }

    pub fn outcome(&mut self, tool: &str, mut arguments: Value) -> Result<Outcome, String> {
        let takes_slug =
            Logic::tools().iter().any(|t| t.name == tool && t.input_schema.contains("\"loopSlug\""));
        if let Some(map) = arguments.as_object_mut().filter(|_| takes_slug && tool != "loop_recover") {
            map.entry("loopSlug").or_insert_with(|| SLUG.into());
        }
        let call = Call { tool: tool.to_owned(), arguments: arguments.to_string() };
        self.now += 1_000;
        self.ids += 1;
        let mut facts = facts(self.now, format!("00000000-0000-4000-8000-{:012}", self.ids));
        facts.place.root_source = self.root_source;
        facts.place.root_kind = self.root_kind;
        // As often as the host lets a logic ask.
        for _ in 0..8 {
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
                    self.last = Some(outcome.clone());
                    return if outcome.refused { Err(outcome.reply) } else { Ok(outcome) };
                }
            }
        }
        panic!("{tool} did not decide");
    }

    fn answer(&self, query: &Query) -> Answer {
        match query {
            Query::LoopState(slug) => {
                let here = self.loops.get(slug).map(|k| k.state.clone());
                let others = self.elsewhere.iter().map(|(state, _)| &state.loop_);
                let others = others.filter(|l| here.is_none() && l.slug == *slug).map(|l| LoopPlace {
                    id: l.id.clone(),
                    slug: l.slug.clone(),
                    title: l.title.clone(),
                    status: l.status.clone(),
                    project_root: l.project_root.clone(),
                });
                let elsewhere = others.collect();
                Answer::LoopState(FoundLoop { here, elsewhere })
            }
            Query::LoopById(id) => {
                let here = self.loops.values().map(|k| &k.state);
                let mut all = here.chain(self.elsewhere.iter().map(|(state, _)| state));
                Answer::LoopById(all.find(|s| s.loop_.id == *id).cloned())
            }
            Query::RootsExist(roots) => Answer::RootsExist(
                roots
                    .iter()
                    .map(|root| {
                        self.elsewhere.iter().any(|(s, there)| s.loop_.project_root == *root && *there)
                    })
                    .collect(),
            ),
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
            Query::Documents(id) => {
                let mut heads = self.documents.clone();
                heads.extend(self.heads(id));
                Answer::Documents(heads)
            }
            Query::Document((id, path, rev)) => {
                let mut found = self.by_id(id).documents.iter().rev().filter(|d| d.head.path == *path);
                Answer::Document(found.find(|d| rev.is_none_or(|rev| d.head.rev == rev)).cloned())
            }
            Query::LoopFiles(_) => Answer::LoopFiles(self.files.clone()),
            Query::FileText((id, path)) => Answer::FileText(self.file_text(id, path)),
            Query::LoopTree(_) => Answer::LoopTree(self.tree.clone()),
            Query::Capture((_, paths)) => Answer::Capture(
                paths
                    .iter()
                    .map(|path| CapturedFile {
                        path: path.clone(),
                        content: self.texts.get(path).map_or(Err("it went away".to_owned()), |text| {
                            Ok(Captured {
                                bytes: text.len() as u64,
                                sha256: sha256(text.as_bytes()),
                                body_sha256: Some(sha256(strip(text).1.as_bytes())),
                            })
                        }),
                    })
                    .collect(),
            ),
            Query::ArchiveList(filter) => Answer::ArchiveList(ArchivePage {
                total: self.archives.len() as u32,
                archives: self
                    .archives
                    .iter()
                    .rev()
                    .skip(filter.offset as usize)
                    .take(filter.limit as usize)
                    .map(Stored::head)
                    .collect(),
            }),
            Query::Archive(id) => Answer::Archive(self.stored(id).map(|stored| {
                ArchiveDetail {
                    head: stored.head(),
                    files: stored
                        .request
                        .files
                        .iter()
                        .map(|(_, path)| ArchivedFile {
                            path: path.clone(),
                            document: false,
                            bytes: 0,
                            stored_bytes: 0,
                            sha256: String::new(),
                            modified_at: None,
                        })
                        .collect(),
                }
            })),
            Query::ArchivedLoop(id) => Answer::ArchivedLoop(self.stored(id).map(|stored| ArchivedLoop {
                loop_: stored.kept.state.loop_.clone(),
                live: self.loops.values().any(|k| k.state.loop_.id == stored.kept.state.loop_.id),
                documents_differ: false,
            })),
            Query::ArchivedContent((_, path)) => {
                Answer::ArchivedContent(self.texts.get(path).map(|text| text.clone().into_bytes()))
            }
            Query::ProjectAt(folder) => Answer::ProjectAt(Ok(Project {
                id: "q".to_owned(),
                name: "other".to_owned(),
                root: folder.clone(),
                key: Some("github.com/acme/app".to_owned()),
                evidence: ProjectEvidence::Remote,
                note: None,
                below: None,
            })),
            Query::SlugHolder((root, slug)) => {
                let held = self.loops.get(slug).filter(|k| k.state.loop_.project_root == *root);
                Answer::SlugHolder(held.map(|k| k.state.loop_.id.clone()))
            }
            Query::Evidence(file) => Answer::Evidence(self.evidence_of(file)),
            Query::RunScript(script) => Answer::RunScript(
                self.scripts
                    .get(&script.command)
                    .cloned()
                    .unwrap_or_else(|| ScriptRun::Unavailable("scripts are not allowed here".to_owned())),
            ),
            Query::GoalStates(run) => Answer::GoalStates(self.run(run).states),
            Query::Ledger(part) => {
                let all = self.run(&part.run).ledger;
                let newest = all.last().cloned();
                let of_kind = |e: &LedgerEntry| part.only.as_ref().is_none_or(|kind| *kind == e.kind);
                let mut entries: Vec<_> = all.into_iter().filter(of_kind).collect();
                let total = entries.len() as u64;
                entries.drain(..entries.len().saturating_sub(part.limit as usize));
                Answer::Ledger(LedgerPage { entries, total, newest })
            }
            Query::Episodes(part) => {
                let all = self.run(&part.run).episodes;
                let newest = all.last().map_or(0, |e| e.seq);
                let of_node = |e: &Episode| part.only.as_ref().is_none_or(|node| *node == e.node_id);
                let mut episodes: Vec<_> = all.into_iter().filter(of_node).collect();
                let total = episodes.len() as u64;
                episodes.drain(..episodes.len().saturating_sub(part.limit as usize));
                Answer::Episodes(EpisodePage { episodes, total, newest })
            }
            Query::Scratchpad((run, key)) => Answer::Scratchpad(self.run(run).notes.get(key).cloned()),
            Query::Prunable(before) => {
                let old = |k: &&Kept| {
                    let l = &k.state.loop_;
                    l.pruned_at.is_none() && l.finished_at.is_some_and(|end| end < *before)
                };
                let row = |k: &Kept| PruneCandidate {
                    id: k.state.loop_.id.clone(),
                    slug: k.state.loop_.slug.clone(),
                    project_root: k.state.loop_.project_root.clone(),
                    finished_at: k.state.loop_.finished_at.expect("it ended"),
                    events: k.events.len() as u32,
                    steps: k.steps.len() as u32,
                };
                Answer::Prunable(self.loops.values().filter(old).map(row).collect())
            }
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

    fn run(&self, run: &Run) -> RunRows {
        self.runs.get(&run.name).cloned().unwrap_or_default()
    }

    fn evidence_of(&self, file: &EvidenceFile) -> FileFact {
        let path = format!("{}/{}", file.workdir, file.path);
        match self.evidence.get(path.trim_start_matches('/')) {
            None => FileFact::Absent,
            Some(None) => FileFact::NotAFile,
            Some(Some(bytes)) => FileFact::File(FoundFile {
                bytes: bytes.len() as u64,
                sha256: sha256(bytes),
                content: file.content.then(|| bytes.clone()),
            }),
        }
    }

    fn stored(&self, id: &str) -> Option<&Stored> {
        self.archives.iter().find(|stored| stored.request.id == id)
    }

    /// The newest revisions of a loop's documents, by path.
    fn heads(&self, id: &str) -> Vec<DocumentHead> {
        let known = self.loops.values().find(|k| k.state.loop_.id == id);
        let documents = known.map(|k| k.documents.as_slice()).unwrap_or_default();
        let heads: BTreeMap<_, _> = documents.iter().map(|d| (&d.head.path, &d.head)).collect();
        heads.into_values().cloned().collect()
    }

    /// The views as a host would have written them, and the texts of other files.
    fn file_text(&self, id: &str, path: &str) -> Option<String> {
        let Some(kept) = self.loops.values().find(|k| k.state.loop_.id == id) else {
            return self.texts.get(path).cloned();
        };
        match path {
            "loop.md" => Some(crate::render::loop_page(&kept.state, "1.2.3")),
            "memory.md" => Some(crate::render::lessons_page(&kept.state.loop_, &kept.memories, "1.2.3")),
            _ => self.texts.get(path).cloned(),
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
                        goals: Vec::new(),
                    };
                    let kept = Kept {
                        state,
                        events: Vec::new(),
                        steps: Vec::new(),
                        memories: Vec::new(),
                        documents: Vec::new(),
                    };
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
                    let pruned = self.of(&id).state.loop_.pruned_at.map_or(0, |_| event.seq - 1);
                    let events = &mut self.of(&id).events;
                    let last = events.last().map_or(pruned, |e| e.seq);
                    assert_eq!(event.seq, last + 1, "a gap in the events");
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
                Write::PutDocument((id, document)) => {
                    let before = self.heads(&id).into_iter().find(|h| h.path == document.head.path);
                    assert_eq!(document.head.rev, before.map_or(0, |h| h.rev) + 1, "a gap in the revisions");
                    self.of(&id).documents.push(document);
                }
                Write::PutGoalState((run, state)) => {
                    if let Some(id) = &run.loop_id {
                        let goals = &mut self.of(id).state.goals;
                        put(goals, state.clone(), |a, b| a.target == b.target);
                        goals.sort_by(|a, b| a.target.cmp(&b.target));
                    }
                    put(&mut self.runs.entry(run.name).or_default().states, state, |a, b| {
                        a.target == b.target
                    });
                }
                Write::AppendLedger((run, entry)) => {
                    let ledger = &mut self.runs.entry(run.name).or_default().ledger;
                    assert_eq!(entry.seq, ledger.len() as u64 + 1, "a gap in the ledger");
                    ledger.push(entry);
                }
                Write::AppendEpisode((run, episode)) => {
                    let episodes = &mut self.runs.entry(run.name).or_default().episodes;
                    assert_eq!(episode.seq, episodes.len() as u64 + 1, "a gap in the episodes");
                    episodes.push(episode);
                }
                Write::PutScratchpad((run, key, value, _)) => {
                    let notes = &mut self.runs.entry(run.name).or_default().notes;
                    match value {
                        Some(value) => notes.insert(key, value),
                        None => notes.remove(&key),
                    };
                }
                Write::ArchiveLoop(request) => {
                    let kept = self.of(&request.loop_id).clone();
                    self.loops.remove(&kept.state.loop_.slug);
                    self.archives.push(Stored { kept, request });
                }
                Write::RestoreArchive(restoring) => {
                    let mut kept = self.stored(&restoring.archive_id).expect("it is there").kept.clone();
                    kept.state.loop_ = restoring.loop_;
                    self.loops.insert(kept.state.loop_.slug.clone(), kept);
                }
                Write::DeleteArchive(id) => self.archives.retain(|stored| stored.request.id != id),
                Write::DeleteLoop((id, _)) => self.loops.retain(|_, k| k.state.loop_.id != id),
                Write::DropHistory((id, at)) => {
                    let kept = self.of(&id);
                    kept.events.clear();
                    kept.steps.clear();
                    kept.state.loop_.pruned_at = Some(at);
                }
            }
        }
    }

    fn of(&mut self, id: &str) -> &mut Kept {
        if let Some(kept) = self.unkept.get_mut(id) {
            // Its first event is not kept here.
            kept.state.loop_.pruned_at = Some(0);
            return kept;
        }
        self.loops.values_mut().find(|k| k.state.loop_.id == id).expect("writes name a loop")
    }
}

/// The facts of a call in a plain project, without answers.
pub fn facts(now: i64, fresh_id: String) -> Facts {
    Facts {
        now,
        fresh_id,
        version: "1.2.3".to_owned(),
        project: Project {
            id: "p".to_owned(),
            name: "project".to_owned(),
            root: ROOT.to_owned(),
            key: None,
            evidence: ProjectEvidence::Folder,
            note: None,
            below: None,
        },
        place: Place {
            root_source: RootSource::Directory,
            root_kind: RootKind::Folder,
            loops_folder: ".projects/loops".to_owned(),
            root_flag: "--project-root".to_owned(),
            root_variable: "LOOP_STATE_PROJECT_ROOT".to_owned(),
        },
        answers: Vec::new(),
    }
}

impl Stored {
    fn head(&self) -> ArchiveHead {
        let l = &self.kept.state.loop_;
        ArchiveHead {
            id: self.request.id.clone(),
            loop_id: l.id.clone(),
            slug: l.slug.clone(),
            title: l.title.clone(),
            goal: l.goal.clone(),
            status: l.status.clone(),
            project_id: l.project_id.clone(),
            project_root: l.project_root.clone(),
            archived_at: self.request.at,
            files: self.request.files.len() as u32,
            bytes: 0,
            stored_bytes: 0,
            skipped: self.request.skipped.clone(),
        }
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
