"""MonetDB's settings that an application may change: the session's time zone and schema.

Variables of the session (``SET x = …``) are declared by statements that tique refuses.
"""

from __future__ import annotations

import re

from tique_backends.monetdb.catalog.paths import path_text
from tique_backends.settings import NONE, ROLES, SettingRules

RULES = SettingRules(
    engine="MonetDB",
    free=NONE,
    limited={
        "timezone": re.compile(r"interval '[+-]?\d+(?::\d+)?'"),
        # The server's own: tique takes it, or one that cuts statements into fewer pieces.
        "optimizer": re.compile("default_pipe"),
    },
    reasons={
        "timezone": "give an interval: SET TIME ZONE INTERVAL '+01:00' HOUR TO MINUTE",
        "role": ROLES,
        "current_role": ROLES,
        "session_authorization": ROLES,
        "current_user": ROLES,
        "optimizer": "tique chooses it for every statement",
        "names": "the server's encoding is UTF-8",
    },
    fixed=frozenset({"optimizer"}),
    paths=frozenset({"schema", "current_schema"}),
    path_text=path_text,
    kept={"role": "SELECT current_role"},
    aliases={"current_timezone": "timezone"},
)
