import inspect
import pickle

import pytest

from tique import errors

pytestmark = pytest.mark.engine_free

TREE = {
    "Rollback": "Exception",
    "Warning": "Exception",
    "Error": "Exception",
    "InterfaceError": "Error",
    "DatabaseError": "Error",
    "DataError": "DatabaseError",
    "OperationalError": "DatabaseError",
    "IntegrityError": "DatabaseError",
    "InternalError": "DatabaseError",
    "CardinalityViolation": "ProgrammingError",
    "WithCheckOptionViolation": "ProgrammingError",
    "ProgrammingError": "DatabaseError",
    "NotSupportedError": "DatabaseError",
    "NotNullViolation": "IntegrityError",
    "UniqueViolation": "IntegrityError",
    "CheckViolation": "IntegrityError",
    "ForeignKeyViolation": "IntegrityError",
    "RestrictViolation": "ForeignKeyViolation",
    "SerializationError": "OperationalError",
    "OutcomeUnknown": "OperationalError",
    "DatabaseLocked": "OperationalError",
}
ERRORS = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.Error)
]


def test_tree():
    classes = {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, BaseException)
    }
    assert {name: c.__base__.__name__ for name, c in classes.items()} == TREE


@pytest.mark.parametrize("error", ERRORS)
def test_every_database_error_has_a_sqlstate(error):
    state = error("gone wrong").sqlstate
    if issubclass(error, errors.DatabaseError):
        assert len(state) == 5
    else:
        assert state is None


@pytest.mark.parametrize(
    ("error", "sqlstate"),
    [
        (errors.SerializationError, "40001"),
        (errors.OutcomeUnknown, "08007"),
        (errors.UniqueViolation, "23505"),
        (errors.NotNullViolation, "23502"),
        (errors.CheckViolation, "23514"),
        (errors.ForeignKeyViolation, "23503"),
        (errors.RestrictViolation, "23001"),
        (errors.NotSupportedError, "0A000"),
    ],
)
def test_sqlstates_that_programs_match_on(error, sqlstate):
    assert error.sqlstate == sqlstate


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_keeps_every_attribute(error, protocol):
    keywords = {
        name: value
        for name, value in {
            "sqlstate": "53100",
            "table": "account",
            "key": (1, "one"),
            "winner": 17,
            "txid": 42,
        }.items()
        if name in inspect.signature(error).parameters
    }
    original = error("no space left", **keywords)
    original.add_note("while appending")

    copy = pickle.loads(pickle.dumps(original, protocol))

    assert type(copy) is error
    assert copy.args == ("no space left",)
    assert str(copy) == "no space left"
    assert {name: getattr(copy, name) for name in keywords} == keywords
    assert copy.__notes__ == ["while appending"]


def test_a_sqlstate_of_its_own_stays_with_the_one_error():
    assert errors.OperationalError("full", sqlstate="53100").sqlstate == "53100"
    assert errors.OperationalError("other").sqlstate == "58000"


def test_attributes_are_keyword_only():
    with pytest.raises(TypeError):
        errors.SerializationError("lost", tabel="account")
    conflict = errors.SerializationError("lost", "account")
    assert conflict.args == ("lost", "account")
    assert (conflict.table, conflict.key, conflict.winner) == (None, None, None)
