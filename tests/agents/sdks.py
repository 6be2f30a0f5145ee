"""The official SDKs: each plays the script without an agent, told what to call line by line.

So it is seen which version of the protocol each speaks with the server, that text and
structured content say the same, and that a refusal is no exception.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from player import Mismatch

HERE = Path(__file__).resolve().parent / "sdk"


@dataclass
class Sdk:
    """One SDK in one way of shaking hands."""

    name: str
    package: tuple
    protocol: str  # the version that both sides have to agree on
    words: list  # what its program is started with

    def command(self, folder, node, server):
        """The command and its variables."""
        if self.package[0] == "npm":
            return [node, str(HERE / "typescript.mjs"), *self.words, server], {"SDK_FOLDER": str(folder)}
        return [sys.executable, str(HERE / "python.py"), *self.words, server], {"PYTHONPATH": str(folder)}


TYPESCRIPT_1 = ("npm", "@modelcontextprotocol/sdk", "1.32.2")
TYPESCRIPT_2 = ("npm", "@modelcontextprotocol/client", "2.4.0")
SDKS = [
    Sdk("ts-1", TYPESCRIPT_1, "2025-11-25", ["1", "plain"]),
    Sdk("ts-2", TYPESCRIPT_2, "2025-11-25", ["2", "plain"]),
    Sdk("ts-2-auto", TYPESCRIPT_2, "2026-07-28", ["2", "auto"]),
    Sdk("python-1", ("pip", "mcp", "1.30.0"), "2025-11-25", ["1"]),
    Sdk("python-2", ("pip", "mcp", "2.3.0"), "2026-07-28", ["2"]),
]


def play(sdk, folder, node, server, world, player, seconds):
    """Plays the script; returns the number of its steps."""
    command, variables = sdk.command(folder, node, server)
    file = world.transcript / "lines.txt"
    with file.open("w") as transcript, (world.transcript / "client.txt").open("w") as complaints:
        client = subprocess.Popen(command, cwd=world.project, env={**world.variables(node), **variables}, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints)

        def read():
            line = client.stdout.readline()
            transcript.write(line)
            if not line:
                raise Mismatch("an answer, and the client ended")
            return json.loads(line)

        try:
            hello = read()
            if hello["protocol"] != sdk.protocol:
                raise Mismatch(f"version {sdk.protocol}, not {hello['protocol']}")
            shown = {tool["name"]: (tool["description"], tool["inputSchema"]) for tool in hello["tools"]}
            player.see_tools(shown, hello["instructions"])
            while player.call:
                tool, arguments = player.call
                line = json.dumps({"tool": tool, "arguments": arguments})
                transcript.write(line + "\n")
                client.stdin.write(line + "\n")
                client.stdin.flush()
                result = read()
                if "error" in result:
                    raise Mismatch(f"a result, not the exception {result['error']!r}")
                if not result["failed"] and json.loads(result["text"]) != result["structured"]:
                    raise Mismatch(f"two contents that say the same, not {result!r}")
                player.see_result(result["text"], result["failed"])
            client.stdin.close()
            if client.wait(seconds) != 0:
                raise Mismatch(f"a good end, not exit {client.returncode}")
        except (Mismatch, OSError, subprocess.TimeoutExpired) as difference:
            raise Mismatch(f"{player.where}: expected {difference}; see {file}") from None
        finally:
            client.kill()
            client.wait()
    return player.number
