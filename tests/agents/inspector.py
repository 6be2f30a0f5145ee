"""The inspector: its check of every schema for what models and clients cannot read."""

import json
import subprocess

from player import Mismatch

PACKAGE = ("npm", "@modelcontextprotocol/inspector", "2.12.0")


def check(folder, node, server, world, truth, seconds):
    """Lists the catalogue of each profile strictly, and calls tools that read."""

    def inspect(name, *words):
        command = [node, str(folder / "node_modules/.bin/mcp-inspector"), "--cli", *words]
        done = subprocess.run(command, cwd=world.project, env=world.variables(node), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=seconds)
        file = world.transcript / f"{name}.txt"
        file.write_text(f"{command}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}")
        try:
            if done.returncode == 0 and not done.stderr.strip():
                return json.loads(done.stdout), file
        except ValueError:
            pass
        raise Mismatch(f"{name}: exit {done.returncode}, {done.stderr.strip() or 'no JSON'}; see {file}")

    counts = {}
    for profile in ("core", "standard", "all"):
        listed, file = inspect(profile, "--strict", server, "--tools", profile, "--method", "tools/list")
        names = [tool["name"] for tool in listed["tools"]]
        counts[profile] = len(names)
        lost = set(names) - {tool["name"] for tool in truth["tools"]}
        if lost or (profile == "all" and len(names) != len(truth["tools"])):
            raise Mismatch(f"{profile}: the tools differ from the server's own list; see {file}")
    for tool in ("loop_list", "archive_list"):
        called, file = inspect(tool, server, "--method", "tools/call", "--tool-name", tool)
        if called["isError"] or json.loads(called["content"][0]["text"]) != called["structuredContent"]:
            raise Mismatch(f"{tool}: {called}; see {file}")
    return "strict over " + ", ".join(f"{profile} {count}" for profile, count in counts.items())
