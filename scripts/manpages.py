"""Write the man pages: one per command plus `snapstore.1`, made from the same texts as `--help`.

The package click-man would leave out the sections of commands and the exit statuses, and write a page per subcommand.
The pages are committed in docs/man, because building a wheel should not need the program's dependencies;
test_man_pages.py fails when they are out of date.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from snapstore import __version__, errors
from snapstore.cli.app import SECTIONS, application

# As groff prints them unless told otherwise: a backslash starts an escape, the others become typographic characters.
ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def escaped(text: str) -> str:
    """Return `text` so that groff prints each character as it is, in ASCII only."""
    return "".join(ESCAPES.get(char, char if char.isascii() else f"\\[u{ord(char):04X}]") for char in text)


def prose(text: str) -> str:
    """Return a paragraph as one line of roff, with `code` in bold."""
    parts = re.split(r"`([^`]*)`", " ".join(text.split()))
    marked = [f"\\fB{escaped(part)}\\fR" if number % 2 else escaped(part) for number, part in enumerate(parts)]
    return guarded("".join(marked))


def guarded(line: str) -> str:
    """Keep a line that begins with a dot from being taken for a request."""
    return f"\\&{line}" if line.startswith((".", "'")) else line


def paragraphs(help_text: str) -> Iterator[str]:
    """Yield the paragraphs of a command's help; those after `\\b` keep their line ends."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(help_text).partition("\f")[0].strip()):
        if paragraph.startswith("\b"):
            lines = paragraph.splitlines()[1:]
            yield "\n".join([".PP", ".EX", *(guarded(escaped(line)) for line in lines), ".EE"])
        else:
            yield f".PP\n{prose(paragraph)}"


def term(name: str, text: str) -> str:
    return f".TP\n.B {escaped(name)}\n{prose(text)}"


def usage(ctx: click.Context) -> str:
    return f".B {escaped(ctx.command_path)}\n{escaped(' '.join(ctx.command.collect_usage_pieces(ctx)))}"


def options(ctx: click.Context, *, common: bool) -> list[str]:
    """Return the options that every command has, or those of this command only.

    An argument without a text of its own is left out: the synopsis shows it.
    """
    everywhere = {"--help", *(flag for param in application.params for flag in param.opts)}
    found = []
    for param in ctx.command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None and record[1] and bool(everywhere & set(param.opts)) is common:
            found.append(term(*record))
    return found


def section(title: str, parts: list[str], level: str = "SH") -> list[str]:
    """Return a section, or nothing where it would be empty. A heading is followed by no paragraph request."""
    return [f'.{level} "{title}"', parts[0].removeprefix(".PP\n"), *parts[1:]] if parts else []


def page(name: str, summary: str, *sections: list[str]) -> str:
    """Return a whole man page. It bears no date, so that the same program always gives the same page."""
    head = f'.TH "{name.upper()}" "1" "" "snapstore {__version__}" "snapstore manual"'
    lines = [head, *section("NAME", [f"{escaped(name)} \\- {prose(summary)}"])]
    return "\n".join([*lines, *(line for part in sections for line in part)]) + "\n"


def summary_of(command: click.Command) -> str:
    """Return the first sentence of a command's help as a phrase."""
    first = inspect.cleandoc(command.help or "").split("\n\n")[0]
    return " ".join(first.split()).removesuffix(".")


def command_page(ctx: click.Context) -> str:
    """Return the page of one command, with the commands below it."""
    command = ctx.command
    below: list[str] = []
    synopsis = [usage(ctx)]
    if isinstance(command, click.Group):
        synopsis = []
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            inner = click.Context(found, parent=ctx, info_name=name)
            synopsis += [*([".br"] if synopsis else []), usage(inner)]
            about = [*paragraphs(found.help or ""), *options(inner, common=False)]
            below += section(escaped(inner.command_path), about, "SS")
    return page(
        ctx.command_path.replace(" ", "-"),
        summary_of(command),
        section("SYNOPSIS", synopsis),
        section("DESCRIPTION", list(paragraphs(command.help or ""))),
        section("COMMANDS", below),
        section("OPTIONS", options(ctx, common=False)),
        section("COMMON OPTIONS", options(ctx, common=True)),
        section("SEE ALSO", [".BR snapstore (1)"]),
    )


def top_page(ctx: click.Context) -> str:
    """Return the page of the program: every command by section, the common options and the exit statuses."""
    listed: list[str] = []
    for title, names in SECTIONS.items():
        commands = [(name, application.get_command(ctx, name)) for name in names]
        rows = [(escaped(f"snapstore-{name}"), prose(summary_of(command))) for name, command in commands if command]
        listed += section(title, [f".TP\n.BR {name} (1)\n{text}." for name, text in rows], "SS")
    kinds = [kind for kind in errors.SnapstoreError.__subclasses__() if kind.__module__ == errors.__name__]
    statuses = {kind.status: f"`{kind.name}`. {kind.hint}" for kind in kinds}
    ends = [term("0", "Done, or nothing to do."), *(term(str(key), statuses[key]) for key in sorted(statuses))]
    return page(
        "snapstore",
        summary_of(application),
        section("SYNOPSIS", [usage(ctx)]),
        section("DESCRIPTION", list(paragraphs(application.help or ""))),
        section("COMMANDS", listed),
        section("OPTIONS", options(ctx, common=True)),
        section("EXIT STATUS", ends),
        section("SEE ALSO", [".BR git (1)"]),
    )


def pages() -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of every page."""
    top = click.Context(application, info_name="snapstore", **application.context_settings)
    yield "snapstore.1", top_page(top)
    for name in application.list_commands(top):
        command = application.get_command(top, name)
        assert command is not None
        yield f"snapstore-{name}.1", command_page(click.Context(command, parent=top, info_name=name))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("snapstore*.1"):
        old.unlink()
    for name, text in pages():
        (folder / name).write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
