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
    done: bool = Field(description="whether this machine's refs there were replaced")
    left: list[Text] = Field(description="what there still has the content, or may have")
    error: Text | None = None

    @classmethod
    def of(cls, reach: RemoteResult) -> Self:
        remote = reach.remote
        return cls(remote=remote.name, url=remote.shown, done=reach.done, left=reach.left, error=reach.error)


class ForgetRecord(Record):
    dry_run: bool
    paths: list[PlainPathRecord] = Field(description="forgotten files; for a turn, the files that it changed")
    turn: str | None = Field(description="the commit of the turn")
    versions: int = Field(description="forgotten versions of the files")
    commits: int = Field(description="commits that have new ids")
    records: int = Field(description="records of turns from which content was removed")
    copies: list[PlainPathRecord] = Field(
        description="other names of the same content, which were not forgotten; for a turn, files in other turns "
        "with content from this one"
    )
    unsearched: list[PlainPathRecord] = Field(
        description="files too large to be searched for in full: prompts and replies may still have parts of them"
    )
    lost_refs: list[Text] = Field(
        description="refs, made with git, that pointed to forgotten content: they are removed"
    )
    on_disk: list[PlainPathRecord] = Field(description="files on disk that are still as the turn left them")
    never_capture: list[Text] = Field(description="patterns added to the setting never_capture")
    remotes: list[ReachRecord]
    elsewhere: list[Text] = Field(description="places out of reach that may still have the content")

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
