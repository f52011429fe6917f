"""Our verdicts are held against Elle's output."""

import pytest
from click.testing import CliRunner

from jepsen.elle.__main__ import main
from tests.jepsen.test_list_append import HISTORIES, INDEX

pytestmark = pytest.mark.engine_free


def compare(tmp_path, entries, **changed):
    """Hold ours against Elle's, as its project prints them."""
    lines = [
        f'{{:file "{HISTORIES / entry["name"]}.edn", :model :{model}, '
        f":valid {changed.get(model, said['valid'])}, :anomalies []}}"
        for entry in entries
        for model, said in entry["elle"].items()
    ]
    (tmp_path / "verdicts.edn").write_text("\n".join(lines))
    return CliRunner().invoke(main, [str(tmp_path / "verdicts.edn")])


# With its open invocation closed, as our project does it, Elle could tell.
CLOSED = [entry for entry in INDEX if entry["name"] != "valid-open-invoke"]


def test_they_agree_on_every_history_and_model(tmp_path):
    result = compare(tmp_path, CLOSED)
    assert result.exit_code == 0, result.output
    assert f"{len(CLOSED) * 6} verdicts compared, 0 differ" in result.output


@pytest.mark.parametrize("said", ["false", ":unknown"])
def test_difference_is_told(tmp_path, said):
    result = compare(tmp_path, INDEX[:1], serializable=said)
    assert result.exit_code == 1
    assert "valid-serial.edn, serializable: Elle says" in result.output


def test_nothing_to_compare_is_no_agreement(tmp_path):
    assert compare(tmp_path, []).exit_code == 1
