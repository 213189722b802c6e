"""Why: experiments on failing trials, and every suspected cause weighed against what they gave."""

from repro.diagnose.diagnosing import Question, diagnose
from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, Diagnosis, Verdict
from repro.diagnose.words import sentences, to_json

__all__ = ["Cause", "Diagnosis", "Evidence", "Question", "Verdict", "diagnose", "sentences", "to_json"]
