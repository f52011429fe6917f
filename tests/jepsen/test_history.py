"""A history is the same in every file that holds it, and any other file is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen import history
from jepsen.history import MalformedHistory, Operation
from tests.jepsen.test_list_append import HISTORIES, INDEX

pytestmark = pytest.mark.engine_free

SUFFIXES = [
    f"{plain}{packed}"
    for plain in (".edn", ".json", ".jsonl")
    for packed in ("", ".gz")
]

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(-1e9, 1e9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.integers() | st.sampled_from(["to", "a b"]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", [entry["name"] for entry in INDEX][::6])
def test_written_is_read(tmp_path, name, suffix):
    operations = history.read(HISTORIES / f"{name}.edn")
    history.write(tmp_path / f"copy{suffix}", operations)
    assert history.read(tmp_path / f"copy{suffix}") == operations


@given(value=plain_values, error=st.none() | st.text())
def test_value_of_another_workload_is_read_as_written(tmp_path_factory, value, error):
    folder = tmp_path_factory.mktemp("history")
    operations = [Operation(3, 4, 5, "info", "read", value, error)]
    for suffix in SUFFIXES[::2]:
        history.write(folder / f"copy{suffix}", operations)
        assert history.read(folder / f"copy{suffix}") == operations


def test_edn_and_json_say_the_same():
    assert history.read(HISTORIES / "G-single.edn") == history.read(
        HISTORIES / "G-single.json"
    )


def test_edn_has_one_operation_per_line(tmp_path):
    path = tmp_path / "history.edn"
    value = (("append", 1, 2), ("r", "k", (1, 2)), ("r", 3, None))
    history.write(path, [Operation(0, 7, 1, "info", "txn", value, 'lost "it"')])
    assert path.read_text() == (
        "{:index 0, :time 7, :process 1, :type :info, :f :txn, "
        ':value [[:append 1 2] [:r "k" [1 2]] [:r 3 nil]], :error "lost \\"it\\""}\n'
    )


def test_records_and_the_nemesis_of_jepsen_are_understood(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(
        "; a comment\n"
        "#jepsen.history.Op{:index 0, :time 0, :type :info, :process :nemesis, :f :kill}\n"
        "#jepsen.history.Op{:index 1, :time 5, :type :invoke, :process 0, :f :txn,\n"
        "  :value [[:r 1 nil]]}\n"
    )
    assert history.read(path) == [
        Operation(1, 5, 0, "invoke", "txn", (("r", 1, None),))
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[\n[", "line 2: the file ends within a \\["),
        ("{:a}", "line 1: a map has a key without a value"),
        ("\n]", "line 2: ] closes nothing"),
        ("[1]", "line 1: 1 is not a map"),
        ("5", "line 1: 5 is not a map"),
        ("[] []", "line 1: \\[ after the end"),
        ('{:a "x}', "line 1: '\"' is not understood"),
        ("#{1}", "line 1: '#' is not understood"),
        ("{:index 0}", "line 1: time must be int, is None"),
        (
            "{:index 0 :time 0 :process 0 :type :done :f :txn :value []}",
            "line 1: type must be invoke, ok, fail or info, is 'done'",
        ),
        (
            "{:index 0 :time 0 :process 0 :type :ok :f :txn :value [[:r 1]]}",
            "line 1: a txn's value is a list",
        ),
        (
            "{:index 0 :time 0 :process 0 :type :ok :f :txn :value [[:r 1 [[2]]]]}",
            "line 1: a txn's value is a list",
        ),
    ],
)
def test_what_is_no_history_is_refused(tmp_path, text, says):
    path = tmp_path / "history.edn"
    path.write_text(text)
    with pytest.raises(MalformedHistory, match=f"history.edn, {says}"):
        history.read(path)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "{}", "a.json: expected an array"),
        ("a.json", "[1]", "a.json, operation 0: expected an operation, found 1"),
        ("a.json", "[", "a.json: not JSON"),
        ("a.jsonl", "{}\nx", "a.jsonl, line 1: index must be int"),
        ("a.txt", "", "a.txt: a history's name ends in"),
        ("a.edn.gz", "{}", "a.edn.gz: Not a gzipped file"),
    ],
)
def test_what_is_no_file_of_a_history_is_refused(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(MalformedHistory, match=says):
        history.read(tmp_path / name)
