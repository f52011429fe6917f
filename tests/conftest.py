pytest_plugins = (
    "pytester",
    "tests.plugins.monetdb",
    "tests.plugins.engine",
    "tests.plugins.support",
)
