"""What `forget` prints with `--json`."""

from __future__ import annotations

from pydantic import Field

from snapstore.records.base import PathRecord, Record, Text


class ReachRecord(Record):
    remote: Text
    url: Text
    done: bool = Field(description="whether what is ours there was replaced")
    left: list[Text] = Field(description="what there still holds it, or may")
    error: Text | None = None


class ForgetRecord(Record):
    dry_run: bool
    paths: list[PathRecord] = Field(description="files that were forgotten; for a turn, those that it changed")
    turn: str | None = Field(description="the commit that the turn was")
    versions: int = Field(description="contents that went with the files")
    commits: int = Field(description="how many have other ids now")
    records: int = Field(description="of turns from which something was taken out")
    copies: list[PathRecord] = Field(
        description="other names of the same content, which were not forgotten; for a turn, files that other turns "
        "hold with content that it brought"
    )
    unsearched: list[PathRecord] = Field(
        description="files with more text than is looked for in what was said: prompts and replies may still hold some"
    )
    lost_refs: list[Text] = Field(description="refs, made with git, that led to such a content itself: they go")
    on_disk: list[PathRecord] = Field(description="files still as the turn left them")
    never_capture: list[Text] = Field(description="patterns that were added to it")
    remotes: list[ReachRecord]
    elsewhere: list[Text] = Field(description="where it may still be, out of reach")
