from hypothesis import settings

pytest_plugins = (
    "pytester",
    "tests.plugins.monetdb",
    "tests.plugins.postgresql",
    "tests.plugins.engine",
    "tests.plugins.support",
    "tests.plugins.effort",
    "tests.plugins.selection",
    "tests.plugins.reruns",
    "tests.plugins.garbage",
    "tests.plugins.uncommitted",
    "tests.plugins.long_snapshots",
)

# The time of an example depends on the machine's other load.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
