"""Tables on how gradients are distributed over rows, from synthetic rows of softmax, for tests of what reads them."""

import math

import pandas as pd

from sqrtdk.results import reading
from sqrtdk.statistics import distribution
from sqrtdk.studies import crossovers

N_BLOCKS = 20
SIZE = ("low", "high", "n_rows")


def gradient_distribution(ensembles, d_k, n_keys, scalings, seed=3, n_rows=300) -> pd.DataFrame:
    import synthetic_results as synthetic

    rows = []
    for name in ensembles:
        number = seed + synthetic.ENSEMBLES_ORDER.get(name, 99)
        for d in d_k:
            for n in n_keys:
                for scaling in scalings:
                    _, norms = synthetic._rows_of_softmax(d, n, scaling, number, n_rows)
                    for measure, values in (("jacobian_frobenius", norms["grad_logits"]), *norms.items()):
                        uniform = (n - 1) ** 0.5 / n if measure in ("jacobian_frobenius", "grad_logits") else None
                        key = dict(ensemble=name, d_k=d, n_keys=n, scaling=scaling, measure=measure)
                        size = dict(n_rows=n_rows, n_blocks=N_BLOCKS)
                        found = distribution.statistics(values.reshape(N_BLOCKS, -1), uniform)
                        rows += [key | row | size for row in found]
    return pd.DataFrame(rows)


def tables(ensembles, d_k, n_keys, scalings, n_rows=300) -> dict[str, pd.DataFrame]:
    """Return the tables of one run, whose crossovers are those of its gradients."""
    import synthetic_results as synthetic

    arguments = ensembles, d_k, n_keys, scalings
    gradients = synthetic.gradient_magnitude(*arguments, n_rows=n_rows)
    spread = {"gradient_distribution": gradient_distribution(*arguments, n_rows=n_rows)}
    return {**spread, **compared(gradients), **by_keys()}


def by_keys(n_keys=(3, 16, 64, 1024), d_k=(4, 16, 64, 256)) -> dict[str, pd.DataFrame]:
    """Return ratios that fall as e^{−√(d_k/n)} in the median, by the logits of 3 keys always below 1, and where."""
    ratios, crossings = [], []
    for n in n_keys:
        for measure, size in (("jacobian_frobenius", 1.0), ("grad_logits", 1.0), ("grad_query", 9.0)):
            for quantity in ("median", "rms"):
                if (measure, quantity) == ("jacobian_frobenius", "rms"):
                    continue
                key = {"n_keys": n, "measure": measure, "quantity": quantity}
                most = size * (0.9 if n == 3 else n**0.5)
                for d in d_k:
                    ratio = most * (math.exp(-math.sqrt(d / n)) if quantity == "median" else 1.0)
                    ends = (ratio / 1.1, ratio * 1.1, 8192) if quantity == "median" else (None, None, None)
                    ratios.append(key | {"d_k": d, "ratio": ratio} | dict(zip(SIZE, ends, strict=True)))
                star = n * math.log(most) ** 2
                found = {"d_k_star": star, "ci_low": 0.9 * star, "ci_high": 1.1 * star, "reason": None}
                if quantity == "rms" or most < 1:
                    reason = "below at every width" if most < 1 else "not below at the largest width"
                    found = dict.fromkeys(found) | {"reason": reason}
                crossings.append(key | found | {"d_k_formula": None})
    return {
        "gradient_by_keys": reading.frame("gradient_by_keys", ratios),
        "key_crossovers": reading.frame("key_crossovers", crossings),
    }


def compared(gradients: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables that compare gradients with and without the scale."""
    sizes = {}
    for row in gradients.to_dict("records"):
        if row["measure"] in crossovers.MEASURES:
            for quantity, value, se in (("median", "median", "median_se"), ("rms", "estimate", "se")):
                cells = sizes.setdefault((row["ensemble"], row["n_keys"], row["measure"], quantity), {})
                cells[row["d_k"], row["scaling"]] = row[value], row[se], row["n_blocks"]
    rows = gradients.astype(object).where(gradients.notna(), None).to_dict("records")
    return {
        "gradient_crossovers": reading.frame("gradient_crossovers", crossovers.crossovers(sizes)),
        "gradient_decomposition": reading.frame("gradient_decomposition", crossovers.decomposition(rows)),
    }
