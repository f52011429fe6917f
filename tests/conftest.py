pytest_plugins = (
    "pytester",
    "tests.plugins.engine",
    "tests.plugins.monetdb",
    "tests.plugins.support",
)
