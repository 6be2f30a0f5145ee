//! The record of a run: ledger, rulings, episodes, notes. What is written here says
//! what happened; no ruling comes from it.

use crate::arguments::{Argument, ArgumentError, Ignored, Said, arguments, excerpt, word_argument};
use crate::desk::{Accepted, Desk, Done, Found, Halt, OpenLoop};
use crate::goal::answer;
use crate::goal::config::Role;
use crate::goal::ledger::{self, Draft, Kind, Tip, is_run_id};
use crate::model::{Episode, Judgment, LedgerEntry};
use crate::refusal::Refusal;
use crate::render::timestamp;
use crate::reply::Reply;
use crate::text::{is_slug, present};
use crate::tools::{LedgerPage, Run, RunPart, Write};
use serde_json::{Map, Value, json};

word_argument!(Role, Kind);

/// Entries and episodes that a call shows unless told otherwise.
const SHOWN: u32 = 50;

/// A run's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunId(pub String);

impl Argument for RunId {
    fn schema() -> Map<String, Value> {
        String::schema()
    }
    fn takes() -> String {
        "the name of a run".to_owned()
    }
    fn read(value: Value, key: &str, ignored: &mut Ignored) -> Result<Self, ArgumentError> {
        let text = String::read(value, key, ignored)?;
        let rule = "1 to 200 characters, none of them a control character";
        if is_run_id(&text) {
            Ok(RunId(text))
        } else {
            Err(ArgumentError::Invalid { key: key.to_owned(), got: excerpt(&text), rule })
        }
    }
}

/// The run of a name: that of the loop whose slug it is, else a free one.
pub fn find(name: &RunId, desk: &mut Desk) -> Result<(Run, Option<OpenLoop>), Halt> {
    let name = name.0.clone();
    if !is_slug(&name) {
        return Ok((desk.free_run(name), None));
    }
    match desk.find(&name)? {
        Found::Nothing(_) => Ok((desk.free_run(name), None)),
        Found::Here(state) => desk.opened(state, false).map(|open| (open.run(), Some(open))),
        Found::Detached(state) => desk.opened(state, true).map(|open| (open.run(), Some(open))),
    }
}

/// What asks for a run's newest entry alone.
pub fn tip_of(run: &Run) -> RunPart {
    RunPart { run: run.clone(), only: None, limit: 0 }
}

/// Puts entries behind the newest one of a run.
pub fn seal(run: &Run, drafts: Vec<Draft>, desk: &mut Desk) -> Result<Vec<LedgerEntry>, Halt> {
    let newest = desk.ledger(tip_of(run))?.newest;
    let mut tip = newest.map_or_else(Tip::genesis, |entry| Tip { seq: entry.seq, hash: entry.hash });
    Ok(drafts.into_iter().map(|draft| ledger::append(&mut tip, draft)).collect())
}

/// Tells a loop's run what a call on the loop did.
pub fn tell(
    open: &mut OpenLoop,
    kind: Kind,
    detail: &str,
    node_id: Option<String>,
    desk: &mut Desk,
) -> Result<(), Halt> {
    let draft = Draft { node_id, ..Draft::new(open.now, kind, 0, detail) };
    let entries = seal(&open.run(), vec![draft], desk)?;
    open.log_run(entries);
    Ok(())
}

arguments! {
    /// Arguments of `loopsmith_ledger`.
    pub struct LedgerArgs {
        run_id: RunId = "run_id", "A loop's slug, or any name.";
        limit: Option<u32> = "limit", "The newest so many; default 50.";
        kind: Option<Kind> = "kind", "";
    }
}

/// Reads the newest entries, after checking the whole chain.
pub fn read_ledger(args: LedgerArgs, desk: &mut Desk) -> Done {
    let (run, _) = find(&args.run_id, desk)?;
    let LedgerPage { entries, .. } = desk.ledger(RunPart { run, only: None, limit: u32::MAX })?;
    let broken = ledger::verify(Tip::genesis(), &entries).err().map(|broken| {
        format!("{broken}: the ledger was changed outside of this server, and nothing from there on is proof")
    });
    let wanted = |entry: &&LedgerEntry| args.kind.is_none_or(|kind| entry.kind == kind.word());
    let rows: Vec<_> = entries.iter().filter(wanted).map(answer::ledger_entry).collect();
    let from = rows.len().saturating_sub(args.limit.unwrap_or(SHOWN) as usize);
    Accepted::reading(
        Reply::new().with("entries", rows[from..].to_vec()).with("more", from).with_some("broken", broken),
    )
}

arguments! {
    /// Arguments of `loopsmith_goal_states`.
    pub struct StatesArgs {
        run_id: RunId = "run_id", "";
    }
}

/// Reads the recorded rulings.
pub fn goal_states(args: StatesArgs, desk: &mut Desk) -> Done {
    let (run, _) = find(&args.run_id, desk)?;
    Accepted::reading(answer::goal_states(&desk.goal_states(run)?))
}

arguments! {
    /// What a judge said.
    pub struct JudgmentArgs {
        check: Said = "check", "The check's name.";
        pass: bool = "pass", "";
        score: Option<f64> = "score", "";
    }
}

arguments! {
    /// Arguments of `loopsmith_record_episode`.
    pub struct EpisodeArgs {
        run_id: RunId = "run_id", "";
        node_id: Said = "node_id", "";
        provider_id: Said = "provider_id", "Who did it; a judge's differs from every builder's.";
        output: String = "output", "";
        iteration: Option<u32> = "iteration", "";
        role: Option<Role> = "role", "Default builder.";
        tokens: Option<u64> = "tokens", "";
        cost_usd: Option<f64> = "cost_usd", "";
        duration_ms: Option<u64> = "duration_ms", "";
        prompt_digest: Option<String> = "prompt_digest", "";
        error: Option<String> = "error", "";
        judgment: Option<JudgmentArgs> = "judgment", "";
    }
}

/// Keeps what a node did, and by whom.
pub fn record_episode(args: EpisodeArgs, desk: &mut Desk) -> Done {
    let (run, _) = find(&args.run_id, desk)?;
    let newest = desk.episodes(RunPart { run: run.clone(), only: None, limit: 0 })?.newest;
    let episode = Episode {
        seq: newest + 1,
        at: desk.facts.now,
        node_id: args.node_id.0,
        provider_id: args.provider_id.0,
        role: args.role.unwrap_or(Role::Builder).word().to_owned(),
        iteration: args.iteration.unwrap_or(0),
        output: args.output,
        tokens: args.tokens,
        cost_usd: args.cost_usd,
        duration_ms: args.duration_ms,
        prompt_digest: present(args.prompt_digest),
        error: present(args.error),
        judgment: args.judgment.map(|j| Judgment { check: j.check.0, pass: j.pass, score: j.score }),
    };
    let reply = Reply::new().with("recorded", true).with("seq", episode.seq);
    Accepted::writing(reply, vec![Write::AppendEpisode((run, episode))], None)
}

arguments! {
    /// Arguments of `loopsmith_episodes`.
    pub struct EpisodesArgs {
        run_id: RunId = "run_id", "";
        node_id: Option<String> = "node_id", "";
        limit: Option<u32> = "limit", "The newest so many; default 50.";
    }
}

/// Reads episodes back.
pub fn episodes(args: EpisodesArgs, desk: &mut Desk) -> Done {
    let (run, _) = find(&args.run_id, desk)?;
    let limit = args.limit.unwrap_or(SHOWN);
    let page = desk.episodes(RunPart { run, only: present(args.node_id), limit })?;
    let more = page.total.saturating_sub(page.episodes.len() as u64);
    let rows: Vec<_> = page.episodes.iter().map(episode_row).collect();
    Accepted::reading(Reply::new().with("episodes", rows).with("more", more))
}

fn episode_row(e: &Episode) -> Value {
    let judgment = e.judgment.as_ref();
    Reply::new()
        .with("seq", e.seq)
        .with("at", timestamp(e.at))
        .with("node_id", e.node_id.clone())
        .with("provider_id", e.provider_id.clone())
        .with("role", e.role.clone())
        .with("iteration", e.iteration)
        .with("output", e.output.clone())
        .with_some("tokens", e.tokens)
        .with_some("cost_usd", e.cost_usd)
        .with_some("duration_ms", e.duration_ms)
        .with_some("prompt_digest", e.prompt_digest.clone())
        .with_some("error", e.error.clone())
        .with_some(
            "judgment",
            judgment.map(|j| json!({ "check": j.check, "pass": j.pass, "score": j.score })),
        )
        .into_value()
}

arguments! {
    /// Arguments of `loopsmith_scratchpad`.
    pub struct ScratchpadArgs {
        run_id: RunId = "run_id", "";
        key: Said = "key", "";
        value: Option<String> = "value", "Leave out to read.";
        clear: Option<bool> = "clear", "true removes it.";
    }
}

/// Writes, reads or removes a note of a run.
pub fn scratchpad(args: ScratchpadArgs, desk: &mut Desk) -> Done {
    let (run, _) = find(&args.run_id, desk)?;
    let (key, now) = (args.key.0, desk.facts.now);
    if args.value.is_some() && args.clear == Some(true) {
        return Err(Refusal::WriteAndClear.into());
    }
    let stored = desk.scratchpad(&run, &key)?;
    let put = |stored: Option<String>, value: Option<String>| {
        // What stands there already is not written again.
        let changed = stored != value;
        if changed { vec![Write::PutScratchpad((run, key, value, now))] } else { Vec::new() }
    };
    match (args.value, args.clear.unwrap_or(false)) {
        (Some(value), _) => {
            Accepted::writing(Reply::new().with("written", true), put(stored, Some(value)), None)
        }
        (None, true) => Accepted::writing(Reply::new().with("cleared", true), put(stored, None), None),
        (None, false) => Accepted::reading(Reply::new().text_or_null("value", stored)),
    }
}
