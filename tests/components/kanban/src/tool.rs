//! The tools: what each takes, and what it decides.

use serde_json::{Value, json};

use crate::arguments::{Arguments, listed};
use crate::bindings::exports::loop_state::logic::{model, tools};
use crate::board::{Board, COLUMNS, UNLIMITED, Way};
use crate::pages;

pub const INSTRUCTIONS: &str = "This server keeps kanban boards: todo, doing, review, done. Open one with \
    board_init, add cards with card_add, and move a card one column at a time with card_move; doing and review \
    hold no more cards than their limits say. Lost the thread? board_list, then board_show.";

/// How many cards `doing` and `review` hold unless told otherwise.
const LIMIT: u32 = 2;

/// The most cards of a board.
const CARDS_MAX: usize = 500;

/// The most boards that one answer lists.
const LISTED_MAX: u32 = 100;

/// All that is known of a tool.
pub struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// Each argument: name, schema type, whether it has to be there, what it says.
    arguments: &'static [(&'static str, &'static str, bool, &'static str)],
    read_only: bool,
    idempotent: bool,
    decide: fn(&Arguments, &tools::Facts) -> Result<tools::Decision, String>,
}

const BOARD: (&str, &str, bool, &str) = ("board", "string", true, "The board's name");

pub static TOOLS: &[Tool] = &[
    Tool {
        name: "board_init",
        title: "Open a board",
        description: "Opens a board, or finds the one of that name. Answers `created` and the board.",
        arguments: &[
            BOARD,
            ("title", "string", false, "What people read; default: the name"),
            ("doingLimit", "integer", false, "How many cards doing holds, 1 to 99; default 2"),
            ("reviewLimit", "integer", false, "How many cards review holds, 1 to 99; default 2"),
        ],
        read_only: false,
        idempotent: true,
        decide: init,
    },
    Tool {
        name: "board_show",
        title: "Show a board",
        description: "Shows a board: its columns with their limits and cards.",
        arguments: &[BOARD],
        read_only: true,
        idempotent: true,
        decide: show,
    },
    Tool {
        name: "board_list",
        title: "List boards",
        description: "Lists this project's boards that are not closed, with their cards counted by column.",
        arguments: &[],
        read_only: true,
        idempotent: true,
        decide: list,
    },
    Tool {
        name: "card_add",
        title: "Add a card",
        description: "Adds a card to todo. Answers its id.",
        arguments: &[BOARD, ("title", "string", true, "What is to be done")],
        read_only: false,
        idempotent: false,
        decide: add,
    },
    Tool {
        name: "card_move",
        title: "Move a card",
        description: "Moves a card one column forward or back. Refused where the column is full.",
        arguments: &[
            BOARD,
            ("card", "string", true, "The card's id"),
            ("way", "string", true, "`forward` or `back`"),
            ("note", "string", false, "Why, for the log"),
        ],
        read_only: false,
        idempotent: false,
        decide: shift,
    },
    Tool {
        name: "board_close",
        title: "Close a board",
        description: "Closes a board whose cards are all done.",
        arguments: &[BOARD],
        read_only: false,
        idempotent: true,
        decide: close,
    },
];

impl Tool {
    pub fn published(&self) -> tools::Tool {
        let property = |(name, kind, _, says): &(&str, &str, bool, &str)| {
            ((*name).to_owned(), json!({ "type": kind, "description": says }))
        };
        let required: Vec<_> = self.arguments.iter().filter(|a| a.2).map(|a| a.0).collect();
        let schema = json!({
            "type": "object",
            "properties": self.arguments.iter().map(property).collect::<serde_json::Map<_, _>>(),
            "required": required,
            "additionalProperties": false,
        });
        tools::Tool {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            description: self.description.to_owned(),
            input_schema: schema.to_string(),
            profile: tools::Profile::Core,
            read_only: self.read_only,
            destructive: false,
            idempotent: self.idempotent,
        }
    }
}

/// Decides one call.
pub fn decide(call: &tools::Call, facts: &tools::Facts) -> tools::Decision {
    let decided = match TOOLS.iter().find(|tool| tool.name == call.tool) {
        Some(tool) => {
            let known: Vec<_> = tool.arguments.iter().map(|argument| argument.0).collect();
            Arguments::read(&call.arguments, &known).and_then(|arguments| (tool.decide)(&arguments, facts))
        }
        None => {
            let known: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
            Err(format!("there is no tool `{}`; there are {}", call.tool, listed(&known)))
        }
    };
    decided.unwrap_or_else(|why| {
        let (reply, writes) = (format!("{why}; nothing was changed"), Vec::new());
        tools::Decision::Done(tools::Outcome { reply, refused: true, writes, views: None, follow_up: None })
    })
}

fn init(arguments: &Arguments, facts: &tools::Facts) -> Result<tools::Decision, String> {
    let name = arguments.name("board")?;
    let title = arguments.optional_text("title")?.unwrap_or(name);
    let doing = arguments.limit("doingLimit", LIMIT)?;
    let review = arguments.limit("reviewLimit", LIMIT)?;
    let Some(found) = found(name, facts) else { return Ok(ask_for(name)) };
    if let Some(state) = &found.here {
        return Ok(answer(with_created(described(state), false)));
    }
    if facts.place.root_kind != tools::RootKind::Folder {
        return Err(format!("{} is no project's folder", facts.project.root));
    }
    let limits = [UNLIMITED.to_owned(), doing.to_string(), review.to_string(), UNLIMITED.to_owned()];
    let columns = COLUMNS.iter().zip(limits).map(|(column, limit)| model::Phase {
        phase: (*column).to_owned(),
        status: limit,
        updated_at: facts.now,
    });
    let state = model::LoopState {
        loop_: new_board(name, title, facts),
        phases: columns.collect(),
        tasks: Vec::new(),
        totals: Vec::new(),
        open_step: None,
        goals: Vec::new(),
    };
    let mut change = Change::of(state, facts.now);
    change.writes.push(tools::Write::CreateLoop(change.state.loop_.clone()));
    let id = change.state.loop_.id.clone();
    let columns =
        change.state.phases.iter().map(|column| tools::Write::PutPhase((id.clone(), column.clone())));
    change.writes.extend(columns.collect::<Vec<_>>());
    change.log("board-opened", None, None, None, None);
    Ok(change.done(|state| with_created(described(state), true)))
}

fn show(arguments: &Arguments, facts: &tools::Facts) -> Result<tools::Decision, String> {
    let name = arguments.name("board")?;
    match on_board(name, facts)? {
        None => Ok(ask_for(name)),
        Some(state) => Ok(answer(described(state))),
    }
}

fn list(_: &Arguments, facts: &tools::Facts) -> Result<tools::Decision, String> {
    let page = facts.answers.iter().find_map(|fact| match &fact.answer {
        tools::Answer::LoopList(page) => Some(page),
        _ => None,
    });
    let Some(page) = page else {
        let filter = tools::LoopFilter { include_finished: false, limit: LISTED_MAX, offset: 0 };
        return Ok(tools::Decision::Need(vec![tools::Query::LoopList(filter)]));
    };
    let boards = page.loops.iter().map(|board| {
        let counts = board.tasks.iter().map(|count| (count.status.clone(), Value::from(count.count)));
        let cards: serde_json::Map<_, _> = counts.collect();
        json!({ "board": board.slug, "title": board.title, "cards": cards })
    });
    Ok(answer(json!({ "boards": boards.collect::<Vec<_>>(), "total": page.total })))
}

fn add(arguments: &Arguments, facts: &tools::Facts) -> Result<tools::Decision, String> {
    let (name, title) = (arguments.name("board")?, arguments.text("title")?);
    let Some(state) = on_board(name, facts)? else { return Ok(ask_for(name)) };
    Board::of(state).check_open()?;
    if state.tasks.len() >= CARDS_MAX {
        return Err(format!("board {name} has {CARDS_MAX} cards, the most there may be"));
    }
    let position = state.tasks.iter().map(|card| card.position + 1).max().unwrap_or(0);
    let mut change = Change::of(state.clone(), facts.now);
    let card = new_card(position, title, change.at);
    let (id, column) = (card.taskid.clone(), card.status.clone());
    change.state.tasks.push(card.clone());
    change.put(card);
    change.log("card-added", Some(&id), None, Some(&column), Some(title));
    Ok(change.done(|_| json!({ "card": id, "column": column })))
}

fn shift(arguments: &Arguments, facts: &tools::Facts) -> Result<tools::Decision, String> {
    let (name, id) = (arguments.name("board")?, arguments.text("card")?);
    let note = arguments.optional_text("note")?;
    let way = match arguments.text("way")? {
        "forward" => Way::Forward,
        "back" => Way::Back,
        other => return Err(format!("`way` cannot be {other:?}: `forward` or `back`")),
    };
    let Some(state) = on_board(name, facts)? else { return Ok(ask_for(name)) };
    let board = Board::of(state);
    board.check_open()?;
    let card = board.card(id)?;
    let to = board.next(card, way)?;
    let mut change = Change::of(state.clone(), facts.now);
    let moved = model::Task {
        status: to.to_owned(),
        updated_at: change.at,
        completed_at: (to == "done").then_some(change.at),
        ..card.clone()
    };
    for card in &mut change.state.tasks {
        if card.taskid == moved.taskid {
            *card = moved.clone();
        }
    }
    change.put(moved.clone());
    change.log("card-moved", Some(&card.taskid), Some(&card.status), Some(to), note);
    Ok(change.done(|_| json!({ "card": moved.taskid, "from": card.status, "column": to })))
}

fn close(arguments: &Arguments, facts: &tools::Facts) -> Result<tools::Decision, String> {
    let name = arguments.name("board")?;
    let Some(state) = on_board(name, facts)? else { return Ok(ask_for(name)) };
    let board = Board::of(state);
    if board.is_closed() {
        return Ok(answer(described(state)));
    }
    board.check_done()?;
    let mut change = Change::of(state.clone(), facts.now);
    change.state.loop_.status = "closed".to_owned();
    change.state.loop_.finished_at = Some(change.at);
    change.log("board-closed", None, None, None, None);
    Ok(change.done(described))
}

/// A board on its way to its next revision.
struct Change {
    state: model::LoopState,
    at: i64,
    writes: Vec<tools::Write>,
    lines: String,
}

impl Change {
    fn of(mut state: model::LoopState, now: i64) -> Self {
        // A board's time never goes backwards.
        let at = now.max(state.loop_.updated_at);
        state.loop_.updated_at = at;
        state.loop_.marks.revision += 1;
        Change { state, at, writes: Vec::new(), lines: String::new() }
    }

    fn put(&mut self, card: model::Task) {
        self.writes.push(tools::Write::PutTask((self.state.loop_.id.clone(), card)));
    }

    fn log(
        &mut self,
        event: &str,
        card: Option<&str>,
        from: Option<&str>,
        to: Option<&str>,
        note: Option<&str>,
    ) {
        let marks = &mut self.state.loop_.marks;
        marks.event_seq += 1;
        let event = model::Event {
            seq: marks.event_seq,
            at: self.at,
            event: event.to_owned(),
            phase: None,
            task: card.map(str::to_owned),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
            agent: None,
            note: note.map(str::to_owned),
            evidence: None,
            issue: None,
            pr: None,
            branch: None,
        };
        let line = pages::log_line(&event);
        marks.log_bytes += line.len() as u64;
        self.lines += &line;
        self.writes.push(tools::Write::AppendEvent((self.state.loop_.id.clone(), event)));
    }

    fn done(mut self, reply: impl FnOnce(&model::LoopState) -> Value) -> tools::Decision {
        self.writes.push(tools::Write::PutLoop(self.state.loop_.clone()));
        let views = Some(pages::changed(&self.state, self.lines));
        let reply = reply(&self.state).to_string();
        tools::Decision::Done(tools::Outcome {
            reply,
            refused: false,
            writes: self.writes,
            views,
            follow_up: None,
        })
    }
}

fn answer(reply: Value) -> tools::Decision {
    let (reply, writes) = (reply.to_string(), Vec::new());
    tools::Decision::Done(tools::Outcome { reply, refused: false, writes, views: None, follow_up: None })
}

fn ask_for(name: &str) -> tools::Decision {
    tools::Decision::Need(vec![tools::Query::LoopState(name.to_owned())])
}

/// What the host found under this name, once it was asked.
fn found<'a>(name: &str, facts: &'a tools::Facts) -> Option<&'a tools::FoundLoop> {
    facts.answers.iter().find_map(|fact| match (&fact.query, &fact.answer) {
        (tools::Query::LoopState(asked), tools::Answer::LoopState(found)) if asked == name => Some(found),
        _ => None,
    })
}

/// The board of this name; `None` before the host was asked.
fn on_board<'a>(name: &str, facts: &'a tools::Facts) -> Result<Option<&'a model::LoopState>, String> {
    let Some(found) = found(name, facts) else { return Ok(None) };
    match (&found.here, found.elsewhere.first()) {
        (Some(state), _) => Ok(Some(state)),
        (None, Some(other)) => Err(format!("board {name} is kept in {}; start there", other.project_root)),
        (None, None) => {
            Err(format!("there is no board {name}; board_list lists boards, board_init opens one"))
        }
    }
}

fn described(state: &model::LoopState) -> Value {
    let board = Board::of(state);
    let cards = |column| {
        board
            .cards(column)
            .map(|card| json!({ "card": card.taskid, "title": card.title }))
            .collect::<Vec<_>>()
    };
    let columns = COLUMNS
        .iter()
        .map(|column| json!({ "column": column, "limit": board.limit(column), "cards": cards(column) }));
    json!({
        "board": board.name(),
        "title": state.loop_.title,
        "status": state.loop_.status,
        "columns": columns.collect::<Vec<_>>(),
        "in_no_column": board.elsewhere().map(|card| card.taskid.as_str()).collect::<Vec<_>>(),
    })
}

fn with_created(mut reply: Value, created: bool) -> Value {
    reply["created"] = created.into();
    reply
}

fn new_board(name: &str, title: &str, facts: &tools::Facts) -> model::Loop {
    model::Loop {
        id: facts.fresh_id.clone(),
        slug: name.to_owned(),
        title: title.to_owned(),
        goal: title.to_owned(),
        mode: "kanban".to_owned(),
        status: "open".to_owned(),
        phase: "board".to_owned(),
        project_id: facts.project.id.clone(),
        project_root: facts.project.root.clone(),
        project_key: facts.project.key.clone(),
        default_branch: None,
        branch_mode: None,
        feature_branch: None,
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
        created_at: facts.now,
        updated_at: facts.now,
        finished_at: None,
        pruned_at: None,
        marks: model::Marks {
            revision: 0,
            event_seq: 0,
            log_bytes: 0,
            step_seq: 0,
            memory_seq: 0,
            memory_bytes: 0,
        },
        quality: model::StepQuality {
            explicit: 0,
            auto_next: 0,
            auto_complete: 0,
            auto_finish: 0,
            missing_returns: 0,
            orphan_returns: 0,
            duplicate_returns: 0,
            backfilled: 0,
            clock_corrections: 0,
        },
    }
}

fn new_card(position: u32, title: &str, at: i64) -> model::Task {
    model::Task {
        taskid: format!("C{}", position + 1),
        position,
        title: title.to_owned(),
        description: None,
        kind: None,
        tech: None,
        status: COLUMNS[0].to_owned(),
        depends_on: Vec::new(),
        issue: None,
        pr: None,
        branch: None,
        last_evidence: None,
        retries: 0,
        security_rounds: 0,
        review_rounds: 0,
        superseded_by: Vec::new(),
        created_at: at,
        updated_at: at,
        completed_at: None,
    }
}
