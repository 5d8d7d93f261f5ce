"""docs/benchmarks.md from the lines of the table: the machine, how it was measured, the table, the missed goals."""

from collections.abc import Sequence

from bench_timing import HEAD, Line, Spread, machine, number

TITLES = {
    "1": "Precision of Var(q·k) for the time",
    "2": "The kernel against its floor",
    "3": "The kernels of rows against theirs",
    "4": "A whole run",
    "5": "Growth",
    "6": "The audit",
}
HOW = """\
Made by `make bench`, and not by hand. What is compared is called in turn, {pairs} rounds after one that is thrown
away, in one process on one core; times are CPU seconds. A ratio is the median over the rounds, with the least and the
largest.

- **Precision per CPU second** is 1/(relative variance × CPU seconds), which does not depend on how long one goes on.
  Plain NumPy is `q, k = rng.standard_normal((2, n, d)); (q * k).sum(1).var()`, and the same with Laplace numbers,
  with a common factor (equicorrelated) and with a loop over the components (AR(1)); its relative variance is exact,
  (excess kurtosis + 2)/n. The product's kernel is `moments.sum_blocks` with the plan of the default run; its relative
  variance is the square of the standard error between blocks, averaged over the rounds. Tests hold that error to the
  scatter of repeated estimates and to the exact variance of a block, and `benchmarks/coverage.py` to the coverage of
  intervals. Beside the variance the kernel finds mean, within-row variance, kurtosis and quartiles, which plain NumPy
  here does not.
- **A floor** draws the same random numbers and multiplies the same matrices (part 2), or multiplies the same matrices
  and takes as many exponentials in double precision (part 3), and does nothing else.
- **The whole run** is the default configuration in a new folder, once, on all cores; what follows it takes place in
  the same folder, but for `make quick`, which has its own. Of an edit the number held against its goal is seconds of
  wall time, for two quiet cores; what takes minutes is measured once. Kernels are what the programs of the rules that
  simulate, train, tabulate and audit spend after their imports.
- **Growth**: each point a process of its own, 32 rows and three scale rules at each; memory is the peak of resident
  memory.
- **The audit** and a program that reads the same arrays take turns, each in a process of its own.
"""
TRIED = {
    "1": """\
At a few components per vector a score is as expensive as the numbers it is made of, and blocks share so many of them
that independent pairs are as good. Tried: fewer queries per block (the plan weighs that already); sums over small
axes as products with ones, and scores worked on in pieces that stay in the cache, which halved the time at d_k = 1.""",
    "2": """\
The time beyond the floor goes into the scores: converting them to double precision, squares, row sums, inner products
for the third and fourth moments, and keeping a million for the quartiles. A block of m queries and m keys has
m/(2 d_k) scores for each random number, so this weighs most where blocks are much higher than wide, and at small
d_k, where also each product of small matrices is a call of its own. Tried: whole blocks summed at a time where a block
is a stack of products (kept: it spares a third to a half of that time up to d_k = 8); pieces of 2^14 to 2^17
scores (2^15 is best); squares in memory that is kept, and squares of a row from the sum over the block (kept); scores
laid out with the products last (slower from d_k = 8 on); sums of powers without scores at d_k = 1, and row sums from
the sum of the keys (not kept: quartiles and histogram need the scores, and single precision would lose digits).
Smaller blocks would lower this ratio, and the precision for the time with it.""",
    "4": """\
Where less than the goal is spent in kernels, the table says what on instead. Each of the hundreds of small jobs pays
for starting Python and importing NumPy (0.1 s), as much as its own work. Tried: one job for each ensemble with all
its widths, which would save most of this, but then an edit of one d_k simulates all of them again; Snakemake's
groups, which start a process for each job all the same. Kept: imports only of what a job needs, one hash in place of
dozens of source files among the inputs of each job, figures laid out once, training in single precision.""",
    "6": """\
A quarter of the time multiplies queries and keys in double precision, a fifth imports NumPy and SciPy: both together
are above what reading takes three times. The rest is some forty passes over the scores, for the entropies, gradients
and largest weights and for what each of them is without each token, which the intervals come from. Fewer would do
with single precision, whose digits are not enough for rows that are nearly one-hot, or with a sample of rows, whose
extremes and sinks are not those of the head. Kept: memory that stays with the process (half of the time went into
pages that the system zeroes), pieces of 2^16 scores, extremes by row before the mean is added, arrays that are
used again.""",
}
"""What is behind a missed goal of each part, and what was tried."""


def page(table: Sequence[Line], pairs: int, seconds: float) -> str:
    """Return the page as Markdown."""
    described = "\n".join(f"- {name}: {value}" for name, value in machine().items())
    text = [
        "# Benchmarks",
        HOW.format(pairs=pairs) + f"\nThe whole of it took {seconds / 60:.0f} minutes.",
        f"## The machine\n\n{described}",
        f"## The table\n\n{markdown(table)}",
        "## Goals\n\n" + goals(table),
    ]
    return "\n\n".join(part.strip() for part in text) + "\n"


def markdown(table: Sequence[Line]) -> str:
    """Return the lines as a Markdown table."""
    rows = [HEAD, ("---",) * len(HEAD), *(line.cells for line in table)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def goals(table: Sequence[Line]) -> str:
    """Say for each part how many goals are met, and for those that are missed by how much, why, and what was tried."""
    text = []
    for key, title in TITLES.items():
        judged = [line for line in table if line.part.startswith(f"{key} ") and line.reached is not None]
        if not judged:
            continue
        missed = [line for line in judged if not line.reached]
        text.append(f"### {title}\n\n{len(judged) - len(missed)} of {len(judged)} goals are met.")
        if missed:
            text.append("Missed:\n\n" + "\n".join(map(_missed, missed)))
            text.append(TRIED.get(key, ""))
    return "\n\n".join(part for part in text if part)


def _missed(line: Line) -> str:
    value = line.value if isinstance(line.value, Spread) else number(line.value)
    profile = f"; {line.profile}" if line.profile else ""
    return f"- {line.case}: {value}, to be {line.goal}{profile}"
