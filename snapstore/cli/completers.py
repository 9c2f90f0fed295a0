"""Shell completion of names that the store knows.

The names are sessions, branches, checkpoints, turns, operations, remotes and settings.

Completion runs while a person types, so it never fails, creates no store, finishes no interrupted change and prints
nothing else. On any error no names are offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

import click
from click.shell_completion import CompletionItem

from snapstore.api import Store
from snapstore.base.text import first_line, safe
from snapstore.cli.context import CommonOptions
from snapstore.share.remotes import Remotes
from snapstore.store.settings import SETTINGS
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.operations import Operations
from snapstore.transcripts.readers.read import AGENTS

_MOST = 100  # turns and operations offered

Names = Callable[[click.Context], Iterable[CompletionItem]]


def quietly(names: Names, ctx: click.Context) -> list[CompletionItem]:
    """Return the printable names, or none if reading them fails."""
    try:
        return [item for item in names(ctx) if item.value.isprintable()]
    except Exception:
        return []


def sessions(ctx: click.Context) -> Iterator[CompletionItem]:
    with _store(ctx) as store:
        yield from map(CompletionItem, store.sessions())


def branches(ctx: click.Context) -> Iterator[CompletionItem]:
    with _graph(ctx) as graph:
        yield from (CompletionItem(name) for name in graph.branches)
        yield from (CompletionItem(name, help="archived") for name in graph.archived)


def checkpoints(ctx: click.Context) -> Iterator[CompletionItem]:
    with _graph(ctx) as graph:
        yield from (CompletionItem(name, help="checkpoint") for name in graph.checkpoints)


def turns(ctx: click.Context) -> Iterator[CompletionItem]:
    """Yield the turns of the current branch, newest first."""
    with _graph(ctx) as graph:
        numbered = (node for node in graph.upwards(graph.tip) if node.turn is not None)
        for node in islice(numbered, _MOST):
            yield CompletionItem(str(node.turn), help=first_line(node.subject))


def operations(ctx: click.Context) -> Iterator[CompletionItem]:
    with _store(ctx) as store:
        for operation in islice(Operations(store).newest_first(), _MOST):
            yield CompletionItem(str(operation.number), help=safe(operation.what))


def remotes(ctx: click.Context) -> Iterator[CompletionItem]:
    with _store(ctx) as store:
        yield from (CompletionItem(remote.name, help=safe(remote.shown)) for remote in Remotes(store).list())


def settings(ctx: click.Context) -> Iterator[CompletionItem]:
    yield from (CompletionItem(setting.name, help=setting.help) for setting in SETTINGS)


def transcript_agents(ctx: click.Context) -> Iterator[CompletionItem]:
    yield from map(CompletionItem, AGENTS)


@contextmanager
def _store(ctx: click.Context) -> Iterator[Store]:
    folders = ctx.ensure_object(CommonOptions).folders
    with Store.open(os.path.join(".", *folders), recover=False) as store:
        yield store


@contextmanager
def _graph(ctx: click.Context) -> Iterator[Graph]:
    with _store(ctx) as store:
        session = ctx.ensure_object(CommonOptions).session or os.environ.get("SNAPSTORE_SESSION")
        yield view(store.session(session))
