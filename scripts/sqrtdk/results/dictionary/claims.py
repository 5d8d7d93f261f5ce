"""Tables on the claims of two articles."""

from sqrtdk.results.columns import number, table, text, truth, whole
from sqrtdk.results.dictionary.common import N_KEYS

FILES = {
    "claim_checks.csv": table(
        """
        What claims say and no other table holds, each beside its exact value where there is one. No configuration
        changes the widths and numbers of keys.
        """,
        check=text("what is measured"),
        case=text("which of several cases; an empty cell where there is one"),
        d_k=whole("width of one head, 0 where it has no part in the check"),
        n_keys=whole("keys in a row, 0 likewise"),
        estimate=number("mean over independent blocks, or over the heads of the dumps"),
        se=number(
            "its standard error; 0 of what has no chance in it. A share of 0 or 1 has the error of Agresti and Coull"
        ),
        exact=number("exact value where there is one"),
        n_blocks=whole("independent blocks or heads, 0 where nothing is drawn"),
    ),
    "claims.csv": table(
        """
        The claims of two widely read articles, restated, and the verdict of a test on each. `holds` where the
        interval of the measured statistic lies within the expected range, `fails` where it lies wholly outside of
        it, else `undecided`; `holds_if` where the same statistic is within the range under a condition and outside
        of it without; `opinion`. Where several numbers have to be in range, or one of several, the one that decides
        is given; of equals that nearest to its threshold. Thresholds belong to kinds of claims and stand in
        `scripts/sqrtdk/claims/thresholds.py`, each with its reason.
        """,
        claim=text("number of the claim"),
        source=text("article, A or B"),
        statement=text("the claim in our words"),
        expected=number("value of the statistic if the claim is true, or the bound of it"),
        measured=number("measured value"),
        se=number("its standard error, 0 of what is exact"),
        margin=number("how far from the expected value still counts, in the unit of the statistic; 0 at a bound"),
        verdict=text("`holds`, `holds_if`, `fails`, `undecided` or `opinion`"),
        evidence=text("figure or table that shows it, by its anchor in the report"),
        relation=text("`near` the expected value, `at_least` or `at_most` the bound"),
        low=number("lower end of the interval of the measured value, by Student's t"),
        high=number("upper end"),
        level=number("level of the interval, 0.95 or, where k numbers have to be in range, 1 − 0.05/k"),
        statistic=text("what is measured"),
        kind=text(
            "what the test rests on: `arithmetic`, `simulated`, `trained` (small models trained from scratch) or "
            "`real` (heads of a trained model)"
        ),
        d_k=whole("width of one head at which it was measured"),
        n_keys=N_KEYS,
        holds_if=text("condition under which it was measured"),
        not_if=text("the case without the condition"),
        not_if_measured=number("the same statistic there"),
        not_if_se=number("its standard error"),
        not_if_low=number("lower end of its 95 % interval"),
        not_if_high=number("upper end"),
        not_if_d_k=whole("width of one head there"),
        not_if_n_keys=whole("keys in a row there"),
        surprise=truth("whether the claim is widely repeated and does not simply hold"),
        instead_of=text("what was asked for where the run has only a neighbouring width or number of keys"),
        shipped=truth("whether the number comes from the training that ships with the project"),
        reason=text(
            "why it is undecided: `interval` (across the edge of the range), `no_error`, `missing`, `untested` (what "
            "it says was not measured; what was only bears on it) or `untested_part` (what was measured holds)"
        ),
        missing=text("what the run lacks for the test"),
        longer=truth("whether the shipped training took more steps on the task than that of the run"),
        threshold=text("name of the threshold, a bound or the margin around the expected value"),
        reason_for_threshold=text("why it is where it is"),
        distance=number(
            "how far inside of the expected range the measured value is, in its own unit; negative where it is outside"
        ),
        relative_distance=number("the distance over the size of the threshold"),
        not_if_distance=number("the distance without the condition"),
        not_if_relative_distance=number("the same over the size of the threshold"),
        other_threshold=number("another threshold that would be as reasonable"),
        other_verdict=text("the verdict that the other thresholds would give"),
        theorem=text("name of what several claims say; they count once"),
        identity=truth("whether the statement follows from definitions, so that no data could refute it"),
        remark=text("what the test does not reach, or what belongs beside it"),
    ),
}
