pytest_plugins = ["tests.spark_fixtures"]
