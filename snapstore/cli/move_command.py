"""The steps that all move commands share: plan, preview or ask, move, report.

A command adds its operand and the function that makes its plan.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from snapstore.api import Session
from snapstore.cli.context import Context
from snapstore.cli.move_description import FollowUp, MoveDescription
from snapstore.cli.output import UNWRITTEN, files_text
from snapstore.cli.param_types import Step
from snapstore.cli.paths import below
from snapstore.cli.questions.confirm import confirm_move
from snapstore.cli.questions.hunks import choose_hunks
from snapstore.cli.reports import conflicts as conflict_report
from snapstore.cli.reports import move as moved
from snapstore.errors import SnapstoreError, Usage
from snapstore.store.handle import failed
from snapstore.surface.move_request import MoveRequest, execute, get_ready, not_reported, plan_move
from snapstore.surface.wording import turns_text as turns_text
from snapstore.timeline.moves.hunks import hunks_of
from snapstore.timeline.moves.plan import BOTH, CONVERSATION, FILES, FORCE, Plan, Policy

_REPEATED = ("exact", "files_only", "conversation_only")


def carry_out(context: Context, move: MoveDescription, options: dict[str, Any]) -> int:
    """Carry out a move command and return its exit status.

    Every failure message names the command that failed (S2-20).
    """
    move.program = context.out.program
    move.preview, move.yes, move.cancel = options["preview"], options["yes"], options["cancel"]
    move.patch = options.get("patch", False)
    if move.patch and context.json and not move.preview:
        raise Usage("--patch asks questions, which --json cannot", "Choose with --hunk ID; --preview lists the hunks.")
    default = _default(options)
    if move.preview and move.cancel:
        raise Usage("--preview changes nothing, but --cancel closes the open turn", "Use one of them.")
    try:
        session = context.reading()
        with session.store:
            move.root = session.store.root
            _repeat(session, move, options)
            request = _request(session, move, options, default)
            if not move.preview and get_ready(session, request):
                context.say(f"closed the interrupted turn of session {session.name}")
            return _go(context, session, move, request)
    except (SnapstoreError, OSError) as error:
        if not move.done:
            return _failed(context, move, error)
        if isinstance(error, BrokenPipeError):
            raise
        why = error.strerror if isinstance(error, OSError) else str(error).removeprefix(UNWRITTEN)
        look = "`snapstore ops` shows that it happened, `snapstore status` where you are"
        raise not_reported(move.verb, why, look) from error


def move_in_time(
    context: Context, verb: Literal["earlier", "later"], step: Step | None, options: dict[str, Any]
) -> int:
    """Carry out `earlier` or `later`, by one step by default."""
    far = step.far if step else {"count": 1}

    def plan(session: Session, how: dict[str, Any]) -> Plan:
        make = session.plan_earlier if verb == "earlier" else session.plan_later
        return make(**far, **how)

    move = MoveDescription(
        [verb, *([step.text] if step else [])],
        plan,
        ask=lambda plan: f"Go to turn {plan.turn} on {plan.branch}? {move_sentence(plan)}",
        nothing=f"There is nothing {verb}.",
    )
    return carry_out(context, move, options)


def _go(context: Context, session: Session, move: MoveDescription, request: MoveRequest[FollowUp]) -> int:
    plan = plan_move(session, request)
    if plan.conflicts and not context.json:
        move.differing = conflict_report.differing_lines(session, plan)
    if move.preview:
        foreseen = session.preview(plan)
        hunks = hunks_of(session, plan) if move.patch else None
        if context.json:
            from snapstore.surface.records.moves import MoveRecord

            context.document(MoveRecord.of(foreseen, preview=True, hunks=hunks))
        else:
            moved.would(context.out, session, move, plan, hunks)
        return 0
    asking = not plan.conflicts and not plan.nothing_to_do and not move.yes and not context.json
    if asking and move.patch and request.hunks is None:
        chosen = choose_hunks(context, hunks_of(session, plan), move.verb)
        request = replace(request, hunks=chosen)
        plan = plan_move(session, request)
    elif asking and not confirm_move(context, session, move, plan):
        context.err.line("Nothing was changed." if not move.cancel else "Nothing was moved.")
        return 1
    outcome = execute(session, request, plan)
    done, then = outcome.moved, outcome.after
    move.done = True
    if context.json:
        from snapstore.surface.records.moves import MoveRecord

        record = MoveRecord.of(done)
        context.document(then.add_to(record) if then is not None else record)
    else:
        moved.tell(context.out, session, move, done)
        if then is not None:
            then.tell(context.out)
    context.out.flush()
    return 0


def _failed(context: Context, move: MoveDescription, error: SnapstoreError | OSError) -> int:
    if isinstance(error, OSError):
        if isinstance(error, BrokenPipeError):
            raise error
        error = failed(error)
    if not isinstance(error, Usage):
        error.message = f"{move.verb} failed: {error.message}"
    conflicts = error.details.get("conflicts")
    if not isinstance(conflicts, list) or not conflicts or context.json or context.debug:
        raise error
    conflict_report.refuse(context.err, move, error, conflicts)
    return error.status


# Options to policy.


def _default(options: dict[str, Any]) -> str | None:
    chosen = [word for word in ("merge", "no-merge", "force", "skip") if options[word.replace("-", "_")]]
    if len(chosen) > 1:
        raise Usage(
            f"--{chosen[0]} and --{chosen[1]} exclude each other", "Choose one, and --ours or --theirs for files."
        )
    if options.get("files_only") and options.get("conversation_only"):
        raise Usage("--files-only and --conversation-only exclude each other", "Without either, both are moved.")
    if options.get("exact") and options.get("conversation_only"):
        raise Usage("--exact concerns files, which --conversation-only leaves alone", "Use one of them.")
    if not chosen:
        return None
    return str(options["merge"]) if options["merge"] else "refuse" if options["no_merge"] else chosen[0]


def _request(
    session: Session, move: MoveDescription, options: dict[str, Any], default: str | None
) -> MoveRequest[FollowUp]:
    hunks = options.get("hunks") or None
    if (move.patch or hunks) and default is None and move.words[0] == "restore":
        default = FORCE  # the hunks lead from what is on disk, edits included, and each is asked for
    ours, theirs = ([below(session.store.root, path) for path in options[side]] for side in ("ours", "theirs"))
    for path in set(ours) & set(theirs):
        raise Usage(f"both --ours and --theirs name {path.decode('utf-8', 'replace')!r}", "Choose one of them.")
    how: dict[str, Any] = {}
    if "files_only" in options:
        how["scope"] = FILES if options["files_only"] else CONVERSATION if options["conversation_only"] else BOTH
    if "exact" in options:
        how["exact"] = options["exact"]
    return MoveRequest(
        move.plan, Policy(default, ours, theirs), how, hunks=hunks, close_turn=move.cancel, then=move.then
    )


def _repeat(session: Session, move: MoveDescription, options: dict[str, Any]) -> None:
    """Add the options that define this move to the command offered for retyping."""
    flags = [f"--{name.replace('_', '-')}" for name in _REPEATED if options.get(name)]
    flags += [word for side in ("ours", "theirs") for path in options[side] for word in (f"--{side}", path)]
    if session.name != session.store.active_session():
        flags += ["--session", session.name]
    end = move.words.index("--") if "--" in move.words else len(move.words)
    move.words[end:end] = flags


# Questions.


def revert_sentence(plan: Plan) -> str:
    """Return the sentence about reverted files that S0-14 prescribes."""
    number = len(plan.changing)
    return f"This will revert changes to {files_text(number)}." if number else "No file will change."


def changing(plan: Plan) -> str:
    number = len(plan.changing)
    return f"This will change {files_text(number)}." if number else "No file will change."


def move_sentence(plan: Plan) -> str:
    """Return the sentence about the turns and files that a plan affects."""
    turns = (("undo", plan.turns_undone), ("redo", plan.turns_redone))
    parts = [f"{verb} {turns_text(len(found))}" for verb, found in turns if found]
    if plan.changing:
        parts.append(f"change {files_text(len(plan.changing))}")
    if not parts:
        return "No file will change."
    return f"This will {', '.join(parts[:-1])}{' and ' if parts[:-1] else ''}{parts[-1]}."
