"""Whether a CHECK depends on nothing but the row, by DuckDB's own binder.

A row is checked when it is written, and storage checks it again when it is folded,
perhaps in another session, an hour or a release later. The second answer must be the
first one (P4). DuckDB's catalog is not reliable: it calls ``current_localtimestamp()``
consistent, and ``current_setting()`` too in 1.5. So a function must be on the list
below, and belong to DuckDB. Parts that the text does not show (macros, conversions,
functions behind operators) are in the bound expression, which DuckDB gives as JSON.

Values with a time zone may be compared: they are instants. Their conversions and their
parts depend on the session's ``TimeZone``.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tique_backends.catalog.words import SYNTAX
from tique_backends.duckdb.values.literals import converted
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import quote
from tique_rewriter.plans.plan import CONVERSION, MOMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_OPERATORS = """
+ - * / // % ** ^ & | ~ << >> || @ ! !~~ !~~* ~~ ~~* ~~~ ^@ && @> <@ -> ->> <->
= != <> < > <= >=
"""

_FUNCTIONS = """
abs acos acosh add array_append array_concat array_contains array_cosine_distance
array_cross_product array_distance array_extract array_filter array_has array_has_all
array_has_any array_indexof array_inner_product array_intersect array_length
array_pop_back array_pop_front array_position array_prepend array_push_back
array_push_front array_resize array_select array_slice array_to_string array_transform
array_value array_where array_zip ascii asin asinh atan atan2 atanh bar base64 bin
bit_count bit_length bit_position bitstring cardinality cbrt ceil ceiling century
char_length character_length chr coalesce concat concat_ws contains cos cosh cot
damerau_levenshtein date_add date_diff date_part date_sub date_trunc datediff datepart
datesub datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade decode
degrees divide editdist3 element_at encode ends_with enum_code enum_first enum_last
enum_range enum_range_boundary epoch epoch_ms epoch_ns epoch_us era even exp factorial
fdiv flatten floor fmod format format_bytes from_base64 from_binary from_hex gamma gcd
generate_series get_bit greatest greatest_common_divisor hamming hex hour if ilike_escape
instr isfinite isinf isnan isodow isoyear jaccard jaro_similarity jaro_winkler_similarity
json_array json_array_length json_contains json_exists json_extract json_extract_path
json_extract_path_text json_extract_string json_keys json_object json_quote json_type
json_valid json_value julian last_day lcase lcm least least_common_multiple left
left_grapheme len length length_grapheme levenshtein lgamma like_escape list_append
list_cat list_concat list_contains list_cosine_distance list_cosine_similarity
list_count list_distance list_dot_product list_element list_extract list_filter
list_first list_has list_has_all list_has_any list_indexof list_inner_product
list_intersect list_last list_max list_min list_pack list_position list_prepend
list_product list_resize list_select list_slice list_sum list_transform list_value
list_where list_zip ln log log10 log2 lower lpad ltrim make_date make_time
make_timestamp make_timestamp_ms make_timestamp_ns map map_concat map_contains
map_contains_entry map_contains_value map_entries map_extract map_extract_value
map_from_entries map_keys map_values md5 microsecond millennium millisecond minute
mismatches mod month monthname multiply nanosecond nextafter normalized_interval
not_ilike_escape not_like_escape nullif octet_length ord overlay parse_dirname
parse_dirpath parse_filename parse_path pi position pow power prefix printf quarter
radians range regexp_escape regexp_extract regexp_extract_all regexp_full_match
regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right
right_grapheme round round_even roundbankers row rpad rtrim second set_bit sha1 sha256
sign signbit sin sinh split split_part sqrt starts_with str_split str_split_regex
strftime string_split string_split_regex string_to_array strip_accents strlen strpos
strptime struct_concat struct_contains struct_extract struct_extract_at struct_has
struct_indexof struct_insert struct_pack struct_position substr substring
substring_grapheme subtract suffix tan tanh time_bucket to_base to_base64 to_binary
to_centuries to_days to_decades to_hex to_hours to_microseconds to_millennia
to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks
to_years translate trim trunc try_strptime ucase unbin unhex unicode union_extract
union_tag union_value upper url_decode url_encode uuid_extract_version week weekday
weekofyear xor year yearweek
"""
"""Not on it: clocks, chance, sequences, sessions, settings, catalogs and files; sorts
by a setting; functions that a release may compute in another way (hashes, ICU)."""

_INSTANTS = """
array_extract epoch epoch_ms epoch_ns epoch_us greatest isfinite isinf least
list_contains list_extract list_value row struct_extract struct_pack to_timestamp
"""
"""Functions that treat a value with a time zone as an instant."""

_AGGREGATES = """
any_value arg_max arg_max_null arg_min arg_min_null argmax argmin array_agg avg bit_and
bit_or bit_xor bool_and bool_or corr count count_if count_star countif covar_pop
covar_samp entropy favg first fsum geometric_mean geomean group_concat histogram
kahan_sum kurtosis kurtosis_pop last list listagg mad max max_by mean median min min_by
mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count
regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev
stddev_pop stddev_samp string_agg sum sum_no_overflow sumkahan var_pop var_samp variance
row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value
last_value nth_value fill grouping grouping_id
"""

KNOWN = frozenset((_OPERATORS + _FUNCTIONS).split())
OF_ROWS = KNOWN | SYNTAX | frozenset(_AGGREGATES.split()) | {CONVERSION, MOMENT}
"""Words before brackets in a query that gives the same in any session and at any time."""

_OF_INSTANTS = frozenset(_INSTANTS.split())
_WITH_OFFSET = re.compile(r".*:\d\d(?:\.\d+)? ?(?:Z|UTC|[+-]\d\d(?::?\d\d)?)", re.S)

_OTHERS = "SELECT function_name FROM duckdb_functions() WHERE NOT internal"
"""The application's own functions and macros, which may stand before DuckDB's."""


def check_definition(session: Session, table: Table) -> None:
    """Refuse a table whose constraints or indexes depend on more than its rows.

    Raises
    ------
    EngineError
        UNSUPPORTED, naming the constraint and the function.
    """
    for column in table.generated:
        found = _impurity(session, table, column.expression)
        if found is not None:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"table {table.qualified_name}: the generated column {column.name} "
                f"{found}; it must depend on the row alone, because it is computed "
                "whenever the row is read",
            )
    for check in table.checks:
        found = _impurity(session, table, check.expression)
        if found is not None:
            # DuckDB forgets the application's name for the constraint.
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"table {table.qualified_name}: CHECK {_bracketed(check.expression)} "
                f"{found}; it must depend on the row alone, because storage checks it "
                "again long after the commit",
            )
    for expression in table.indexed:
        found = _impurity(session, table, expression)
        if found is not None:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"table {table.qualified_name}: an index on {expression} {found}; it must "
                "depend on the row alone, because it takes the row long after the commit",
            )


def _bracketed(expression: str) -> str:
    return expression if expression.startswith("(") else f"({expression})"


def _impurity(session: Session, table: Table, expression: str) -> str | None:
    """Return an expression's dependency other than the row; None if there is none."""
    text = f"SELECT ({expression})"
    parsed = asked(session, "json_serialize_sql", text)
    if any(node.get("class") == "SUBQUERY" for node in nodes(parsed)):
        return "has a subquery"
    names = [
        str(node["function_name"]).lower()
        for node in nodes(parsed)
        if node.get("class") == "FUNCTION"
    ]
    every = [(column.name, column.type) for column in table.columns]
    every += [(column.name, column.type) for column in table.generated]
    columns = ", ".join(
        f"{converted('NULL', type_name)} AS {quote(name)}" for name, type_name in every
    )
    # Under another name, as in a staging table: a column qualified by the table's own
    # would not be found there.
    row = f" FROM (SELECT {columns}) AS _row"
    plan = asked(session, "json_serialize_plan", text + row)
    if plan["error"]:
        return f"cannot be examined ({plan['error_message']})"
    # The plan's nodes below this one produce the row.
    bound = list(nodes(plan["plans"][0]["expressions"]))
    for name in [*names, *filter(None, map(_function, bound))]:
        if name not in KNOWN:
            return f"calls {name}()"
    for (other,) in session.execute(_OTHERS).fetch_all() if names else ():
        if other.lower() in names:
            return f"calls {other}(), which is not DuckDB's own"
    for node in bound:
        found = _zoned(node)
        if found is not None:
            return f"{found}, which depends on the session's time zone"
    return None


def asked(session: Session, function: str, text: str) -> Any:
    """What a function of DuckDB's that gives JSON says of a statement."""
    ((answer,),) = session.execute(f"SELECT {function}($1)", [text]).fetch_all()
    # 2.0 gives an empty text for nodes that it cannot write, such as a bit constant.
    return json.loads(answer or '{"error": true, "error_message": "no plan"}')


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from nodes(part)


def _function(node: dict[str, Any]) -> str | None:
    """The name of the function that a bound expression calls; None: it calls none."""
    if (
        node.get("expression_class") != "BOUND_FUNCTION"
        or node.get("type") != "BOUND_FUNCTION"
    ):
        return None
    # 1.5 has a name, 2.0 a path.
    return str(node["name"] if "name" in node else node["qname"]["path"][-1]).lower()


def _zoned(node: dict[str, Any]) -> str | None:
    """How a bound expression uses a value with a time zone as more than an instant."""
    operands = node.get("children") or [node.get("child")]
    sources = [_type(operand) for operand in operands if operand]
    target = json.dumps(node.get("return_type"))
    if not any("TIME ZONE" in type_ for type_ in (*sources, target)):
        return None
    if node.get("type") == "OPERATOR_CAST":
        if sources == [target] or _is_instant(operands[0]):
            return None
        return "converts a value with a time zone"
    name = _function(node)
    if name is None or name in _OF_INSTANTS:
        return None
    return f"calls {name}() with a time zone"


def _type(node: dict[str, Any]) -> str:
    if "value" in node:
        return json.dumps(node["value"]["type"])
    return json.dumps(node.get("return_type"))


def _is_instant(node: dict[str, Any]) -> bool:
    """Whether a constant says by itself which instant it is."""
    constant = node.get("value")
    if constant is None:
        return False
    return bool(
        constant["is_null"] or _WITH_OFFSET.fullmatch(str(constant.get("value")))
    )
