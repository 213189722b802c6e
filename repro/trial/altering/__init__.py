"""A test run in another way than its file says: other arguments, constants, precision or switches."""
