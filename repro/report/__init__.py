"""What a maintainer can act on: the issue text, a page with charts, and the evidence in one archive.

    report = gather(ledger, state)
    text = to_markdown(report)      # fits an issue
    page = to_html(report)          # one file, no script

Everything is computed from recorded trials; `repro.report.redact` takes out what identifies people and
machines.
"""

from repro.report.gather import Wanted, gather
from repro.report.html import to_html
from repro.report.markdown import LIMIT, to_markdown
from repro.report.model import Cause, Report
from repro.report.redact import Redactor, redacted_report

__all__ = [
    "LIMIT",
    "Cause",
    "Redactor",
    "Report",
    "Wanted",
    "gather",
    "redacted_report",
    "to_html",
    "to_markdown",
]
