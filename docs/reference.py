"""What the pages generate from the code, called from cog blocks: commands, hooks, settings, HTTP doors, MCP tools, benchmarks."""

from __future__ import annotations

import inspect
import os
import re
from typing import Any

# What the pages show must not depend on who makes them.
for name in [name for name in os.environ if name.startswith(("WHEELMEM_", "HONCHO_", "MW_"))]:
    del os.environ[name]
os.environ["WHEELMEM_LOAD_PLUGINS"] = "wheelmem"


def cli() -> str:
    """Every command's help."""
    import click

    from wheelmem.cli.app import App
    from wheelmem.cli.group import cli as group

    out: list[str] = []

    def show(command: click.Command, name: str, parent: click.Context | None, depth: int) -> None:
        context = click.Context(command, info_name=name, parent=parent, obj=App(), terminal_width=100, max_content_width=100)
        path = context.command_path
        out.append(f"{'#' * min(depth, 3)} {path}\n\n```text\n{command.get_help(context)}\n```\n")
        if isinstance(command, click.Group):
            for sub in command.list_commands(context):
                found = command.get_command(context, sub)
                if found is not None and sub != "memory":
                    show(found, sub, context, depth + 1)

    show(group, "wheelmem", None, 2)
    return "\n".join(out)


def settings() -> str:
    """Every setting, those of the plugins that come with wheelmem included."""
    from wheelmem.plugins import HOOKS, load_plugins
    from wheelmem.settings import Settings

    known, host = Settings(), load_plugins()
    for hook in HOOKS:
        host.registered(hook, known)
    rows = ["| setting | what it is | default | variables |", "| --- | --- | --- | --- |"]
    for setting in known:
        default = _value(setting.default)
        variables = ", ".join(f"`{name}`" for name in setting.variables)
        secret = " (a secret: never shown)" if setting.secret else ""
        rows.append(f"| `{setting.name}` | {setting.help}{secret} | {default} | {variables} |")
    return "\n".join(rows)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "false" if not value else "true"
    if value in ("", (), {}):
        return "none"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def hooks() -> str:
    """Every hook with its signature and documentation, then what is registered through them."""
    from wheelmem import hookspecs

    out = []
    specs = [fn for _, fn in inspect.getmembers(hookspecs, inspect.isfunction) if hasattr(fn, "wheelmem_spec")]
    for fn in sorted(specs, key=lambda fn: fn.__code__.co_firstlineno):
        arguments = ", ".join(inspect.signature(fn).parameters)
        out.append(f"### {fn.__name__}({arguments})\n\n{_doc(fn)}\n")
    for name in ("Arm", "ArmReach", "FoundRecord", "Provider", "Classifier", "Embedder", "Policy"):
        found = getattr(hookspecs, name)
        out.append(f"### {name}\n\n{_doc(found)}\n")
        for member, fn in vars(found).items():
            if inspect.isfunction(fn) and not member.startswith("_") and fn.__doc__:
                signature = re.sub(r"self(, )?", "", str(inspect.signature(fn)))
                signature = signature.replace("'", "")
                out.append(f"```text\n{member}{signature}\n```\n\n{_doc(fn)}\n")
    return "\n".join(out)


def _doc(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").replace("``", "`")


def http() -> str:
    """Every door, from the OpenAPI description the server gives out."""
    from datasette_wheelmem.openapi import describe

    described = describe()
    out = ["| door | what it does | answers |", "| --- | --- | --- |"]
    for path, operations in described["paths"].items():
        shared = operations.get("parameters", [])
        for method, operation in operations.items():
            if method not in ("get", "post", "patch", "delete", "put"):
                continue
            summary = operation.get("summary") or operation.get("description", "")
            queries = [one["name"] for one in [*shared, *operation.get("parameters", ())] if one.get("in") == "query"]
            more = f" Filters: {', '.join(f'`{name}`' for name in queries)}." if queries else ""
            fields = _fields(described, operation)
            body = f" Body: {', '.join(fields)}." if fields else ""
            answers = ", ".join(str(status) for status in operation["responses"])
            text = " ".join(summary.split()).rstrip(".")
            out.append(f"| `{method.upper()} {path}` | {text}.{body}{more} | {answers} |")
    return "\n".join(out)


def _fields(described: Any, operation: Any) -> list[str]:
    """The fields of a request's body; those that may be absent have a question mark."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    while "$ref" in body:
        body = described["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    required = body.get("required", ())
    return [f"`{name}`" + ("" if name in required else "?") for name in body.get("properties", {})]


def mcp_tools() -> str:
    """The tools an agent is given."""
    from wheelmem.mcp.tools import TOOLS

    out = []
    for tool in TOOLS:
        arguments = [f"`{name}`" + ("" if name in tool.required else "?") for name in tool.properties]
        out.append(f"### {tool.name}\n\n{tool.description}\n\nArguments: {', '.join(arguments) or 'none'}.\n")
    return "\n".join(out)


def source(path: str, language: str) -> str:
    """A file of docs/examples, as it is."""
    from pathlib import Path

    text = (Path(__file__).parent / "examples" / path).read_text(encoding="utf-8").rstrip()
    return f"```{language}\n{text}\n```"


def benchmarks() -> str:
    """What each benchmark says of itself."""
    import ast
    from pathlib import Path

    out = []
    for path in sorted((Path(__file__).parent.parent / "benchmarks").glob("*.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if said:
            out.append(f"## {path.name}\n\n```text\n{said}\n```\n")
    return "\n".join(out)
