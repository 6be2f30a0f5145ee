"""python.py MAJOR SERVER: the official Python client, told what to call line by line.

First writes {"protocol", "instructions", "tools"}; then, for each line {"tool",
"arguments"}, a line {"text", "structured", "failed"} or {"error"}.
"""

import asyncio
import json
import os
import sys

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client


def say(value):
    print(json.dumps(value), flush=True)


def either(thing, *names):
    """A member whose name changed with the major version."""
    return next((getattr(thing, name) for name in names if hasattr(thing, name)), None)


async def play(client, protocol, instructions):
    listed = (await client.list_tools()).tools
    schema = lambda tool: either(tool, "inputSchema", "input_schema")
    tools = [{"name": t.name, "description": t.description, "inputSchema": schema(t)} for t in listed]
    say({"protocol": protocol, "instructions": instructions, "tools": tools})
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        try:
            result = await client.call_tool(asked["tool"], asked["arguments"])
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})
            continue
        say({
            "text": "\n".join(block.text for block in result.content),
            "structured": either(result, "structuredContent", "structured_content"),
            "failed": bool(either(result, "isError", "is_error")),
        })


async def main():
    major, server = sys.argv[1:]
    pipes = stdio_client(StdioServerParameters(command=server, args=[], env={"HOME": os.environ["HOME"]}))
    if major == "1":
        from mcp import ClientSession

        async with pipes as (read, write), ClientSession(read, write) as session:
            hello = await session.initialize()
            await play(session, hello.protocolVersion, hello.instructions)
    else:
        from mcp import Client

        async with Client(pipes) as client:
            await play(client, client.protocol_version, client.instructions)


asyncio.run(main())
