"""Drives the agents, the official SDKs and the inspector against the real server.

    run.py SERVER FOLDER [NAME...]    all of them, or those named

Packages go to `packages` beside FOLDER and are reused; FOLDER/NAME has a run's home, project
and transcript (each request to the model as it came, and what the client said).
What cannot be installed is skipped with one line. The clients run in a network of
their own, which has a loopback and nothing else, where the system allows that.
Ends with 1 when a client failed.
"""

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import inspector
import kept
import sdks
from clients import AGENTS, NODE, Setting
from install import Unavailable, installed
from model import Model
from player import Mismatch, Player

HERE = Path(__file__).resolve().parent
SCRIPT = json.loads((HERE / "conversation.json").read_text())
# The longest that a client may take: ten times what the slowest takes when the machine is busy.
SECONDS = 180


@dataclass
class World:
    """A home, a project and a transcript that begin empty."""

    folder: Path

    def __post_init__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in (self.home, self.project, self.transcript, self.folder / "tmp"):
            folder.mkdir(parents=True)

    @property
    def home(self):
        return self.folder / "home"

    @property
    def project(self):
        return self.folder / "project"

    @property
    def transcript(self):
        return self.folder / "transcript"

    @property
    def database(self):
        return self.home / ".dev-loop-state/loops.db"

    def variables(self, node):
        """All that a client gets: nothing of the user's environment but the path."""
        path = os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "/usr/bin:/bin")])
        return {"HOME": str(self.home), "TMPDIR": str(self.folder / "tmp"), "PATH": path, "LANG": "C.UTF-8",
                "TERM": "dumb", "NO_COLOR": "1", "CI": "1", "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1"}


def play_agent(agent, folder, node, server, truth, root):
    """One agent plays the script."""
    world = World(root / agent.name)
    player = Player(SCRIPT, truth)
    model = Model(player, SCRIPT["farewell"], world.transcript)
    setting = Setting(folder, node, server, model.port, world.home, world.project, SCRIPT["prompt"])
    command, variables = agent.prepare(setting)
    said = world.transcript / "client.txt"
    try:
        with said.open("wb") as output:
            done = subprocess.run(command, cwd=world.project, env={**world.variables(node), **variables},
                                  stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Mismatch(f"{player.where}: the client did not end in {SECONDS} s; see {model.file or said}") from None
    finally:
        model.close()
    if model.failure:
        raise Mismatch(f"{model.failure}; see {model.file}")
    if not model.finished:
        raise Mismatch(f"{player.where}: the client stopped asking (exit {done.returncode}); see {said}")
    if done.returncode != 0 or SCRIPT["farewell"] not in said.read_text(errors="replace"):
        raise Mismatch(f"the end: exit {done.returncode}, and what it said is no farewell; see {said}")
    look_after(world, server)
    return f"{player.number} steps"


def look_after(world, server):
    """What every run has to leave: no server, and the loop as the script says."""
    try:
        kept.check(world.database, world.project, SCRIPT["kept"])
    except (Mismatch, OSError) as difference:
        raise Mismatch(f"afterwards: expected {difference}; see {world.folder}") from None
    for _ in range(100):
        left = servers_in(world.project, server)
        if not left:
            return
        time.sleep(0.05)
    raise Mismatch(f"afterwards: the server is still there as {left}; see {world.folder}")


def servers_in(project, server):
    """The servers that run in a project, where the system tells."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.path.samefile(process / "exe", server) and os.path.samefile(process / "cwd", project):
                found.append(process.name)
        except OSError:
            continue
    return found


def truth_of(server, root):
    """The server's own list of tools and its instructions, asked without any client."""
    world = World(root / "plain")
    messages = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                                                     "clientInfo": {"name": "plain", "version": "0"}}},
        {"id": 2, "method": "tools/list"},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    done = subprocess.run([server], input=lines, cwd=world.project, env={"HOME": str(world.home)},
                          capture_output=True, text=True, check=True)
    first, second = (json.loads(line)["result"] for line in done.stdout.splitlines())
    return {"instructions": first["instructions"], "tools": second["tools"]}


def seal(arguments):
    """Starts this program again in a network without ways out; says so where that cannot be."""
    for extra in [], ["--map-root-user"]:
        command = ["unshare", "--net", *extra]
        try:
            allowed = subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode == 0
        except OSError:
            break
        if allowed:
            os.execvp(command[0], [*command, sys.executable, "-B", __file__, *arguments])
    print("agents: this system gives no network of its own; the clients can reach the outside", flush=True)


def loopback_up():
    """Brings up the loopback of a new network, which begins down."""
    SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh", b"lo", 0).ljust(40, b"\0")
        name, flags = struct.unpack("16sh", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request)[:18])
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", name, flags | IFF_UP).ljust(40, b"\0"))


def runs(server, root, node, truth):
    """Each client with its package and what plays it."""
    for agent in AGENTS:
        def play(folder, agent=agent):
            return play_agent(agent, folder, node, server, truth, root)
        yield agent.name, agent.package, play
    for sdk in sdks.SDKS:
        def play(folder, sdk=sdk):
            world = World(root / sdk.name)
            number = sdks.play(sdk, folder, node, server, world, Player(SCRIPT, truth), SECONDS)
            look_after(world, server)
            return f"{number} steps"
        yield sdk.name, sdk.package, play

    def inspect(folder):
        return inspector.check(folder, node, server, World(root / "inspector"), truth, SECONDS)
    yield "inspector", inspector.PACKAGE, inspect


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--sealed"]
    server, root, names = os.path.abspath(arguments[0]), Path(arguments[1]).absolute(), arguments[2:]
    packages = root.parent / "packages"
    wanted = lambda name: not names or name in names
    sealed = "--sealed" in sys.argv
    if not sealed:
        # Here, because there is no registry inside.
        missing = {}
        for name, package, _ in [("node", NODE, None), *runs(server, root, "", {})]:
            if name == "node" or wanted(name):
                try:
                    installed(packages, *package)
                except Unavailable as reason:
                    missing[name] = str(reason)
        os.environ["AGENTS_MISSING"] = json.dumps(missing)
        seal(["--sealed", *arguments])
    elif os.environ.get("AGENTS_MISSING") is not None:
        loopback_up()
    missing = json.loads(os.environ["AGENTS_MISSING"])
    if "node" in missing:
        print(f"agents: SKIPPED, all need node {NODE[2]}: {missing['node']}")
        return 0
    node = str(installed(packages, *NODE) / "node_modules/.bin/node")
    truth = truth_of(server, root)
    failed = 0
    for name, package, play in runs(server, root, node, truth):
        if not wanted(name):
            continue
        title = f"{name:<12} {package[1]} {package[2]}"
        if name in missing:
            print(f"{title}: SKIPPED, {missing[name]}", flush=True)
            continue
        started = time.monotonic()
        try:
            outcome = f"ok, {play(installed(packages, *package))}"
        except Mismatch as mismatch:
            failed += 1
            outcome = f"FAILED at {mismatch}"
        print(f"{title}: {outcome} ({time.monotonic() - started:.1f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
