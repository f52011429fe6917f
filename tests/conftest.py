from hypothesis import settings

pytest_plugins = (
    "pytester",
    "tests.plugins.monetdb",
    "tests.plugins.postgresql",
    "tests.plugins.engine",
    "tests.plugins.support",
    "tests.plugins.selection",
)

# What an example takes depends on what else the machine does.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
