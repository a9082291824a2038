"""What an experiment claims is compared with what was found, and printed with it."""

import pytest

from lessons.experiment import Finding, Findings
from lessons.report import print_findings, print_verdict


def make_finding(name: str, *, holds: bool) -> Finding:
    return Finding(
        row={"program": name, "orders/s": 1234},
        claim="a claim",
        difference="" if holds else "1 instead of 2",
        note="state: 2 rows in users",
    )


def test_a_claim_that_does_not_hold_is_a_problem() -> None:
    findings = Findings(claims=[make_finding("plain", holds=False)])

    assert findings.problems == ["plain: a claim: 1 instead of 2"]
    assert str(findings) == "0 of 1 claims"


def test_a_control_whose_claim_holds_is_a_problem() -> None:
    claim, control = make_finding("plain", holds=True), make_finding("less", holds=True)

    findings = Findings(claims=[claim], controls=[control])

    assert findings.problems == ["less must be wrong: a claim"]
    assert str(findings) == "1 of 1 claims, 0 of 1 controls"


def test_a_claim_that_holds_and_a_control_that_does_not_are_none() -> None:
    claim, control = make_finding("plain", holds=True), make_finding("less", holds=False)

    findings = Findings(claims=[claim], controls=[control])

    assert findings.problems == []
    assert str(findings) == "1 of 1 claims, 1 of 1 controls"


def test_what_was_found_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    claims = [make_finding("plain", holds=True), make_finding("packed", holds=False)]

    print_findings(claims)
    is_right = print_verdict("question", {"experiment": Findings(claims=claims)}, 3)

    assert not is_right
    assert capsys.readouterr().out.splitlines() == [
        "program  orders/s  claim",
        "plain    1,234     a claim",
        "packed   1,234     ≠ a claim",
        "  plain: state: 2 rows in users",
        "  packed: state: 2 rows in users",
        "question: experiment 1 of 2 claims, 1 problems, 3 s",
        "  experiment, packed: a claim: 1 instead of 2",
    ]
