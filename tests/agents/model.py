"""A model on loopback that plays the script, in the wire formats of four makers.

Each format reads a request into the tools that it offers and the results that it holds,
and writes either a call or words. Requests are kept in the transcript folder as they
came, numbered.
"""

import http.server
import itertools
import json
import threading
from pathlib import Path

from player import Mismatch

TOKENS = {"input_tokens": 1, "output_tokens": 1}


def texts(content):
    """The text of a content that is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or [] if isinstance(block, dict))


class Anthropic:
    """Messages: `tool_use` and `tool_result` blocks."""

    path = "/v1/messages"

    @staticmethod
    def tools(body):
        own = (t for t in body.get("tools", []) if "input_schema" in t)
        return {t["name"]: (t.get("description", ""), t["input_schema"]) for t in own}

    @staticmethod
    def results(body):
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block.get("type") == "tool_result":
                    yield texts(block.get("content")), bool(block.get("is_error"))

    @staticmethod
    def reply(number, body, call, words):
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model"),
                   "stop_sequence": None, "usage": TOKENS}
        stop = "tool_use" if call else "end_turn"
        if call:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": call[1]}
            first = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        else:
            block = {"type": "text", "text": words}
            first, delta = {**block, "text": ""}, {"type": "text_delta", "text": words}
        if not body.get("stream"):
            return {**message, "content": [block], "stop_reason": stop}
        events = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": first},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": TOKENS},
            {"type": "message_stop"},
        ]
        return [(event["type"], event) for event in events]


class Chat:
    """OpenAI's chat completions: `tool_calls`, and messages of the role `tool`."""

    path = "/chat/completions"

    @staticmethod
    def tools(body):
        functions = (t["function"] for t in body.get("tools", []) if t.get("type") == "function")
        return {f["name"]: (f.get("description", ""), f["parameters"]) for f in functions}

    @staticmethod
    def results(body):
        for message in body["messages"]:
            if message["role"] == "tool":
                yield texts(message["content"]), None

    @staticmethod
    def reply(number, body, call, words):
        delta = {"role": "assistant", "content": words}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            calls = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
            delta = {"role": "assistant", "tool_calls": calls}
        chunk = {"id": f"chat_{number}", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choices = [[{"index": 0, "delta": delta, "finish_reason": None}], [end], []]
        events = [{**chunk, "choices": choice} for choice in choices]
        events[-1]["usage"] = usage
        return [(None, event) for event in [*events, "[DONE]"]]


class Responses:
    """OpenAI's responses: `function_call` items, whose tools may lie in a namespace."""

    path = "/responses"

    @staticmethod
    def listed(body):
        """Each function with the namespace that it lies in, or None."""
        for tool in body.get("tools", []):
            if tool.get("type") == "function":
                yield None, tool
            for inner in tool.get("tools", []) if tool.get("type") == "namespace" else []:
                yield tool["name"], inner

    @classmethod
    def tools(cls, body):
        return {f["name"]: (f.get("description", ""), f["parameters"]) for _, f in cls.listed(body)}

    @staticmethod
    def results(body):
        for item in body.get("input", []):
            if item.get("type") == "function_call_output":
                yield texts(item["output"]), None

    @classmethod
    def reply(cls, number, body, call, words):
        content = [{"type": "output_text", "text": words, "annotations": []}]
        item = {"type": "message", "id": f"m_{number}", "role": "assistant", "content": content}
        if call:
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                    "name": call[0], "arguments": json.dumps(call[1])}
            space = next(space for space, tool in cls.listed(body) if tool["name"] == call[0])
            if space:
                item["namespace"] = space
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item],
                    "usage": {**TOKENS, "total_tokens": 2, **details}}
        events = [
            {"type": "response.created", "response": {"id": f"resp_{number}"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        return [(event["type"], event) for event in events]


class Gemini:
    """Gemini's generateContent: `functionCall` and `functionResponse` parts."""

    path = "enerateContent"

    @staticmethod
    def tools(body):
        declared = (f for t in body.get("tools", []) for f in t.get("functionDeclarations", []))
        schema = lambda f: f.get("parametersJsonSchema") or f.get("parameters") or {}
        return {f["name"]: (f.get("description", ""), schema(f)) for f in declared}

    @staticmethod
    def results(body):
        for content in body.get("contents", []):
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    response = part["functionResponse"]["response"]
                    yield response.get("error") or response.get("output") or json.dumps(response), "error" in response

    @staticmethod
    def reply(number, body, call, words):
        part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": words}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        whole = {"candidates": [candidate], "usageMetadata": usage}
        return [(None, whole)] if body["stream"] else whole


FORMATS = [Anthropic, Chat, Responses, Gemini]


class Model:
    """A server that plays one script with one client, until `close`."""

    def __init__(self, player, farewell, transcript: Path):
        self.player = player
        self.farewell = farewell
        self.transcript = transcript
        self.failure = None
        self.finished = False
        self.file = None
        self.names = None
        self.seen = 0
        self.requests = itertools.count(1)
        self.lock = threading.Lock()
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.send(b"", "text/plain")

            def do_GET(self):
                listed = {"id": "scripted", "object": "model"}
                self.send(json.dumps({"object": "list", "data": [listed], "models": [], "has_more": False}).encode())

            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    body = json.loads(raw)
                except ValueError:
                    body = {}
                reply = model.answer(self.path, body)
                if isinstance(reply, dict):
                    return self.send(json.dumps(reply).encode())
                lines = []
                for name, data in reply:
                    event = f"event: {name}\n" if name else ""
                    lines.append(f"{event}data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
                self.send("".join(lines).encode(), "text/event-stream")

            def send(self, data, kind="application/json"):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, body):
        """The reply to one request; what is no request for words gets an empty object."""
        with self.lock:
            number = next(self.requests)
            file = self.transcript / f"{number:03}.json"
            file.write_text(json.dumps({"path": path, "body": body}, indent=1, ensure_ascii=False))
            path = path.split("?")[0]
            kind = next((kind for kind in FORMATS if kind.path in path), None)
            if kind is None or path.endswith("count_tokens") or path.endswith("countTokens"):
                return {"input_tokens": 10, "totalTokens": 10}
            # Gemini's format says it in the path.
            body.setdefault("stream", "stream" in path)
            tools = kind.tools(body)
            if not tools:
                # A title or a summary, which agents ask for beside the conversation.
                return kind.reply(number, body, None, "Sign-in")
            self.file = file
            try:
                call = self.play(kind, body, tools)
            except Mismatch as mismatch:
                self.failure = self.failure or f"{self.player.where}: expected {mismatch}"
                call = None
            except Exception as error:  # A format that is not as it was: the client is told nothing more.
                self.failure = self.failure or f"{self.player.where}: {type(error).__name__}: {error}"
                call = None
            self.finished = call is None and self.failure is None
            return kind.reply(number, body, call, self.failure or self.farewell)

    def play(self, kind, body, tools):
        """Looks at what is new, and chooses the next call."""
        if self.failure:
            return None
        if self.names is None:
            self.names = self.player.see_tools(tools, json.dumps(body, ensure_ascii=False))
        for text, failed in list(kind.results(body))[self.seen:]:
            self.seen += 1
            self.player.see_result(text, failed)
        if self.player.call is None:
            return None
        tool, arguments = self.player.call
        return self.names[tool], arguments
