"""Values at the ends of their types, on each engine: literals for round trips.

They are not among :mod:`tests.differential.kinds`, whose equal values are the same to
the last digit: here 0.0 stands beside -0.0, and 1 month beside 30 days.
"""

from __future__ import annotations

from tests.differential.kinds import KINDS, Kind

_UNICODE = (
    "''",
    "' '",
    "'NULL'",
    "'null'",
    "'it''s'",
    "'%s $1 ? :a {} \"q\" `b`'",
    "'a\\b\\n\\x41'",
    "'e\u0301'",
    "'\u00e9'",
    "'\U0001f469\u200d\U0001f680'",
    "'\u202eabc\ufeff'",
    "'\ufffd\uffff\U0010ffff'",
    "'a\tb\nc\rd'",
    "'\x01\x7f'",
)
_LONG = "'" + "\u00e9x" * 3000 + "'"


def _cast(name, *texts):
    return tuple("CAST('{}' AS {})".format(t.replace("'", "''"), name) for t in texts)


_INTEGERS = {
    "SMALLINT": ("-32768", "32767"),
    "INTEGER": ("-2147483648", "2147483647"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807", "9007199254740993"),
}
_FLOATS = {
    "REAL": ("-0.0", "0.0", "3.4028235e38", "1e-45", "0.1", "16777217"),
    "DOUBLE": (
        *("-0.0", "0.0", "1.7976931348623157e308", "5e-324"),
        *("2.2250738585072014e-308", "0.1", "9007199254740993"),
    ),
}
_NO_NUMBERS = ("nan", "inf", "-inf")
_MOMENTS = (
    *("1969-12-31 23:59:59.999999", "2024-02-29 23:59:59.999999"),
    *("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
)
_DECIMALS = {
    "DECIMAL(38,0)": ("9" * 38, "-" + "9" * 38, "0"),
    "DECIMAL(38,38)": ("0." + "9" * 38, "-0." + "0" * 37 + "1"),
    "DECIMAL(18,9)": ("999999999.999999999", "-0.000000001"),
    "DECIMAL(4,2)": ("99.99", "-0.01", "0.00"),
}

_DUCKDB = {
    **{name: _cast(name, *texts) for name, texts in _INTEGERS.items()},
    **{name: _cast(name, *texts) for name, texts in _DECIMALS.items()},
    **{name: _cast(name, *texts, *_NO_NUMBERS) for name, texts in _FLOATS.items()},
    "TINYINT": ("-128", "127"),
    "USMALLINT": ("0", "65535"),
    "UINTEGER": ("0", "4294967295"),
    "HUGEINT": (str(-(2**127)), str(2**127 - 1)),
    "UHUGEINT": ("0", str(2**128 - 1)),
    "BIGNUM": _cast("BIGNUM", "0", "-1", str(10**60), str(-(2**200))),
    "VARCHAR": (*_UNICODE, _LONG, "'a' || chr(0) || 'b'"),
    "BLOB": _cast("BLOB", "", "\\x00", "\\x27\\x22\\x5C\\xFF", "\\xC3\\x28"),
    "DATE": _cast(
        "DATE",
        "infinity",
        "-infinity",
        "0044-03-15 (BC)",
        "5881580-07-10",
        "1582-10-10",
    ),
    "TIME": _cast("TIME", "00:00:00.000001", "24:00:00"),
    "TIMETZ": _cast(
        "TIMETZ", "00:00:00+15:59:59", "24:00:00-15:59:59", "12:00:00.5+00"
    ),
    "TIME_NS": _cast("TIME_NS", "00:00:00.000000001", "24:00:00"),
    "TIMESTAMP": _cast(
        "TIMESTAMP", *_MOMENTS, "infinity", "-infinity", "0044-03-15 (BC) 12:00:00"
    ),
    "TIMESTAMP_S": _cast("TIMESTAMP_S", "0001-01-01 00:00:00", "infinity"),
    "TIMESTAMP_MS": _cast("TIMESTAMP_MS", "1969-12-31 23:59:59.999", "-infinity"),
    "TIMESTAMP_NS": _cast(
        "TIMESTAMP_NS", "1969-12-31 23:59:59.999999999", "2262-04-11 23:47:16.854775806"
    ),
    "TIMESTAMPTZ": _cast("TIMESTAMPTZ", *_MOMENTS[:2], "infinity", "-infinity"),
    "INTERVAL": (
        *_cast("INTERVAL", "30 days", "720 hours", "1 month", "12 months", "0 days"),
        "INTERVAL (-1) MONTH + INTERVAL 1 DAY - INTERVAL 1 MICROSECOND",
        "INTERVAL 178000 YEAR",
    ),
    "UUID": _cast("UUID", "00000000-0000-0000-0000-000000000000"),
    "JSON": _cast(
        "JSON",
        '{"b" : 1, "a":1.50, "b":2}',
        "1e400",
        '"\\u00e9\\ud83d\\ude80"',
        " [ ] ",
    ),
    "BIT": _cast("BIT", "0", "1" * 100, "0" * 7),
    "VARCHAR[]": (
        "['', 'NULL', NULL, 'a,b', '[x]', ' y ', 'it''s', 'a\\b', '\"']",
        "[]",
        "[NULL]",
    ),
    "DOUBLE[]": ("['-0.0'::DOUBLE, 'nan'::DOUBLE, '-inf'::DOUBLE, NULL]",),
    "INTEGER[][]": ("[[1], NULL, []]",),
    "VARCHAR[2]": ("['a, b', NULL]",),
    "STRUCT(a INTEGER, b VARCHAR)": ("{'a': 1, 'b': 'x, ''c'': {2}'}",),
    'STRUCT("a b" BLOB, "%s" STRUCT(t TIMESTAMPTZ)[])': (
        "{'a b': '\\x00'::BLOB, '%s': [{'t': '2024-01-01 00:00:00+00'::TIMESTAMPTZ}]}",
    ),
    "MAP(VARCHAR, INTEGER)": ("MAP {'k=1, ': 1, '': NULL, '{}': 2}",),
    "MAP(INTEGER, VARCHAR[])": ("MAP {1: ['a', NULL], 2: NULL}",),
    "UNION(n INTEGER, t VARCHAR)": (
        "union_value(n := NULL::INTEGER)",
        "union_value(t := NULL::VARCHAR)",
        "union_value(t := '')",
    ),
}

_POSTGRESQL = {
    **{name: _cast(name, *texts) for name, texts in _INTEGERS.items()},
    **{name: _cast(name, *texts) for name, texts in _DECIMALS.items()},
    "REAL": _cast("REAL", *_FLOATS["REAL"], *_NO_NUMBERS),
    "DOUBLE PRECISION": _cast("DOUBLE PRECISION", *_FLOATS["DOUBLE"], *_NO_NUMBERS),
    "NUMERIC": _cast("NUMERIC", "0", "0.000", "1" * 200, "-1e-200", "-Infinity"),
    "NUMERIC(5,-2)": ("1300", "-9999900"),
    "NUMERIC(3,5)": _cast("NUMERIC(3,5)", "0.00123"),
    "TEXT": (*(u for u in _UNICODE), _LONG),
    "VARCHAR": _UNICODE,
    "CHAR(4)": ("'a'", "''", "'\u00e9\U0001f680'"),
    'pg_catalog."char"': ("'a'", "''"),
    "BYTEA": _cast("BYTEA", "\\x", "\\x00", "\\x27225cff"),
    "DATE": _cast("DATE", "infinity", "-infinity", "0044-03-15 BC", "5874897-12-31"),
    "TIME": _cast("TIME", "24:00:00", "00:00:00.000001"),
    "TIME(3)": _cast("TIME(3)", "23:59:59.999", "12:00:00.1"),
    "TIMETZ": _cast("TIMETZ", "24:00:00-15:59", "00:00:00+15:59"),
    "TIMETZ(0)": _cast("TIMETZ(0)", "12:00:00+01"),
    **{
        f"TIMESTAMP({n})": _cast(f"TIMESTAMP({n})", *_MOMENTS[:2], "-infinity")
        for n in (0, 3, 6)
    },
    "TIMESTAMP": _cast("TIMESTAMP", *_MOMENTS, "infinity", "0044-03-15 12:00:00 BC"),
    "TIMESTAMPTZ": _cast("TIMESTAMPTZ", *_MOMENTS[:2], "infinity", "-infinity"),
    "TIMESTAMPTZ(3)": _cast("TIMESTAMPTZ(3)", _MOMENTS[0], "infinity"),
    "INTERVAL": _cast(
        "INTERVAL", "0", "-1 month 1 day -0.000001 seconds", "178000000 years"
    ),
    "INTERVAL DAY TO SECOND(3)": _cast("INTERVAL", "1 day 00:00:01.5"),
    "INTERVAL(0)": _cast("INTERVAL(0)", "1 month 2 seconds"),
    "UUID": _cast("UUID", "00000000-0000-0000-0000-000000000000"),
    "JSON": _cast("JSON", '{"b" : 1, "b":2}', "1e400", '"\\u00e9"', " [ ] ", "null"),
    "JSONB": _cast("JSONB", "1e400", '"\\u00e9\\ud83d\\ude80"', '{"b": {}, "a": []}'),
    "JSONPATH": _cast("JSONPATH", "$.a[*] ? (@ > 1)"),
    "TEXT[]": _cast(
        "TEXT[]", '{"","NULL",NULL,"a,b","{x}"," y ","it\'s","a\\\\b","\\""}'
    ),
    "INTEGER[]": _cast("INTEGER[]", "[0:1]={7,8}", "{{1,2},{3,4}}"),
    "VARCHAR(3)[]": _cast("VARCHAR(3)[]", "{abc,NULL}"),
    "JSONB[]": _cast("JSONB[]", '{"{\\"a\\": 1.50}",NULL}'),
    "DOUBLE PRECISION[]": _cast("DOUBLE PRECISION[]", "{-0,nan,-inf,NULL}"),
    "NUMRANGE": _cast("NUMRANGE", "[1.50,2)", "(,)", "empty"),
    "TSRANGE": _cast("TSRANGE", "[2024-01-01,infinity)"),
    "DATERANGE": _cast("DATERANGE", "[2024-01-01,2024-01-03]"),
    "TSMULTIRANGE": _cast("TSMULTIRANGE", "{[2024-01-01,2024-01-02)}"),
    "MONEY": _cast("MONEY", "92233720368547758.07", "-0.01"),
    "XML": _cast("XML", '<a b="\'&amp;">\u00e9</a>', "x"),
    "MACADDR8": _cast("MACADDR8", "08:00:2b:01:02:03:04:05"),
    "BIT(70)": _cast("BIT(70)", "1" * 70),
    "VARBIT": _cast("VARBIT", "", "1" * 100),
    "BIT VARYING(8)": _cast("BIT VARYING(8)", "", "0101"),
    "LSEG": _cast("LSEG", "((0,-0),(1e300,NaN))"),
    "BOX": _cast("BOX", "(2,2),(0,0)"),
    "PATH": _cast("PATH", "((0,0),(1,1))", "[(0,0)]"),
    "POLYGON": _cast("POLYGON", "((0,0),(1,1),(0,1))"),
    "CIRCLE": _cast("CIRCLE", "<(0,0),1.5>"),
    "TSQUERY": _cast("TSQUERY", "'a' & !'b':*A"),
    "PG_LSN": _cast("PG_LSN", "16/B374D848"),
    "OID": _cast("OID", "4294967295"),
    "NAME": ("'a'", "'it''s'"),
    "colour[]": _cast("colour[]", '{red,NULL,"it\'s"}'),
    "CITEXT": _cast("CITEXT", "A", "a", "\u00c9"),
}

_MONETDB = {
    **{
        name: tuple(t for t in texts if not t.startswith("-"))
        for name, texts in _INTEGERS.items()
    },
    "HUGEINT": (str(1 - 2**127), str(2**127 - 1)),
    **{name: _cast(name, *texts) for name, texts in _DECIMALS.items()},
    # MonetDB reads 0 in -0.0, and makes it in some statements of a negation.
    "REAL": _cast("REAL", "3.4028234e38", "1e-45", "0.1", "16777217"),
    # 0.0 beside -0.0 in one statement is -0.0, and a plan cuts characters in two.
    "DOUBLE": _cast("DOUBLE", "-0.0", *_FLOATS["DOUBLE"][2:]),
    "CLOB": (*(u.replace("\\", "\\\\") for u in _UNICODE), "'" + "x" * 9000 + "'"),
    "CHAR(4)": ("'a'", "''", "'ab  '"),
    "BLOB": _cast("BLOB", "", "00", "27225CFF"),
    "DATE": _cast(
        "DATE", "0001-01-01", "9999-12-31", "1582-10-10", "20000-02-29", "-44-03-15"
    ),
    # MonetDB rounds the last ones up to 24:00:00, but for TIME(6).
    "TIME": _cast("TIME", "23:59:59", "23:59:59.9"),
    **{
        f"TIME({n})": _cast(
            f"TIME({n})",
            "23:59:59.999999"[: 9 + n],
            "00:00:00.000001",
            "23:59:59.999999",
        )
        for n in (1, 3, 6)
    },
    "TIME WITH TIME ZONE": _cast(
        "TIME WITH TIME ZONE", "12:00:00+01:00", "00:00:00+12:59", "23:59:59-11:00"
    ),
    "TIME(6) WITH TIME ZONE": _cast("TIME(6) WITH TIME ZONE", "12:00:00.000001+01:00"),
    **{
        f"TIMESTAMP({n})": _cast(
            f"TIMESTAMP({n})",
            _MOMENTS[0][: 20 + n],
            _MOMENTS[2],
            "20000-02-29 00:00:00.9",
            "-44-03-15 12:00:00",
            "2024-02-29 23:59:59.999999",
        )
        for n in (1, 3)
    },
    "TIMESTAMP": _cast("TIMESTAMP", *_MOMENTS, "20000-02-29 00:00:00.000001"),
    "TIMESTAMP WITH TIME ZONE": _cast(
        "TIMESTAMP WITH TIME ZONE",
        "0001-01-01 00:00:00+01:00",
        "9999-12-31 23:00-02:00",
    ),
    "TIMESTAMP(3) WITH TIME ZONE": _cast(
        "TIMESTAMP(3) WITH TIME ZONE",
        "2024-01-01 00:00:00.123+01:00",
        "20000-03-01 00:00:00+01:00",
        "-44-01-01 00:00:00+01:00",
    ),
    "INTERVAL YEAR": ("INTERVAL '3' YEAR", "INTERVAL '-5' MONTH"),
    "INTERVAL YEAR TO MONTH": ("INTERVAL '3-2' YEAR TO MONTH",),
    "INTERVAL MONTH": ("INTERVAL '2147483647' MONTH", "INTERVAL '0' MONTH"),
    "INTERVAL DAY": (
        "INTERVAL '1' DAY + INTERVAL '-0.001' SECOND",
        "INTERVAL '100000000000' DAY",
    ),
    "INTERVAL DAY TO SECOND": ("INTERVAL '1 02:03:04' DAY TO SECOND",),
    "INTERVAL HOUR": ("INTERVAL '25' HOUR", "INTERVAL '0.5' SECOND"),
    "INTERVAL MINUTE": ("INTERVAL '-61' MINUTE",),
    "INTERVAL SECOND": (
        "INTERVAL '1.5' SECOND",
        "INTERVAL '0' SECOND",
        "INTERVAL '-0.001' SECOND",
        "INTERVAL '9223372036854775.807' SECOND",
    ),
    "INET": _cast("INET", "10.0.0.1/8", "0.0.0.0", "255.255.255.255"),
    "URL": _cast("URL", "HTTP://\u00e9/%20", "a b", 'it\'s "q"|', ""),
    "URL(20)": ("'http://a.example/'",),
    "JSON": _cast(
        "JSON", '{"b":1,"b":2}', '"\u00e9"', "[]", "null", "1e400", ' { "a" : 1.50 } '
    ),
    "BLOB(4)": _cast("BLOB", "", "27225CFF"),
}

_MORE = {"duckdb": _DUCKDB, "postgresql": _POSTGRESQL, "monetdb": _MONETDB}
SETUP = {
    "postgresql": ("CREATE EXTENSION IF NOT EXISTS citext",),
    "duckdb": (),
    "monetdb": (),
}
_NOT_KEYS = ("[", "STRUCT", "MAP", "UNION", "LSEG", "BOX", "PATH", "POLYGON", "CIRCLE")
_NOT_KEYS += ("JSON", "XML", "POINT")
_NO_EQUALITY = ("JSONPATH", "BOX", "PATH", "POLYGON", "LSEG", "CIRCLE")


def _merged(engine):
    kinds = {kind.name: kind for kind in KINDS[engine]}
    for name, literals in _MORE[engine].items():
        kind = kinds.get(name)
        if kind is None:
            keyable = not any(part in name for part in _NOT_KEYS)
            kind = Kind(name, "other", (), False, keyable, name not in _NO_EQUALITY)
        kinds[name] = Kind(
            name,
            kind.family,
            (*kind.literals, *literals),
            False,
            kind.keyable and kind.has_equality,
            kind.has_equality,
        )
    return kinds


EXTREMES = {engine: _merged(engine) for engine in KINDS}
"""All types of each engine by name, with the literals of both modules."""
