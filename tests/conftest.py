pytest_plugins = ("pytester", "tests.plugins.engine", "tests.plugins.support")
