pytest_plugins = (
    "pytester",
    "tests.plugins.monetdb",
    "tests.plugins.postgresql",
    "tests.plugins.engine",
    "tests.plugins.support",
    "tests.plugins.selection",
)
