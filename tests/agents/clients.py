"""The agents that are driven: package, configuration and command of each.

A client runs in a home and a project of its own; `prepare` writes its configuration and
returns the command and the variables that it needs beside those of every client.
"""

import json
from dataclasses import dataclass
from pathlib import Path

SERVER = "loop-state"
# The clients that are written for Node need one as new as this, which is a package too.
NODE = ("npm", "node", "22.23.3")


@dataclass
class Setting:
    """What a client is prepared with."""

    folder: Path  # its package
    node: str  # the program that runs JavaScript
    server: str  # the server's binary
    port: int  # the model's
    home: Path
    project: Path
    prompt: str

    @property
    def model(self):
        return f"http://127.0.0.1:{self.port}"

    def script(self, name):
        return str(self.folder / "node_modules/.bin" / name)


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))


def claude(s):
    servers = {SERVER: {"type": "stdio", "command": s.server, "args": []}}
    write(s.project / ".mcp.json", {"mcpServers": servers})
    command = [s.script("claude"), "-p", s.prompt, "--model", "claude-sonnet-4-5", "--strict-mcp-config",
               "--mcp-config", str(s.project / ".mcp.json"), "--allowedTools", f"mcp__{SERVER}"]
    return command, {
        "ANTHROPIC_BASE_URL": s.model,
        "ANTHROPIC_API_KEY": "scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # Else it looks for tools by words in place of listing them.
        "ENABLE_TOOL_SEARCH": "false",
    }


def opencode(s):
    models = {"scripted": {"name": "scripted", "tool_call": True, "limit": {"context": 200000, "output": 8000}}}
    options = {"baseURL": f"{s.model}/v1", "apiKey": "scripted"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Local", "options": options, "models": models}
    write(s.project / "opencode.json", {
        "autoupdate": False,
        "share": "disabled",
        "model": "local/scripted",
        "small_model": "local/scripted",
        "permission": "allow",
        "provider": {"local": provider},
        "mcp": {SERVER: {"type": "local", "command": [s.server], "enabled": True}},
    })
    return [s.script("opencode"), "run", s.prompt], {}


def codex(s):
    text = json.dumps  # A string of TOML may be written as one of JSON.
    write(s.home / ".codex/config.toml", f"""
model = "scripted"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.local]
name = "local"
base_url = {text(s.model + "/v1")}
env_key = "SCRIPTED_KEY"
wire_api = "responses"

[mcp_servers.{SERVER}]
command = {text(s.server)}
""")
    return [s.node, s.script("codex"), "exec", "--skip-git-repo-check", s.prompt], {"SCRIPTED_KEY": "scripted"}


def gemini(s):
    write(s.project / ".gemini/settings.json", {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
        "mcpServers": {SERVER: {"command": s.server, "trust": True}},
    })
    command = [s.node, s.script("gemini"), "--yolo", "--model", "gemini-2.5-flash", "--prompt", s.prompt]
    return command, {
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_API_KEY": "scripted",
        "GOOGLE_GEMINI_BASE_URL": s.model,
    }


@dataclass
class Agent:
    """A coding agent."""

    name: str
    package: tuple
    prepare: callable


AGENTS = [
    Agent("claude", ("npm", "@anthropic-ai/claude-code", "2.1.332"), claude),
    Agent("opencode", ("npm", "opencode-ai", "1.18.33"), opencode),
    Agent("codex", ("npm", "@openai/codex", "0.171.0"), codex),
    Agent("gemini", ("npm", "@google/gemini-cli", "0.61.0"), gemini),
]
