"""Say at the end of a run which jobs failed, what went wrong in each, what to do, and where its log is."""

import re
from pathlib import Path

from program import CPU_LINE

NAMED = 10
"""Jobs that are named; of more there is the number only."""
LONGEST = 400
"""Characters of a message."""
REMEDIES = {
    r"MemoryError|Unable to allocate|Cannot allocate memory|bad_alloc": "run fewer jobs at once (--cores 1), or on a "
    "cluster give the rule more memory (--set-resources RULE:mem_mb=2000)",
    r"No space left|Disk quota exceeded": "make room on the disk",
    r"ModuleNotFoundError": "install the pinned packages (make runtime) and run with their Python",
    r"": "mend the file or the setting that it names; if it names none, the program is at fault: the log shows where",
}
"""What a message says, as a pattern, and what to do about it; the first that fits counts."""
STOPPED = "its program said nothing: it did not start, or was stopped, as it is for want of memory or time"
RESTART = "see above what Snakemake says, on a cluster .snakemake/slurm_logs too; give it more memory or time"
UNSEEN = "its program ended well, but not all of its files were found"
LOOK = "see above what Snakemake misses; on a slow network disk, wait for it longer (--latency-wait 120)"


def explain(failed, since: float) -> str:
    """Return the last words of a run in which jobs failed, or nothing if none did.

    failed: jobs of Snakemake, or groups of them, that failed for good. since: a log that is older is of another run.
    """
    jobs = sorted((job for one in failed for job in _culprits(one, since)), key=_cell)
    if not jobs:
        return ""
    lines = [f"{len(jobs)} jobs failed:" if len(jobs) > 1 else "1 job failed:"]
    for job in jobs[:NAMED]:
        fault, remedy = diagnose(_said(job, since))
        lines += [f"  {_cell(job)}", *(f"      {line}" for line in fault.splitlines()), f"      to do: {remedy}"]
        lines += [f"      log:   {Path(log).absolute()}" for log in job.log]
    if len(jobs) > NAMED:
        lines += [f"  and {len(jobs) - NAMED} more"]
    return "\n".join([*lines, "Then give the same command again: what is finished is kept."])


def diagnose(said: str) -> tuple[str, str]:
    """Return what went wrong and what to do, from the text of a log."""
    message = last_message(said)
    if not message:
        return STOPPED, RESTART
    if ended_well(said):
        return UNSEEN, LOOK
    return message, next(remedy for pattern, remedy in REMEDIES.items() if re.search(pattern, message))


def last_message(said: str) -> str:
    """Return the last message of a log: an exception with all its lines, but without the traceback; else a line."""
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    after = lines[starts[-1] + 1 :] if starts else []
    begin = next((number for number, line in enumerate(after) if not line.startswith(" ")), len(after))
    message = "\n".join(after[begin:] or lines[-1:])
    return message if len(message) <= LONGEST else f"{message[:LONGEST]}…"


def ended_well(said: str) -> bool:
    """Return whether a program came to its last line."""
    last = said.strip().rpartition("\n")[2]
    return bool(re.fullmatch(CPU_LINE.format(r"[\d.]+", r"[\d.]+"), last))


def _culprits(job, since: float) -> list:
    """Return the job, or of a group those jobs whose programs said what went wrong.

    The others of a group ended well, did not begin, or were stopped when one failed. Where none said anything, those
    are to blame that had begun and did not end well; where none had begun, all of them.
    """
    if not job.is_group():
        return [job]
    begun = [(one, _said(one, since)) for one in job.jobs if any(_is_new(log, since) for log in one.log)]
    bad = [(one, said) for one, said in begun if not ended_well(said)]
    return [one for one, said in bad if last_message(said)] or [one for one, _ in bad] or list(job.jobs)


def _cell(job) -> str:
    wildcards = ", ".join(f"{name} = {value}" for name, value in job.wildcards_dict.items())
    return f"{job.rule.name}: {wildcards}" if wildcards else job.rule.name


def _said(job, since: float) -> str:
    logs = [Path(log) for log in job.log if _is_new(log, since)]
    return "\n".join(log.read_text("utf-8", errors="replace") for log in logs)


def _is_new(log: str, since: float) -> bool:
    # Clocks of a cluster's machines, and time stamps of disks, may differ a little.
    return Path(log).is_file() and Path(log).stat().st_mtime >= since - 2
