-- Version 3: goals come into use. Never edited once released: a later change is a
-- further file.
--
-- The tables of runs were empty in every database before. A run is named within its
-- project; the run of a loop has the loop's slug as its name and is the loop's own,
-- also where another root of the project has a loop of that slug. Runs that belong
-- to no loop have no loop_key. Rows of a loop leave with it.

DROP TABLE goal_state;
DROP TABLE ledger;
DROP TABLE episode;
DROP TABLE scratchpad;

-- The newest recorded ruling on each target.
CREATE TABLE goal_state (
  goal_state_key  INTEGER PRIMARY KEY,
  project_id      TEXT NOT NULL REFERENCES project (id),
  run_id          TEXT NOT NULL,
  loop_key        INTEGER REFERENCES loop ON DELETE CASCADE,
  target          TEXT NOT NULL,
  satisfied       INTEGER NOT NULL,
  passed          INTEGER NOT NULL,
  failed          INTEGER NOT NULL,
  total           INTEGER NOT NULL,
  reason          TEXT NOT NULL,
  -- The how-manieth recorded ruling on the target this is.
  iteration       INTEGER NOT NULL,
  config_sha256   TEXT NOT NULL,
  evidence_sha256 TEXT NOT NULL,
  -- Where the evidence lay, relative to the project root; empty for the root.
  workdir         TEXT NOT NULL,
  updated_at      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX goal_state_of_run ON goal_state (project_id, run_id, ifnull(loop_key, 0), target);
CREATE INDEX goal_state_by_loop ON goal_state (loop_key) WHERE loop_key IS NOT NULL;

-- Append-only; each hash covers the previous one and its own entry.
CREATE TABLE ledger (
  ledger_key INTEGER PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES project (id),
  run_id     TEXT NOT NULL,
  loop_key   INTEGER REFERENCES loop ON DELETE CASCADE,
  seq        INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  iteration  INTEGER NOT NULL,
  detail     TEXT NOT NULL,
  node_id    TEXT,
  tokens     INTEGER,
  cost_usd   REAL,
  hash       TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX ledger_of_run ON ledger (project_id, run_id, ifnull(loop_key, 0), seq);
CREATE INDEX ledger_by_loop ON ledger (loop_key) WHERE loop_key IS NOT NULL;

-- What one node did in a run, by whom; a judgment where it passed one.
CREATE TABLE episode (
  episode_key    INTEGER PRIMARY KEY,
  project_id     TEXT NOT NULL REFERENCES project (id),
  run_id         TEXT NOT NULL,
  loop_key       INTEGER REFERENCES loop ON DELETE CASCADE,
  seq            INTEGER NOT NULL,
  at             INTEGER NOT NULL,
  node_id        TEXT NOT NULL,
  provider_id    TEXT NOT NULL,
  role           TEXT NOT NULL,
  iteration      INTEGER NOT NULL,
  output         TEXT NOT NULL,
  tokens         INTEGER,
  cost_usd       REAL,
  duration_ms    INTEGER,
  prompt_digest  TEXT,
  error          TEXT,
  judgment_check TEXT,
  judgment_pass  INTEGER,
  judgment_score REAL
) STRICT;
CREATE UNIQUE INDEX episode_of_run ON episode (project_id, run_id, ifnull(loop_key, 0), seq);
CREATE INDEX episode_by_loop ON episode (loop_key) WHERE loop_key IS NOT NULL;

-- Free notes of a run, by key; a key with `/` is just a key.
CREATE TABLE scratchpad (
  scratchpad_key INTEGER PRIMARY KEY,
  project_id     TEXT NOT NULL REFERENCES project (id),
  run_id         TEXT NOT NULL,
  loop_key       INTEGER REFERENCES loop ON DELETE CASCADE,
  key            TEXT NOT NULL,
  value          TEXT NOT NULL,
  updated_at     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX scratchpad_of_run ON scratchpad (project_id, run_id, ifnull(loop_key, 0), key);
CREATE INDEX scratchpad_by_loop ON scratchpad (loop_key) WHERE loop_key IS NOT NULL;
