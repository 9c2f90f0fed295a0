"""Records of remotes, pushes, pulls and exports."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from pydantic import Field

from snapstore.surface.records.base import Record, Text

if TYPE_CHECKING:
    from snapstore.share.bundles import Exported
    from snapstore.share.clone import CloneResult
    from snapstore.share.pull import Pulled, PulledRef
    from snapstore.share.remotes import Remote
    from snapstore.share.secrets.finding import Finding
    from snapstore.share.sending import Pushed, PushedRef


class RemoteRecord(Record):
    name: Text
    url: Text
    auto: bool = Field(description="whether every turn is pushed there automatically")

    @classmethod
    def of(cls, remote: Remote) -> Self:
        return cls(name=remote.name, url=remote.shown, auto=remote.auto)


class RemotesRecord(Record):
    remotes: list[RemoteRecord]
    machine: Text | None = Field(default=None, description="the name of this machine, once it has shared anything")

    @classmethod
    def of(cls, remotes: Iterable[Remote], machine: str | None) -> Self:
        return cls(remotes=[RemoteRecord.of(remote) for remote in remotes], machine=machine)


class RemoteChangeRecord(Record):
    what: Text
    remote: RemoteRecord

    @classmethod
    def of(cls, what: str, remote: Remote) -> Self:
        return cls(what=what, remote=RemoteRecord.of(remote))


class PushedRefRecord(Record):
    """A pushed ref. `ref` is its name here, if it has one; `from` is null if the ref is new there."""

    ref: Text | None
    there: Text
    from_: str | None = Field(validation_alias="from", serialization_alias="from")
    to: str | None

    @classmethod
    def of(cls, update: PushedRef) -> Self:
        old, new = (oid.hex() if oid is not None else None for oid in (update.old, update.new))
        return cls(ref=update.ref, there=update.there, from_=old, to=new)


class PushRecord(Record):
    remote: Text | None
    url: Text
    objects: int
    turns: int
    updates: list[PushedRefRecord]
    names: dict[str, Text] = Field(description="the name there of each local ref")
    attempts: int
    remarks: list[Text] = Field(default=[], description="searches for secrets that could not be done")

    @classmethod
    def of(cls, pushed: Pushed) -> Self:
        return cls(
            remote=pushed.remote.name or None,
            url=pushed.remote.shown,
            objects=pushed.objects,
            turns=pushed.turns,
            updates=[PushedRefRecord.of(update) for update in pushed.updates],
            names=pushed.refs,
            attempts=pushed.attempts,
            remarks=pushed.remarks,
        )


class PulledRefRecord(Record):
    ref: Text
    there: Text
    from_: str | None = Field(validation_alias="from", serialization_alias="from")
    to: str
    turns: int
    machine: Text | None
    person: Text | None

    @classmethod
    def of(cls, update: PulledRef) -> Self:
        machine = update.machine
        return cls(
            ref=update.ref,
            there=update.there,
            from_=update.old.hex() if update.old is not None else None,
            to=update.new.hex(),
            turns=update.turns,
            machine=machine.name if machine is not None else None,
            person=(machine.person or None) if machine is not None else None,
        )


class PullRecord(Record):
    remote: Text | None
    url: Text
    empty: bool
    objects: int
    turns: int
    updates: list[PulledRefRecord]
    dropped: list[Text] = Field(description="refs removed here, because they were renamed or archived there")
    kept: list[Text] = Field(description="refs that were rewound or deleted there, and stay here")
    refused_records: int

    @classmethod
    def of(cls, pulled: Pulled) -> Self:
        return cls(
            remote=pulled.remote.name or None,
            url=pulled.remote.shown,
            empty=pulled.empty,
            objects=pulled.objects,
            turns=pulled.turns,
            updates=[PulledRefRecord.of(update) for update in pulled.updates],
            dropped=pulled.dropped,
            kept=pulled.gone,
            refused_records=pulled.refused,
        )


class AttachRecord(Record):
    """A store that was created from a remote, or that joined one."""

    root: Text
    store: Text
    session: Text | None
    joined: bool
    files: int = Field(description="files written into the folder")
    pull: PullRecord | None

    @classmethod
    def of(cls, done: CloneResult, store: str) -> Self:
        """Describe a folder that joined a shared project. `store` is the store's folder."""
        return cls(
            root=os.fsdecode(done.root),
            store=store,
            session=done.session,
            joined=done.joined,
            files=done.written,
            pull=PullRecord.of(done.pulled) if done.pulled is not None else None,
        )


class ExportRecord(Record):
    file: Text
    refs: dict[str, str]
    objects: int
    size_bytes: int
    remarks: list[Text] = Field(default=[], description="searches for secrets that could not be done")

    @classmethod
    def of(cls, done: Exported) -> Self:
        refs = {ref: oid.hex() for ref, oid in sorted(done.refs.items())}
        return cls(file=done.path, refs=refs, objects=done.objects, size_bytes=done.size, remarks=done.remarks)


class FindingRecord(Record):
    """Something that looks like a secret, and its place. Never the secret itself."""

    rule: Text
    kind: str
    session: Text
    turn: int | None
    commit: str
    path: Text | None
    where: Text
    line: int | None
    masked: str | None = Field(description="the length of the secret")
    fingerprint: str = Field(description="the word that `--allow` takes")

    @classmethod
    def of(cls, finding: Finding) -> Self:
        return cls(
            rule=finding.rule,
            kind=finding.kind,
            session=finding.session,
            turn=finding.turn,
            commit=finding.commit.hex(),
            path=os.fsdecode(finding.path) if finding.path is not None else None,
            where=finding.where,
            line=finding.line,
            masked=f"({finding.length} characters)" if finding.length else None,
            fingerprint=finding.fingerprint,
        )
