#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what follows from something else, or with --check says what is out of date.

- `models.py` follows from `api/openapi.json`: what the API takes and gives.
- `_routes.py` follows from `api/operations.json`: every operation there is.
- `_sync/*.py` follows from `_async/*.py`: the twin without await.
- `docs/reference/python.md` follows from the signatures and the texts of the clients.
"""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, TypeGuard

HERE = Path(__file__).resolve().parent.parent
PACKAGE = HERE / "src" / "tasuki"
ROOT = HERE.parent.parent
OPENAPI = ROOT / "api" / "openapi.json"
OPERATIONS = ROOT / "api" / "operations.json"
DOCUMENT = ROOT / "docs" / "reference" / "python.md"
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from {source}. Do not edit.
"""

# A member of such a name would hide one that every pydantic model has.
TAKEN = {"schema", "json", "copy", "dict", "construct", "validate", "register"}

# What a model can do beyond having members.
EXTRA = {"Prompt": ["", "    def __str__(self) -> str:", "        return self.prompt"]}

Schema = dict[str, Any]


class Models:
    """Python classes for the schemas of the API."""

    def __init__(self, document: Schema) -> None:
        self.schemas: dict[str, Schema] = document["components"]["schemas"]
        self.enums: set[str] = set()
        self.classes: set[str] = set()
        for name, schema in self.schemas.items():
            if literals(schema):
                self.enums.add(name)
            elif fields(schema, self.schemas) is not None:
                self.classes.add(name)

    def text(self) -> str:
        enums = [self.enum(name) for name in sorted(self.enums)]
        aliases, waiting = [], sorted(set(self.schemas) - self.enums - self.classes)
        for name in waiting:
            aliases.append(f"{name}: TypeAlias = {quoted(self.annotation(self.schemas[name]))}\n")
        # A class must be there before its name is looked up, where Python itself has one like it.
        ordered = sorted(self.classes, key=lambda name: (not hasattr(builtins, name), name))
        classes = [self.model(name) for name in ordered]
        head = HEAD.format(source="api/openapi.json") + textwrap.dedent('''
            """What the broker takes and gives. A member that a newer broker adds is kept: see
            `model_extra`. So is a word that is new where there is a list of known ones."""

            from __future__ import annotations

            from datetime import datetime
            from typing import Any, Literal, TypeAlias

            from pydantic import BaseModel, ConfigDict, Field


            class Model(BaseModel):
                """The base of all of them."""

                model_config = ConfigDict(extra="allow", populate_by_name=True, defer_build=True)

            ''')
        parts = [head, *enums, "\n", *aliases, "\n", *classes]
        return "".join(parts)

    def enum(self, name: str) -> str:
        words = ", ".join(json.dumps(word) for word in literals(self.schemas[name]) or [])
        return f"{name}: TypeAlias = Literal[{words}]\n"

    def model(self, name: str) -> str:
        schema = self.schemas[name]
        members = fields(schema, self.schemas) or {}
        lines = [f"class {name}(Model):"]
        doc = schema.get("description")
        if doc:
            lines += docstring(doc)
        for member, (part, required) in members.items():
            lines += self.field(member, part, required)
        lines += EXTRA.get(name, [])
        if len(lines) == 1:
            lines.append("    pass")
        return "\n".join(lines) + "\n\n\n"

    def field(self, member: str, part: Schema, required: bool) -> list[str]:
        kind = self.annotation(part)
        name = member
        if keyword.iskeyword(member) or member in TAKEN or member.startswith("model_"):
            name = f"{member}_"
        options = [f'alias="{member}"'] if name != member else []
        if not required:
            default = "None"
            if kind.startswith("list["):
                options.insert(0, "default_factory=list")
                default = ""
            elif kind.startswith("dict["):
                options.insert(0, "default_factory=dict")
                default = ""
            elif isinstance(part.get("default"), (bool, int, str)):
                default = json.dumps(part["default"])
                default = {"true": "True", "false": "False"}.get(default, default)
            elif not kind.endswith("None") and kind != "Any":
                kind = f"{kind} | None"
            if default:
                options.insert(0, f"default={default}")
        value = ""
        if options:
            plain = len(options) == 1 and options[0].startswith("default=")
            value = f" = {options[0][8:]}" if plain else f" = Field({', '.join(options)})"
        lines = [f"    {name}: {kind}{value}"]
        if part.get("description"):
            lines += docstring(part["description"])
        return lines

    def annotation(self, schema: Any) -> str:
        if not isinstance(schema, dict) or not schema:
            return "Any"
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[-1]
            if self.schemas[name].get("additionalProperties") is True:
                return "dict[str, Any]"
            # A newer broker may have words that this list does not.
            return f"{name} | str" if name in self.enums else name
        for key in ("anyOf", "oneOf"):
            if key in schema:
                kinds: list[str] = []
                for part in schema[key]:
                    kinds += [k for k in self.annotation(part).split(" | ") if k not in kinds]
                kinds.sort(key=lambda kind: kind == "None")
                return " | ".join(kinds)
        if "const" in schema:
            return "str"
        kind = schema.get("type")
        if isinstance(kind, list):
            rest = [one for one in kind if one != "null"]
            inner = self.annotation({**schema, "type": rest[0]})
            return f"{inner} | None" if "null" in kind else inner
        match kind:
            case "null":
                return "None"
            case "string":
                return "datetime" if schema.get("format") == "date-time" else "str"
            case "integer":
                return "int"
            case "number":
                return "float"
            case "boolean":
                return "bool"
            case "array":
                return f"list[{self.annotation(schema.get('items'))}]"
            case "object":
                return "dict[str, Any]"
            case _:
                return "Any"


def literals(schema: Schema) -> list[str] | None:
    """The words of a schema that is a list of words."""
    if "enum" in schema:
        return list(schema["enum"])
    found: list[str] = []
    for part in schema.get("oneOf", []):
        if (
            isinstance(part, dict)
            and isinstance(part.get("const"), str)
            and "properties" not in part
        ):
            found.append(part["const"])
        elif isinstance(part, dict) and "enum" in part:
            found += part["enum"]
        else:
            return None
    return found or None


def fields(schema: Schema, schemas: dict[str, Schema]) -> dict[str, tuple[Schema, bool]] | None:
    """The members of a schema of objects, each with whether it is always there. Forms that exclude
    each other become one class in which what only some have is optional. An object whose members
    are the sender's is a plain dictionary."""
    if schema.get("additionalProperties") is True:
        return None
    own: dict[str, tuple[Schema, bool]] = {}
    required = schema.get("required", [])
    for name, part in schema.get("properties", {}).items():
        own[name] = (part if isinstance(part, dict) else {}, name in required)
    forms = schema.get("oneOf") or schema.get("anyOf") or []
    inline = [form for form in forms if isinstance(form, dict) and "properties" in form]
    if not inline:
        return own or None
    resolved = [schemas[f["$ref"].rsplit("/", 1)[-1]] if "$ref" in f else f for f in forms]
    if not all("properties" in form or "oneOf" in form for form in resolved):
        return own or None
    every = [fields(form, schemas) or {} for form in resolved]
    for form in every:
        for name, (part, _) in form.items():
            always = all(other.get(name, ({}, False))[1] for other in every)
            own.setdefault(name, (part, always))
    return own


def docstring(text: str) -> list[str]:
    wrapped = textwrap.wrap(" ".join(text.split()).replace("\\", "\\\\"), 88)
    if len(wrapped) == 1:
        return [f'    """{wrapped[0]}"""']
    return [
        f'    """{wrapped[0]}',
        *(f"    {line}" for line in wrapped[1:-1]),
        f'    {wrapped[-1]}"""',
    ]


def quoted(text: str) -> str:
    plain = {"Any", "None", "str", "int", "datetime", "bool", "float", "dict[str, Any]"}
    return text if set(text.split(" | ")) <= plain else f'"{text}"'


def routes(table: Schema) -> str:
    head = HEAD.format(source="api/operations.json") + textwrap.dedent('''
        """Where each operation of the API is, what it takes, and what it gives."""

        from __future__ import annotations

        from typing import Any

        from . import models as m
        from ._wire import Route

        ''')
    return head + "\n".join(sorted(route(one) for one in table["operations"])) + "\n"


def route(operation: Schema) -> str:
    http = operation["http"]
    kind = f"m.{operation['answers']}" if operation["answers"] else "object"
    members = sorted(operation["members"])
    listed = f"({', '.join(json.dumps(it) for it in members)}{',' if len(members) == 1 else ''})"
    takes, says = (listed, "()") if http["method"] == "GET" else ("()", listed)
    return (
        f'{operation["name"].upper()}: Route[{kind}] = Route("{http["method"]}", '
        f'"{http["path"]}", {kind}, query={takes}, body={says})'
    )


# What an async program says, and what its twin says instead.
TWIN = [
    (r"async def", "def"),
    (r"async with", "with"),
    (r"async for", "for"),
    (r"\bawait ", ""),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"__aiter__", "__iter__"),
    (r"__anext__", "__next__"),
    (r"AsyncIterator", "Iterator"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"AbstractAsyncContextManager", "AbstractContextManager"),
    (r"asyncio\.sleep", "time.sleep"),
    (r"^import asyncio$", "import time"),
    (r"\baclose\b", "close"),
    (r"aiter_lines", "iter_lines"),
    (r"aread\b", "read"),
    (r"httpx\.Async(\w+)", r"httpx.\1"),
    (r"\bAsync([A-Z]\w+)", r"\1"),
]


def twin(source: str, name: str) -> str:
    lines = []
    for line in source.splitlines():
        if line.endswith("# async only"):
            continue
        line = line.removesuffix("  # sync only")
        for pattern, instead in TWIN:
            line = re.sub(pattern, instead, line)
        lines.append(line)
    text = "\n".join(lines) + "\n"
    return text.replace(
        "# SPDX-License-Identifier: Apache-2.0\n", HEAD.format(source=f"_async/{name}"), 1
    )


# The classes of the reference, in the order in which one meets them, and the files they are in.
REFERENCE = [
    ("client.py", ["Client"]),
    ("handoffs.py", ["Handoff"]),
    ("claims.py", ["Claim"]),
    ("channels.py", ["Channel", "Publication"]),
    ("knowledge.py", ["Memories", "Project"]),
    ("work.py", ["Tasks", "Handoffs", "DeadLetters", "Chains", "Audit"]),
    ("people.py", ["Agents", "Keys", "Tokens", "Tenants", "Alerts"]),
]
WHERE = {
    "Memories": "client.memories",
    "Project": "client.project(name)",
    "Channel": "client.channel(name)",
    "Publication": "what `publish` returns",
    "Tasks": "client.tasks",
    "Handoffs": "client.handoffs",
    "DeadLetters": "client.dead_letters",
    "Chains": "client.chains",
    "Audit": "client.audit",
    "Agents": "client.agents",
    "Keys": "client.keys",
    "Tokens": "client.tokens",
    "Tenants": "client.tenants",
    "Alerts": "client.alerts",
}
REFERENCE_HEAD = """\
# Python reference

Generated by `sdk/python/tools/generate.py` from the SDK itself. Do not edit.
[The guide](../guides/python.md) has the reasons and examples.

`AsyncClient` and its objects have the same names, with `await`; `close` is `aclose`. Spans are
seconds or a `timedelta`. What is left out has the broker's default. What the broker takes and gives
in detail is in [openapi.json](../../api/openapi.json); its objects are `tasuki.models`.
"""


def reference(twins: dict[str, str]) -> str:
    """What a program can call, from what the source says about it."""
    offers = (PACKAGE / "_offers.py").read_text("utf-8")
    parts = [REFERENCE_HEAD]
    for file, names in REFERENCE:
        classes = {node.name: node for node in ast.parse(twins[file]).body if is_class(node)}
        for name in names:
            parts += documented(classes[name])
    worker = ast.parse((PACKAGE / "worker.py").read_text("utf-8"))
    parts.append("\n## Workers\n")
    for node in worker.body:
        if isinstance(node, ast.FunctionDef) and node.name == "worker":
            parts.append(method(node, "tasuki.", 0))
        if is_class(node) and node.name == "Worker":
            parts += documented(node)[1:]
    parts.append("\n## Keywords\n\nWhat `**` stands for in the signatures above.\n")
    for node in ast.parse(offers).body:
        if is_class(node) and any(isinstance(key, ast.AnnAssign) for key in node.body):
            parts.append(keywords(node, offers.splitlines()))
    parts.append("\n## Errors\n")
    for node in ast.parse((PACKAGE / "errors.py").read_text("utf-8")).body:
        if is_class(node) and not node.name.startswith("_"):
            base = ast.unparse(node.bases[0]) if node.bases else ""
            parts.append(f"- `{node.name}` ({base}): {one_line(ast.get_docstring(node) or '')}\n")
    return "".join(parts)


def is_class(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef)


def documented(node: ast.ClassDef) -> list[str]:
    where = WHERE.get(node.name, "")
    shown = where if " " in where else f"`{where}`" if where else ""
    about = textwrap.dedent(ast.get_docstring(node) or "")
    parts = [f"\n## {node.name}\n\n", f"{shown}: " if shown else "", f"{about}\n"]
    for member in node.body:
        if not isinstance(member, ast.FunctionDef):
            continue
        if member.name == "__init__" and node.name == "Client":
            parts.append(method(member, "tasuki.Client", 1))
        elif not member.name.startswith("_"):
            parts.append(method(member, "", 1))
    return ["".join(parts[:3]), *parts[3:]]


def method(node: ast.FunctionDef, before: str, skip: int) -> str:
    name = before if node.name == "__init__" else f"{before}{node.name}"
    about = one_line(ast.get_docstring(node) or "")
    if any(ast.unparse(one) == "property" for one in node.decorator_list):
        result = ast.unparse(node.returns) if node.returns else "None"
        return f"\n### `{name}`\n\n{wrapped(f'`{result}`. {about}')}\n"
    given = node.args
    plain = given.args[skip:]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    said = [argument(one, default) for one, default in zip(plain, defaults, strict=False)]
    if given.vararg:
        said.append(f"*{argument(given.vararg, None)}")
    elif given.kwonlyargs:
        said.append("*")
    said += [
        argument(one, default)
        for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    more = ""
    if given.kwarg and given.kwarg.annotation:
        kind = ast.unparse(given.kwarg.annotation).removeprefix("Unpack[").removesuffix("]")
        said.append(f"**{kind}")
        more = f" Further keywords: [{kind}](#{kind.lower()})."
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if node.name == "__init__":
        result = ""
    inner = "".join(f"    {one},\n" for one in said)
    call = f"{name}({', '.join(said)}){result}"
    if len(call) > 100:
        call = f"{name}(\n{inner}){result}"
    # Not `python`: a signature is not a program.
    head = "" if node.name == "__init__" else f"\n### `{node.name}`\n"
    text = wrapped(f"{about}{more}")
    return f"{head}\n```py\n{call}\n```\n" + (f"\n{text}\n" if about else "")


def argument(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(one.annotation)}" if one.annotation else ""
    return f"{one.arg}{kind}" + (f" = {ast.unparse(default)}" if default is not None else "")


def keywords(node: ast.ClassDef, lines: list[str]) -> str:
    base = ast.unparse(node.bases[0])
    also = "" if base == "TypedDict" else f" All of [{base}](#{base.lower()}) as well."
    rows = [f"\n### {node.name}\n\n{one_line(ast.get_docstring(node) or '')}{also}\n\n"]
    rows.append("| keyword | kind | meaning |\n| --- | --- | --- |\n")
    for key in node.body:
        if isinstance(key, ast.AnnAssign):
            said: list[str] = []
            place = key.lineno - 2
            while lines[place].lstrip().startswith("#:"):
                said.insert(0, lines[place].lstrip()[2:].strip())
                place -= 1
            kind = ast.unparse(key.annotation).replace("|", "\\|")
            rows.append(f"| `{ast.unparse(key.target)}` | `{kind}` | {' '.join(said)} |\n")
    return "".join(rows)


def wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def one_line(text: str) -> str:
    return " ".join(text.split())


def formatted(text: str) -> str:
    """As the formatter would leave it, so that a generated file is never a changed one."""
    ruff = [str(Path(sys.executable).parent / "ruff"), "--config", str(HERE / "pyproject.toml")]
    for step in (["check", "--fix-only", "--select", "I,F401"], ["format"]):
        command = [
            ruff[0],
            step[0],
            *ruff[1:],
            *step[1:],
            "--quiet",
            "--stdin-filename",
            "x.py",
            "-",
        ]
        text = subprocess.run(
            command, input=text, text=True, check=True, capture_output=True
        ).stdout
    return text


def main() -> int:
    document = json.loads(OPENAPI.read_text("utf-8"))
    wanted = {
        PACKAGE / "models.py": Models(document).text(),
        PACKAGE / "_routes.py": routes(json.loads(OPERATIONS.read_text("utf-8"))),
    }
    for source in sorted((PACKAGE / "_async").glob("*.py")):
        wanted[PACKAGE / "_sync" / source.name] = twin(source.read_text("utf-8"), source.name)
    twins = {path.name: text for path, text in wanted.items() if path.parent.name == "_sync"}
    wanted[DOCUMENT] = reference(twins)
    stale = []
    for path, text in wanted.items():
        text = formatted(text) if path.suffix == ".py" else text
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale.append(path.relative_to(ROOT))
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    for path in stale:
        print(f"{path}: {'is out of date' if '--check' in sys.argv else 'written'}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
