"""Floats, rationals, `cmpg-verify` and the page's script on the same claims; `python -m checks checkers` has more."""

import shutil
from collections import Counter

import pytest
from checks.checkers import judge, posed

NODE = shutil.which("node")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers that overflow are part of the claims
@pytest.mark.skipif(NODE is None, reason="THE PAGE'S CHECKER IS NOT TESTED: node is not installed")
def test_forgeries_are_refused_by_all_and_true_claims_are_verified(programs):
    counts, wrong = Counter(), []
    judge(
        list(posed(claims=25, forgeries=80)),
        {"verified": str(programs / "fast" / "cmpg-verify"), "node": NODE},
        counts,
        wrong,
    )
    assert wrong == []
    assert {form for form, _, _ in counts} == {"joint", "counting", "local", "discounted"}
    for kind in ("random", "forged"):
        everything, accepted, by_floats, by_page = (
            sum(count for (_, own, each), count in counts.items() if (own, each) == (kind, name))
            for name in ("all", "rationals", "floats", "page")
        )
        assert everything > accepted > 10  # there are true ones and false ones
        assert min(by_floats, by_page) > accepted / 5  # and those who compute in intervals are of use
