"""Trials that an adapter looks at: it knows a test's operator, and where its derivatives jump."""
