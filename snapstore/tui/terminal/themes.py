"""The themes for dark and light terminals, and the fallback without colour."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="snapstore-dark",
    dark=True,
    primary="#7aa2f7",
    secondary="#5cc8d7",
    accent="#c59cf0",
    success="#8fc97a",
    warning="#e0b268",
    error="#f28b82",
    foreground="#d6dae3",
    background="#14161b",
    surface="#1a1d24",
    panel="#22262f",
    variables={
        "lane": "#5c6578",
        "here": "#5cc8d7",
        "branch": "#8fc97a",
        "checkpoint": "#e0b268",
        "quiet": "#949cae",
        "selection": "#2c3444",
        "found": "#c59cf0",
    },
)

LIGHT = Theme(
    name="snapstore-light",
    dark=False,
    primary="#1f5fbf",
    secondary="#0b6e82",
    accent="#7a3fb0",
    success="#24702f",
    warning="#855a00",
    error="#b3261e",
    foreground="#23272f",
    background="#fbfbfa",
    surface="#f3f3f1",
    panel="#e8e9e7",
    variables={
        "lane": "#868d9b",
        "here": "#0b6e82",
        "branch": "#24702f",
        "checkpoint": "#855a00",
        "quiet": "#5d6471",
        "selection": "#dbe4f3",
        "found": "#7a3fb0",
    },
)

# The terminal's own colours, for themes that do not define our variables.
PLAIN = {
    "lane": "ansi_default",
    "here": "ansi_default",
    "branch": "ansi_default",
    "checkpoint": "ansi_default",
    "quiet": "ansi_default",
    "selection": "ansi_default",
    "found": "ansi_default",
}

THEMES = {"dark": DARK.name, "light": LIGHT.name, "none": "ansi-dark"}


def other(name: str) -> str:
    """Return the light theme for the dark one, and the dark theme for the light one."""
    return LIGHT.name if name == DARK.name else DARK.name
