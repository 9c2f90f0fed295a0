"""Records of settings, and the validation of the configuration file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from snapstore.store.config import Problem
from snapstore.store.settings import SETTINGS, Setting
from snapstore.surface.records.base import Record, Text

_FIELDS: dict[str, Any] = {
    setting.name: (
        Annotated[type(setting.default), BeforeValidator(setting.convert)],
        Field(default=setting.default, description=setting.help),
    )
    for setting in SETTINGS
}
Config: type[BaseModel] = create_model("Config", __config__=ConfigDict(extra="forbid"), **_FIELDS)


def faults(data: dict[str, Any]) -> dict[str, str]:
    """Return the faults of a configuration by key. An unknown key has an empty text."""
    try:
        Config.model_validate(data)
    except ValidationError as error:
        return {
            str(one["loc"][0]): "" if one["type"] == "extra_forbidden" else one["msg"].removeprefix("Value error, ")
            for one in error.errors()
        }
    return {}


class SettingRecord(Record):
    key: str
    value: Any = Field(description="sizes in bytes, durations in seconds")
    text: Text = Field(description="the value as a person writes it")
    default: Any
    default_text: Text
    set: bool = Field(description="whether the file sets it")
    help: str

    @classmethod
    def of(cls, setting: Setting, value: Any, *, is_set: bool) -> Self:
        return cls(
            key=setting.name,
            value=value,
            text=setting.spell(value),
            default=setting.default,
            default_text=setting.spell(setting.default),
            set=is_set,
            help=setting.help,
        )


class ConfigProblemRecord(Record):
    line: int | None
    key: Text | None
    message: Text
    hint: Text

    @classmethod
    def of(cls, problem: Problem) -> Self:
        return cls(line=problem.line, key=problem.key, message=problem.message, hint=problem.hint)


class ConfigRecord(Record):
    file: Text
    settings: list[SettingRecord]
    problems: list[ConfigProblemRecord] = Field(description="faults in the file")

    @classmethod
    def of(cls, file: str, settings: list[SettingRecord], problems: Iterable[Problem]) -> Self:
        return cls(file=file, settings=settings, problems=[ConfigProblemRecord.of(problem) for problem in problems])
