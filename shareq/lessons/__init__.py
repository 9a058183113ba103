"""Tools of the tutorials: a bench for experiments, the life of one record, crews and programs at work, and checks.

A learner's answer is a function; a check reads only the function's effects in the journal.
"""

from shareq.lessons.bench import Bench, settle, with_one_stuck
from shareq.lessons.checks import NotYet, Passed, check, check_life, check_window, in_flight
from shareq.lessons.crew import Crew, Shift, Stint, shifts_plot, work_together
from shareq.lessons.delays import delays_plot
from shareq.lessons.life import LOADED, Life, Moment, life
from shareq.lessons.program import Program, ProgramFailed

__all__ = [
    "LOADED",
    "Bench",
    "Crew",
    "Life",
    "Moment",
    "NotYet",
    "Passed",
    "Program",
    "ProgramFailed",
    "Shift",
    "Stint",
    "check",
    "check_life",
    "check_window",
    "delays_plot",
    "in_flight",
    "life",
    "settle",
    "shifts_plot",
    "with_one_stuck",
    "work_together",
]
