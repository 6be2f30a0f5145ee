-- Version 1. Never edited once released: a later change is a further file.
--
-- Times are milliseconds since the Unix epoch, UTC. Statuses, phases, modes and
-- kinds are free text: their set belongs to the logic, which can be replaced.
-- Lists of ids are JSON arrays in text. A loop is known outside by its uuid and
-- inside by `loop_key`; what grows with a loop is clustered under that number,
-- so that a loop's rows lie together however many other loops there are.

CREATE TABLE project (
  id         TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  icon       TEXT,
  tags       TEXT NOT NULL DEFAULT '[]',
  -- The repository's identity by its remote, and by its common git directory.
  remote_key TEXT,
  repo_key   TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX project_by_remote ON project (remote_key) WHERE remote_key IS NOT NULL;
CREATE INDEX project_by_repo ON project (repo_key) WHERE repo_key IS NOT NULL;

-- Every folder that a project was worked on in; absolute, links resolved.
CREATE TABLE project_root (
  root          TEXT NOT NULL PRIMARY KEY,
  project_id    TEXT NOT NULL REFERENCES project (id),
  registered_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX project_root_by_project ON project_root (project_id);

CREATE TABLE loop (
  loop_key            INTEGER PRIMARY KEY,
  id                  TEXT NOT NULL UNIQUE,
  slug                TEXT NOT NULL,
  title               TEXT NOT NULL,
  goal                TEXT NOT NULL,
  mode                TEXT NOT NULL,
  status              TEXT NOT NULL,
  phase               TEXT NOT NULL,
  project_id          TEXT NOT NULL REFERENCES project (id),
  project_root        TEXT NOT NULL,
  project_key         TEXT,
  default_branch      TEXT,
  branch_mode         TEXT,
  feature_branch      TEXT,
  legal               TEXT,
  memory_harvest      TEXT,
  docs_sync           TEXT,
  deferred_gate       TEXT,
  qa_report           TEXT,
  f_unresolved_pr     INTEGER,
  f_security_deferred INTEGER,
  total_failed_gates  INTEGER NOT NULL,
  splits_done         INTEGER NOT NULL,
  qa_rounds           INTEGER NOT NULL,
  awaiting_user       TEXT,
  -- All three or none: the refusal that is not resolved yet.
  blocked_op          TEXT,
  blocked_task        TEXT,
  blocked_reason      TEXT,
  -- Set while something is worked on; the task alone may then be absent.
  now_agent           TEXT,
  now_task            TEXT,
  now_step            TEXT,
  now_since           INTEGER,
  goal_config         TEXT,
  goal_config_sha256  TEXT,
  mcp_version         TEXT,
  created_at          INTEGER NOT NULL,
  updated_at          INTEGER NOT NULL,
  finished_at         INTEGER,
  pruned_at           INTEGER,
  marks_revision      INTEGER NOT NULL,
  marks_event_seq     INTEGER NOT NULL,
  marks_log_bytes     INTEGER NOT NULL,
  marks_step_seq      INTEGER NOT NULL,
  marks_memory_seq    INTEGER NOT NULL,
  marks_memory_bytes  INTEGER NOT NULL,
  quality_explicit          INTEGER NOT NULL,
  quality_auto_next         INTEGER NOT NULL,
  quality_auto_complete     INTEGER NOT NULL,
  quality_auto_finish       INTEGER NOT NULL,
  quality_missing_returns   INTEGER NOT NULL,
  quality_orphan_returns    INTEGER NOT NULL,
  quality_duplicate_returns INTEGER NOT NULL,
  quality_backfilled        INTEGER NOT NULL,
  quality_clock_corrections INTEGER NOT NULL,
  UNIQUE (project_root, slug)
) STRICT;
-- A page of the list, and its total, without touching the loops outside it.
CREATE INDEX loop_by_touch ON loop (project_id, updated_at DESC, slug, finished_at);

CREATE TABLE loop_phase (
  loop_key   INTEGER NOT NULL REFERENCES loop ON DELETE CASCADE,
  -- Place in the ladder: the order of insertion.
  rank       INTEGER NOT NULL,
  phase      TEXT NOT NULL,
  status     TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (loop_key, phase)
) STRICT, WITHOUT ROWID;

CREATE TABLE task (
  loop_key        INTEGER NOT NULL REFERENCES loop ON DELETE CASCADE,
  taskid          TEXT NOT NULL COLLATE NOCASE,
  -- Not unique here: an insertion in the middle moves the rows one by one.
  position        INTEGER NOT NULL,
  title           TEXT NOT NULL,
  description     TEXT,
  kind            TEXT,
  tech            TEXT,
  status          TEXT NOT NULL,
  depends_on      TEXT NOT NULL,
  issue           TEXT,
  pr              TEXT,
  branch          TEXT,
  last_evidence   TEXT,
  retries         INTEGER NOT NULL,
  security_rounds INTEGER NOT NULL,
  review_rounds   INTEGER NOT NULL,
  superseded_by   TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  completed_at    INTEGER,
  PRIMARY KEY (loop_key, taskid)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
  loop_key INTEGER NOT NULL REFERENCES loop ON DELETE CASCADE,
  seq      INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  event    TEXT NOT NULL,
  phase    TEXT,
  task     TEXT,
  "from"   TEXT,
  "to"     TEXT,
  agent    TEXT,
  note     TEXT,
  evidence TEXT,
  issue    TEXT,
  pr       TEXT,
  branch   TEXT,
  PRIMARY KEY (loop_key, seq)
) STRICT, WITHOUT ROWID;

-- The events that prove something, for the audit: few among many.
CREATE INDEX event_proof ON event (loop_key, seq) WHERE evidence IS NOT NULL;

CREATE TABLE step (
  loop_key          INTEGER NOT NULL REFERENCES loop ON DELETE CASCADE,
  seq               INTEGER NOT NULL,
  task              TEXT,
  phase             TEXT NOT NULL,
  agent             TEXT NOT NULL,
  step              TEXT NOT NULL,
  attempt           INTEGER NOT NULL,
  started_at        INTEGER NOT NULL,
  agent_returned_at INTEGER,
  outcome           TEXT,
  ended_at          INTEGER,
  ended_by          TEXT,
  source            TEXT NOT NULL,
  PRIMARY KEY (loop_key, seq)
) STRICT, WITHOUT ROWID;
-- Finds the open step without a look at the closed ones.
CREATE INDEX step_open ON step (loop_key, seq) WHERE ended_at IS NULL;

CREATE TABLE step_total (
  loop_key         INTEGER NOT NULL REFERENCES loop ON DELETE CASCADE,
  -- Absent for the loop's own steps, which is another value than ''.
  task             TEXT,
  phase            TEXT NOT NULL,
  opened           INTEGER NOT NULL,
  closed           INTEGER NOT NULL,
  wall_ms          INTEGER NOT NULL,
  agent_ms         INTEGER NOT NULL,
  orchestrator_ms  INTEGER NOT NULL,
  unattributed_ms  INTEGER NOT NULL,
  first_started_at INTEGER NOT NULL,
  UNIQUE (loop_key, task, phase)
) STRICT;
-- The constraint above takes absent tasks for different ones; this does not.
CREATE UNIQUE INDEX step_total_of_loop ON step_total (loop_key, phase) WHERE task IS NULL;

CREATE TABLE memory (
  loop_key INTEGER NOT NULL REFERENCES loop ON DELETE CASCADE,
  seq      INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  agent    TEXT NOT NULL,
  task     TEXT,
  note     TEXT NOT NULL,
  PRIMARY KEY (loop_key, seq)
) STRICT, WITHOUT ROWID;

-- The tables from here on have their place kept and are not written yet.

-- Every revision of every document. By uuid and without a reference, because
-- kept documents outlive their loop and never pass to a later one of its slug.
-- The content comes last, so that reading a head does not walk through it.
CREATE TABLE loop_document (
  document_key INTEGER PRIMARY KEY,
  loop_id      TEXT NOT NULL,
  path         TEXT NOT NULL COLLATE NOCASE,
  revision     INTEGER NOT NULL,
  at           INTEGER NOT NULL,
  agent        TEXT,
  -- Size and digest of the raw bytes; the content is gzipped.
  bytes        INTEGER NOT NULL,
  sha256       TEXT NOT NULL,
  content      BLOB NOT NULL,
  UNIQUE (loop_id, path, revision)
) STRICT;

-- One archived loop: what its header shows, then all of its rows as one
-- gzipped JSON snapshot. Text columns keep what the loop had when captured.
CREATE TABLE loop_archive (
  archive_key     INTEGER PRIMARY KEY,
  id              TEXT NOT NULL UNIQUE,
  loop_id         TEXT NOT NULL,
  slug            TEXT NOT NULL,
  title           TEXT NOT NULL,
  goal            TEXT NOT NULL,
  status          TEXT NOT NULL,
  project_id      TEXT NOT NULL REFERENCES project (id),
  project_root    TEXT NOT NULL,
  archived_at     INTEGER NOT NULL,
  files           INTEGER NOT NULL,
  bytes           INTEGER NOT NULL,
  stored_bytes    INTEGER NOT NULL,
  -- JSON: what was left out, by name and with its reason.
  skipped         TEXT NOT NULL,
  snapshot_bytes  INTEGER NOT NULL,
  snapshot_sha256 TEXT NOT NULL,
  snapshot        BLOB NOT NULL
) STRICT;
CREATE INDEX loop_archive_by_project ON loop_archive (project_id, archived_at DESC);

-- One captured file; a disk copy that differed is kept as `{path}~disk`.
CREATE TABLE loop_archive_file (
  archive_file_key INTEGER PRIMARY KEY,
  archive_key      INTEGER NOT NULL REFERENCES loop_archive ON DELETE CASCADE,
  path             TEXT NOT NULL,
  mtime            INTEGER,
  bytes            INTEGER NOT NULL,
  stored_bytes     INTEGER NOT NULL,
  sha256           TEXT NOT NULL,
  content          BLOB NOT NULL,
  UNIQUE (archive_key, path)
) STRICT;

-- A run is named within its project. Where the name is a loop's, `loop_key` ties
-- its rows to that loop, so that they leave with it.

-- The newest recorded ruling on each target.
CREATE TABLE goal_state (
  project_id      TEXT NOT NULL REFERENCES project (id),
  run_id          TEXT NOT NULL,
  target          TEXT NOT NULL,
  loop_key        INTEGER REFERENCES loop ON DELETE CASCADE,
  satisfied       INTEGER NOT NULL,
  passed          INTEGER NOT NULL,
  failed          INTEGER NOT NULL,
  total           INTEGER NOT NULL,
  reason          TEXT NOT NULL,
  -- The how-manieth recorded ruling on the target this is.
  iteration       INTEGER NOT NULL,
  config_sha256   TEXT NOT NULL,
  evidence_sha256 TEXT NOT NULL,
  updated_at      INTEGER NOT NULL,
  PRIMARY KEY (project_id, run_id, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX goal_state_by_loop ON goal_state (loop_key) WHERE loop_key IS NOT NULL;

-- Append-only; each hash covers the previous one and its own entry.
CREATE TABLE ledger (
  project_id TEXT NOT NULL REFERENCES project (id),
  run_id     TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  loop_key   INTEGER REFERENCES loop ON DELETE CASCADE,
  at         INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  iteration  INTEGER NOT NULL,
  detail     TEXT NOT NULL,
  node_id    TEXT,
  tokens     INTEGER,
  cost_usd   REAL,
  hash       TEXT NOT NULL,
  PRIMARY KEY (project_id, run_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_by_loop ON ledger (loop_key) WHERE loop_key IS NOT NULL;

-- What one node did in a run, by whom; a judgment where it passed one.
CREATE TABLE episode (
  project_id     TEXT NOT NULL REFERENCES project (id),
  run_id         TEXT NOT NULL,
  seq            INTEGER NOT NULL,
  loop_key       INTEGER REFERENCES loop ON DELETE CASCADE,
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
  judgment_score REAL,
  PRIMARY KEY (project_id, run_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX episode_by_loop ON episode (loop_key) WHERE loop_key IS NOT NULL;

-- Free notes of a run, by key; a key with `/` is just a key.
CREATE TABLE scratchpad (
  project_id TEXT NOT NULL REFERENCES project (id),
  run_id     TEXT NOT NULL,
  key        TEXT NOT NULL,
  loop_key   INTEGER REFERENCES loop ON DELETE CASCADE,
  value      TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (project_id, run_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX scratchpad_by_loop ON scratchpad (loop_key) WHERE loop_key IS NOT NULL;
