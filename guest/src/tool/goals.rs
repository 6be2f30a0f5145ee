//! Plan and gate: the configuration's text and the evidence are asked for, the rest
//! is decided in [`crate::goal`].

use crate::arguments::{Argument, ArgumentError, Ignored, Said, arguments, open_object, wrong_type};
use crate::desk::{Accepted, Desk, Done, Halt, OpenLoop};
use crate::goal::binding::{self, Bound, Pin};
use crate::goal::config::{Config, OVERALL, Role};
use crate::goal::evidence::{self, Claims, Episode, Evidence, FileFact, Judgment, Need, Script, ScriptRun};
use crate::goal::gate::{self, Options, Verdict};
use crate::goal::{answer, ledger, plan};
use crate::model;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::tool::runs::{self, RunId};
use crate::tools::{self, EvidenceFile, Query, Run, RunPart, Write};
use serde_json::{Map, Value, json};

/// The largest configuration that is read, in bytes.
const CONFIG_MAX: usize = 1 << 20;

/// An object whose entries the gate looks at one by one.
#[derive(Clone, Debug)]
pub struct Entries(pub Value);

impl Argument for Entries {
    fn schema() -> Map<String, Value> {
        Map::from_iter([("type".to_owned(), json!("object"))])
    }
    fn takes() -> String {
        "an object".to_owned()
    }
    fn read(value: Value, key: &str, _: &mut Ignored) -> Result<Self, ArgumentError> {
        open_object(value, |v| wrong_type::<Self>(v, key)).map(|map| Entries(Value::Object(map)))
    }
}

arguments! {
    /// Arguments of `loopsmith_plan`.
    pub struct PlanArgs {
        config_path: Said = "config_path", "Relative to the project root.";
    }
}

/// Plans the graph of a configuration.
pub fn plan(args: PlanArgs, desk: &mut Desk) -> Done {
    let config = read_config(&args.config_path.0, desk)?;
    Accepted::reading(answer::plan(&plan::plan(&config), &config.warnings))
}

/// Reads a configuration below the project root.
fn read_config(path: &str, desk: &mut Desk) -> Result<Config, Halt> {
    let (bytes, sha256) =
        config_bytes(path, desk)?.map_err(|why| Refusal::ConfigFile { path: path.to_owned(), why })?;
    Config::read(&bytes, &sha256)
        .map_err(|rejected| Refusal::Config { path: path.to_owned(), rejected }.into())
}

/// The text of a configuration and its digest, or why there is none.
fn config_bytes(path: &str, desk: &mut Desk) -> Result<Result<(Vec<u8>, String), String>, Halt> {
    let path = match evidence::relative(path) {
        Ok(path) => path,
        Err(fault) => return Ok(Err(fault.to_string())),
    };
    let asked = EvidenceFile { workdir: String::new(), path, content: true };
    Ok(match desk.evidence(asked)? {
        tools::FileFact::File(file) => match file.content {
            Some(bytes) if bytes.len() <= CONFIG_MAX => Ok((bytes, file.sha256)),
            _ => Err(format!("it has {} bytes and at most {CONFIG_MAX} are read", file.bytes)),
        },
        tools::FileFact::Absent => Err("it does not exist".to_owned()),
        tools::FileFact::NotAFile => Err("it is not a file".to_owned()),
        tools::FileFact::Outside => Err("a link leads out of the project root".to_owned()),
        tools::FileFact::TooLarge(bytes) => {
            Err(format!("it has {bytes} bytes and at most {CONFIG_MAX} are read"))
        }
        tools::FileFact::Unreadable(why) => Err(why),
    })
}

arguments! {
    /// Arguments of `loopsmith_gate_evaluate`.
    pub struct GateArgs {
        config_path: Said = "config_path", "";
        target: Said = "target", "A goal, or overall.";
        workdir: Option<String> = "workdir", "Where the evidence lies; default the project root.";
        metrics: Option<Entries> = "metrics", "Numbers that are on no file.";
        artifacts: Option<Entries> = "artifacts", "Texts that are on no file.";
        run_id: Option<RunId> = "run_id", "Records the ruling in this run; metrics and artifacts then do not count.";
    }
}

/// Rules on a target from evidence, and records the ruling where a run is named.
pub fn evaluate(args: GateArgs, desk: &mut Desk) -> Done {
    let workdir = workdir(args.workdir, desk)?;
    let claims = Claims::read(args.metrics.as_ref().map(|e| &e.0), args.artifacts.as_ref().map(|e| &e.0))
        .map_err(|faults| Refusal::Claims(faults.iter().map(ToString::to_string).collect()))?;
    let config = read_config(&args.config_path.0, desk)?;
    let target = args.target.0;
    gate::target(&config, &target).map_err(|unknown| Refusal::Target(unknown.to_string()))?;
    let (run, open) = match &args.run_id {
        Some(name) => {
            let (run, open) = runs::find(name, desk)?;
            (Some(run), open)
        }
        None => (None, None),
    };
    let found = gather(evidence::needs(&config, &target), &workdir, run.as_ref(), desk)?;
    let options = Options { recorded: run.is_some() };
    let verdict = gate::evaluate(&config, &target, &found, &claims, options)
        .map_err(|unknown| Refusal::Target(unknown.to_string()))?;
    let elsewhere = (!workdir.is_empty()).then(|| workdir.clone());
    let reply = answer::verdict(&verdict, &config.warnings).with_some("workdir", elsewhere);
    match run {
        None => Accepted::reading(reply),
        Some(run) => {
            let reply = reply.with("run_id", run.name.clone()).with("recorded", true);
            let ruling = Ruling { run, open, verdict, workdir };
            record(ruling, reply, desk)
        }
    }
}

/// A verdict that is to be kept.
struct Ruling {
    run: Run,
    /// The loop that the run belongs to.
    open: Option<OpenLoop>,
    verdict: Verdict,
    workdir: String,
}

/// Stores a ruling: the state of its target, and what that adds to the ledger.
fn record(ruling: Ruling, reply: Reply, desk: &mut Desk) -> Done {
    let Ruling { run, open, verdict, workdir } = ruling;
    desk.gather(vec![Query::GoalStates(run.clone()), Query::Ledger(runs::tip_of(&run))])?;
    let before = desk.goal_states(run.clone())?.into_iter().find(|state| state.target == verdict.target);
    let (state, drafts) = ledger::record(before.as_ref(), &verdict, &workdir, desk.facts.now);
    let entries = runs::seal(&run, drafts, desk)?;
    match open {
        Some(mut open) => {
            open.rule(state);
            open.log_run(entries);
            open.done(reply)
        }
        None => {
            let mut writes = vec![Write::PutGoalState((run.clone(), state))];
            writes.extend(entries.into_iter().map(|entry| Write::AppendLedger((run.clone(), entry))));
            Accepted::writing(reply, writes, None)
        }
    }
}

/// The working folder relative to the project root; empty for the root itself.
fn workdir(given: Option<String>, desk: &Desk) -> Result<String, Halt> {
    let given = given.unwrap_or_default();
    let root = &desk.facts.project.root;
    let below = given.strip_prefix(root.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = below.map_or(given.as_str(), |rest| rest.trim_start_matches('/'));
    match evidence::relative(path) {
        Ok(path) => Ok(path),
        Err(evidence::PathFault::Empty) => Ok(String::new()),
        Err(fault) => Err(Refusal::Workdir { path: given, why: fault.to_string() }.into()),
    }
}

/// Asks for everything that a gate needs, in one round.
fn gather(needs: Vec<Need>, workdir: &str, run: Option<&Run>, desk: &mut Desk) -> Result<Evidence, Halt> {
    let file =
        |path: &str, content| EvidenceFile { workdir: workdir.to_owned(), path: path.to_owned(), content };
    let script = |script: &Script| tools::Script {
        workdir: workdir.to_owned(),
        command: script.command.clone(),
        args: script.args.clone(),
    };
    let all = |run: &Run| RunPart { run: run.clone(), only: None, limit: u32::MAX };
    let mut queries = Vec::new();
    for need in &needs {
        match need {
            Need::File { path } => queries.push(Query::Evidence(file(path, false))),
            Need::Text { path } => queries.push(Query::Evidence(file(path, true))),
            Need::Script(wanted) => queries.push(Query::RunScript(script(wanted))),
            Need::Episodes => queries.extend(run.map(|run| Query::Episodes(all(run)))),
        }
    }
    desk.gather(queries)?;
    let mut found = Evidence::default();
    for need in needs {
        match need {
            Need::File { path } => {
                let fact = desk.evidence(file(&path, false))?;
                found.files.insert(path, file_fact(fact));
            }
            Need::Text { path } => {
                let fact = desk.evidence(file(&path, true))?;
                found.files.insert(path, file_fact(fact));
            }
            Need::Script(wanted) => {
                let run = match desk.run_script(script(&wanted))? {
                    tools::ScriptRun::Exit((code, note)) => ScriptRun::Exit { code, note },
                    tools::ScriptRun::Signal(number) => ScriptRun::Signal { number },
                    tools::ScriptRun::Unavailable(reason) => ScriptRun::Unavailable { reason },
                };
                found.scripts.insert(wanted, run);
            }
            Need::Episodes => {
                found.episodes = match run {
                    Some(run) => {
                        Some(desk.episodes(all(run))?.episodes.into_iter().filter_map(episode).collect())
                    }
                    None => None,
                };
            }
        }
    }
    Ok(found)
}

fn file_fact(fact: tools::FileFact) -> FileFact {
    match fact {
        tools::FileFact::Absent => FileFact::Absent,
        tools::FileFact::NotAFile => FileFact::NotAFile,
        tools::FileFact::Outside => FileFact::Outside,
        tools::FileFact::TooLarge(bytes) => FileFact::TooLarge { bytes },
        tools::FileFact::Unreadable(reason) => FileFact::Unreadable { reason },
        tools::FileFact::File(file) => {
            FileFact::File { bytes: file.bytes, sha256: file.sha256, text: file.content }
        }
    }
}

/// An episode as the gate sees it; one whose role no version of this logic knows
/// is none.
fn episode(e: model::Episode) -> Option<Episode> {
    let judgment = e.judgment.map(|j| Judgment { check: j.check, pass: j.pass, score: j.score });
    let role = Role::parse(&e.role)?;
    Some(Episode { seq: e.seq, node_id: e.node_id, provider_id: e.provider_id, role, judgment })
}

/// Pins a configuration for a loop: it has to be there and in order. Returns its
/// path as it is kept, and its digest.
pub fn pin(path: &str, desk: &mut Desk) -> Result<(String, String), Halt> {
    let config = read_config(path, desk)?;
    let path = evidence::relative(path).unwrap_or_else(|_| path.to_owned());
    Ok((path, config.sha256))
}

/// What the goals of a loop say against its end; nothing for a loop without.
pub fn findings(open: &OpenLoop, desk: &mut Desk) -> Result<Vec<binding::Finding>, Halt> {
    let row = open.row();
    let (Some(path), Some(sha256)) = (row.goal_config.clone(), row.goal_config_sha256.clone()) else {
        return Ok(Vec::new());
    };
    let bound = match config_bytes(&path, desk)? {
        Ok((bytes, sha256)) => Bound::read(&bytes, sha256),
        Err(why) => Bound::Missing(why),
    };
    let run = open.run();
    let ruling = open.state.goals.iter().find(|state| state.target == OVERALL);
    let found = match &bound {
        Bound::Read(config) => gather(evidence::audit_needs(config), "", Some(&run), desk)?,
        _ => Evidence::default(),
    };
    Ok(binding::findings(&Pin { path, sha256 }, &bound, ruling, &found))
}
