-- Version 2: documents and archives come into use, roots and slugs get a rule.
-- Never edited once released: a later change is a further file.

-- A loop has its slug within its project and root, so that a root which became
-- another repository has all slugs free: the loops from before stay with their
-- project, and their root is still told as it was.
CREATE TABLE loop_2 (
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
  -- In this order it also finds a slug's loops under all roots of a project.
  UNIQUE (project_id, slug, project_root)
) STRICT;
INSERT INTO loop_2 SELECT * FROM loop;
DROP TABLE loop;
ALTER TABLE loop_2 RENAME TO loop;
CREATE INDEX loop_by_touch ON loop (project_id, updated_at DESC, slug, finished_at);

-- What the repository's configuration was like when the root was looked at.
ALTER TABLE project_root ADD COLUMN stamp TEXT;

-- Nobody writes it, and no view names it.
ALTER TABLE loop_document DROP COLUMN agent;

CREATE INDEX loop_archive_by_time ON loop_archive (archived_at);

-- Empty in every database of version 1. One file of an archive: a document's
-- newest revision, or what lay in the folder, where a copy of a document that
-- differed is kept as `{path}~disk`.
DROP TABLE loop_archive_file;
CREATE TABLE loop_archive_file (
  archive_file_key INTEGER PRIMARY KEY,
  archive_key      INTEGER NOT NULL REFERENCES loop_archive ON DELETE CASCADE,
  path             TEXT NOT NULL,
  -- 1 when it came from the database.
  document         INTEGER NOT NULL,
  mtime            INTEGER,
  bytes            INTEGER NOT NULL,
  stored_bytes     INTEGER NOT NULL,
  sha256           TEXT NOT NULL,
  content          BLOB NOT NULL,
  UNIQUE (archive_key, path)
) STRICT;
