# It runs in a process of its own (`make test-sqlalchemy`): its plugin changes how pytest
# collects and names tests.
collect_ignore = ["suite"]
