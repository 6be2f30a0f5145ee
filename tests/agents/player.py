"""The scripted model's mind: what it does next, and whether it was shown what it had to be.

The script is `conversation.json`. Its steps are of three kinds:

    call    a tool with arguments, as they stand
    follow  the same tool once for each further station of the way that the last
            refusal named: its text has to have reached the model whole
    next    the call that loop_recover answered with, and the values that it said to
            need: its JSON has to have reached the model whole

A step ends with `answers` (members that the answer has to hold) or `refused` (words
that the refusal has to hold). Every agent plays the same script, whatever its model's
wire format is.
"""

import json
import re


class Mismatch(Exception):
    """What the model was shown is not what it had to be shown."""


class Player:
    """One run of the script."""

    def __init__(self, script, truth):
        self.truth = truth
        self.steps = list(script["steps"])
        self.number = 0
        self.answer = None
        self.refusal = ""
        self.step = None
        self.call = None
        self.advance()

    @property
    def where(self):
        """The step that is being played, in words."""
        return f"step {self.number} ({self.call[0] if self.call else 'the end'})"

    def advance(self):
        """Takes the next step: sets `call` to its tool and arguments, or to None at the end."""
        if not self.steps:
            self.step = self.call = None
            return
        step = self.step = self.steps.pop(0)
        self.number += 1
        arguments = dict(step.get("with", {}))
        if "follow" in step:
            way = re.search(step["follow"], self.refusal)
            if not way:
                raise Mismatch(f"a way to follow in the refusal {self.refusal!r}")
            once = {key: step[key] for key in ("call", "answers") if key in step}
            for station in reversed(way[1].split(" → ")[1:]):
                self.steps.insert(0, {**once, "with": {**arguments, step["as"]: station}})
            self.number -= 1
            return self.advance()
        if "next" in step:
            following = (self.answer or {}).get("resume", {}).get("nextCall")
            if not following:
                raise Mismatch(f"a next call in the answer {self.answer!r}")
            arguments |= following["arguments"]
            arguments |= {name: step["next"][name] for name in following["needs"]}
            self.call = (following["tool"], arguments)
            return
        self.call = (step["call"], arguments)

    def see_tools(self, shown, request_text):
        """Checks the tools that the model is offered: all, told whole, and the instructions.

        `shown` maps the names, as the model has to use them, to (description, schema);
        returns how each tool of the server is called here.
        """
        names = {}
        for tool in self.truth["tools"]:
            ending = re.compile(r"(^|[^a-zA-Z])" + re.escape(tool["name"]) + "$")
            found = [name for name in shown if ending.search(name)]
            if len(found) != 1:
                raise Mismatch(f"the tool {tool['name']} once, not as {found}")
            description, schema = shown[found[0]]
            if tool["description"] not in description:
                raise Mismatch(f"the whole description of {tool['name']}, not {description!r}")
            lost = set(tool["inputSchema"]["properties"]) - set(schema.get("properties", {}))
            if lost:
                raise Mismatch(f"{tool['name']} with the arguments {sorted(lost)}, which are not shown")
            names[tool["name"]] = found[0]
        for line in self.truth["instructions"].splitlines():
            if json.dumps(line)[1:-1] not in request_text and line not in request_text:
                raise Mismatch(f"{line!r} of the instructions")
        return names

    def see_result(self, text, failed):
        """Checks a result, given as the model's text and whether the model is told of a failure.

        `failed` is None where a client's wire format has no mark for it.
        """
        if "refused" in self.step:
            if failed is False:
                raise Mismatch(f"a refusal, not {text!r}")
            if self.step["refused"] not in text:
                raise Mismatch(f"a refusal that says {self.step['refused']!r}, not {text!r}")
            self.refusal = text
        else:
            if failed:
                raise Mismatch(f"an answer, not the failure {text!r}")
            self.answer = answer_in(text)
            for key, value in self.step.get("answers", {}).items():
                if self.answer.get(key) != value:
                    raise Mismatch(f"an answer whose {key} is {value!r}, not {self.answer.get(key)!r}")
        self.advance()


def answer_in(text):
    """The JSON object in what a client made of an answer: some put words before it."""
    start = text.find("{")
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0]
    except ValueError:
        raise Mismatch(f"an answer of JSON, not {text!r}") from None
