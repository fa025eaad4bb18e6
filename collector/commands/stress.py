"""``crossover stress``: constant streams through one configuration for hours, and a verdict."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from collector.commands.run import lab_variables, runs_dir
from collector.errors import CrossoverError, UsageError
from collector.matrix.matrix import load_matrix
from collector.run.campaign import find_matrix
from collector.run.lab_kind import for_stress, kind_of
from collector.stress import log
from collector.stress.plan import PLAN_FILE, StressPlan, choose, load_stress, stream_tests
from collector.stress.verdict import Outcome, StressVerdict, judge

PLAYBOOK = "stress"
# The programs end by themselves; the last lines come at the latest this long after.
END_GRACE_S = 180.0
LEAST_POLL_S = 5.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "stress",
        help="run constant streams through one configuration for hours, and judge",
        description="The streams run on the hosts of the inventory (CROSSOVER_INVENTORY, by default"
        " the embedded lab, which is started) and need no controller: an interrupt leaves them"
        " running, --attach goes on.",
    )
    parser.add_argument("matrix", nargs="?", help="a name of playbooks/matrices, or a .yml file")
    parser.add_argument("--configuration", metavar="NAME", help="which one of the matrix")
    parser.add_argument("--hours", type=float, default=0.0, help="how long")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long, added to the hours")
    parser.add_argument(
        "--interval", type=float, default=60.0, metavar="S", help="seconds between samples (60)"
    )
    parser.add_argument(
        "--chunk", type=float, default=60.0, metavar="S", help="seconds of one netperf (60)"
    )
    parser.add_argument(
        "--attach",
        metavar="RUN",
        help="go on with a run, or show one that is over: its folder or name",
    )
    parser.add_argument("--stop", action="store_true", help="with --attach: end the run now")
    parser.add_argument(
        "--keep-going", action="store_true", help="do not end the run at its first failure"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Start or take up a run, see it through, print the report; raises CrossoverError."""
    _check(args)
    if args.attach:
        folder = find_run(args.attach)
        load_stress(folder)
        if log.read_log(folder).stopped:
            return show(folder)  # it is over: the hosts may serve another run by now
        log.append_event(folder, "attached")
    else:
        folder = _start(args)
    try:
        if not args.stop:
            follow(folder, keep_going=args.keep_going)
    except KeyboardInterrupt:
        print(
            f"\nThe streams go on without this program. Go on: crossover stress --attach "
            f"{folder.name}; end them: crossover stress --attach {folder.name} --stop",
            file=sys.stderr,
        )
        return 130
    if not _step(folder, "stopped"):
        _put_back()
    return show(folder)


def _put_back() -> None:
    """The run could not be ended as it should be: put back what can be reached."""
    from collector.run.runner import run_playbook

    outcome = run_playbook("restore")
    if outcome.code:
        print(
            "the hosts could not be put back; when they can be reached, playbooks/restore.yml does",
            file=sys.stderr,
        )


def _check(args: argparse.Namespace) -> None:
    if bool(args.matrix) == bool(args.attach):
        raise UsageError("stress: wanted a MATRIX for a new run, or --attach RUN")
    if args.stop and not args.attach:
        raise UsageError("stress --stop: wanted --attach RUN with it")
    if args.attach:
        return
    from collector.run.runner import inventory

    matrix = load_matrix(find_matrix(args.matrix))
    for_stress(kind_of(inventory()))
    chosen = choose(matrix, args.configuration)
    stream_tests(matrix)
    if args.hours * 60 + args.minutes <= 0:
        hint = chosen.factors.get("published_hours")
        words = f" (published: {hint} hours)" if hint else ""
        raise UsageError(f"stress {matrix.name}: wanted --hours or --minutes above 0{words}")


def find_run(name: str) -> Path:
    """The folder of a run: a path, or a name among the runs. Raises UsageError."""
    for folder in (Path(name), runs_dir() / name):
        if (folder / PLAN_FILE).is_file():
            return folder.resolve()
    known = sorted(path.parent.name for path in runs_dir().glob(f"*/{PLAN_FILE}"))
    words = f"one of {', '.join(known)}" if known else "a stress run (there is none yet)"
    raise UsageError(f"stress --attach: found {name!r}; wanted {words}")


def _start(args: argparse.Namespace) -> Path:
    from collector.run.runner import inventory, must, run_playbook

    matrix = args.matrix
    if matrix.endswith((".yml", ".yaml")):
        matrix = os.path.abspath(matrix)
    runs_dir().mkdir(parents=True, exist_ok=True)
    variables: dict[str, Any] = {
        "bench_stress_state": "started",
        "bench_stress_matrix": matrix,
        "bench_stress_configuration": args.configuration or "",
        "bench_stress_duration": args.hours * 3600 + args.minutes * 60,
        "bench_stress_interval": args.interval,
        "bench_stress_chunk": args.chunk,
        "bench_stress_runs": str(runs_dir()),
        **lab_variables(inventory()),
    }
    print("preparing the hosts and proving the configuration", file=sys.stderr)
    outcome = run_playbook(PLAYBOOK, variables)
    if outcome.interrupted:
        run_playbook("restore")
    must(outcome, f"stress {args.matrix}")
    folder = Path(str(outcome.results["crossover.lab.stress_plan"]["run_folder"]))
    print(f"running: {folder.name}", file=sys.stderr)
    return folder


def _step(folder: Path, state: str) -> bool:
    """Poll the hosts, or end the run; whether the hosts answered. An interrupt is raised."""
    from collector.run.runner import run_playbook

    variables = {
        "bench_stress_state": state,
        "bench_stress_run": folder.name,
        "bench_stress_runs": str(folder.parent),
    }
    outcome = run_playbook(PLAYBOOK, variables)
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.code:
        reason = outcome.failures[0] if outcome.failures else "the playbook failed"
        log.append_failed_poll(folder, reason)
        print(f"\n{reason}", file=sys.stderr)
        return False
    if outcome.results["crossover.lab.stress_record"].get("more"):
        return _step(folder, state)
    return True


def follow(folder: Path, *, keep_going: bool) -> None:
    """Poll until both programs have ended, the run has failed, or nothing more can come."""
    plan = load_stress(folder)
    pause = max(plan.interval_s, LEAST_POLL_S)
    timeline = log.read_log(folder)
    left = plan.duration_s - _ran(timeline) + END_GRACE_S + pause
    deadline = time.monotonic() + max(left, END_GRACE_S)
    line = Line()
    try:
        while time.monotonic() < deadline:
            _step(folder, "polled")
            timeline = log.read_log(folder)
            verdict = judge(plan, timeline, final=False)
            line.show(live(plan, timeline, verdict))
            if timeline.ended or (verdict.outcome is Outcome.FAILED and not keep_going):
                return
            # The server's program outlives the client's: once that has ended nothing is missing.
            if timeline.of("client", "end") is not None:
                return
            rest = plan.duration_s - _ran(timeline)
            time.sleep(min(pause, max(rest, LEAST_POLL_S)))
    finally:
        line.close()


def _ran(timeline: log.Timeline) -> float:
    return max((sample.elapsed_s for sample in timeline.samples["client"]), default=0.0)


def live(plan: StressPlan, timeline: log.Timeline, verdict: StressVerdict) -> str:
    """The line that is shown while a run goes on."""
    parts = [verdict.sentence.rstrip(".")]
    for stream in plan.streams:
        rates = log.received(timeline.chunks, stream)
        if rates:
            parts.append(f"{stream} {rates[-1][1] / 1e6:.1f}·10^6 bit/s")
    parts.append(f"{len(timeline.chunks)} chunks")
    missed = [polls[-1].error for polls in timeline.polls.values() if polls and polls[-1].error]
    if missed:
        parts.append("the hosts do not answer")
    return "; ".join(parts)


class Line:
    """A line that is rewritten on a terminal, and a new one elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Show it."""
        sys.stderr.write(f"\r\x1b[K{text[:160]}" if self._live else f"{text}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Go to a new line."""
        if self._live:
            sys.stderr.write("\n")


def show(folder: Path) -> int:
    """Print the report, write the page; returns the exit code of the verdict."""
    from collector.report import stress_page, writing
    from collector.report.setup_commands import setup_of_stress

    plan, timeline = load_stress(folder), log.read_log(folder)
    verdict = judge(plan, timeline, final=True)
    try:
        page = folder / "report.html"
        setup = setup_of_stress(folder, plan.configuration)
        writing.write_file(page, stress_page.html_page(plan, timeline, verdict, setup))
    except CrossoverError as error:
        print(error, file=sys.stderr)
    sys.stdout.write(stress_page.text(plan, timeline, verdict))
    print(f"\nReport: {page}\nRun folder: {folder}")
    return verdict.exit_code
