"""What is said of remotes: their names, what went over, what came in."""

from __future__ import annotations

from pydantic import Field

from snapstore.records.base import Record, Text


class RemoteRecord(Record):
    name: Text
    url: Text
    auto: bool = Field(description="whether every turn goes there by itself")


class RemotesRecord(Record):
    remotes: list[RemoteRecord]
    machine: Text | None = Field(default=None, description="the name of this machine, once it has shared anything")


class RemoteChangeRecord(Record):
    what: Text
    remote: RemoteRecord


class PushedRefRecord(Record):
    """`ref` is its name here, null for what has none; `from` is null for a ref that is new there."""

    ref: Text | None
    there: Text
    from_: str | None = Field(alias="from")
    to: str


class PushRecord(Record):
    remote: Text | None
    url: Text
    objects: int
    turns: int
    updates: list[PushedRefRecord]
    names: dict[str, Text] = Field(description="what each of our refs is called there")
    attempts: int


class PulledRefRecord(Record):
    ref: Text
    there: Text
    from_: str | None = Field(alias="from")
    to: str
    turns: int
    machine: Text | None
    person: Text | None


class PullRecord(Record):
    remote: Text | None
    url: Text
    empty: bool
    objects: int
    turns: int
    updates: list[PulledRefRecord]
    dropped: list[Text] = Field(description="refs here that were renamed or archived there: another holds all of it")
    kept: list[Text] = Field(description="refs that went back or away there, and stay here")
    refused_records: int


class AttachRecord(Record):
    """A store made from a remote, or one that joined it."""

    root: Text
    store: Text
    session: Text | None
    joined: bool
    files: int = Field(description="written into the folder")
    pull: PullRecord | None


class ExportRecord(Record):
    file: Text
    refs: dict[str, str]
    objects: int
    size_bytes: int
