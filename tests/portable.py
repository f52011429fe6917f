"""SQL that all engines understand, in place of functions that differ among them."""


def numbers(count: int) -> str:
    """A table of the integers below ``count`` (a million at the most), in ``number``."""
    digits = ", ".join(f"({digit})" for digit in range(10))
    places = len(str(max(count - 1, 0)))
    total = " + ".join(f"{10**place} * d{place}.d" for place in range(places))
    tables = ", ".join(f"(VALUES {digits}) AS d{place}(d)" for place in range(places))
    return (
        f"(SELECT CAST({total} AS INTEGER) AS number FROM {tables} "
        f"WHERE {total} < {count}) AS numbers"
    )
