"""The configuration file as a record: every value checked, and what is wrong with it said all at once."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from snapstore.records.base import Record, Text
from snapstore.records.settings import SETTINGS

_FIELDS: dict[str, Any] = {
    setting.name: (
        Annotated[type(setting.default), BeforeValidator(setting.convert)],
        Field(default=setting.default, description=setting.help),
    )
    for setting in SETTINGS
}
Config: type[BaseModel] = create_model("Config", __config__=ConfigDict(extra="forbid"), **_FIELDS)


def faults(data: dict[str, Any]) -> dict[str, str]:
    """What is wrong, by key. A key that nobody knows is wrong with no words for it."""
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
    set: bool = Field(description="whether the file says so")
    help: str


class ProblemRecord(Record):
    line: int | None
    key: Text | None
    message: Text
    hint: Text


class ConfigRecord(Record):
    file: Text
    settings: list[SettingRecord]
    problems: list[ProblemRecord] = Field(description="what in the file could not be used")
