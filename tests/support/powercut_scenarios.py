"""Every command that a power cut interrupts."""

from __future__ import annotations

import test_keeping_kills
from move_lab import VERBS
from powercut_scenario import Scenario
from powercut_sharing import AddRemote, Clone, Export, ImportBundle, Pull, Push
from powercut_turns import (
    Begin,
    BeginAnother,
    Cancel,
    Configure,
    End,
    EndNamed,
    EndUnsynced,
    ImportConversation,
    Init,
    InitInCheckout,
    InitInLooseCheckout,
    Touch,
    moving,
    naming,
)
from powercut_upkeep import Connect, ConnectNew, Disconnect, Forget, keeping

SCENARIOS: dict[str, type[Scenario]] = {
    "init": Init,
    "init in a packed checkout": InitInCheckout,
    "init in a loose checkout": InitInLooseCheckout,
    "begin": Begin,
    "begin in a new session": BeginAnother,
    "touch": Touch,
    "end by scan": End,
    "end named": EndNamed,
    "end of unsynced files": EndUnsynced,
    "cancel": Cancel,
    "config set": Configure,
    **{verb: moving(verb) for verb in VERBS},
    "branch archive": naming(lambda names: names.archive("main-2")),
    "branch unarchive": naming(lambda names: names.unarchive("main-2"), lambda names: names.archive("main-2")),
    "branch promote": naming(lambda names: names.promote("main-2")),
    **{what: keeping(what) for what in test_keeping_kills.DOINGS},
    "forget": Forget,
    "push": Push,
    "pull": Pull,
    "clone": Clone,
    "export": Export,
    "import of a bundle": ImportBundle,
    "import of a conversation": ImportConversation,
    "remote add": AddRemote,
    "connect": Connect,
    "connect anew": ConnectNew,
    "disconnect": Disconnect,
}
