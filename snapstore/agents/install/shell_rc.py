"""Make the rc file text that turns each interactive command of a shell into a turn.

Each script sends two messages to `snapstore hook shell`, as words terminated by NUL. Before a command runs: `prompt`,
the shell, the turn, the folder and the command. After it: `stop`, the shell, the turn, the folder and the exit status.
The second message is sent in the background and may arrive late, so it names its turn.

In a folder without a store nothing is started, not even a subshell: the shell itself looks up the folder and each of
its parents in the index of roots (`store/root_index.py`). If the index is not conclusive, the shell runs the program.

Otherwise the integration is invisible: no output, no job, and `$?` is unchanged. In bash and zsh the sending code runs
in a subshell, so that none of the user's options and variables change.
"""

from __future__ import annotations

import sys

from snapstore.errors import SnapstoreError
from snapstore.store.root_index import COMPLETE, FOLDER, MARK

# Commands that must not be turns: our own (an undo would be refused while its own turn is open), and those that end the
# shell, after which nothing would report the end of the turn. Newlines count as `;`. ERE for bash and zsh, PCRE for
# fish: no backslashes.
_PASSED_OVER = (
    "((^|[;&|({`])[[:space:]]*"
    "((command|builtin|env|time|nohup|sudo|then|do|else|!|uvx|(uv|pipx)[[:space:]]+run"
    "|[^[:space:]]*python[0-9.]*[[:space:]]+-m|[A-Za-z_][A-Za-z0-9_]*=[^[:space:]]*)[[:space:]]+)*"
    "([^[:space:];&|(){}]*/)?snapstore([[:space:];&|)}<>`]|$))"
    "|(^[[:space:]]*(exit|logout|exec)([[:space:];]|$))"
)

# Sent by a separate sh. A background process of that sh is no job of the user's shell, so the shell prints nothing
# about it. The process holds none of the shell's descriptors (a terminal would stay open until it ends), and outlives
# the terminal.
_STOP = 'trap "" HUP; { printf "%s\\0" "$@" | @CLEAN@ snapstore hook shell; } </dev/null >/dev/null 2>&1 &'

# Where stores are unless SNAPSTORE_HOME is set, as in `home_folder` of `store/locations.py`.
_MAC = sys.platform == "darwin"
_DATA = "${HOME-}/Library/Application Support" if _MAC else "${XDG_DATA_HOME:-${HOME-}/.local/share}"
_FISH_DATA = "$HOME/Library/Application Support" if _MAC else "$HOME/.local/share"
_FISH_XDG = "" if _MAC else "$XDG_DATA_HOME"

# Shared by bash and zsh. `_snapstore_watched FOLDER` returns whether there may be a store for the folder. The second
# location matters if SNAPSTORE_HOME is not exported, because the program does not see the variable then.
_SAY = """\
  _snapstore_watched() {
    local home folder first=1
    [[ $1 == /* && -n ${HOME-} ]] || return 0
    for home in "${SNAPSTORE_HOME-}" "@DATA@/snapstore"; do
      [[ -n $home ]] || continue
      [[ $home == /* ]] || return 0
      if [[ -e $home/@COMPLETE@ ]]; then
        folder=$1
        while [[ ! -e $home/@FOLDER@$folder/@MARK@ ]]; do
          [[ -n $folder ]] || break
          folder=${folder%/*}
        done
        [[ ! -e $home/@FOLDER@$folder/@MARK@ ]] || return 0
      elif ((first)) && [[ -d $home ]]; then
        return 0
      fi
      first=0
    done
    return 1
  }

  _snapstore_begin() {
    local passed_over='@PASSED_OVER@'
    if [[ ${SNAPSTORE_SHELL-} == off || ${1//$'\\n'/;} =~ $passed_over ]] || ! _snapstore_there; then
      return 0
    fi
    { printf '%s\\0' prompt "$_snapstore_id" "$((_snapstore_turn + 1))" "$PWD" "$2" |
      @CLEAN@ command snapstore hook shell; } >/dev/null 2>&1
    printf '%s' "$((_snapstore_turn + 1))"
  }

  _snapstore_end() {
    if ((_snapstore_pending)); then
      _snapstore_turn=$_snapstore_pending _snapstore_pending=0
      command sh -c '@STOP@' sh stop "$_snapstore_id" "$_snapstore_turn" "$PWD" "$1"
    fi
  }
"""

# `_snapstore_here`: stores are found by real path. Bash knows the real path without a subshell unless $PWD contains a
# symbolic link.
#
# Without bash-preexec or ble.sh, the prompt PS0 marks the moment before a command: PS0 is expanded then, and only then.
# A command substitution in PS0 is a subshell, and the arithmetic around it brings its result back into the shell. No
# DEBUG trap is needed. The subshell is in PS0 only if there was a store at the previous prompt. The text of the command
# is the last entry of the history. A command that was not added to the history either repeats the last entry or matches
# HISTIGNORE; if HISTIGNORE is set, such a turn has no text. If the history is off, nothing is known and nothing is
# recorded.
BASH = f"""\
# snapstore: each command of this shell is a turn.
if [[ $- == *i* && ${{_snapstore_id-}} != "shell-$$-"* ]]; then
  _snapstore_id=shell-$$-$(date +%s)
  _snapstore_turn=0 _snapstore_pending=0 _snapstore_seen=0 _snapstore_none= _snapstore_ask= _snapstore_say=

  _snapstore_there() {{ type -P snapstore >/dev/null; }}

{_SAY}
  _snapstore_here() {{
    {{ local - && set +x; }} 2>/dev/null
    local folder=${{PWD-}} part=${{PWD-}}
    while [[ $part == /* ]]; do
      if [[ -L $part ]]; then
        folder=$(builtin pwd -P 2>/dev/null)
        break
      fi
      part=${{part%/*}}
    done
    _snapstore_watched "$folder"
  }}

  _snapstore_last() {{
    local text kept
    [[ -o history ]] || return 0
    text=$(HISTTIMEFORMAT='' builtin history 1)
    text=${{text#"${{text%%[0-9]*}}"}} # `  501  make`, with `*` for a space where the line was edited
    text=${{text#"${{text%%[!0-9]*}}"}}
    text=${{text:2}}
    kept=$text
    [[ $HISTCMD == "$_snapstore_seen" && -n ${{HISTIGNORE-}} ]] && kept=
    _snapstore_begin "$text" "$kept"
  }}

  _snapstore_preexec() {{
    if _snapstore_here; then
      _snapstore_pending=$(_snapstore_begin "$1" "$1")
      : "$((_snapstore_pending += 0))"
    fi
  }}

  _snapstore_precmd() {{
    local status=$?
    _snapstore_seen=$HISTCMD
    _snapstore_end "$status"
    _snapstore_say=
    if [[ -n $_snapstore_ask ]] && _snapstore_here; then _snapstore_say=$_snapstore_ask; fi
    return "$status"
  }}

  if [[ -n ${{BLE_VERSION-}} ]] && type -t blehook >/dev/null; then
    blehook PREEXEC+=_snapstore_preexec PRECMD+=_snapstore_precmd
  elif [[ -n ${{bash_preexec_imported-}}${{__bp_imported-}} ]]; then
    preexec_functions+=(_snapstore_preexec)
    precmd_functions+=(_snapstore_precmd)
  elif ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) && shopt -q promptvars; then
    _snapstore_ask='${{_snapstore_none:$((_snapstore_pending=$(_snapstore_last 2>/dev/null)+0)):0}}'
    # A shell around this one may have exported what it had.
    if [[ ${{PS0-}} != *_snapstore_say* ]]; then
      PS0=${{PS0-}}'${{_snapstore_say@P}}'
    fi
    if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
      # Each entry is given $? and PIPESTATUS anew. The first is the one that others put their own commands before.
      ((${{#PROMPT_COMMAND[@]}})) || PROMPT_COMMAND=('')
      PROMPT_COMMAND+=(_snapstore_precmd)
    elif [[ ${{PROMPT_COMMAND-}} != *_snapstore_precmd* ]]; then
      PROMPT_COMMAND=_snapstore_precmd${{PROMPT_COMMAND:+$'\\n'$PROMPT_COMMAND}}
    fi
  fi
fi
"""

# A command that the user keeps out of the history (with a leading space) is kept out of the record too: such a turn has
# no text.
ZSH = f"""\
# snapstore: each command of this shell is a turn.
if [[ -o interactive && ${{_snapstore_id-}} != "shell-$$-"* ]]; then
  typeset -g _snapstore_id='%D{{%s}}'
  _snapstore_id="shell-$$-${{(%)_snapstore_id}}"
  typeset -gi _snapstore_turn=0 _snapstore_pending=0

  _snapstore_there() {{ whence -p snapstore >/dev/null; }}

{_SAY}
  _snapstore_preexec() {{
    local kept=${{1:-$3}}
    [[ -o histignorespace && $kept == ' '* ]] && kept=
    emulate -L zsh
    _snapstore_watched "${{PWD:A}}" || return 0
    _snapstore_pending=$(_snapstore_begin "${{1:-$3}}" "$kept" 2>/dev/null)
  }}

  _snapstore_precmd() {{
    local ended=$?
    emulate -L zsh
    _snapstore_end "$ended"
  }}

  autoload -Uz add-zsh-hook
  add-zsh-hook preexec _snapstore_preexec
  add-zsh-hook precmd _snapstore_precmd
fi
"""

FISH = """\
# snapstore: each command of this shell is a turn.
if status is-interactive; and not string match -q "shell-$fish_pid-*" -- "$_snapstore_id"
    set -g _snapstore_id shell-$fish_pid-(date +%s)
    set -g _snapstore_turn 0
    set -g _snapstore_pending 0

    function _snapstore_here
        set -l folder (pwd -P)
        set -l data "@FISH_XDG@"
        set -l first 1
        if test (count $folder) != 1; or test -z "$HOME"
            return 0
        end
        test -n "$data"; or set data "@FISH_DATA@"
        for home in "$SNAPSTORE_HOME" "$data/snapstore"
            test -n "$home"; or continue
            string match -q '/*' -- "$home"; or return 0
            if test -e "$home/@COMPLETE@"
                set -l at "$folder"
                while not test -e "$home/@FOLDER@$at/@MARK@"
                    test -n "$at"; or break
                    set at (string replace -r '/[^/]*$' '' -- "$at")
                end
                test -e "$home/@FOLDER@$at/@MARK@"; and return 0
            else if test $first = 1 -a -d "$home"
                return 0
            end
            set first 0
        end
        return 1
    end

    function _snapstore_preexec --on-event fish_preexec
        set -g _snapstore_pending 0
        if not _snapstore_here
            return
        end
        if test "$SNAPSTORE_SHELL" = off; or set -q fish_private_mode; or not command -q snapstore
            return
        end
        if not string match -qr '[^[:space:]]' -- "$argv[1]" # fish tells of blank lines too
            return
        end
        if string replace -a \\n ';' -- "$argv[1]" | string match -qr '@PASSED_OVER@'
            return
        end
        set -g _snapstore_turn (math $_snapstore_turn + 1)
        set -g _snapstore_pending $_snapstore_turn
        set -l kept "$argv[1]"
        string match -q ' *' -- "$kept"; and set kept ''
        printf '%s\\0' prompt $_snapstore_id $_snapstore_turn "$PWD" "$kept" |
            @CLEAN@ command snapstore hook shell >/dev/null 2>&1
    end

    function _snapstore_postexec --on-event fish_postexec
        set -l ended $status
        if test $_snapstore_pending != 0
            set -g _snapstore_pending 0
            command sh -c '@STOP@' sh stop $_snapstore_id $_snapstore_turn "$PWD" $ended
        end
    end
end
"""

_VALUES = {
    "@PASSED_OVER@": _PASSED_OVER,
    "@STOP@": _STOP,
    "@CLEAN@": "PYTHONHOME= PYTHONPATH=",  # our interpreter must not import the user's own code
    "@DATA@": _DATA,
    "@FISH_DATA@": _FISH_DATA,
    "@FISH_XDG@": _FISH_XDG,
    "@COMPLETE@": COMPLETE,
    "@FOLDER@": FOLDER,
    "@MARK@": MARK,
}


def _filled(text: str) -> str:
    for name, value in _VALUES.items():
        text = text.replace(name, value)
    return text


SCRIPTS = {shell: _filled(text) for shell, text in (("bash", BASH), ("zsh", ZSH), ("fish", FISH))}


def prepare() -> None:
    """Create the index that the scripts use.

    Without the index the scripts run the program for each command.
    """
    from snapstore.store.locations import home_folder
    from snapstore.timeline.record.create_store import index_roots

    try:
        index_roots(home_folder())
    except SnapstoreError:
        pass  # an invalid home folder: the hooks will report it
