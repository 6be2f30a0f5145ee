"""Looks at what a played loop left behind: the database's rows, and the views beside them."""

import json
import sqlite3
from pathlib import Path

from player import Mismatch


def check(database: Path, project: Path, kept):
    """Compares with the script's `kept`."""
    if not database.is_file():
        raise Mismatch(f"a database at {database}")
    db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    try:
        rows = db.execute("SELECT * FROM loop").fetchall()
        same("the number of loops", len(rows), 1)
        the_loop = rows[0]
        for column, value in kept["loop"].items():
            same(f"the loop's {column}", the_loop[column], value)
        same("the loop's project", the_loop["project_root"], str(project.resolve()))
        tasks = {row["taskid"]: row["status"] for row in db.execute("SELECT taskid, status FROM task")}
        same("the tasks", tasks, kept["tasks"])
        events = [dict(row) for row in db.execute("SELECT * FROM event ORDER BY seq")]
        refused = [event for event in events if event["event"] == "tool-refused"]
        same("the number of refusals on the timeline", len(refused), kept["refusals"])
        moves = [event["to"] for event in events if event["event"] == "task_setStatus" and event["task"] == "T1"]
        same("the stations of T1", moves, kept["stations"])
        lessons = [row["note"] for row in db.execute("SELECT note FROM memory ORDER BY seq")]
        same("the lessons", lessons, kept["lessons"])
    finally:
        db.close()

    folder = project / ".projects/loops" / kept["loop"]["slug"]
    page = (folder / "loop.md").read_text()
    for taskid, status in kept["tasks"].items():
        line = next((line for line in page.splitlines() if f"] {taskid}: " in line), None)
        if line is None or f"**{status}**" not in line:
            raise Mismatch(f"loop.md with {taskid} as {status}, not {line!r}")
    log = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    same("events.jsonl", [line["event"] for line in log], [event["event"] for event in events])
    for lesson in kept["lessons"]:
        if lesson not in (folder / "memory.md").read_text():
            raise Mismatch(f"memory.md with {lesson!r}")
    document = kept["document"]
    if document["holds"] not in (folder / document["path"]).read_text():
        raise Mismatch(f"{document['path']} with {document['holds']!r}")


def same(what, found, expected):
    if found != expected:
        raise Mismatch(f"{what} to be {expected!r}, not {found!r}")
