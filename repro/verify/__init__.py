"""Whether a patch or a revision fixes the failure: how many clean runs that takes, and what they showed.

    found = Verifying(runner=runner, as_is=as_is, fixed=fixed, changed=changed, claim=claim, ...).run()
    print("\\n".join(sentences(found)))

docs/verify-fix.md says what each answer promises.
"""

from repro.verify.claim import Claim, Evidence, Kind, Verdict, claim_of, decide
from repro.verify.sides import Side
from repro.verify.verifying import Pace, Verified, Verifying
from repro.verify.words import asked, sentences, to_json

__all__ = [
    "Claim",
    "Evidence",
    "Kind",
    "Pace",
    "Side",
    "Verdict",
    "Verified",
    "Verifying",
    "asked",
    "claim_of",
    "decide",
    "sentences",
    "to_json",
]
