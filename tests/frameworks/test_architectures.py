"""Every architecture is captured with one call; its own scale is sound, and each wrong one is found with its factor."""

import architectures
import faults
import pytest

import sqrtdk

SAME = 5e-3


def on_scale(judgement) -> list:
    """Return the findings on the scale, the worst first."""
    groups = judgement.bugs + judgement.warnings + judgement.notes
    return [group.finding for group in groups if "scale" in group.finding.kind]


def words(judgement) -> str:
    """Spell a verdict in a cell: the worst finding on the scale, or healthy."""
    about = on_scale(judgement)
    if not about:
        return "healthy"
    names = about[0].explanations
    return f"{about[0].level} × {about[0].factor:.3g}: {' / '.join(names[:2]) or about[0].kind}"


@pytest.mark.parametrize("one", architectures.ARCHITECTURES, ids=lambda one: one.name)
def test_an_architecture(one, rows, tmp_path):
    model, batch = architectures.build(one)
    cap = sqrtdk.capture(model, batch)
    assert len(cap) == one.modules
    calls = list(cap.values())
    assert all(call.q.shape[-1] == one.width for call in calls)
    assert not cap.notes

    own = cap.audit(stage="init")
    assert own.ok, own
    assert {row["scale_source"] for row in own.rows} <= {"captured", "measured"}
    # What is saved is judged alike, without an option.
    saved = sqrtdk.audit(cap.save(tmp_path / "a.npz"), stage="init")
    assert [row["findings"] for row in saved.rows] == [row["findings"] for row in own.rows]
    assert [row["factor"] for row in own.rows] == pytest.approx([one.right] * len(own.rows), rel=SAME)

    shown = f"{calls[0].scale:.4g} ({calls[0].scale_from})"
    if any(gain not in (None, 1.0) for gain in calls[0].gains):
        shown += f", q × {calls[0].gains[0]:.3g}, k × {calls[0].gains[1]:.3g}"
    row = [one.name, str(len(cap)), shown, words(own)]
    numbers = (1.0, one.right**2, architectures.WIDTH**-0.5, one.other**-0.5)
    for fault, number in zip(faults.FAULTS, numbers, strict=True):
        if abs(number / one.right - 1) < SAME:
            row.append("that is its own")
            continue
        with faults.scaled(model, cap, number):
            wrong = sqrtdk.capture(model, batch).audit(stage="init")
        found = on_scale(wrong)
        if one.normalised and fault == "no scale":
            # The gains of the norms could learn it: no certain mistake.
            assert found[0].level == "warning"
        assert found, (fault, wrong)
        # Where weights carry the scale, the audit holds what it sees against the usual one.
        usual = one.width**-0.5 if one.right == 1 else one.right
        assert found[0].factor == pytest.approx(number / usual, rel=SAME)
        row.append(words(wrong))
    rows[one.name] = row
