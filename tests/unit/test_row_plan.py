"""How many rows are simulated: bounds of cost and memory, and goals that the pilot's spread would reach."""

import numpy as np
import pytest

from sqrtdk.rows import plan as row_plan
from sqrtdk.rows.plan import Share
from sqrtdk.sampling import ensembles
from sqrtdk.studies import saturation

FACTORS = (1.0, 0.125)


def planned(d_k=64, n_keys=64, n_logits=10_000_000, matched=False, spreads=(1.0, 1.0), streamed=False):
    """Plan with a pilot in which every measure of a factor has so large a relative spread between independent rows."""
    rng = np.random.default_rng(1)

    def pilot(plan):
        shape = plan.shares[1.0].softened, plan.n_queries
        found = {}
        for factor, spread in zip(FACTORS, spreads, strict=True):
            values = rng.gamma(spread**-2, spread**2, shape)
            roots = {name: np.sqrt(values) for name in row_plan.SQUARED}
            found[factor] = dict.fromkeys(row_plan.GOALS, values) | roots
        return found

    return row_plan.plan(d_k, n_keys, n_logits, matched, FACTORS, pilot, streamed)


@pytest.mark.parametrize("matched", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("n_keys", [1, 2, 16, 1000, 2**20])
@pytest.mark.parametrize("d_k", [1, 2, 64, 4096, 65536])
def test_plan_keeps_its_bounds(d_k, n_keys, matched, streamed):
    cap = 400_000
    plan = planned(d_k, n_keys, cap, matched, spreads=(0.5, 0.01), streamed=streamed)
    logits, scalars = plan.n_queries * n_keys, (plan.n_queries + n_keys) * d_k
    assert plan.n_queries >= 1
    if matched:
        assert plan.n_queries <= n_keys
    assert plan.most * plan.n_queries <= row_plan.MAX_ROWS
    # More logits or random numbers than the cap allows only for the least number of blocks.
    assert plan.most >= row_plan.MIN_BLOCKS
    least = plan.most == row_plan.MIN_BLOCKS
    assert least or plan.most * logits <= cap
    assert least or plan.most * scalars <= row_plan.SCALARS_PER_LOGIT * cap
    assert plan.batch == 1 or plan.batch * scalars <= row_plan.BATCH_SCALARS
    assert plan.batch == 1 or plan.batch * logits <= row_plan.BATCH_LOGITS
    assert 1 <= plan.n_pulled <= plan.n_queries
    assert (plan.piece is not None) == streamed
    if streamed:
        assert plan.batch == 1
        assert plan.piece == 1 or plan.piece * d_k <= row_plan.PIECE_SCALARS
    else:
        assert 1 <= plan.n_spectral <= plan.n_queries
    for share in plan.shares.values():
        assert row_plan.MIN_BLOCKS <= share.graded <= share.softened <= plan.most
        assert 1 <= share.n_queries <= plan.n_queries
        # Whole batches, but for a last one that the cap cuts.
        assert all(n == plan.most or n % plan.batch == 0 for n in (share.graded, share.softened))


def test_each_factor_gets_what_its_spread_needs():
    plan = planned(spreads=(2.0, 0.02))
    wide, narrow = (plan.shares[factor] for factor in FACTORS)
    assert plan.n_queries > row_plan.MIN_ROWS / row_plan.WANTED_BLOCKS
    # Squares with a relative spread of 2 to a relative error of 4 %, and means to one of 1 %.
    needed = [row_plan.MARGIN * (2 / goal) ** 2 for goal in (0.04, 0.01)]
    found = [blocks * wide.n_queries for blocks in (wide.graded, wide.softened)]
    for rows, expected in zip(found, needed, strict=True):
        assert expected * 0.9 < rows < expected * 1.3
    assert wide.n_queries == plan.n_queries
    assert narrow.softened * narrow.n_queries < 2 * row_plan.MIN_ROWS
    assert narrow.softened >= row_plan.WANTED_BLOCKS


def test_other_factors_change_nothing():
    assert planned(spreads=(2.0, 0.02)).shares[1.0] == planned(spreads=(2.0, 5.0)).shares[1.0]


def test_cap_ends_what_the_goal_does_not():
    plan = planned(n_logits=1_000_000, spreads=(5.0, 0.1))
    assert plan.shares[1.0].softened == plan.most
    assert plan.most * plan.n_queries * 64 <= 1_000_000


def test_few_rows_do_where_the_spread_is_small_and_the_cap_leaves_few_blocks():
    plan = planned(4096, 1024, 4_000_000, spreads=(5.0, 0.02))
    wide, narrow = (plan.shares[factor] for factor in FACTORS)
    assert plan.most == row_plan.MIN_BLOCKS
    assert wide == Share(plan.most, plan.most, plan.n_queries)
    assert narrow == Share(plan.most, plan.most, row_plan.MIN_ROWS // row_plan.MIN_BLOCKS)
    assert narrow.n_queries < wide.n_queries / 2


def test_needed_blocks():
    rng = np.random.default_rng(2)
    rows = 1 + 0.3 * rng.standard_normal((400, 50))
    independent = row_plan.needed_blocks({"entropy": rows}, "entropy")
    assert independent == pytest.approx(row_plan.MARGIN * 0.3**2 / 50 / 0.01**2, rel=0.2)
    shared = rows + 0.3 * rng.standard_normal((400, 1))
    assert row_plan.needed_blocks({"entropy": shared}, "entropy") > 30 * independent
    # A pilot of equal block means does not promise a certain result.
    alike = rows - rows.mean(axis=1, keepdims=True) + 1
    assert row_plan.needed_blocks({"entropy": alike}, "entropy") == pytest.approx(independent, rel=0.2)
    assert row_plan.needed_blocks({"grad_query": np.zeros((9, 4))}, "grad_query") == 0
    # Norms whose squares cannot be held.
    plain, tiny = (row_plan.needed_blocks({"grad_query": rows * size}, "grad_query") for size in (1.0, 1e-200))
    assert tiny == pytest.approx(plain)


def test_precise():
    assert row_plan.precise("entropy", 2.0, 0.02) is True
    assert row_plan.precise("entropy", 2.0, 0.021) is False
    assert row_plan.precise("grad_key_values", 2.0, 0.04) is True
    assert row_plan.precise("grad_key_values", 0.0, 0.0) is True
    assert row_plan.precise("max_weight", 2.0, 0.0) is None
    assert row_plan.precise("entropy", None, None) is None


def test_large_cap_reaches_the_goals():
    """A pilot plans the blocks, also where rows share much of what is in their keys."""
    equicorrelated = ensembles.build({"family": "equicorrelated", "query_rho": 0.3, "key_rho": 0.3})
    for ensemble in (ensembles.build({"family": "gaussian"}), equicorrelated):
        saturations, gradients, _ = saturation.simulate_cell(
            ensemble, 32, [32], ["none", "1/sqrt(d_k)", "1/d_k"], 1, "g", 5_000_000
        )
        planned = [row for row in saturations + gradients if not row["measure"].endswith("_values")]
        goals = [row for row in planned if row["precise"] is not None]
        assert len(goals) == 3 * 6
        assert sum(row["precise"] for row in goals) >= 17
        assert all(row["n_rows"] < 5_000_000 / 32 / 4 for row in goals)
