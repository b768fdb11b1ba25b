pytest_plugins = ["wheelmem.testing"]
