"""Since when does it fail: a search along versions or commits, for a test that fails now and then.

    line = version_line("triton", cells, subject)                   # or a CommitLine
    result = Investigation(runner=runner, question=Question(), gpu=0, say=print).versions(line, about={})
    print(sentences(result))

Arrows run one way: investigation -> hunt -> (ends, replaying, between) -> trail -> tryout -> run.
"""

from repro.bisect.commits import Checkout, CommitLine
from repro.bisect.investigation import Investigation
from repro.bisect.lines import VersionLine
from repro.bisect.question import Find, Question
from repro.bisect.result import Result, to_json
from repro.bisect.versions import AXES, version_line
from repro.bisect.words import sentences

__all__ = [
    "AXES",
    "Checkout",
    "CommitLine",
    "Find",
    "Investigation",
    "Question",
    "Result",
    "VersionLine",
    "sentences",
    "to_json",
    "version_line",
]
