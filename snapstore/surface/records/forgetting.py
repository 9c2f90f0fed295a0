"""The document that `forget --json` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from pydantic import Field

from snapstore.surface.records.base import PlainPathRecord, Record, Text

if TYPE_CHECKING:
    from snapstore.share.replace_forgotten import RemoteResult
    from snapstore.timeline.forget.report import Forgotten


class ReachRecord(Record):
    remote: Text
    url: Text
    done: bool = Field(description="whether what is ours there was replaced")
    left: list[Text] = Field(description="what there still holds it, or may")
    error: Text | None = None

    @classmethod
    def of(cls, reach: RemoteResult) -> Self:
        remote = reach.remote
        return cls(remote=remote.name, url=remote.shown, done=reach.done, left=reach.left, error=reach.error)


class ForgetRecord(Record):
    dry_run: bool
    paths: list[PlainPathRecord] = Field(description="files that were forgotten; for a turn, those that it changed")
    turn: str | None = Field(description="the commit that the turn was")
    versions: int = Field(description="contents that went with the files")
    commits: int = Field(description="how many have other ids now")
    records: int = Field(description="of turns from which something was taken out")
    copies: list[PlainPathRecord] = Field(
        description="other names of the same content, which were not forgotten; for a turn, files that other turns "
        "hold with content that it brought"
    )
    unsearched: list[PlainPathRecord] = Field(
        description="files with more text than is looked for in what was said: prompts and replies may still hold some"
    )
    lost_refs: list[Text] = Field(description="refs, made with git, that led to such a content itself: they go")
    on_disk: list[PlainPathRecord] = Field(description="files still as the turn left them")
    never_capture: list[Text] = Field(description="patterns that were added to it")
    remotes: list[ReachRecord]
    elsewhere: list[Text] = Field(description="where it may still be, out of reach")

    @classmethod
    def of(cls, forgotten: Forgotten, reached: Iterable[RemoteResult], elsewhere: list[str]) -> Self:
        return cls(
            dry_run=forgotten.dry_run,
            paths=[PlainPathRecord.of(path) for path in forgotten.paths],
            turn=forgotten.turn.hex() if forgotten.turn is not None else None,
            versions=forgotten.versions,
            commits=forgotten.commits,
            records=forgotten.records,
            copies=[PlainPathRecord.of(path) for path in forgotten.copies],
            unsearched=[PlainPathRecord.of(path) for path in forgotten.unsearched],
            lost_refs=forgotten.lost_refs,
            on_disk=[PlainPathRecord.of(path) for path in forgotten.on_disk],
            never_capture=forgotten.never,
            remotes=[ReachRecord.of(reach) for reach in reached],
            elsewhere=elsewhere,
        )
